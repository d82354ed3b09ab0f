"""Damage as data: edits of a manifest, of a table's cells, or of a file's bytes, to be kept and replayed."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dalenius.release.folder import sha256
from tests.fuzz.cases import Edit

_STRANGE: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3,
    7,
    2**31,
    2**63,
    -(2**63) - 1,
    10**30,
    0.5,
    -0.0,
    1e308,
    1e-320,
    "",
    "0",
    "1",
    "-1",
    "1/2",
    "1/0",
    "0/1",
    "-3/4",
    "3/2",
    "1e9",
    "1e999999999",
    "nan",
    "inf",
    "x",
    "9" * 5000,
    "0-99999999999",
    "1-0",
    "0,0",
    "\u202etxt",
    "\x00",
    "\x1b[2J",
    "\ud800",
    "=1+1",
    "<script>alert(1)</script>",
    "a" * 70_000,
    "..",
    "../manifest.json",
    "/etc/passwd",
    "int64",
    "string",
    "date32[day]",
    "decimal128(400,2)",
    "timestamp[us, tz=Nowhere]",
    "l-diversity",
    "f-privacy",
    "rho-privacy",
    "d-gamma-privacy",
    "bucketize",
    "perturb",
    "alpha-beta",
    "frapp",
    "optimal",
    "uniform",
    "exclusive",
    "quasi",
    "sensitive",
    "bucket",
    "count",
    "copy",
    "view",
    "qit",
    [],
    {},
    [None],
    [[]],
    [{}],
    ["x"],
    [1, 2, 3],
    {"kind": "x"},
    [[None, None]],
    {"column": "age", "in": ["30"]},
    {"value": ["cold"], "at_most": "1/2"},
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a JSON value, as the keys that lead there."""
    if path:
        yield path
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    for key, part in inner:
        yield from places(part, (*path, key))


def places_of_manifest(manifest: dict[str, Any]) -> list[tuple[Any, ...]]:
    """What mechanisms read, and no sentences."""
    return [path for path in places(manifest) if path[0] not in ("assumes", "not_covered", "disclosed")]


def draw_manifest_edits(listed: list[tuple[Any, ...]], rng: random.Random) -> list[Edit]:
    """A few changes at some places."""
    edits: list[Edit] = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        path = list(rng.choice(listed))
        how = rng.choice(("set", "set", "set", "remove", "copy", "near", "swap", "deep", "rename"))
        if how == "copy":
            edits.append(["copy", path, list(rng.choice(listed))])
        elif how == "near":
            edits.append(["near", path, rng.choice((-1, 1, -2, 2, 10, -100))])
        elif how == "rename":
            edits.append(["rename", path, rng.choice(("x", "", "in", "above", "bucket", "copy", "Age"))])
        elif how == "deep":
            edits.append(["deep", path, rng.choice((3, 100, 5000))])
        else:
            edits.append([how, path, rng.choice(_STRANGE) if how == "set" else None])
    return edits


def edit_manifest(manifest: dict[str, Any], edits: list[Edit]) -> dict[str, Any]:
    """The manifest after the edits."""
    return edit_json(copy.deepcopy(manifest), edits)


def edit_json(data: dict[str, Any], edits: list[Edit]) -> dict[str, Any]:
    """A value after edits in place; one whose place is gone does nothing."""
    for how, path, value in edits:
        try:
            holder: Any = data
            for key in path[:-1]:
                holder = holder[key]
            _edit(data, holder, path[-1], how, value)
        except (KeyError, IndexError, TypeError, AttributeError):
            continue
    return data


def _edit(data: Any, holder: Any, key: Any, how: str, value: Any) -> None:
    if how == "set":
        holder[key] = copy.deepcopy(value)
    elif how == "remove":
        del holder[key]
    elif how == "near":
        found = holder[key]
        holder[key] = found + value if isinstance(found, int) else found[: max(0, value)]
    elif how == "swap":
        holder[key] = holder[key][::-1]
    elif how == "rename":
        holder[value] = holder.pop(key)
    elif how == "put":
        holder[key][value[0]] = copy.deepcopy(value[1])
    elif how == "deep":
        holder[key] = _Deep(value)
    elif how == "copy":
        for step in value:
            data = data[step]
        if isinstance(holder[key], list):
            holder[key].append(copy.deepcopy(data))
        else:
            holder[key] = copy.deepcopy(data)


class _Deep(str):
    """Lists in lists, deeper than a parser's stack; written by hand, as Python's own writer cannot."""

    __slots__ = ()

    def __new__(cls, depth: int) -> _Deep:
        return super().__new__(cls, f"\ue000{depth}\ue001")


def write_json(path: Path, data: Any) -> None:
    """As a stranger may write it: nesting of any depth, lone surrogates."""
    nested = re.compile(r'"\\ue000(\d+)\\ue001"')
    text = nested.sub(lambda found: "[" * int(found[1]) + "]" * int(found[1]), json.dumps(data))
    path.write_text(text, encoding="utf-8")


_CELLS = ("null", "negative", "zero", "huge", "other", "repeat")


def draw_table_edits(tables: dict[str, pa.Table], rng: random.Random) -> list[Edit]:
    """Changes of cells, columns, rows and types."""
    edits: list[Edit] = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        name = rng.choice(sorted(tables))
        table = tables[name]
        column = rng.choice(table.column_names)
        how = rng.choice(
            ("cell", "cell", "cell", "cast", "drop", "rename", "rows", "double", "order", "dictionary")
        )
        edits.append([how, name, column, rng.randrange(max(1, table.num_rows)), rng.choice(_CELLS)])
        if how == "cast":
            edits[-1][-1] = rng.choice(
                ("string", "int8", "double", "bool", "binary", "list", "struct", "null", "date32", "decimal")
            )
        if how == "rename":
            edits[-1][-1] = rng.choice(
                ("bucket", "count", "part", "copy", "x", "", "AGE", "ill", "\ufeffage")
            )
    return edits


def edit_tables(tables: dict[str, pa.Table], edits: list[Edit]) -> dict[str, pa.Table]:
    """The tables after the edits; one that cannot be made does nothing."""
    found = dict(tables)
    for how, name, column, row, value in edits:
        try:
            found[name] = _edit_table(found[name], how, column, row, value)
        except (pa.ArrowException, KeyError, ValueError, OverflowError, TypeError):
            continue
    return found


def _edit_table(table: pa.Table, how: str, column: str, row: int, value: Any) -> pa.Table:
    at = table.column_names.index(column)
    match how:
        case "drop":
            return table.drop_columns([column])
        case "rename":
            return table.rename_columns([value if i == at else n for i, n in enumerate(table.column_names)])
        case "rows":
            return table.slice(row)
        case "double":
            return pa.concat_tables([table, table.slice(row, 3)])
        case "order":
            return table.take(list(range(table.num_rows))[::-1])
        case "dictionary":
            return table.set_column(at, column, table.column(at).combine_chunks().dictionary_encode())
        case "cast":
            return table.set_column(at, column, _cast(table.column(at), value))
    cells = table.column(at).to_pylist() or [None]
    strange = {"null": None, "negative": -5, "zero": 0, "huge": 2**40, "other": "<b>=1+1", "repeat": cells[0]}
    cells[row % len(cells)] = strange[value]
    kind = table.schema.field(at).type if value != "huge" else pa.int64()
    return table.set_column(at, column, pa.array(cells, kind))


def _cast(column: pa.ChunkedArray, kind: str) -> Any:
    cells = column.to_pylist()
    if kind == "list":
        return pa.array([[cell] for cell in cells])
    if kind == "struct":
        return pa.array([{"a": cell} for cell in cells])
    if kind == "null":
        return pa.nulls(len(cells))
    if kind == "decimal":
        return column.cast(pa.decimal128(30, 2))
    return column.cast(pa.type_for_alias(kind), safe=False)


def draw_byte_edits(sizes: dict[str, int], rng: random.Random) -> list[Edit]:
    """Bytes changed, cut off or repeated; the footer, where the lengths are, more often than the pages."""
    edits: list[Edit] = []
    for _ in range(rng.choice((1, 1, 2, 4))):
        file = rng.choice(sorted(sizes))
        size = max(1, sizes[file])
        near_end = rng.random() < 0.6
        at = max(0, size - 1 - rng.randrange(min(size, 900))) if near_end else rng.randrange(size)
        how = rng.choice(("flip", "flip", "byte", "byte", "cut", "insert"))
        edits.append([how, file, at, rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))])
    return edits


def edit_bytes(content: bytes, edits: list[Edit]) -> bytes:
    """A file after the edits of it."""
    data = bytearray(content)
    for how, _, at, value in edits:
        if at >= len(data):
            continue
        if how == "flip":
            data[at] ^= 1 << (value % 8)
        elif how == "byte":
            data[at] = value
        elif how == "cut":
            del data[at : at + value % 16 + 1]
        else:
            data[at:at] = bytes([value])
    return bytes(data)


def rehash(folder: Path, manifest: dict[str, Any]) -> None:
    """State the hashes and row counts of the files as they are now: a stranger would, too."""
    for entry in manifest["tables"]:
        for file in entry["files"]:
            file["sha256"] = sha256(folder / file["file"])


def write_tables(folder: Path, manifest: dict[str, Any], tables: dict[str, pa.Table]) -> None:
    """The tables in the folder's files, and the manifest that knows them."""
    for entry in manifest["tables"]:
        path = folder / entry["files"][0]["file"]
        try:
            pq.write_table(tables[entry["name"]], path)
        except (pa.ArrowException, ValueError):  # what Parquet cannot hold
            path.write_bytes(b"PAR1")
        entry["rows"] = tables[entry["name"]].num_rows
    rehash(folder, manifest)
