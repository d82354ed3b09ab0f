"""Everything that an export writes, gathered in one database before any target is touched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from dalenius.errors import InputError, ReleaseCorrupt, did_you_mean
from dalenius.export.dictionary import make_about, make_dictionary
from dalenius.mechanisms.registry import find_room
from dalenius.question.weighting import Place, Weighting, stage
from dalenius.release.folder import StoredRelease
from dalenius.release.verify import verify_release
from dalenius.sql import connect, count, identifier


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
def staged(release: StoredRelease, place: Place, columns: Sequence[str]) -> Iterator[Staged]:
    """The release's tables, those of its weights, `dictionary` and `about`; a damaged release is refused.

    The view has these columns, or all if there are none.
    """
    room = find_room(release.mechanism, release.method, "export")
    if room is None:
        raise InputError(f"releases of mechanism {release.mechanism!r} cannot be exported")
    chosen = _choose(release, columns)
    _refuse_series(release)
    _refuse_damaged(release)
    own = tuple(entry.name for entry in release.manifest.tables)
    with release.connect(connect()) as connection:
        weighting: Weighting = room.weigh(release, connection, place, chosen)
        tables = (*own, *(name for name, _ in weighting.helpers))
        stage(connection, "dictionary", make_dictionary(release, connection, tables, chosen, weighting))
        stage(connection, "about", make_about(release, weighting))
        yield Staged(connection=connection, tables=(*tables, "dictionary", "about"), view=weighting.view)


def _choose(release: StoredRelease, columns: Sequence[str]) -> tuple[str, ...]:
    known = [column.name for column in release.manifest.columns]
    for name in columns:
        if name not in known:
            raise InputError(f"the release has no column {name!r}; {did_you_mean(name, known)}")
    return tuple(name for name in known if name in columns or not columns)


def _refuse_series(release: StoredRelease) -> None:
    if release.earlier:
        raise InputError(
            f"{release.path.parent} is a series of releases, which have a view each",
            hint=f"export them one by one, like {release.path}; `dalenius ask` combines them",
        )


def _refuse_damaged(release: StoredRelease) -> None:
    failed = [check for check in verify_release(release).checks if not check.ok]
    if failed:
        raise ReleaseCorrupt(
            f"{release.path}: {failed[0].name}: {failed[0].detail}",
            hint=f"dalenius verify {release.path}",
        )
