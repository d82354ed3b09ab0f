"""A policy's source as Spark reads it, in the types that one machine would give its columns.

Tasks read Parquet files themselves, each its part: columns go from the file to Arrow as they are, where
Spark would make rows of them, and Arrow columns of these. Parts follow from the files alone, not from the
number of machines, so that two passes see the same ones. Rows of other sources are handed to tasks by Spark.

Spark lacks some types of Arrow: such columns travel as a type that loses nothing, and back (`to_wire`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from dalenius.engines.preparing import selection
from dalenius.errors import SourceError
from dalenius.mechanisms.base import Batches
from dalenius.policy import Policy
from dalenius.sql import connect, one_row
from dalenius.tables.files.csv import CsvSource
from dalenius.tables.files.parquet import ParquetSource
from dalenius.tables.frames import FrameSource, SparkFrameSource
from dalenius.tables.reading import BATCH_ROWS, read_batches, rebatch
from dalenius.tables.source import Source
from dalenius.tables.types import without_signed_zeros

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


def travels(field: pa.Field) -> bool:
    """Whether Spark can hand cells of this type to tasks."""
    try:
        _wire_type(field)
    except SourceError:
        return False
    return True


def _spark_type(kind: pa.DataType) -> str:
    return f"decimal({kind.precision},{kind.scale})" if pa.types.is_decimal128(kind) else _NAMES[kind]


if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RELATION = "records"
"""What a task's SQL calls its records."""
MOST_BYTES = 2**27
"""Of a part, as Spark's own; a part has at least one row group."""
USUAL_PARTS = 256
"""For as many cores; every part works its share of the quotas out, so that more would cost more."""
_FEWEST_ROWS = 2**18

Part = tuple[tuple[str, tuple[int, ...]], ...]
"""Files and the numbers of their row groups."""
_NULL_TEXT = "\x00NULL\x00"
"""What an empty field becomes on its way to NULL; a quoted empty field is the empty text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileParts:
    """A table of Parquet files, cut at row groups into parts of about the same size."""

    parts: tuple[Part, ...]

    @classmethod
    def cut(cls, files: Iterable[str], schema: pa.Schema) -> FileParts | None:
        """None if a file does not hold every column as one machine would see it: then Spark must read it."""
        footers = {str(Path(file).absolute()): pq.read_metadata(file) for file in files}
        if not all(_holds(footer.schema.to_arrow_schema(), schema) for footer in footers.values()):
            return None
        groups = [
            (file, number, footer.row_group(number))
            for file, footer in footers.items()
            for number in range(footer.num_row_groups)
        ]
        n_rows = sum(group.num_rows for _, _, group in groups)
        most_rows = max(_FEWEST_ROWS, -(-n_rows // USUAL_PARTS))
        parts: list[list[tuple[str, int]]] = []
        rows = size = 0
        for file, number, group in groups:
            group_size = sum(group.column(i).total_compressed_size for i in range(group.num_columns))
            if not parts or rows + group.num_rows > most_rows or size + group_size > MOST_BYTES:
                parts.append([])
                rows = size = 0
            parts[-1].append((file, number))
            rows, size = rows + group.num_rows, size + group_size
        return cls(parts=tuple(map(_by_file, parts)))

    def read(self, numbers: Iterable[int], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Some columns of the parts with these numbers."""
        for number in numbers:
            for file, row_groups in self.parts[number]:
                with pq.ParquetFile(file) as opened:
                    for batch in opened.iter_batches(
                        BATCH_ROWS, row_groups=list(row_groups), columns=schema.names, use_threads=False
                    ):
                        yield batch.select(schema.names).cast(schema)


def _holds(found: pa.Schema, schema: pa.Schema) -> bool:
    return all(
        len(found.get_all_field_indices(field.name)) == 1
        and _local_type(found.field(field.name).type) == field.type
        for field in schema
    )


def _local_type(kind: pa.DataType) -> pa.DataType:
    """As one machine reads it: without dictionaries, texts as texts."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(value, value)


def _by_file(groups: list[tuple[str, int]]) -> Part:
    files = dict.fromkeys(file for file, _ in groups)
    return tuple((file, tuple(number for of, number in groups if of == file)) for file in files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """From the source's rows, as a task gets them, to the published table's."""

    source: pa.Schema
    """The source's columns that are read, in the types that one machine would see."""
    select: str | None
    """SQL for the table's columns; None: they are taken as they are."""
    schema: pa.Schema
    files: FileParts | None = None
    """What the task reads itself, given the number of its part; None: Spark hands it the rows."""

    def batches(self, batches: Batches) -> Batches:
        """The table's rows in batches of a fixed size."""
        if self.select is None:
            yield from rebatch(self._read(batches))
            return
        with self._connected(batches) as connection:
            yield from rebatch(read_batches(connection, self.select))

    def one_row(self, batches: Batches, sql: str) -> tuple[Any, ...]:
        """An aggregate over all rows of the task."""
        with self._connected(batches) as connection:
            return one_row(connection, sql)

    def _read(self, batches: Batches) -> Batches:
        if self.files is None:
            return (without_signed_zeros(from_wire(batch, self.source)) for batch in batches)
        return map(without_signed_zeros, self.files.read(read_numbers(batches), self.source))

    @contextmanager
    def _connected(self, batches: Batches) -> Iterator[duckdb.DuckDBPyConnection]:
        with connect(threads=1) as connection:
            reader = pa.RecordBatchReader.from_batches(self.source, self._read(batches))
            connection.register(RELATION, reader)
            yield connection


def read_numbers(batches: Batches) -> Iterator[int]:
    """What a range hands to its tasks."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparkSource:
    """The rows where Spark finds them."""

    frame: DataFrame
    """The rows, or the numbers of the parts that tasks read themselves."""
    columns: Mapping[str, str]
    """What the frame calls each of the source's columns."""
    schema: pa.Schema
    """Their types, as one machine would see them; texts where SQL gives them their types."""
    typed: Callable[[str, Sequence[str]], str] | None = None
    """SQL to select from: some columns of a relation of texts in their types."""
    prunes: bool = True
    """Whether a scan of fewer columns has the same partitions."""
    files: FileParts | None = None

    def read(self, columns: Sequence[str]) -> DataFrame:
        """What tasks get: some columns, under the names c0, c1 and so on, or the numbers of their parts."""
        if self.files is not None:
            return self.frame
        quoted = ["`" + self.columns[name].replace("`", "``") + "`" for name in columns]
        return self.frame.select(*(self.frame[name].alias(f"c{i}") for i, name in enumerate(quoted)))

    def preparation(self, policy: Policy, columns: Sequence[str]) -> Preparation:
        """How tasks get these columns of the table from what was read of the source."""
        if self.typed is None and not {name for name, _ in policy.recode} & set(columns):
            return self.unprepared(columns)
        source = self.types(columns)
        select = selection(policy.recode, self.relation(columns), columns)
        with connect() as connection:
            connection.register(RELATION, source.empty_table())
            schema = connection.sql(select).to_arrow_table().schema
        return Preparation(source=source, select=select, schema=schema, files=self.files)

    def unprepared(self, columns: Sequence[str]) -> Preparation:
        """How tasks get these columns as they are in the source."""
        types = self.types(columns)
        return Preparation(source=types, select=None, schema=types, files=self.files)

    def types(self, columns: Sequence[str]) -> pa.Schema:
        """The schema of some columns as a task reads them."""
        return pa.schema([self.schema.field(name) for name in columns])

    def relation(self, columns: Sequence[str]) -> str:
        """SQL to select from, in a task that has read these columns; not recoded yet."""
        return RELATION if self.typed is None else self.typed(RELATION, columns)


def find_source(source: Source, session: SparkSession) -> SparkSource:
    """Open what the policy names with Spark."""
    if isinstance(source, CsvSource) and source.usual_path is not None:
        return _csv(source, source.usual_path, session)
    if isinstance(source, ParquetSource) and source.usual_files is not None:
        return _parquet(source, source.usual_files, session)
    if isinstance(source, SparkFrameSource):
        empty = FrameSource.open(source.frame.limit(0).toArrow())
        names = {name: name for name in source.column_names}
        return SparkSource(frame=source.frame, columns=names, schema=_local_schema(empty), prunes=False)
    if isinstance(source, FrameSource):
        return _send(source, session)
    with connect() as connection:  # what only this process can read goes through its memory
        table = connection.sql(f"SELECT * FROM {source.scan(connection)}").to_arrow_table()
    return _send(FrameSource(name=source.name, table=table), session)


def _parquet(source: ParquetSource, paths: tuple[str, ...], session: SparkSession) -> SparkSource:
    schema = _local_schema(source)
    names = {name: name for name in source.column_names}
    files = FileParts.cut(paths, schema)
    if files is not None:
        numbers = session.range(0, len(files.parts), 1, max(1, len(files.parts)))
        return SparkSource(frame=numbers, columns=names, schema=schema, files=files)
    reader = session.read.option("mergeSchema", str(len(paths) > 1).lower())
    return SparkSource(frame=reader.parquet(*paths), columns=names, schema=schema)


def _csv(source: CsvSource, path: str, session: SparkSession) -> SparkSource:
    texts = pa.schema([(name, pa.string()) for name in source.column_names])
    options: dict[str, Any] = {
        "header": True,
        "sep": source.dialect.delimiter,
        "quote": '"',
        "escape": '"',
        "multiLine": True,  # a quoted field may hold a line break
        "nullValue": _NULL_TEXT,
        "emptyValue": "",
        "mode": "FAILFAST",
    }
    frame = session.read.options(**options).schema(spark_schema(wire_schema(texts))).csv(path)
    return SparkSource(frame=frame, columns=_in_order(texts), schema=texts, typed=source.select_typed)


def _send(source: FrameSource, session: SparkSession) -> SparkSource:
    """A table of this process goes to Spark under names and in types that it has."""
    schema = _local_schema(source)
    wire = wire_schema(schema)
    batches = [to_wire(batch, schema) for batch in source.table.cast(schema).to_batches()]
    frame = session.createDataFrame(pa.Table.from_batches(batches, wire))
    return SparkSource(frame=frame, columns=_in_order(schema), schema=schema)


def _in_order(schema: pa.Schema) -> dict[str, str]:
    return {name: f"c{i}" for i, name in enumerate(schema.names)}


def _local_schema(source: Source) -> pa.Schema:
    with connect() as connection:
        relation = source.scan(connection)
        return connection.sql(f"SELECT * FROM {relation} LIMIT 0").to_arrow_table().schema
