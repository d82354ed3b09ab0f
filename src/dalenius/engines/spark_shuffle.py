"""The tasks around a shuffle: partitions send their rows to groups, and groups make something of them."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from dalenius.engines.parquet import write_parquet
from dalenius.engines.preparing import sha256
from dalenius.engines.spark_blocks import Batches, from_blocks, to_blocks
from dalenius.engines.spark_digest import Digest
from dalenius.engines.spark_errors import CHANGED
from dalenius.engines.spark_tasks import Preparation, numbers
from dalenius.errors import EngineError
from dalenius.mechanisms.sharding import Scattered, Shards
from dalenius.sql import connect, count, identifiers

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
        yield from to_blocks(self.scatter(partition, self._checked(partition, prepared)), partition)

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

    insert: Callable[[int], Scattered] = field(repr=False)

    def run(self, batches: Batches) -> Batches:
        """For each number that the task is given, its rows in blocks."""
        for number in numbers(batches):
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
        for number in numbers(batches):
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
