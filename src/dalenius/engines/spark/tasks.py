"""What runs on the machines of a cluster to count: each task sees its own batches and its number.

Besides counts, a task gives a keyed digest of its rows in their order, the same however they are cut into
batches, so that a later pass can tell whether it sees the same rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from dalenius.engines.spark.source import Preparation, spark_schema, to_wire, wire_schema
from dalenius.mechanisms.base import Batches, Counting
from dalenius.tables.codes import find_codes


class Digest:
    """Takes rows in batches of a fixed size, so that the same rows are the same bytes."""

    def __init__(self, key: bytes, columns: tuple[str, ...]) -> None:
        self._hash = hashlib.blake2b(key=key, digest_size=16)
        self._columns = columns

    def update(self, batch: pa.RecordBatch) -> None:
        """The next rows."""
        for name in self._columns:
            for part in _content(batch.column(name)):
                self._hash.update(part)

    def value(self) -> bytes:
        """16 bytes."""
        return self._hash.digest()


def _content(column: pa.Array) -> Iterator[bytes | memoryview]:
    """Which cells are NULL, and the others: nothing that depends on how Arrow happens to hold them."""
    yield np.packbits(column.is_valid().to_numpy(zero_copy_only=False)).tobytes()
    cells = column.drop_null()
    yield len(cells).to_bytes(8, "little")
    kind = cells.type
    if pa.types.is_boolean(kind):
        yield np.packbits(cells.to_numpy(zero_copy_only=False)).tobytes()
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        yield pc.binary_length(cells).to_numpy(zero_copy_only=False).tobytes()
        _, offsets, data = cells.buffers()
        if len(cells) and data is not None:
            ends = np.frombuffer(offsets, dtype=np.int32)[cells.offset : cells.offset + len(cells) + 1]
            yield memoryview(data)[int(ends[0]) : int(ends[-1])]
    elif len(cells):
        width = kind.bit_width // 8
        yield memoryview(cells.buffers()[1])[cells.offset * width : (cells.offset + len(cells)) * width]


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
            found = find_codes(batch.column(0), self.values)
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
            yield self._rows(self._merge(counts), digest.value())

    def _count(self, batch: pa.RecordBatch) -> pa.Table:
        if not self.counted:
            return pa.table({"count": [batch.num_rows]})
        table = pa.Table.from_batches([batch.select(list(self.counted))])
        counted = table.group_by(list(self.counted)).aggregate([([], "count_all")])
        return counted.rename_columns([*self.counted, "count"])  # "count" is no source column's name

    def _merge(self, counts: list[pa.Table]) -> pa.Table:
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


FOUND = "p bigint, n bigint, found bigint, first bigint"
SUMS = "sums array<string>"
DOMAINS = "i bigint, v binary"


def census_schema(schema: pa.Schema) -> str:
    """What a census of columns with that schema gives."""
    cells = spark_schema(wire_schema(schema))
    return "p bigint, digest binary, n bigint" + (f", {cells}" if cells else "")
