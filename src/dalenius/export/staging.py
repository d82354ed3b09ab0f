"""Everything that an export writes, gathered in one database before any target is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from dalenius.errors import InputError, ReleaseCorrupt
from dalenius.export.dictionary import make_about, make_dictionary
from dalenius.export.weights import Place, Weighting, bucketize_weights, perturb_weights, stage
from dalenius.release.reader import StoredRelease
from dalenius.release.verify import verify_release
from dalenius.sql import count, identifier

WEIGHTS: dict[str, Callable[[StoredRelease, duckdb.DuckDBPyConnection, Place], Weighting]] = {
    "bucketize": bucketize_weights,
    "perturb": perturb_weights,
}
"""How a release of each mechanism becomes rows with weights."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Staged:
    """The tables to write and the view over them."""

    connection: duckdb.DuckDBPyConnection
    tables: tuple[str, ...]
    view: str
    """The view's SELECT."""

    def n_rows(self, table: str) -> int:
        """How many rows a table has."""
        return count(self.connection, f"SELECT count(*) FROM {identifier(table)}")


@contextmanager
def staged(release: StoredRelease, place: Place) -> Iterator[Staged]:
    """The release's tables, those of its weights, `dictionary` and `about`; a damaged release is refused."""
    make_weights = WEIGHTS.get(release.mechanism)
    if make_weights is None:
        raise InputError(f"releases of mechanism {release.mechanism!r} cannot be exported")
    _refuse_damaged(release)
    own = tuple(str(entry["name"]) for entry in release.manifest["tables"])
    with release.connect() as connection:
        weighting = make_weights(release, connection, place)
        tables = (*own, *(name for name, _ in weighting.helpers))
        stage(connection, "dictionary", make_dictionary(release, connection, tables, weighting))
        stage(connection, "about", make_about(release, weighting))
        yield Staged(connection=connection, tables=(*tables, "dictionary", "about"), view=weighting.view)


def _refuse_damaged(release: StoredRelease) -> None:
    failed = [check for check in verify_release(release).checks if not check.ok]
    if failed:
        raise ReleaseCorrupt(
            f"{release.path}: {failed[0].name}: {failed[0].detail}",
            hint=f"dalenius verify {release.path}",
        )
