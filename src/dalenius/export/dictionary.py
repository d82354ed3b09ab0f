"""What an export says about itself: a row per column, and what the release is and how to count with it."""

from __future__ import annotations

import json

import duckdb
import pyarrow as pa

from dalenius.question.weighting import VIEW, Weighting
from dalenius.release.folder import StoredRelease
from dalenius.sql import identifier

_UNSAID = "a value that the column may have"
_IN_VIEW = "for conditions and groups; rows are candidates, not people"
_HOW = (
    'a count is SUM(weight) of the view "weighted" under any condition, a sum SUM(weight * x), an average '
    "SUM(weight * x) / SUM(weight) where x is not NULL; COUNT(*) and AVG(x) of the view mean nothing"
)
_BARS = "only `dalenius ask` gives standard errors and intervals; a number without them can be all noise"


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
    rows = [
        ("how to count", _HOW),
        ("how good it is", weighting.note),
        ("error bars", _BARS),
        ("release", manifest.id),
        ("created", manifest.created),
        ("for publication", "yes" if manifest.for_publication else "no: it was made with a seed"),
        ("mechanism", f"{manifest.mechanism.kind}, {manifest.mechanism.method}"),
        ("promise", json.dumps(manifest.promise, ensure_ascii=False)),
        *(("assumes", text) for text in manifest.assumes),
        *(("not covered", text) for text in manifest.not_covered),
        *(("disclosed", text) for text in manifest.disclosed),
        *((f"table {name}", meaning) for name, meaning in weighting.helpers),
    ]
    topics, texts = zip(*rows, strict=True)
    return pa.table({"topic": pa.array(topics, pa.string()), "text": pa.array(texts, pa.string())})
