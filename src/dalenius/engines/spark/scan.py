"""A table that Spark holds: counted by tasks, of which only counts reach the driver."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.engines.base import Progress
from dalenius.engines.preparing import (
    earlier_sums,
    fingerprint_of,
    fingerprint_of_cells,
    is_known_by_counts,
    record_sums,
    write_plain,
)
from dalenius.engines.spark.errors import guard, spark_errors
from dalenius.engines.spark.shuffle import BLOCKS, GROUP, CountDifferentTask, MeetTask
from dalenius.engines.spark.sketching import sketch_source
from dalenius.engines.spark.source import RELATION, SparkSource, from_wire, spark_schema, wire_schema
from dalenius.engines.spark.tasks import (
    DOMAINS,
    FOUND,
    SUMS,
    AggregateTask,
    CensusTask,
    DomainTask,
    FindTask,
    PrepareTask,
    TallyTask,
    census_schema,
)
from dalenius.engines.spark.writing import Partitions, SparkWriter
from dalenius.errors import InternalError, PolicyError
from dalenius.mechanisms.base import Batches, Coding, Counting, PublishedTable
from dalenius.mechanisms.sharding import Census
from dalenius.policy import Policy
from dalenius.release.manifest import TableEntry
from dalenius.tables.codes import ascending
from dalenius.tables.histogram import Histogram, Value, with_one_nan
from dalenius.tables.sketch import Sketch
from dalenius.tables.sketching.pieces import describe_columns
from dalenius.tables.sketching.whole import column_sums
from dalenius.tables.uniqueness import Rarity, Uniqueness

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTITION, _DIGEST, _COUNT = range(3)
"""Columns of a census; the cells of the value follow."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparkScan:
    """An opened table on Spark, whose partitions have been counted."""

    policy: Policy
    source: SparkSource
    partitions: Partitions
    spill: Path | None
    progress: Progress
    domains: dict[str, pa.Array] = field(default_factory=dict, init=False)
    """The different values of every column, once they have been asked for."""

    @property
    def schema(self) -> pa.Schema:
        """Types of the published columns, after recoding."""
        return self.source.preparation(self.policy, self.policy.columns.published).schema

    def histogram(self, columns: tuple[str, ...]) -> Histogram:
        """How often each combination of cells of these columns occurs."""
        if columns == self.partitions.histogram.columns:
            return self.partitions.histogram
        return take_census(self.policy, self.source, columns, columns, 1).histogram

    def n_rows(self) -> int:
        """How many records there are."""
        return self.partitions.census.n_rows

    def n_different(self, coding: Coding) -> int:  # noqa: ARG002  (the tasks have codes of their own)
        """How many different records there are."""
        names, n_groups = self.schema.names, self.partitions.census.n_groups(self.partitions.census.n_rows)
        meet = MeetTask(preparation=self.source.preparation(self.policy, names), n_groups=n_groups)
        counting = CountDifferentTask(schema=self.schema)
        with spark_errors():
            sent = self.source.read(names).mapInArrow(guard(meet.run), BLOCKS)
            met = sent.repartitionById(n_groups, GROUP).mapInArrow(guard(counting.run), "n bigint")
            return int(pc.sum(met.toArrow().column(0)).as_py())

    def most_copies(self) -> int:
        """How often the most frequent record occurs."""
        table = self._table(self.schema.names)
        with spark_errors():
            (row,) = table.groupBy(*table.columns).count().agg({"count": "max"}).collect()
        return int(row[0])

    def active_values(self, column: str) -> pa.Array:
        """The different values of a column in ascending order, NULL last."""
        if column not in self.domains:  # one pass finds them all
            self.domains.update(self._find_domains())
        return self.domains[column]

    def _find_domains(self) -> dict[str, pa.Array]:
        schema = self.schema
        task = DomainTask(preparation=self.source.preparation(self.policy, schema.names))
        found = self._run(task.run, schema.names, DOMAINS)
        values: dict[str, list[pa.Array]] = {name: [] for name in schema.names}
        for index, packed in zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True):
            column = pa.schema([("v", schema.field(index).type)])
            values[schema.names[index]].append(pa.ipc.read_record_batch(packed, column).column(0))
        return {name: ascending(pa.concat_arrays(arrays).unique()) for name, arrays in values.items()}

    def find_values(self, column: str, values: pa.Array) -> tuple[int, int]:
        """How many records have one of the values in the column, and the number of the first, from 1."""
        task = FindTask(preparation=self.source.preparation(self.policy, (column,)), values=values)
        found = self._run(task.run, (column,), FOUND).sort_by("p").to_pylist()
        before = 0
        for row in found:
            if row["found"]:
                return sum(other["found"] for other in found), before + row["first"] + 1
            before += row["n"]
        return 0, 0

    def tally(self, counting: Counting) -> pa.Table:
        """The counts of all batches of records added up: columns `key` and `n`, each key once."""
        names = self.schema.names
        task = TallyTask(preparation=self.source.preparation(self.policy, names), counting=counting)
        with spark_errors():
            counted = self.source.read(names).mapInArrow(guard(task.run), "key bigint, n bigint")
            found = counted.groupBy("key").sum("n").toArrow()
        return found.rename_columns(["key", "n"]).sort_by("key")

    def sample(self, columns: Sequence[str], n_rows: int) -> pa.Table:
        """Columns of about so many records, chosen at random, or of all if there are not more."""
        table, share = self._table(columns), n_rows / max(self.n_rows(), 1)
        with spark_errors():
            chosen = (table if share >= 1 else table.sample(share)).toArrow()
        return chosen.rename_columns(list(columns))

    def count_repeated(self, *columns: str) -> tuple[int, int]:
        """How many different cells of columns of the source stand in several rows, and in how many."""
        cells = self._plain_cells(columns, ())
        with spark_errors():
            several = cells.groupBy(*cells.columns).count().filter("count > 1")
            (row,) = several.selectExpr("count(*)", "coalesce(sum(count), 0)").collect()
        return int(row[0]), int(row[1])

    def sample_cells(self, cells: Sequence[str], columns: Sequence[str], n_rows: int) -> pa.Table:
        """All rows of some cells of columns of the source, about so many, with other columns beside them."""
        table, one_in = self._plain_cells(cells, columns), max(1, self.n_rows() // n_rows)
        hashed = ", ".join(f"c{place}" for place in range(len(cells)))
        with spark_errors():
            found = table.filter(f"pmod(xxhash64({hashed}), {one_in}) = 0").toArrow()
        return found.rename_columns([*cells, *columns])

    def _plain_cells(self, cells: Sequence[str], columns: Sequence[str]) -> DataFrame:
        """Columns of the table, the first ones as one would say their cells, where they have any."""
        table = self._table((*cells, *columns))
        types = dict(table.dtypes)
        for name in table.columns[: len(cells)]:
            table = table.filter(f"{name} IS NOT NULL")
        said = [
            f"{write_plain(name)} AS {name}" if place < len(cells) and types[name] == "string" else name
            for place, name in enumerate(table.columns)
        ]
        return table.selectExpr(*said)

    def count_rare(self, columns: Sequence[str], few: int) -> Rarity:
        """How many people are among fewer than `few` with their cells of some published columns."""
        table = self._table(columns)
        sizes = table.groupBy(*table.columns).count().filter(f"count < {few}")
        with spark_errors():
            (row,) = sizes.selectExpr("count_if(count = 1)", "coalesce(sum(count), 0)").collect()
        return Rarity(n_alone=int(row[0]), n_few=int(row[1]))

    def uniqueness(
        self,
        columns: Sequence[str],
        few: int,
        fixed: Sequence[str],  # noqa: ARG002
        *,
        seek: bool = False,  # noqa: ARG002
    ) -> Uniqueness:
        """How many people are rare; not why, which would take a shuffle for every choice of columns."""
        return Uniqueness.counted(columns, self.n_rows(), few, self.count_rare(columns, few))

    def expect_fingerprint(self, key: bytes) -> None:
        """Nothing is gained: the workers of a cluster are busy already."""

    def fingerprint(self, key: bytes) -> str:
        """A keyed digest of the records that does not depend on their order, nor on the engine."""
        n_rows = self.n_rows()
        if not is_known_by_counts(n_rows):
            return self.record_fingerprint(key)
        columns = {column.name: column.kind for column in describe_columns(self.schema)}
        sums = self._sums(lambda relation: column_sums(columns, relation, key))
        return fingerprint_of_cells(key, self.schema, n_rows, sums)

    def earlier_fingerprint(self, key: bytes) -> str:
        """The same as an earlier version made it."""
        names, n_rows = self.schema.names, self.n_rows()
        sums = self._sums(lambda relation: earlier_sums(key, names, relation, n_rows))
        return fingerprint_of(key, self.schema, sums)

    def people(self, policy: Policy, key: bytes) -> pa.Table:  # noqa: ARG002
        """Who is who is found out on one machine only."""
        raise dates_refused()

    def record_fingerprint(self, key: bytes) -> str:
        """The same of whole records, however many there are."""
        sums = self._sums(lambda relation: record_sums(key, self.schema.names, relation))
        return fingerprint_of(key, self.schema, sums)

    def _sums(self, asked: Callable[[str], str]) -> list[int]:
        """What is asked of the published columns' records, added up."""
        names = self.schema.names
        preparation = self.source.preparation(self.policy, names)
        relation = RELATION if preparation.select is None else f"({preparation.select})"
        task = AggregateTask(preparation=preparation, sql=asked(relation))
        return self._add_up(task, names)

    def sketch(self, key: bytes) -> Sketch | None:
        """By which its people are known again; of all columns of the source, before they are recoded."""
        return sketch_source(self.source, self.n_rows(), key)

    def write(self, tables: Sequence[PublishedTable], folder: Path) -> list[TableEntry]:
        """Write each table as a folder of Parquet files."""
        return [self._write(table, folder) for table in tables]

    def _write(self, table: PublishedTable, folder: Path) -> TableEntry:
        if self.spill is None:
            raise InternalError("a table opened for planning cannot be written")
        published = self.policy.columns.published
        total = self.partitions.census.n_rows
        self.progress(f"writing {table.name}", 0, total)
        writer = SparkWriter(
            frame=self.source.read(published),
            preparation=self.source.preparation(self.policy, published),
            partitions=self.partitions,
            staging=self.spill,
        )
        written = writer.write(table, folder)
        self.progress(f"writing {table.name}", total, total)
        return written

    def _table(self, columns: Sequence[str]) -> DataFrame:
        """Columns of the table, recoded, under the names c0, c1 and so on."""
        preparation = self.source.preparation(self.policy, columns)
        schema = spark_schema(wire_schema(preparation.schema))
        return self.source.read(columns).mapInArrow(guard(PrepareTask(preparation=preparation).run), schema)

    def _run(self, task: Callable[[Batches], Batches], columns: Sequence[str], schema: str) -> pa.Table:
        with spark_errors():
            return self.source.read(columns).mapInArrow(guard(task), schema).toArrow()

    def _add_up(self, task: AggregateTask, columns: Sequence[str]) -> list[int]:
        return add_up(self._run(task.run, columns, SUMS))


def add_up(found: pa.Table) -> list[int]:
    """The partitions' sums, added up."""
    rows = [list(map(int, row)) for row in found.column(0).to_pylist()]
    return [sum(column) for column in zip(*rows, strict=True)]


def open_partitions(policy: Policy, source: SparkSource, group_rows: int) -> Partitions:
    """Count the sensitive values of every partition; where whole rows are protected, the rows."""
    published, sensitive = policy.columns.published, policy.columns.sensitive
    if policy.promise.protects == "row":
        return take_census(policy, source, (), published, group_rows)
    return take_census(policy, source, sensitive, sensitive, group_rows)


def take_census(
    policy: Policy,
    source: SparkSource,
    counted: tuple[str, ...],
    digested: tuple[str, ...],
    group_rows: int,
) -> Partitions:
    """One pass over the columns; the others are not read where that leaves the partitions as they are."""
    columns = digested if source.prunes else policy.columns.published
    preparation, key = source.preparation(policy, columns), secrets.token_bytes(32)
    task = CensusTask(preparation=preparation, counted=counted, digested=digested, key=key)
    schema = pa.schema([preparation.schema.field(name) for name in counted])
    with spark_errors():
        frame = source.read(columns).mapInArrow(guard(task.run), census_schema(schema))
        found = frame.toArrow()
    values = _values(found, schema)
    numbers = found.column(_PARTITION).to_numpy()
    counts = found.column(_COUNT).to_numpy()
    histogram = _histogram(counted, values, counts)
    code_of = {value: code for code, value in enumerate(histogram.values)}
    by_partition = np.zeros((int(numbers.max(initial=-1)) + 1, max(len(histogram), 1)), dtype=np.int64)
    codes = np.array([code_of.get(value, 0) for value in values], dtype=np.int64)
    np.add.at(by_partition, (numbers, codes), counts)
    return Partitions(
        histogram=histogram,
        census=Census(counts=by_partition, group_rows=group_rows),
        digested=digested,
        digests=dict(zip(numbers.tolist(), found.column(_DIGEST).to_pylist(), strict=True)),
        key=key,
    )


def _values(found: pa.Table, schema: pa.Schema) -> list[Value]:
    cells = found.select(range(_COUNT + 1, found.num_columns))
    if not schema.names:
        return [()] * found.num_rows
    batches = [from_wire(batch, schema) for batch in cells.to_batches()]
    columns = pa.Table.from_batches(batches, schema).columns
    return [with_one_nan(value) for value in zip(*(column.to_pylist() for column in columns), strict=True)]


def _histogram(columns: tuple[str, ...], values: list[Value], counts: np.ndarray) -> Histogram:
    counted: dict[Value, int] = {}
    for value, count in zip(values, counts.tolist(), strict=True):
        counted[value] = counted.get(value, 0) + count
    return Histogram.of(columns, counted)


def dates_refused() -> PolicyError:
    """What is said before anything is read."""
    return PolicyError(
        '[series] kind = "dates" is not published on Spark: who stays is found by comparing all people with '
        "those of the dates before, on one machine",
        hint="publish this series with --engine local, from a file or a folder of files",
    )
