"""Rows out of DuckDB: in batches of one size, with few values as codes; and which values a column has.

Text columns of few values are read as the place of each cell in a short sorted list. DuckDB looks a text up
once for every dictionary of a Parquet file instead of once for every row, and a byte a row is what travels:
ten times faster than texts, or than its ENUM type. Whole numbers that are near one another are read as their
distance from the least, in a byte or two instead of eight: less than half of the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from dalenius.sql import identifier, literal, one_row
from dalenius.tables.codes import ascending

if TYPE_CHECKING:
    import duckdb

BATCH_ROWS = 131_072
"""How many rows a kernel sees at once: so many (64 of DuckDB's vectors) that what a batch costs beside its
rows does not show, so few that the batches under way take some megabytes. Random streams are numbered by
batch: with another number a seed gives another release."""
_BYTE = 8
_FEW_VALUES = 64
"""A list of this length is searched from its start for every cell that no dictionary has."""
_SHORT_RANGE = 2**12
"""Whole numbers within so many are read as codes; the list of all of them goes along with every batch."""
_COLUMNS_AT_ONCE = 8
"""While they are counted, the different cells of so many columns are in memory."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DictionaryColumns:
    """The columns of a query, and the values of those that are read as codes."""

    names: tuple[str, ...]
    values: dict[str, pa.Array]
    """Ascending, without NULL."""
    ranges: dict[str, pa.Array] = field(default_factory=dict)
    """All whole numbers from a column's least to its largest, whether they occur or not."""

    @classmethod
    def of(
        cls,
        connection: duckdb.DuckDBPyConnection,
        select: str,
        allowed: Mapping[str, pa.Array] | None = None,
        *,
        numbers: bool = False,
        known: DictionaryColumns | None = None,
        schema: pa.Schema | None = None,
    ) -> DictionaryColumns:
        """Find the columns that can be read so; this reads text columns.

        Args:
            connection: Where the query can be asked.
            select: The query.
            allowed: The cells that some columns may have, without NULL, so that these need not be read: any
                other cell comes as NULL.
            numbers: Whether whole numbers are read as codes too. Of a Parquet file its footer tells which.
            known: Columns of the query that were looked at before, numbers too.
            schema: The query's, where it was asked for: of hundreds of columns that takes 8 ms.
        """
        if schema is None:
            schema = connection.sql(f"{select} LIMIT 0").to_arrow_table().schema
        seen = () if known is None else known.names
        rest = pa.schema([field for field in schema if field.name not in seen])
        texts = [field.name for field in rest if pa.types.is_string(field.type)]
        found = {name: cells for name, cells in (allowed or {}).items() if name in texts}
        sought = [name for name in texts if name not in found]
        for start in range(0, len(sought), _COLUMNS_AT_ONCE):
            found |= _different_texts(connection, select, sought[start : start + _COLUMNS_AT_ONCE])
        values = {name: ascending(cells) for name, cells in found.items() if _is_listed(cells)}
        ranges = _short_ranges(connection, select, rest) if numbers else {}
        if known is not None:
            values, ranges = values | known.values, ranges | known.ranges
        return cls(names=tuple(schema.names), values=values, ranges=ranges)

    def only(self, names: Iterable[str]) -> DictionaryColumns:
        """Some of these columns."""
        chosen = tuple(name for name in self.names if name in set(names))
        return DictionaryColumns(
            names=chosen,
            values={name: cells for name, cells in self.values.items() if name in chosen},
            ranges={name: cells for name, cells in self.ranges.items() if name in chosen},
        )

    @property
    def listed(self) -> dict[str, pa.Array]:
        """By column, the cell of each code."""
        return {**self.values, **self.ranges}

    def code(self, select: str) -> str:
        """SQL for the same rows with codes, in the same order; cells sort as their codes do."""
        coded = {name: _place(name, cells) for name, cells in self.values.items()}
        coded |= {name: _distance(name, cells) for name, cells in self.ranges.items()}
        listed = ", ".join(
            f"{coded[name]} AS {identifier(name)}" if name in coded else identifier(name)
            for name in self.names
        )
        return f"SELECT {listed} FROM ({select})"

    def decode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The cells of a batch with codes, as dictionary arrays."""
        listed = self.listed
        columns = [
            pa.DictionaryArray.from_arrays(column, listed[name]) if name in listed else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def different_values(self, connection: duckdb.DuckDBPyConnection, select: str, column: str) -> pa.Array:
        """The different values of a column of the query in ascending order, NULL last."""
        name = identifier(column)
        if column in self.values:  # known except for NULL
            nulls = connection.sql(f"SELECT {name} FROM ({select}) WHERE {name} IS NULL LIMIT 1")
            return pa.concat_arrays([self.values[column], *nulls.to_arrow_table().column(0).chunks])
        found = connection.sql(f"SELECT DISTINCT {name} FROM ({select}) ORDER BY {name} NULLS LAST")
        return found.to_arrow_table().column(0).combine_chunks()


def read_batches(connection: duckdb.DuckDBPyConnection, select: str) -> pa.RecordBatchReader:
    """The rows of a query in their order, a batch at a time."""
    return connection.sql(select).to_arrow_reader(BATCH_ROWS)


def rebatch(batches: Iterable[pa.RecordBatch], n_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of exactly so many, except for the last."""
    held: list[pa.RecordBatch] = []
    n_held = 0
    for batch in batches:
        while batch.num_rows:
            taken = batch.slice(0, n_rows - n_held)
            batch = batch.slice(taken.num_rows)  # noqa: PLW2901
            held.append(taken)
            n_held += taken.num_rows
            if n_held == n_rows:
                yield _join(held)
                held, n_held = [], 0
    if held:
        yield _join(held)


def _join(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _different_texts(
    connection: duckdb.DuckDBPyConnection, select: str, columns: Sequence[str]
) -> dict[str, pa.Array]:
    """The different cells of each column, at most one too many."""
    # one question for several: another thread may be busy in Python, and each answer would wait for it
    listed = " UNION ALL ".join(
        f"SELECT {place} AS place, cell FROM (SELECT DISTINCT {name} AS cell FROM ({select}) "
        f"WHERE {name} IS NOT NULL LIMIT {_FEW_VALUES + 1})"
        for place, name in enumerate(map(identifier, columns))
    )
    found = connection.sql(listed).to_arrow_table().combine_chunks()
    cells = {name: found.filter(pc.equal(found["place"], i))["cell"] for i, name in enumerate(columns)}
    return {name: column.combine_chunks() for name, column in cells.items()}


def _short_ranges(
    connection: duckdb.DuckDBPyConnection, select: str, schema: pa.Schema
) -> dict[str, pa.Array]:
    """The range of each column of whole numbers that are near one another and take more than a byte."""
    wide = [one for one in schema if pa.types.is_integer(one.type) and one.type.bit_width > _BYTE]
    if not wide:
        return {}
    ends = ", ".join(f"min({name}), max({name})" for name in (identifier(one.name) for one in wide))
    found = one_row(connection, f"SELECT {ends} FROM ({select})")
    pairs = zip(wide, found[::2], found[1::2], strict=True)
    return {
        one.name: pa.array(range(least, largest + 1), one.type)
        for one, least, largest in pairs
        if least is not None and largest - least < _SHORT_RANGE
    }


def _distance(name: str, numbers: pa.Array) -> str:
    kind = "UTINYINT" if len(numbers) <= 2**_BYTE else "USMALLINT"
    return f"({identifier(name)} - ({numbers[0]}))::{kind}"


def _is_listed(values: pa.Array) -> bool:
    # SQL text cannot hold a zero byte
    return 0 < len(values) <= _FEW_VALUES and not any("\0" in text for text in values.to_pylist())


def _place(name: str, values: pa.Array) -> str:
    listed = ", ".join(map(literal, values.to_pylist()))
    return f"(list_position([{listed}], {identifier(name)}) - 1)::UTINYINT"
