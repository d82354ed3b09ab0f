"""What an engine does: look at a table, count it, and write what a mechanism makes of its records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from dalenius.mechanisms.base import PublishedTable, Scan

if TYPE_CHECKING:  # what is published is checked without what reads a policy
    from dalenius.policy import Policy
    from dalenius.release.manifest import TableEntry
    from dalenius.tables.sketch import Sketch
    from dalenius.tables.uniqueness import Rarity, Uniqueness

Progress = Callable[[str, int, int | None], None]
"""Called with what is being done, how many rows are done, and how many there are (None: not known)."""


def silent(step: str, done: int, total: int | None) -> None:
    """Shows nothing."""


class OpenedTable(Scan, Protocol):
    """A policy's table, opened, recoded and checked. It can be read several times, always in one order."""

    def write(self, tables: Sequence[PublishedTable], folder: Path) -> list[TableEntry]:
        """Write the tables of a release as Parquet into its folder, each in its order."""

    def sample(self, columns: Sequence[str], n_rows: int) -> pa.Table:
        """Columns of about so many records, chosen at random, or of all if there are not more."""

    def count_repeated(self, *columns: str) -> tuple[int, int]:
        """How many different cells of a column of the source, published or not, stand in several rows.

        Or of several together; and how many rows these are, both exactly; NULL is no cell, and texts that
        differ only in case, in spaces around them or in how a number is written are one.
        """

    def sample_cells(self, cells: Sequence[str], columns: Sequence[str], n_rows: int) -> pa.Table:
        """All rows of some cells of a column of the source, or of several together, about so many rows.

        With other columns beside them.
        """

    def count_rare(self, columns: Sequence[str], few: int) -> Rarity:
        """How many people are among fewer than `few` with their cells of some published columns, exactly."""

    def uniqueness(
        self, columns: Sequence[str], few: int, fixed: Sequence[str], *, seek: bool = False
    ) -> Uniqueness:
        """The same, and where the engine can also why, and what would help.

        With `seek` a way to leave nobody rare is looked for; `fixed` columns are coarse already.
        """

    def expect_fingerprint(self, key: bytes) -> None:
        """It will be asked for soon: an engine that can starts on it."""

    def fingerprint(self, key: bytes) -> str:
        """A keyed digest of the records that does not depend on their order; of many, of each column's."""

    def earlier_fingerprint(self, key: bytes) -> str:
        """The same as an earlier version made it: for the entries of a ledger that it made."""

    def record_fingerprint(self, key: bytes) -> str:
        """The same of whole records, however many there are."""

    def people(self, policy: Policy, key: bytes) -> pa.Table:
        """Of every record, in order: keyed digests of its person and of person and value, and the value."""

    def sketch(self, key: bytes) -> Sketch | None:
        """By which its people are known again; of all columns of the source, before they are recoded.

        None where no column tells people apart.
        """


class Engine(Protocol):
    """Opens tables."""

    name: str

    def open(
        self, policy: Policy, spill: Path | None, progress: Progress
    ) -> AbstractContextManager[OpenedTable]:
        """Open and check a policy's table; work that outgrows memory goes to `spill`."""
