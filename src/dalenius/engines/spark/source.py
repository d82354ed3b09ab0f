"""A policy's source as a Spark data frame, in the types that one machine would give its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dalenius.engines.preparing import selection
from dalenius.engines.spark.files import FileParts
from dalenius.engines.spark.tasks import RELATION, Preparation
from dalenius.engines.spark.wire import spark_schema, to_wire, wire_schema
from dalenius.errors import InternalError
from dalenius.policy import Policy
from dalenius.sql import connect
from dalenius.tables.csv import CsvSource
from dalenius.tables.source import FrameSource, ParquetSource, Source, SparkFrameSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NULL_TEXT = "\x00NULL\x00"
"""What an empty field becomes on its way to NULL; a quoted empty field is the empty text."""


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
        select = selection(policy, self.relation(columns), columns)
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
    if isinstance(source, CsvSource):
        return _csv(source, session)
    if isinstance(source, ParquetSource):
        return _parquet(source, session)
    if isinstance(source, SparkFrameSource):
        empty = FrameSource.open(source.frame.limit(0).toArrow())
        names = {name: name for name in source.column_names}
        return SparkSource(frame=source.frame, columns=names, schema=_local_schema(empty), prunes=False)
    if isinstance(source, FrameSource):
        return _sent(source, session)
    raise InternalError(f"Spark does not know sources of type {type(source).__name__}")


def _parquet(source: ParquetSource, session: SparkSession) -> SparkSource:
    schema = _local_schema(source)
    names = {name: name for name in source.column_names}
    files = FileParts.cut(source.files, schema)
    if files is not None:
        numbers = session.range(0, len(files.parts), 1, max(1, len(files.parts)))
        return SparkSource(frame=numbers, columns=names, schema=schema, files=files)
    reader = session.read.option("mergeSchema", str(len(source.files) > 1).lower())
    return SparkSource(frame=reader.parquet(*source.files), columns=names, schema=schema)


def _csv(source: CsvSource, session: SparkSession) -> SparkSource:
    texts = pa.schema([(name, pa.string()) for name in source.column_names])
    options: dict[str, Any] = {
        "header": True,
        "sep": source.delimiter,
        "quote": '"',
        "escape": '"',
        "multiLine": True,  # a quoted field may hold a line break
        "nullValue": _NULL_TEXT,
        "emptyValue": "",
        "mode": "FAILFAST",
    }
    frame = session.read.options(**options).schema(spark_schema(wire_schema(texts))).csv(source.path)
    return SparkSource(frame=frame, columns=_in_order(texts), schema=texts, typed=source.typed)


def _sent(source: FrameSource, session: SparkSession) -> SparkSource:
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
