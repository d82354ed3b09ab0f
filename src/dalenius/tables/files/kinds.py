"""What type the texts of a column have: the narrowest one that loses nothing of any of them."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pyarrow as pa

from dalenius.sql import identifier, one_row
from dalenius.tables.files.dialect import TEXT, Dialect, Kind
from dalenius.tables.files.texts import Column, ListedTexts, PlainTexts, WholeNumbers, as_listed

SAMPLE_ROWS = 2_048
_TEXTS = "texts"


def find_kinds(
    connection: duckdb.DuckDBPyConnection, dialect: Dialect, names: tuple[str, ...], as_text: str
) -> dict[str, Kind]:
    """The type of each column of a relation of texts."""
    kinds = dict.fromkeys(names, dialect.kinds())
    # what the first lines rule out is not tried on all of them; of the rest the narrowest, mostly right, is
    # tried first: whether texts are floating numbers takes ten times as long as reading
    start = f"(FROM {as_text} LIMIT {SAMPLE_ROWS})"
    kinds = _keep_passing(connection, dialect, start, kinds, of_none=True)
    found = _keep_passing(connection, dialect, as_text, {name: own[:1] for name, own in kinds.items()})
    again = {name: own[1:] for name, own in kinds.items() if own[1:] and not found[name]}
    if again:
        found |= _keep_passing(connection, dialect, as_text, again)
    return {name: found[name][0] if found[name] else TEXT for name in names}


def _keep_passing(
    connection: duckdb.DuckDBPyConnection,
    dialect: Dialect,
    as_text: str,
    kinds: Mapping[str, tuple[Kind, ...]],
    *,
    of_none: bool = False,
) -> dict[str, tuple[Kind, ...]]:
    """The kinds of each column that all its texts are of, and where it has none all kinds, if asked."""
    tests = [(name, kind) for name, own in kinds.items() for kind in own]
    asked = [f"count({identifier(name)})" for name in kinds]  # so that every field is read
    for name, kind in tests:
        text = dialect.text(name)
        asked += [f"count({text})", f"count_if({kind.test.format(text)})"]
    found = one_row(connection, f"SELECT {', '.join(asked)} FROM {as_text}")[len(kinds) :]
    pairs = zip(tests, found[::2], found[1::2], strict=True)
    fitting = [one for one, n_texts, n_passed in pairs if (n_texts or of_none) and n_passed == n_texts]
    return {name: tuple(kind for of, kind in fitting if of == name) for name in kinds}


def select_typed(dialect: Dialect, kinds: Mapping[str, Kind], as_text: str) -> str:
    """SQL to select from: columns in their types, from a relation that has them as texts."""
    typed = ", ".join(
        f"{kind.value.format(dialect.text(name))} AS {identifier(name)}" for name, kind in kinds.items()
    )
    return f"(SELECT {typed} FROM {as_text})"


def start_column(dialect: Dialect) -> Column:
    """For the texts of a column: most are whole numbers, or are soon known not to be."""
    return ListedTexts() if dialect.missing or dialect.thousands else WholeNumbers()


def type_cells(
    connection: duckdb.DuckDBPyConnection, dialect: Dialect, columns: Mapping[str, Column]
) -> tuple[dict[str, Kind], pa.Table]:
    """The type of each column, and its cells; those of few different texts are told from these."""
    kinds: dict[str, Kind] = {}
    cells: dict[str, pa.ChunkedArray] = {}
    listed: dict[str, pa.Array] = {}
    plain: dict[str, pa.ChunkedArray] = {}
    for name, column in columns.items():
        if isinstance(column, WholeNumbers) and column.has_some:
            kinds[name], cells[name] = dialect.kinds()[0], column.cells()
            continue
        own = as_listed(column) if isinstance(column, WholeNumbers) else column
        if isinstance(own, ListedTexts):
            listed[name] = own.listed
            columns = {**columns, name: own}
        elif isinstance(own, PlainTexts):
            plain[name] = pa.chunked_array(own.texts, pa.string())
    for texts in (listed, plain):
        found, typed = _type_texts(connection, dialect, texts)
        kinds |= found
        for name, values in typed.items():
            own = columns[name]
            cells[name] = own.cells(values) if isinstance(own, ListedTexts) else values
    return kinds, pa.table({name: cells[name] for name in columns})


def _type_texts(
    connection: duckdb.DuckDBPyConnection,
    dialect: Dialect,
    texts: Mapping[str, pa.Array | pa.ChunkedArray],
) -> tuple[dict[str, Kind], dict[str, pa.Array]]:
    """The types of columns of texts, which may be of different lengths, and the value of each text."""
    if not texts:
        return {}, {}
    longest = max(map(len, texts.values()))
    padded = {
        name: pa.chunked_array([*_chunks(own), pa.nulls(longest - len(own), pa.string())])
        for name, own in texts.items()
    }
    connection.register(_TEXTS, pa.table(padded))
    kinds = find_kinds(connection, dialect, tuple(texts), _TEXTS)
    changed = {name: kind for name, kind in kinds.items() if kind is not TEXT or dialect.missing}
    values: dict[str, pa.Array] = dict(texts)
    if changed:
        typed = connection.sql(f"SELECT * FROM {select_typed(dialect, changed, _TEXTS)}").to_arrow_table()
        values |= {
            name: typed[name].combine_chunks().slice(0, len(texts[name])) for name in typed.column_names
        }
    connection.unregister(_TEXTS)
    return kinds, values


def _chunks(texts: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
