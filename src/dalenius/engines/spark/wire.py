"""How Arrow columns travel through Spark, which lacks some types: as a type that loses nothing, and back."""

from __future__ import annotations

import pyarrow as pa

from dalenius.errors import SourceError

_NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
}
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.null(): pa.string(),
}


def wire_schema(schema: pa.Schema) -> pa.Schema:
    """The columns under names that Spark cannot confuse, c0, c1, …, in types that it has."""
    return pa.schema([(f"c{i}", _wire_type(field)) for i, field in enumerate(schema)])


def spark_schema(wire: pa.Schema) -> str:
    """The same for Spark."""
    return ", ".join(f"{field.name} {_spark_type(field.type)}" for field in wire)


def to_wire(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch of that schema as it travels."""
    return _cast(batch, schema, wire_schema(schema))


def from_wire(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """What has travelled, as it was."""
    return _cast(batch, schema, schema)


def _cast(batch: pa.RecordBatch, own: pa.Schema, wanted: pa.Schema) -> pa.RecordBatch:
    arrays = []
    for column, field, own_field in zip(batch.columns, wanted, own, strict=True):
        middle = own_field.type if _as_number(own_field.type) and column.type != pa.int64() else column.type
        cast = column if column.type == middle else column.cast(middle)  # a time in its own unit first
        arrays.append(cast if cast.type == field.type else cast.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([pa.field(f.name, f.type) for f in wanted]))


def _as_number(kind: pa.DataType) -> bool:
    """Times travel as the whole numbers that they are stored as: Spark knows microseconds only."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_time64(kind) or pa.types.is_duration(kind))


def _wire_type(field: pa.Field) -> pa.DataType:
    kind = field.type
    if _as_number(kind):
        return pa.int64()
    found = _WIDER.get(kind, kind)
    if found not in _NAMES and not pa.types.is_decimal128(found):
        raise SourceError(
            f"column {field.name!r} is of type {kind}, which does not travel through Spark",
            hint="recode it to a text, a number or a date, or use --engine local",
        )
    return found


def _spark_type(kind: pa.DataType) -> str:
    return f"decimal({kind.precision},{kind.scale})" if pa.types.is_decimal128(kind) else _NAMES[kind]
