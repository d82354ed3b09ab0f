"""Everything that an export writes, gathered in one database before any target is touched."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from dalenius.errors import InputError, ReleaseCorrupt
from dalenius.export.weights import VIEW, Place, Weighting, bucketize_weights, perturb_weights, stage
from dalenius.release.reader import StoredRelease
from dalenius.release.verify import verify_release
from dalenius.sql import count, identifier

WEIGHTS: dict[str, Callable[[StoredRelease, duckdb.DuckDBPyConnection, Place], Weighting]] = {
    "bucketize": bucketize_weights,
    "perturb": perturb_weights,
}
"""How a release of each mechanism becomes rows with weights."""
_OF_TABLES = {
    "bucket": "the number of the person's bucket; numbers are random",
    "count": "how many people of the bucket have the value",
    "part": "the number of the record's part; numbers are random",
}
_OF_ROLES = {
    "qit": {"quasi": "as it is in the table"},
    "st": {"sensitive": "a value that people of the bucket have, nobody knows who"},
    "data": {"quasi": "as it is in the table", "sensitive": "published at random: not a person's own value"},
    "part_values": {"sensitive": "a value that the part has"},
    VIEW: {"quasi": "as it is in the table", "sensitive": "a candidate: the weight says how it counts"},
}
_HOW = (
    'a count is SUM(weight) of the view "weighted" under any condition, a sum SUM(weight * x), an average '
    "SUM(weight * x) / SUM(weight) where x is not NULL; COUNT(*) and AVG(x) of the view mean nothing"
)
_BARS = "only `dalenius ask` gives standard errors and intervals; a number without them can be all noise"


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
        stage(connection, "dictionary", _dictionary(release, connection, tables, weighting))
        stage(connection, "about", _about(release, weighting))
        yield Staged(connection=connection, tables=(*tables, "dictionary", "about"), view=weighting.view)


def _refuse_damaged(release: StoredRelease) -> None:
    failed = [check for check in verify_release(release).checks if not check.ok]
    if failed:
        raise ReleaseCorrupt(
            f"{release.path}: {failed[0].name}: {failed[0].detail}",
            hint=f"dalenius verify {release.path}",
        )


def _dictionary(
    release: StoredRelease,
    connection: duckdb.DuckDBPyConnection,
    tables: tuple[str, ...],
    weighting: Weighting,
) -> pa.Table:
    """A row per column of every table and of the view."""
    roles = {column["name"]: column["role"] for column in release.manifest["columns"]}
    types: dict[str, str] = {}
    helpers, meanings = dict(weighting.helpers), dict(weighting.columns)
    rows = []
    for table in tables:
        own = meanings if table in helpers else _OF_TABLES
        for name, kind, *_ in connection.execute(f"DESCRIBE {identifier(table)}").fetchall():
            role = roles.get(name, "")
            meaning = _OF_ROLES.get(table, {}).get(role, "") or own.get(name, "")
            rows.append((table, name, kind, role, meaning))
            types[name] = kind
    rows += [(VIEW, name, types[name], role, _OF_ROLES[VIEW][role]) for name, role in roles.items()]
    rows.append((VIEW, "weight", "DOUBLE", "weight", weighting.weight))
    names = ["table_name", "column_name", "type", "role", "meaning"]
    return pa.table(
        {
            name: pa.array(cells, pa.string())
            for name, cells in zip(names, zip(*rows, strict=True), strict=True)
        }
    )


def _about(release: StoredRelease, weighting: Weighting) -> pa.Table:
    """What the release is, what it promises, and how to count with it."""
    manifest = release.manifest
    rows = [
        ("how to count", _HOW),
        ("how good it is", weighting.note),
        ("error bars", _BARS),
        ("release", manifest["id"]),
        ("created", manifest["created"]),
        ("for publication", "yes" if manifest["for_publication"] else "no: it was made with a seed"),
        ("mechanism", f"{manifest['mechanism']['kind']}, {manifest['mechanism']['method']}"),
        ("promise", json.dumps(manifest["promise"], ensure_ascii=False)),
        *(("assumes", text) for text in manifest["assumes"]),
        *(("not covered", text) for text in manifest["not_covered"]),
        *(("disclosed", text) for text in manifest["disclosed"]),
        *((f"table {name}", meaning) for name, meaning in weighting.helpers),
    ]
    topics, texts = zip(*rows, strict=True)
    return pa.table({"topic": pa.array(topics, pa.string()), "text": pa.array(texts, pa.string())})
