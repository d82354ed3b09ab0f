"""Everything that an export writes, gathered in one database before any target is touched.

An export explains itself: a row per column, and what the release is and how to count with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from dalenius.errors import InputError, ReleaseCorrupt, did_you_mean
from dalenius.mechanisms.base import VIEW, Place, Weighting, stage
from dalenius.mechanisms.registry import find_room
from dalenius.release.admission import admit
from dalenius.release.folder import StoredRelease
from dalenius.release.verify import verify_release, why_unpublishable
from dalenius.sql import connect, count, identifier


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StagedExport:
    """The tables to write and the view over them."""

    connection: duckdb.DuckDBPyConnection
    tables: tuple[str, ...]
    view: str
    """The view's SELECT."""

    def n_rows(self, table: str) -> int:
        """How many rows a table has."""
        return count(self.connection, f"SELECT count(*) FROM {identifier(table)}")


@contextmanager
def staged(release: StoredRelease, place: Place, columns: Sequence[str]) -> Iterator[StagedExport]:
    """The release's tables, those of its weights, `dictionary` and `about`; a damaged release is refused.

    The view has these columns, or all if there are none.
    """
    room = find_room(release.mechanism, release.method, "export")
    if room is None:
        raise InputError(f"releases of mechanism {release.mechanism!r} cannot be exported")
    chosen = _choose(release, columns)
    _refuse_series(release)
    refuse_damaged(release)
    own = tuple(entry.name for entry in release.manifest.tables)
    with release.connect(connect()) as connection:
        weighting: Weighting = room.weigh(release, connection, place, chosen)
        tables = (*own, *(name for name, _ in weighting.helpers))
        stage(connection, "dictionary", make_dictionary(release, connection, tables, chosen, weighting))
        stage(connection, "about", make_about(release, weighting))
        yield StagedExport(
            connection=connection, tables=(*tables, "dictionary", "about"), view=weighting.view
        )


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


def refuse_damaged(release: StoredRelease) -> None:
    """Whatever is written from a release, it must be what its manifest says, and keep its promise."""
    admit(release)
    failed = [check for check in verify_release(release).checks if not check.ok]
    if failed:
        raise ReleaseCorrupt(
            f"{release.path}: {failed[0].name}: {failed[0].detail}",
            hint=f"dalenius verify {release.path}",
        )


_UNSAID = "a value that the column may have"
_IN_VIEW = "for conditions and groups; rows are candidates, not people"
_HOW = (
    'a count is SUM(weight) of the view "weighted" under any condition, a sum SUM(weight * x), an average '
    "SUM(weight * x) / SUM(weight) where x is not NULL; COUNT(*) and AVG(x) of the view mean nothing"
)
_BARS = "only `dalenius ask` gives standard errors and intervals; a number without them can be all noise"


FORMULAS = "=, +, -, @ (in full width too), a tab or a line break"
"""What spreadsheets take for a formula begins with it."""
_FORMULAS = (
    f"a text or heading that begins with {FORMULAS} has an apostrophe before it, "
    "so that no spreadsheet runs it; `dalenius export --keep-formulas` leaves it out"
)


def make_dictionary(
    release: StoredRelease,
    connection: duckdb.DuckDBPyConnection,
    tables: tuple[str, ...],
    columns: tuple[str, ...],
    weighting: Weighting,
) -> pa.Table:
    """A row per column of every table and of the view."""
    roles = {column.name: column.role for column in release.manifest.columns}
    meanings = {(table, name): text for table, name, text in weighting.columns}
    published = {(table, role): text for table, role, text in weighting.published}
    types, rows = {}, []
    for table in tables:
        for name, kind, *_ in connection.execute(f"DESCRIBE {identifier(table)}").fetchall():
            meaning = meanings.get((table, name))
            if meaning is None:
                types[name] = kind
                rows.append((table, name, kind, roles[name], published.get((table, roles[name]), _UNSAID)))
            else:
                rows.append((table, name, kind, "", meaning))
    rows += [(VIEW, name, types[name], roles[name], _IN_VIEW) for name in columns]
    rows.append((VIEW, "weight", "DOUBLE", "weight", weighting.weight))
    names = ["table_name", "column_name", "type", "role", "meaning"]
    return pa.table(
        {
            name: pa.array(cells, pa.string())
            for name, cells in zip(names, zip(*rows, strict=True), strict=True)
        }
    )


def make_about(release: StoredRelease, weighting: Weighting) -> pa.Table:
    """What the release is, what it promises, and how to count with it."""
    manifest = release.manifest
    unfit = why_unpublishable(manifest)
    rows = [
        ("how to count", _HOW),
        ("how good it is", weighting.note),
        ("error bars", _BARS),
        ("texts in CSV files", _FORMULAS),
        ("release", manifest.id),
        ("created", manifest.created),
        ("for publication", "yes" if unfit is None else f"no: {unfit}"),
        ("mechanism", f"{manifest.mechanism.kind}, {manifest.mechanism.method}"),
        ("promise", json.dumps(manifest.promise, ensure_ascii=False)),
        *(("assumes", text) for text in manifest.assumes),
        *(("not covered", text) for text in manifest.not_covered),
        *(("disclosed", text) for text in manifest.disclosed),
        *((f"table {name}", meaning) for name, meaning in weighting.helpers),
    ]
    topics, texts = zip(*rows, strict=True)
    return pa.table({"topic": pa.array(topics, pa.string()), "text": pa.array(texts, pa.string())})
