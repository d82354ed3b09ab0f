"""Text columns of few values, read from DuckDB as the place of each cell in a short sorted list.

DuckDB looks a text up once for every dictionary of a Parquet file instead of once for every row, and a byte a
row is what travels: ten times faster than texts, or than its ENUM type.
"""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.sql import identifier, literal

_FEW_VALUES = 64
"""A list of this length is searched from its start for every cell that no dictionary has."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodedColumns:
    """The columns of a query, and the values of those that are coded."""

    names: tuple[str, ...]
    values: dict[str, pa.Array]
    """Ascending, without NULL."""

    @classmethod
    def of(cls, connection: duckdb.DuckDBPyConnection, select: str) -> CodedColumns:
        """Find the columns that can be coded; this reads all text columns."""
        schema = connection.sql(f"{select} LIMIT 0").to_arrow_table().schema
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        found = {name: _few_texts(connection, select, name) for name in texts}
        values = {name: cells for name, cells in found.items() if cells is not None}
        return cls(names=tuple(schema.names), values=values)

    def coded(self, select: str) -> str:
        """SQL for the same rows with codes, in the same order; cells sort as their codes do."""
        listed = ", ".join(
            f"{_place(name, self.values[name])} AS {identifier(name)}"
            if name in self.values
            else identifier(name)
            for name in self.names
        )
        return f"SELECT {listed} FROM ({select})"

    def decoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The cells of a batch with codes, as dictionary arrays."""
        columns = [
            pa.DictionaryArray.from_arrays(column, self.values[name]) if name in self.values else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _few_texts(connection: duckdb.DuckDBPyConnection, select: str, column: str) -> pa.Array | None:
    name = identifier(column)
    found = connection.sql(
        f"SELECT DISTINCT {name} FROM ({select}) WHERE {name} IS NOT NULL LIMIT {_FEW_VALUES + 1}"
    ).to_arrow_table()
    values = found.column(0).combine_chunks()
    # SQL text cannot hold a zero byte
    is_listed = 0 < len(values) <= _FEW_VALUES and not any("\0" in text for text in values.to_pylist())
    return values.take(pc.array_sort_indices(values)) if is_listed else None


def _place(name: str, values: pa.Array) -> str:
    listed = ", ".join(map(literal, values.to_pylist()))
    return f"(list_position([{listed}], {identifier(name)}) - 1)::UTINYINT"
