"""One machine: DuckDB scans, sorts and spills; kernels see Arrow batches of a fixed size."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from dalenius.engines.base import Progress, WrittenFile, WrittenTable
from dalenius.engines.preparing import (
    BATCH_ROWS,
    ROW_GROUP_ROWS,
    count_outside,
    fingerprint_of,
    fingerprint_sums,
    rebatch,
    refuse_empty,
    refuse_outside,
    refuse_texts,
    refuse_units,
    selection,
    sha256,
)
from dalenius.errors import EngineError, InternalError
from dalenius.histogram import Histogram
from dalenius.mechanism_configs import COPY
from dalenius.mechanisms.base import Batches, Counting, PublishedTable, Reads
from dalenius.policy import Policy
from dalenius.sql import connect, count, identifier, identifiers, literal, one_row


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEngine:
    """Publishes on this machine."""

    name = "local"

    @contextmanager
    def open(self, policy: Policy, spill: Path | None, progress: Progress) -> Iterator[LocalScan]:
        """Open the source, recode it, and refuse what no promise could cover."""
        with engine_errors(), connect(spill) as connection:
            source = policy.source.scan(connection)
            _check_recodes(connection, policy, source)
            _check_units(connection, policy, source)
            scan = LocalScan(
                connection=connection,
                select=selection(policy, source, policy.columns.published),
                spill=spill,
                progress=progress,
            )
            refuse_empty(policy, scan.n_rows())
            yield scan


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalScan:
    """An opened table on this machine."""

    connection: duckdb.DuckDBPyConnection
    select: str
    spill: Path | None
    progress: Progress

    @property
    def schema(self) -> pa.Schema:
        """Types of the published columns, after recoding."""
        return self.connection.sql(f"{self.select} LIMIT 0").to_arrow_table().schema

    def n_rows(self) -> int:
        """How many records there are."""
        return count(self.connection, f"SELECT count(*) FROM ({self.select})")

    def histogram(self, columns: tuple[str, ...]) -> Histogram:
        """How often each combination of cells of these columns occurs."""
        listed = identifiers(columns)
        counted = self.connection.sql(
            f"SELECT {listed}, count(*) AS n FROM ({self.select}) GROUP BY {listed}"
        ).to_arrow_table()
        *cells, counts = (column.to_pylist() for column in counted.columns)
        return Histogram.of(columns, dict(zip(zip(*cells, strict=True), counts, strict=True)))

    def n_records(self, reads: Reads) -> int:
        """How many records there are, or how many different ones."""
        if reads == "distinct":
            return count(self.connection, f"SELECT count(*) FROM (SELECT DISTINCT * FROM ({self.select}))")
        return self.n_rows()

    def most_copies(self) -> int:
        """How often the most frequent record occurs."""
        return count(
            self.connection,
            f"SELECT max(n) FROM (SELECT count(*) AS n FROM ({self.select}) "
            f"GROUP BY {identifiers(self.schema.names)})",
        )

    def active_values(self, column: str) -> pa.Array:
        """The different values of a column in ascending order, NULL last."""
        name = identifier(column)
        found = self.connection.sql(
            f"SELECT DISTINCT {name} FROM ({self.select}) ORDER BY {name} NULLS LAST"
        ).to_arrow_table()
        return found.column(0).combine_chunks()

    def find_values(self, column: str, values: pa.Array) -> tuple[int, int]:
        """How many records have one of the values in the column, and the number of the first, from 1."""
        self.connection.register("sought", pa.table({"v": values}))
        n_found, first = one_row(
            self.connection,
            f"SELECT count(*), coalesce(min(n), 0) FROM (SELECT {identifier(column)} AS c, row_number() "
            f"OVER () AS n FROM ({self.select})) SEMI JOIN sought ON c IS NOT DISTINCT FROM v",
        )
        self.connection.unregister("sought")
        return int(n_found), int(first)

    def tally(self, counting: Counting) -> pa.Table:
        """The counts of all batches of records added up: columns `key` and `n`, each key once."""
        keys = counts = np.zeros(0, dtype=np.int64)
        for batch in map(counting, self.batches()):
            keys, place = np.unique(np.concatenate([keys, batch.column("key")]), return_inverse=True)
            together = np.zeros(len(keys), dtype=np.int64)
            np.add.at(together, place.ravel(), np.concatenate([counts, batch.column("n")]))
            counts = together
        return pa.table({"key": keys, "n": counts})

    def fingerprint(self, key: bytes) -> str:
        """A keyed digest of the records that does not depend on their order."""
        sums = one_row(self.connection, fingerprint_sums(key, self.schema.names, f"({self.select})"))
        return fingerprint_of(key, self.schema, sums)

    def _reading(self, reads: Reads) -> str:
        listed = identifiers(self.schema.names)
        if reads == "distinct":
            return f"SELECT DISTINCT {listed} FROM ({self.select}) ORDER BY {listed}"
        if reads == "copies":
            numbered = f"row_number() OVER (PARTITION BY {listed}) AS {identifier(COPY)}"
            return f"SELECT {listed}, {numbered} FROM ({self.select})"
        return self.select

    def batches(self, reads: Reads = "records") -> Iterator[pa.RecordBatch]:
        """The records in a fixed order and in batches of a fixed size, so that a seeded run repeats."""
        total, done = None if reads == "distinct" else self.n_rows(), 0
        reader = self.connection.sql(self._reading(reads)).to_arrow_reader(BATCH_ROWS)
        for batch in rebatch(reader, BATCH_ROWS):
            yield batch
            done += batch.num_rows
            self.progress("reading", done, total)

    def write(self, table: PublishedTable, folder: Path) -> WrittenTable:
        """Write one table as a Parquet file into the folder, in its order."""
        path = folder / f"{table.name}.parquet"
        n_rows = self._write_file(table, path)
        file = WrittenFile(file=path.name, sha256=sha256(path))
        return WrittenTable(name=table.name, n_rows=n_rows, files=(file,))

    def _write_file(self, table: PublishedTable, path: Path) -> int:
        raised: list[Exception] = []
        rows = _remember_errors(table.rows(lambda: self.batches(table.reads)), raised)
        first = next(rows, None)
        if first is None:
            raise InternalError(f"table {table.name!r} has no rows")
        reader = pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], rows))
        # A database of its own for each step: the one that feeds it holds the other one's threads.
        with engine_errors(), connect(self.spill) as sorter, connect(self.spill) as writer:
            try:
                _copy_rows(table, reader, path, sorter, writer)
            except duckdb.Error:
                if raised:  # DuckDB reports an error of the rows it is fed in its own words
                    raise raised[0] from None
                raise
            return count(writer, f"SELECT count(*) FROM read_parquet({literal(str(path))})")


def _copy_rows(
    table: PublishedTable,
    rows: pa.RecordBatchReader,
    path: Path,
    sorter: duckdb.DuckDBPyConnection,
    writer: duckdb.DuckDBPyConnection,
) -> None:
    order = f" ORDER BY {identifiers(table.order_by)}" if table.order_by else ""
    if table.finish is not None:
        sorter.register("rows", rows)
        in_order = sorter.sql(f"SELECT * FROM rows{order}").to_arrow_reader(BATCH_ROWS)
        rows, order = _reader(table.finish(iter(in_order))), ""
    if not order:
        # uneven batches would show in the sizes of row groups: how many repeats were dropped where
        rows = pa.RecordBatchReader.from_batches(rows.schema, rebatch(rows, ROW_GROUP_ROWS))
    writer.register("rows", rows)
    writer.execute(
        f"COPY (SELECT {identifiers(table.columns)} FROM rows{order}) TO {literal(str(path))}"
        f" (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP_ROWS})"
    )


def _reader(batches: Batches) -> pa.RecordBatchReader:
    first = next(batches)
    return pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], batches))


@contextmanager
def engine_errors() -> Iterator[None]:
    """Says in plain words what the machine could not do."""
    try:
        yield
    except (duckdb.IOException, duckdb.OutOfMemoryException, OSError) as error:
        text = str(error)
        if "no space left" in text.lower():
            raise EngineError(
                "the disk is full; nothing was published",
                hint="free space beside the release, or publish elsewhere",
            ) from error
        raise EngineError(
            f"the machine could not do it: {text.splitlines()[0]}; nothing was published"
        ) from error
    except duckdb.Error as error:
        # Its text may quote a cell of the table.
        raise EngineError(
            f"the table could not be read ({type(error).__name__}); nothing was published",
            hint="did it change while it was read? `dalenius inspect` reads it again",
        ) from error


def _remember_errors(rows: Iterator[pa.RecordBatch], raised: list[Exception]) -> Iterator[pa.RecordBatch]:
    try:
        yield from rows
    except Exception as error:
        raised.append(error)
        raise


def _check_recodes(connection: duckdb.DuckDBPyConnection, policy: Policy, source: str) -> None:
    if not policy.recode:
        return
    described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    refuse_texts(policy, {name: kind for name, kind, *_ in described})
    refuse_outside(policy, one_row(connection, count_outside(policy, source)))


def _check_units(connection: duckdb.DuckDBPyConnection, policy: Policy, source: str) -> None:
    if policy.columns.unit is None:
        return
    unit = identifier(policy.columns.unit)
    unknown = count(connection, f"SELECT count(*) FROM {source} WHERE {unit} IS NULL")
    repeated = count(
        connection, f"SELECT count(*) FROM (SELECT {unit} FROM {source} GROUP BY {unit} HAVING count(*) > 1)"
    )
    refuse_units(policy.columns.unit, unknown, repeated)
