"""What every mechanism offers: a plan from counts, a draft of what to write, a check of what was written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from dalenius.histogram import Histogram
from dalenius.policy import Policy
from dalenius.randomness import Randomness

Batches = Iterator[pa.RecordBatch]


class Scan(Protocol):
    """A policy's table as a mechanism sees it while planning: counts, not records."""

    @property
    def schema(self) -> pa.Schema:
        """Types of the published columns, after recoding."""

    def histogram(self, columns: tuple[str, ...]) -> Histogram:
        """How often each combination of cells of these columns occurs."""


class Plan(Protocol):
    """What would be published, decided from counts alone. It prints itself, and it is private."""

    @property
    def n_rows(self) -> int:
        """How many records the source has."""

    def to_dict(self) -> dict[str, Any]:
        """The plan as `dalenius plan --json` prints it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """One table of a release, and how its rows come about."""

    name: str
    columns: tuple[str, ...]
    """What is written, in order; the rows may also hold sort keys, which are not."""
    order_by: tuple[str, ...]
    """Row order is information: rows are sorted by these, random tags or published columns."""
    rows: Callable[[Callable[[], Batches]], Batches]
    """From a function that scans the source, the rows in batches. It may leave the source unread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a manifest says about the promise."""

    promise: dict[str, Any]
    assumes: tuple[str, ...]
    not_covered: tuple[str, ...]
    disclosed: tuple[str, ...]
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A plan with its coins tossed: everything that is needed to write the release."""

    method: str
    tables: tuple[PublishedTable, ...]
    statement: Statement
    n_published: int
    n_suppressed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that `verify` looked at."""

    name: str
    ok: bool
    detail: str

    def to_dict(self) -> dict[str, Any]:
        """As `verify --json` prints it."""
        return {"name": self.name, "ok": self.ok, "detail": self.detail}


class Mechanism(Protocol):
    """One way of keeping a promise."""

    kind: str

    def plan(self, policy: Policy, scan: Scan) -> Plan:
        """Decide everything that the counts decide; raise PromiseNotMet if no release can exist."""

    def draft(self, policy: Policy, plan: Any, randomness: Randomness) -> Draft:
        """Toss the coins that need no records, and say how the tables come about."""

    def check(self, connection: duckdb.DuckDBPyConnection, manifest: dict[str, Any]) -> Iterable[Check]:
        """Check the promise on published tables alone; they are views of the connection."""
