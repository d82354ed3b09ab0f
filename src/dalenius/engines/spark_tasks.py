"""What runs on the machines of a cluster: each task sees its own batches, its number and what it is given."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from dalenius.engines.parquet import write_parquet
from dalenius.engines.preparing import BATCH_ROWS, rebatch, sha256
from dalenius.engines.spark_digest import Digest
from dalenius.engines.spark_errors import CHANGED
from dalenius.engines.spark_wire import GROUP, from_wire, spark_schema, to_wire, wire_schema
from dalenius.errors import EngineError, InternalError
from dalenius.mechanisms.base import Counting
from dalenius.mechanisms.sharding import Scattered, Shards
from dalenius.sql import connect, one_row

Batches = Iterator[pa.RecordBatch]

RELATION = "records"
"""What a task's SQL calls its records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """From the source's rows, as Spark reads them, to the published table's."""

    source: pa.Schema
    """The source's columns that are read, in the types that one machine would see."""
    select: str | None
    """SQL for the table's columns; None: they are taken as they are."""
    schema: pa.Schema

    def batches(self, batches: Batches) -> Batches:
        """The table's rows in batches of a fixed size."""
        read = (from_wire(batch, self.source) for batch in batches)
        if self.select is None:
            yield from rebatch(read)
            return
        with connect() as connection:
            connection.execute("SET threads = 1")
            connection.register(RELATION, pa.RecordBatchReader.from_batches(self.source, read))
            yield from rebatch(connection.sql(self.select).to_arrow_reader(BATCH_ROWS))

    def one_row(self, batches: Batches, sql: str) -> tuple[Any, ...]:
        """An aggregate over all rows of the task."""
        read = (from_wire(batch, self.source) for batch in batches)
        with connect() as connection:
            connection.execute("SET threads = 1")
            connection.register(RELATION, pa.RecordBatchReader.from_batches(self.source, read))
            return one_row(connection, sql)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareTask:
    """Recodes."""

    preparation: Preparation

    def run(self, batches: Batches) -> Batches:
        """The table's rows as they travel."""
        for batch in self.preparation.batches(batches):
            yield to_wire(batch, self.preparation.schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateTask:
    """One row of whole numbers a partition."""

    preparation: Preparation
    sql: str = field(repr=False)

    def run(self, batches: Batches) -> Batches:
        """As texts: sums may pass 64 bits."""
        sums = self.preparation.one_row(batches, self.sql)
        yield pa.RecordBatch.from_arrays([pa.array([[str(n) for n in sums]])], names=["sums"])


@dataclass(frozen=True, slots=True, kw_only=True)
class TallyTask:
    """Counts what a mechanism counts in every batch."""

    preparation: Preparation
    counting: Counting

    def run(self, batches: Batches) -> Batches:
        """(key, n), a key once a batch."""
        for batch in self.preparation.batches(batches):
            yield self.counting(batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindTask:
    """How many rows of the only column have one of the values, and which is the first."""

    preparation: Preparation
    values: pa.Array = field(repr=False)

    def run(self, batches: Batches) -> Batches:
        """(partition, rows, found, the first one's place from 0)."""
        n_rows, n_found, first = 0, 0, 0
        for batch in self.preparation.batches(batches):
            found = pc.index_in(batch.column(0), value_set=self.values, skip_nulls=False)
            places = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
            if len(places) and not n_found:
                first = n_rows + int(places[0])
            n_found, n_rows = n_found + len(places), n_rows + batch.num_rows
        cells = [TaskContext.get().partitionId(), n_rows, n_found, first]  # type: ignore[union-attr]
        yield pa.RecordBatch.from_arrays([pa.array([n]) for n in cells], names=["p", "n", "found", "first"])


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainTask:
    """The different values of every column of a partition."""

    preparation: Preparation

    def run(self, batches: Batches) -> Batches:
        """A row a column: its number, and its values as an Arrow stream."""
        schema = self.preparation.schema
        found = [pa.array([], field.type) for field in schema]
        for batch in self.preparation.batches(batches):
            pairs = zip(found, batch.columns, strict=True)
            found = [pa.chunked_array([known, column]).unique() for known, column in pairs]
        packed = [pa.record_batch([values], names=["v"]).serialize().to_pybytes() for values in found]
        yield pa.RecordBatch.from_arrays(
            [pa.array(range(len(packed))), pa.array(packed, pa.binary())], names=["i", "v"]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CensusTask:
    """Counts the values of a partition, and remembers the order of its rows."""

    preparation: Preparation
    counted: tuple[str, ...]
    digested: tuple[str, ...]
    key: bytes = field(repr=False)

    def run(self, batches: Batches) -> Batches:
        """One row a value: partition, digest, count, the value's cells."""
        digest, counts = Digest(self.key, self.digested), []
        for batch in self.preparation.batches(batches):
            digest.update(batch)
            counts.append(self._count(batch))
        if counts:
            yield self._rows(self._merged(counts), digest.value())

    def _count(self, batch: pa.RecordBatch) -> pa.Table:
        if not self.counted:
            return pa.table({"count": [batch.num_rows]})
        table = pa.Table.from_batches([batch.select(list(self.counted))])
        counted = table.group_by(list(self.counted)).aggregate([([], "count_all")])
        return counted.rename_columns([*self.counted, "count"])  # "count" is no source column's name

    def _merged(self, counts: list[pa.Table]) -> pa.Table:
        if not self.counted:
            return pa.table({"count": [pc.sum(pa.concat_tables(counts).column(0)).as_py()]})
        grouped = pa.concat_tables(counts).group_by(list(self.counted))
        return grouped.aggregate([("count", "sum")]).rename_columns([*self.counted, "count"])

    def _rows(self, merged: pa.Table, digest: bytes) -> pa.RecordBatch:
        (batch,) = merged.combine_chunks().to_batches()
        schema = pa.schema([self.preparation.schema.field(name) for name in self.counted])
        cells = to_wire(batch.select(list(self.counted)), schema)
        partition = TaskContext.get().partitionId()  # type: ignore[union-attr]
        arrays = [
            pa.array([partition] * batch.num_rows, pa.int64()),
            pa.array([digest] * batch.num_rows, pa.binary()),
            batch.column("count").cast(pa.int64()),
        ]
        return pa.RecordBatch.from_arrays(
            [*arrays, *cells.columns], names=["p", "digest", "n", *cells.schema.names]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterTask:
    """Sends a partition's rows to their groups, if they are those that the census saw."""

    preparation: Preparation
    digested: tuple[str, ...]
    digests: dict[int, bytes] = field(repr=False)
    key: bytes = field(repr=False)
    wire: pa.Schema
    scatter: Callable[[int, Batches], Scattered] = field(repr=False)

    def run(self, batches: Batches) -> Batches:
        """The rows and their groups."""
        partition = TaskContext.get().partitionId()  # type: ignore[union-attr]
        prepared = self.preparation.batches(batches)
        if partition not in self.digests:
            if any(batch.num_rows for batch in prepared):
                raise EngineError(f"{CHANGED}: partition {partition} was empty")
            return
        yield from travelling(self.scatter(partition, self._checked(partition, prepared)), self.wire)

    def _checked(self, partition: int, batches: Batches) -> Batches:
        digest = Digest(self.key, self.digested)
        for batch in batches:
            digest.update(batch)
            yield batch
        if digest.value() != self.digests[partition]:
            raise EngineError(f"{CHANGED}: the rows of partition {partition} are others, or in another order")


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertTask:
    """Sends rows that are no record's."""

    wire: pa.Schema
    insert: Callable[[int], Scattered] = field(repr=False)

    def run(self, batches: Batches) -> Batches:
        """For each number that the task is given, its rows."""
        for number in _numbers(batches):
            yield from travelling(self.insert(number), self.wire)


def travelling(scattered: Scattered, wire: pa.Schema) -> Batches:
    """Rows as they travel, with their group."""
    for groups, rows in scattered:
        sent = to_wire(rows, wire)
        group = pa.array(np.asarray(groups).astype(np.int32))
        yield pa.RecordBatch.from_arrays([group, *sent.columns], names=[GROUP, *sent.schema.names])


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceWriter:
    """Writes a group's piece under a name of its own.

    Two attempts at one task write two files, with the same bytes. The one whose name Spark hands to the
    driver becomes part of the release; the folder with the others is removed.
    """

    folder: str
    shards: Shards = field(repr=False)

    def write(self, group: int, rows: pa.Table) -> pa.RecordBatch:
        """(group, file, rows, SHA-256, records of the source that reached it)."""
        piece = self.shards.gather(group, rows)
        name = f"{secrets.token_hex(16)}.parquet"
        path = Path(self.folder) / name
        write_parquet(path, iter(piece.rows.to_batches()), piece.rows.column_names)
        cells: list[Any] = [group, name, piece.rows.num_rows, sha256(path), piece.n_records]
        return pa.RecordBatch.from_arrays(
            [pa.array([cell]) for cell in cells], names=["group", "file", "rows", "sha256", "records"]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatherTask:
    """Makes the piece of the group whose rows reached this task."""

    writer: PieceWriter

    def run(self, batches: Batches) -> Batches:
        """What was written."""
        group = TaskContext.get().partitionId()  # type: ignore[union-attr]
        wire, received = self.writer.shards.wire, []
        for batch in batches:
            if pc.any(pc.not_equal(batch.column(0), group)).as_py():
                raise InternalError(f"rows of another group reached group {group}")
            received.append(from_wire(batch.drop_columns([GROUP]), wire))
        yield self.writer.write(group, pa.Table.from_batches(received, wire))


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceTask:
    """Makes pieces that need no rows."""

    writer: PieceWriter

    def run(self, batches: Batches) -> Batches:
        """For each number that the task is given, what was written."""
        for number in _numbers(batches):
            yield self.writer.write(number, pa.Table.from_batches([], self.writer.shards.wire))


WRITTEN = "group bigint, file string, rows bigint, sha256 string, records bigint"
FOUND = "p bigint, n bigint, found bigint, first bigint"
SUMS = "sums array<string>"
DOMAINS = "i bigint, v binary"


def census_schema(schema: pa.Schema) -> str:
    """What a census of columns with that schema gives."""
    cells = spark_schema(wire_schema(schema))
    return "p bigint, digest binary, n bigint" + (f", {cells}" if cells else "")


def _numbers(batches: Batches) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()
