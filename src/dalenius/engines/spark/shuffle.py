"""Rows on their way from partitions to groups: in blocks of bytes, so that Spark moves few, large values.

Row by row, Spark's own conversions and its shuffle took most of the time. A block holds the rows of one
partition for one group as an Arrow message, whole numbers in the fewest bytes that hold them. It says where
it comes from, so that a group puts what reached it in one order, whatever order it came in.

The tasks around a shuffle: partitions send their rows to groups, and groups make something of them.
"""

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

from dalenius.arrays import Ints
from dalenius.engines.parquet import write_parquet
from dalenius.engines.spark.errors import CHANGED
from dalenius.engines.spark.source import Preparation, read_numbers
from dalenius.engines.spark.tasks import Digest
from dalenius.errors import EngineError, InternalError
from dalenius.mechanisms.base import Batches
from dalenius.mechanisms.dealing import fewest_bits
from dalenius.mechanisms.sharding import Scattered, Shards
from dalenius.release.folder import sha256
from dalenius.sql import connect, count, identifiers

GROUP = "g"
BLOCKS = f"{GROUP} int, source bigint, place int, block binary"
"""The group, which source's block it is, the how many-th of that source, and the rows."""
COLLECTED_ROWS = 2**20
_MOST_BYTES = 2**26
_NARROW = (pa.int8(), pa.int16(), pa.int32())
_LIMITS = tuple((np.iinfo(kind.to_pandas_dtype()), kind) for kind in _NARROW)


def to_blocks(scattered: Scattered, source: int, most_rows: int = COLLECTED_ROWS) -> Batches:
    """The rows of one source, a block for each group that they go to."""
    for place, (groups, rows) in enumerate(_collect(scattered, most_rows)):
        order = np.argsort(fewest_bits(groups), kind="stable")
        narrow = _narrow_columns(rows)
        # Numbers are moved in the fewest bytes: they stay in the processor's cache.
        moved = pa.RecordBatch.from_arrays(
            [column.take(pa.array(order)) for column in narrow.columns], schema=narrow.schema
        )
        present, starts = np.unique(groups[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        head = _head(narrow.schema)
        blocks = [
            b"".join((head, moved.slice(start, end - start).serialize()))
            for start, end in zip(starts.tolist(), ends, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(present.astype(np.int32)),
                pa.array(np.full(len(blocks), source, dtype=np.int64)),
                pa.array(np.full(len(blocks), place, dtype=np.int32)),
                pa.array(blocks, pa.binary()),
            ],
            names=[GROUP, "source", "place", "block"],
        )


def from_blocks(batches: Batches, group: int, wire: pa.Schema) -> pa.Table:
    """The rows that reached a group, by source and in the order in which it sent them."""
    found: list[tuple[int, int, pa.RecordBatch]] = []
    for batch in batches:
        groups, sources, places, blocks = batch.columns
        if pc.any(pc.not_equal(groups, group)).as_py():
            raise InternalError(f"rows of another group reached group {group}")
        rows = (_read(block.as_buffer(), wire) for block in blocks)
        found.extend(zip(sources.to_pylist(), places.to_pylist(), rows, strict=True))
    found.sort(key=lambda block: block[:2])
    return pa.Table.from_batches([rows for _, _, rows in found], wire).combine_chunks()


def _collect(scattered: Scattered, most_rows: int) -> Iterator[tuple[Ints, pa.RecordBatch]]:
    """Several batches together: the more rows, the fewer blocks. What is together follows from the rows."""
    held: list[tuple[Ints, pa.RecordBatch]] = []
    for groups, rows in scattered:
        if rows.num_rows:
            held.append((groups, rows))
        if sum(len(one) for one, _ in held) >= most_rows or sum(one.nbytes for _, one in held) >= _MOST_BYTES:
            yield _join(held)
            held = []
    if held:
        yield _join(held)


def _join(held: list[tuple[Ints, pa.RecordBatch]]) -> tuple[Ints, pa.RecordBatch]:
    groups, rows = zip(*held, strict=True)
    return np.concatenate(groups), pa.concat_batches(rows)


def _narrow_columns(rows: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        _narrow(column) if pa.types.is_signed_integer(column.type) else column for column in rows.columns
    ]
    fields = [field.with_type(column.type) for field, column in zip(rows.schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _narrow(column: pa.Array) -> pa.Array:
    ends = pc.min_max(column)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    for limits, kind in _LIMITS:
        if kind.bit_width < column.type.bit_width and (
            least is None or limits.min <= least <= most <= limits.max
        ):
            return column.cast(kind)
    return column


def _head(schema: pa.Schema) -> bytes:
    """A byte a column: 1, 2 or 3 for a number in 8, 16 or 32 bits, else 0; filled to words."""
    widths = bytes(_NARROW.index(field.type) + 1 if field.type in _NARROW else 0 for field in schema)
    return widths + bytes(-len(widths) % 8)


def _read(block: pa.Buffer, wire: pa.Schema) -> pa.RecordBatch:
    n_head = len(wire) + -len(wire) % 8
    widths = block.slice(0, len(wire)).to_pybytes()
    kinds = [_NARROW[width - 1] if width else field.type for width, field in zip(widths, wire, strict=True)]
    narrow = pa.schema([field.with_type(kind) for field, kind in zip(wire, kinds, strict=True)])
    return pa.ipc.read_record_batch(block.slice(n_head), narrow).cast(wire)


_INSERTERS = 2**40
"""The first inserter's number as a source: after every partition's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterTask:
    """Sends a partition's rows to their groups, if they are those that the census saw."""

    preparation: Preparation
    digested: tuple[str, ...]
    digests: dict[int, bytes] = field(repr=False)
    key: bytes = field(repr=False)
    scatter: Callable[[int, Batches], Scattered] = field(repr=False)

    def run(self, batches: Batches) -> Batches:
        """The rows in blocks."""
        partition = TaskContext.get().partitionId()  # type: ignore[union-attr]
        prepared = self.preparation.batches(batches)
        if partition not in self.digests:
            if any(batch.num_rows for batch in prepared):
                raise EngineError(f"{CHANGED}: partition {partition} was empty")
            return
        yield from to_blocks(self.scatter(partition, self._check(partition, prepared)), partition)

    def _check(self, partition: int, batches: Batches) -> Batches:
        digest = Digest(self.key, self.digested)
        for batch in batches:
            digest.update(batch)
            yield batch
        if digest.value() != self.digests[partition]:
            raise EngineError(f"{CHANGED}: the rows of partition {partition} are others, or in another order")


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertTask:
    """Sends rows that are no record's."""

    insert: Callable[[int], Scattered] = field(repr=False)

    def run(self, batches: Batches) -> Batches:
        """For each number that the task is given, its rows in blocks."""
        for number in read_numbers(batches):
            yield from to_blocks(self.insert(number), _INSERTERS + number)


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceWriter:
    """Writes a group's piece under a name of its own.

    Two attempts at one task write two files, with the same bytes. The one whose name Spark hands to the
    driver becomes part of the release; the folder with the others is removed.
    """

    folder: str
    shards: Shards = field(repr=False)

    def write(self, group: int, received: pa.Table) -> pa.RecordBatch:
        """(group, file, rows, SHA-256, records of the source that reached it)."""
        piece = self.shards.gather(group, received)
        name = f"{secrets.token_hex(16)}.parquet"
        path = Path(self.folder) / name
        rows = piece.rows.to_batches() or [pa.RecordBatch.from_pylist([], piece.rows.schema)]
        write_parquet(path, iter(rows), piece.rows.column_names)
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
        yield self.writer.write(group, from_blocks(batches, group, self.writer.shards.wire))


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceTask:
    """Makes pieces that need no rows."""

    writer: PieceWriter

    def run(self, batches: Batches) -> Batches:
        """For each number that the task is given, what was written."""
        for number in read_numbers(batches):
            yield self.writer.write(number, pa.Table.from_batches([], self.writer.shards.wire))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeetTask:
    """Sends every row to a group that its cells decide, so that equal rows meet."""

    preparation: Preparation
    n_groups: int

    def run(self, batches: Batches) -> Batches:
        """The rows in blocks."""
        partition = TaskContext.get().partitionId()  # type: ignore[union-attr]
        yield from to_blocks(self._scatter(batches), partition)

    def _scatter(self, batches: Batches) -> Scattered:
        names = identifiers(self.preparation.schema.names)
        with connect(threads=1) as connection:
            for batch in self.preparation.batches(batches):
                connection.register("rows", pa.Table.from_batches([batch]))
                found = connection.sql(f"SELECT hash({names}) % {self.n_groups} FROM rows").to_arrow_table()
                yield found.column(0).to_numpy().astype(np.int64), batch


@dataclass(frozen=True, slots=True, kw_only=True)
class CountDifferentTask:
    """Counts the different rows that reached this task."""

    schema: pa.Schema

    def run(self, batches: Batches) -> Batches:
        """Their number."""
        group = TaskContext.get().partitionId()  # type: ignore[union-attr]
        rows = from_blocks(batches, group, self.schema)
        with connect(threads=1) as connection:
            connection.register("rows", rows)
            n_different = count(connection, "SELECT count(*) FROM (SELECT DISTINCT * FROM rows)")
        yield pa.RecordBatch.from_arrays([pa.array([n_different])], names=["n"])


WRITTEN = "group bigint, file string, rows bigint, sha256 string, records bigint"
