"""Writing a table with Spark: partitions scatter their rows, groups write pieces, the driver names them.

Tasks write their pieces themselves, with the bytes around the rows that one machine would write. Spark's own
writer would put its schema and version into every file and name files after jobs and tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.engines.spark.errors import CHANGED, guard, spark_errors
from dalenius.engines.spark.shuffle import (
    BLOCKS,
    GROUP,
    WRITTEN,
    GatherTask,
    InsertTask,
    PieceTask,
    PieceWriter,
    ScatterTask,
)
from dalenius.engines.spark.source import Preparation
from dalenius.errors import EngineError, InputError, InternalError
from dalenius.mechanisms.base import PublishedTable
from dalenius.mechanisms.sharding import Census, Shards
from dalenius.release.manifest import FileEntry, TableEntry
from dalenius.tables.histogram import Histogram

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Partitions:
    """What the first pass saw of every partition, and what the second must see again."""

    histogram: Histogram
    """Of all partitions together."""
    census: Census
    digested: tuple[str, ...]
    digests: dict[int, bytes] = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparkWriter:
    """Writes tables from a frame whose partitions are known."""

    frame: DataFrame
    preparation: Preparation
    partitions: Partitions
    staging: Path
    """A folder that every machine sees, for pieces that are not part of a release yet."""

    def write(self, table: PublishedTable, folder: Path) -> TableEntry:
        """A folder of Parquet files, a piece each."""
        if table.shards is None:
            raise InputError(
                f"table {table.name!r} of this policy is made on one machine only (later views of a series, "
                "fakes, varied contents, regions, buckets of people who are alike, FRAPP of different rows)",
                hint="use --engine local",
            )
        shards = table.shards(self.partitions.census)
        with spark_errors():
            written = self._pieces(shards).toArrow().to_pylist()
        n_records = sum(row["records"] for row in written)
        if n_records != shards.n_records:
            raise EngineError(
                f"{CHANGED}: {n_records} records reached the groups, and {shards.n_records} were counted; "
                "nothing was published"
            )
        if sorted(row["group"] for row in written) != list(range(shards.n_groups)):
            raise InternalError(f"not every group of table {table.name!r} wrote its piece")
        return self._move_pieces(table.name, folder, written)

    def _pieces(self, shards: Shards) -> DataFrame:
        session: SparkSession = self.frame.sparkSession
        writer = PieceWriter(folder=str(self.staging.absolute()), shards=shards)
        if shards.scatter is None:
            numbers = session.range(0, shards.n_groups, 1, shards.n_groups)
            return numbers.mapInArrow(guard(PieceTask(writer=writer).run), WRITTEN)
        return (
            self._scatter(shards, session)
            .repartitionById(shards.n_groups, GROUP)
            .mapInArrow(guard(GatherTask(writer=writer).run), WRITTEN)
        )

    def _scatter(self, shards: Shards, session: SparkSession) -> DataFrame:
        assert shards.scatter is not None  # noqa: S101
        scatter = ScatterTask(
            preparation=self.preparation,
            digested=self.partitions.digested,
            digests=self.partitions.digests,
            key=self.partitions.key,
            scatter=shards.scatter,
        )
        sent = self.frame.mapInArrow(guard(scatter.run), BLOCKS)
        if shards.insert is None:
            return sent
        numbers = session.range(0, shards.n_inserters, 1, shards.n_inserters)
        insert = InsertTask(insert=shards.insert)
        # The partitions come first in the union, and so keep their numbers; their digests are checked.
        return sent.union(numbers.mapInArrow(guard(insert.run), BLOCKS))

    def _move_pieces(self, name: str, folder: Path, written: list[dict[str, Any]]) -> TableEntry:
        """The pieces that Spark reports, under the numbers of their groups."""
        target = folder / f"{name}.parquet"
        target.mkdir()
        files = []
        for row in sorted(written, key=lambda row: row["group"]):
            piece, part = self.staging / row["file"], target / f"part-{row['group']:05d}.parquet"
            if not piece.exists():
                raise EngineError(
                    f"a piece of table {name!r} that a task has written is not in {self.staging}",
                    hint="the release must be on a file system that the driver and all executors share",
                )
            piece.rename(part)
            files.append(FileEntry(file=f"{target.name}/{part.name}", sha256=row["sha256"]))
        return TableEntry(name=name, rows=sum(row["rows"] for row in written), files=tuple(files))
