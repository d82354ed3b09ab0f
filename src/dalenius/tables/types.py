"""Which types a published column can have, and what becomes of the others.

Everything is scanned by DuckDB and published as Parquet. A type that both hold goes through unchanged. One
that either would change silently is cast where no cell changes (a UUID to its text, nanoseconds that are
whole microseconds), and refused with the way out where one would.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.errors import SourceError
from dalenius.sql import identifier, literal, one_row

_KEPT = frozenset(
    (
        *("BOOLEAN", "VARCHAR", "BLOB", "DATE", "TIME", "FLOAT", "DOUBLE"),
        *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
        *("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP WITH TIME ZONE"),
    )
)
_TEXTS = ("UUID", "ENUM", "JSON", '"NULL"')
"""Published as their texts."""
_NARROWED = {
    "TIMESTAMP_NS": ("TIMESTAMP", "nanoseconds"),
    "TIMESTAMPTZ_NS": ("TIMESTAMPTZ", "nanoseconds"),
    "TIME_NS": ("TIME", "nanoseconds"),
    "HUGEINT": ("DECIMAL(38, 0)", "39 digits"),
    "UHUGEINT": ("DECIMAL(38, 0)", "39 digits"),
}
_WAYS_OUT = {
    "INTERVAL": "make it a number of days or seconds before",
    "TIME WITH TIME ZONE": "make it a time, or a timestamp, before",
    "BIT": "make it a text or a number before",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cast:
    column: str
    expression: str
    loses: str | None
    """SQL for a cell that would change."""
    holds: str = ""


@contextmanager
def refuse_unreadable(
    what: str, hint: str = "is it damaged, or not whole? get it again from where it came"
) -> Iterator[None]:
    """What a reader makes of a damaged file, without its words, which may quote a cell."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        raise SourceError(f"{what} ({type(error).__name__})", hint=hint) from error


def check_types(
    connection: duckdb.DuckDBPyConnection, name: str, relation: str, missing: Sequence[str] | None = None
) -> Checked:
    """The columns of a relation, and what to select of it so that nothing changes silently.

    Args:
        connection: Where the relation is.
        name: What messages call it.
        relation: SQL to select from.
        missing: Texts that mean that a value is missing.
    """
    described = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    casts = [_cast(name, column, kind) for column, kind, *_ in described]
    checked = [cast for cast in casts if cast.loses]
    if checked:
        counts = ", ".join(f"count(*) FILTER ({cast.loses})" for cast in checked)
        for cast, n_changed in zip(
            checked, one_row(connection, f"SELECT {counts} FROM {relation}"), strict=True
        ):
            if n_changed:
                raise SourceError(
                    f"{name}: column {cast.column!r} has {cast.holds} in {n_changed:,} rows, which cannot be "
                    "published",
                    hint="round it, or make it a text before",
                )
    return Checked(
        types=tuple((column, kind) for column, kind, *_ in described),
        selected=tuple(_without(cast, missing or ()) for cast in casts),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The columns of a relation whose types can be published."""

    types: tuple[tuple[str, str], ...]
    """Name and SQL type of each."""
    selected: tuple[str, ...]
    """SQL for each."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in order."""
        return tuple(name for name, _ in self.types)

    @property
    def is_as_stored(self) -> bool:
        """Whether nothing but the sign of zeros is changed, and no cell becomes NULL."""
        kinds = dict(self.types)
        usual = (_cast("", name, kinds[name]).expression for name in self.names if _is_kept(kinds[name]))
        return all(map(_is_kept, kinds.values())) and tuple(usual) == self.selected

    def select(self, relation: str) -> str:
        """SQL to select them from."""
        if self.selected == tuple(map(identifier, self.names)):
            return relation
        listed = ", ".join(
            f"{cell} AS {identifier(name)}" for name, cell in zip(self.names, self.selected, strict=True)
        )
        return f"(SELECT {listed} FROM {relation})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSource:
    """A source of which the types were looked at when it was opened."""

    name: str
    checked: Checked

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns, in order."""
        return self.checked.names


def _without(cast: _Cast, missing: Sequence[str]) -> str:
    """SQL for a cell, NULL where it says that the value is missing."""
    if not missing:
        return cast.expression
    codes = ", ".join(map(literal, missing))
    name = identifier(cast.column)
    return f"CASE WHEN trim({name}::VARCHAR) IN ({codes}) THEN NULL ELSE {cast.expression} END"


def _is_kept(kind: str) -> bool:
    return kind in _KEPT or kind.startswith("DECIMAL")


def _cast(source: str, column: str, kind: str) -> _Cast:
    name = identifier(column)
    if kind in ("FLOAT", "DOUBLE"):
        # SQL holds 0.0 and -0.0 to be one value, Arrow two: 0.0 is published
        return _Cast(column=column, expression=f"({name} + 0::{kind})", loses=None)
    if _is_kept(kind):
        return _Cast(column=column, expression=name, loses=None)
    if kind.startswith(_TEXTS):
        return _Cast(column=column, expression=f"{name}::VARCHAR", loses=None)
    if kind in _NARROWED:
        narrow, holds = _NARROWED[kind]
        return _Cast(
            column=column,
            expression=f"{name}::{narrow}",
            loses=f"try_cast(try_cast({name} AS {narrow}) AS {kind}) IS DISTINCT FROM {name}",
            holds=holds,
        )
    if any(mark in kind for mark in ("[", "STRUCT", "MAP", "UNION", "VARIANT")):
        raise SourceError(
            f"{source}: column {column!r} is nested ({kind}); a published column holds plain values",
            hint="unnest it, or leave it out of the file",
        )
    raise SourceError(
        f"{source}: column {column!r} is of type {kind.lower()}, which cannot be published",
        hint=_WAYS_OUT.get(kind, "make it a text or a number before"),
    )


def plain_table(table: pa.Table, name: str) -> pa.Table:
    """An Arrow table that DuckDB reads as it is: no metadata, no dictionaries with unused entries."""
    columns = [_plain_column(name, field, table.column(i)) for i, field in enumerate(table.schema)]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _plain_column(source: str, field: pa.Field, column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = field.type
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.uuid":
            return column  # DuckDB knows it
        column, kind = column.cast(kind.storage_type), kind.storage_type
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
        column = column.cast(kind) if len(column) else pa.chunked_array([], kind)
    where = f"{source}: column {field.name!r}"
    if pa.types.is_nested(kind):
        raise SourceError(
            f"{where} is nested; a published column holds plain values", hint="unnest it before"
        )
    if pa.types.is_duration(kind) or pa.types.is_interval(kind):
        raise SourceError(
            f"{where} holds intervals ({kind}), which cannot be published",
            hint="make it a number of days or seconds before",
        )
    if pa.types.is_null(kind):
        return column.cast(pa.string())  # which type it becomes otherwise depends on DuckDB's version
    for wide, narrow, holds in _narrower(kind):
        if kind == wide:
            return _narrow(where, column, narrow, holds)
    return _one_zero(column) if pa.types.is_floating(kind) else column


def _narrower(kind: pa.DataType) -> Iterator[tuple[pa.DataType, pa.DataType, str]]:
    """A type that DuckDB does not hold, one that it does, and what the cells may not have."""
    if pa.types.is_decimal256(kind):
        yield kind, pa.decimal128(min(kind.precision, 38), min(kind.scale, 38)), "more than 38 digits"
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        yield kind, pa.timestamp("us", kind.tz), "nanoseconds"
    if pa.types.is_time64(kind) and kind.unit == "ns":
        yield kind, pa.time64("us"), "nanoseconds"
    if pa.types.is_float16(kind):
        yield kind, pa.float32(), ""


def _narrow(where: str, column: pa.ChunkedArray, kind: pa.DataType, holds: str) -> pa.ChunkedArray:
    try:
        return column.cast(kind)
    except pa.ArrowException:  # its text quotes a cell
        raise SourceError(
            f"{where} has cells with {holds}, which cannot be published",
            hint="round it, or make it a text before",
        ) from None


def _one_zero(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return pc.add(column, pa.scalar(0, column.type))


def without_signed_zeros(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows with 0.0 for -0.0."""
    if not any(map(pa.types.is_floating, batch.schema.types)):
        return batch
    columns = [_one_zero(cells) if pa.types.is_floating(cells.type) else cells for cells in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
