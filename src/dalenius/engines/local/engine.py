"""One machine: DuckDB scans, sorts and spills; kernels see Arrow batches of a fixed size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event

import duckdb
import numpy as np
import pyarrow as pa

from dalenius.engines.base import Progress
from dalenius.engines.local.background import Beside
from dalenius.engines.local.ordering import SortedCodes, in_order
from dalenius.engines.parquet import write_parquet
from dalenius.engines.preparing import (
    count_outside,
    fingerprint_of,
    fingerprint_sums,
    record_sums,
    refuse_empty,
    refuse_intervals,
    refuse_outside,
    refuse_texts,
    refuse_units,
    selection,
)
from dalenius.errors import EngineError, InternalError
from dalenius.mechanisms.base import Batches, Coding, Counting, PublishedTable
from dalenius.policy import Policy
from dalenius.prefetch import ahead, mapped
from dalenius.release.folder import sha256
from dalenius.release.manifest import FileEntry, TableEntry
from dalenius.sql import connect, count, identifier, identifiers, literal, one_row, scan_parquet
from dalenius.tables.csv import CsvSource
from dalenius.tables.histogram import Histogram
from dalenius.tables.reading import BATCH_ROWS, DictionaryColumns, rebatch
from dalenius.tables.source import ParquetSource


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEngine:
    """Publishes on this machine."""

    name = "local"

    @contextmanager
    def open(self, policy: Policy, spill: Path | None, progress: Progress) -> Iterator[LocalScan]:
        """Open the source, recode it, and refuse what no promise could cover."""
        with engine_errors(), connect(spill) as connection, Beside(connection) as beside:
            source = policy.source.scan(connection)
            if spill is not None and isinstance(policy.source, CsvSource):
                source = _copied(connection, policy, source, spill)
            _check_recodes(connection, policy, source)
            _check_units(connection, policy, source)
            select = selection(policy, source, policy.columns.published)
            schema = connection.sql(f"{select} LIMIT 0").to_arrow_table().schema
            refuse_intervals(schema)
            total = count(connection, f"SELECT count(*) FROM ({select})")
            refuse_empty(policy, total)
            is_file = isinstance(policy.source, ParquetSource | CsvSource)
            yield LocalScan(
                connection=connection,
                beside=beside if is_file and spill is not None else None,
                select=select,
                schema=schema,
                total=total,
                spill=spill,
                progress=progress,
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalScan:
    """An opened table on this machine."""

    connection: duckdb.DuckDBPyConnection
    beside: Beside | None
    """For what publishing needs later; None for planning, and for a frame, which one connection sees."""
    select: str
    schema: pa.Schema
    """Types of the published columns, after recoding."""
    total: int
    """How many records there are."""
    spill: Path | None
    progress: Progress
    _coded: list[Future[DictionaryColumns]] = field(default_factory=list, init=False)
    """Found when they are needed first, or before."""
    _expected: dict[bytes, Future[str]] = field(default_factory=dict, init=False)
    _counted: dict[tuple[str, ...], Histogram] = field(default_factory=dict, init=False)
    _kept: dict[Coding, SortedCodes] = field(default_factory=dict, init=False)

    def n_rows(self) -> int:
        """How many records there are."""
        return self.total

    def histogram(self, columns: tuple[str, ...]) -> Histogram:
        """How often each combination of cells of these columns occurs."""
        if columns not in self._counted:
            listed = identifiers(columns)
            counted = self.connection.sql(
                f"SELECT {listed}, count(*) AS n FROM ({self.select}) GROUP BY {listed}"
            ).to_arrow_table()
            *cells, counts = (column.to_pylist() for column in counted.columns)
            counts_of = dict(zip(zip(*cells, strict=True), counts, strict=True))
            self._counted[columns] = Histogram.of(columns, counts_of)
        return self._counted[columns]

    def n_different(self, coding: Coding) -> int:
        """How many different records there are; different ones have different codes."""
        if self.spill is not None:
            return self._codes(coding, self.spill).n_different
        # planning writes nothing, not even codes
        return count(
            self.connection, f"SELECT count(*) FROM (SELECT DISTINCT * FROM ({self._coded_select()}))"
        )

    def most_copies(self) -> int:
        """How often the most frequent record occurs."""
        return count(
            self.connection,
            f"SELECT max(n) FROM (SELECT count(*) AS n FROM ({self._coded_select()}) "
            f"GROUP BY {identifiers(self.schema.names)})",
        )

    def active_values(self, column: str) -> pa.Array:
        """The different values of a column in ascending order, NULL last."""
        return self._columns().different_values(self.connection, self.select, column)

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

    def expect_fingerprint(self, key: bytes) -> None:
        """Start on the fingerprint, and on what else has to be known before records are read."""
        if self.beside is not None:
            self._coded.append(self.beside.start(self._find_coded))  # some plans ask for values
            self._expected[key] = self.beside.start(partial(self._fingerprint, key))

    def fingerprint(self, key: bytes) -> str:
        """A keyed digest of the records that does not depend on their order."""
        expected = self._expected.get(key)
        return self._fingerprint(key, self.connection) if expected is None else expected.result()

    def _fingerprint(self, key: bytes, connection: duckdb.DuckDBPyConnection) -> str:
        asked = fingerprint_sums(key, self.schema.names, f"({self.select})", self.total)
        return fingerprint_of(key, self.schema, one_row(connection, asked))

    def record_fingerprint(self, key: bytes) -> str:
        """The same of whole records, however many there are."""
        asked = record_sums(key, self.schema.names, f"({self.select})")
        return fingerprint_of(key, self.schema, one_row(self.connection, asked))

    def table(self) -> pa.Table:
        """All records, in memory."""
        return self.connection.sql(self.select).to_arrow_table()

    def _coded_select(self) -> str:
        return self._columns().code(self.select)

    def _columns(self) -> DictionaryColumns:
        if not self._coded:
            found: Future[DictionaryColumns] = Future()
            found.set_result(self._find_coded(self.connection))
            self._coded.append(found)
        return self._coded[0].result()

    def _find_coded(self, connection: duckdb.DuckDBPyConnection) -> DictionaryColumns:
        return DictionaryColumns.of(connection, self.select)

    def _codes(self, coding: Coding, spill: Path) -> SortedCodes:
        """The codes, sorted when they are needed first."""
        if coding not in self._kept:
            folder = spill / f"codes{len(self._kept)}"
            folder.mkdir()
            codes = mapped(coding.encode, self.batches())
            ascending = in_order(codes, coding.names, coding.bits, self.total, folder)
            self._kept[coding] = SortedCodes.write(ascending, folder / "codes.arrow")
        return self._kept[coding]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The records in a fixed order and in batches of a fixed size, so that a seeded run repeats.

        Text columns of few values are dictionary arrays.
        """
        done = 0
        reader = self.connection.sql(self._coded_select()).to_arrow_reader(BATCH_ROWS)
        for batch in ahead(rebatch(reader, BATCH_ROWS)):
            yield self._columns().decode(batch)
            done += batch.num_rows
            self.progress("reading", done, self.total)

    def write(self, tables: Sequence[PublishedTable], folder: Path) -> list[TableEntry]:
        """Write each table as a Parquet file into the folder, in its order.

        The first table reads the source; others, which the plan alone decides, are made beside it.
        """
        if self.spill is None:
            raise InternalError("a table opened for planning cannot be written")
        first, *others = tables
        failed = Event()
        with engine_errors(), ThreadPoolExecutor(1) as aside:
            waiting = [
                aside.submit(_write_file, table, _until(failed, self._ordered(table, self.spill)), folder)
                for table in others
            ]
            try:
                written = _write_file(first, self._ordered(first, self.spill), folder)
            except BaseException:
                failed.set()
                raise
            return [written, *(future.result() for future in waiting)]

    def _ordered(self, table: PublishedTable, spill: Path) -> Batches:
        reads = table.reads
        rows = table.rows(self.batches if reads is None else lambda: self._codes(reads, spill).batches())
        if table.order_by:
            rows = in_order(rows, table.order_by, table.order_bits, self.total, spill)
        return rows if table.finish is None else table.finish(rows)


def _write_file(table: PublishedTable, rows: Batches, folder: Path) -> TableEntry:
    path = folder / f"{table.name}.parquet"
    n_rows = write_parquet(path, rows, table.columns)
    return TableEntry(name=table.name, rows=n_rows, files=(FileEntry(file=path.name, sha256=sha256(path)),))


def _until(stopped: Event, rows: Batches) -> Batches:
    """The rows, unless something stops the work: who presses Ctrl-C does not wait for them."""
    for batch in rows:
        if stopped.is_set():
            raise EngineError("another table could not be written")
        yield batch


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


def _copied(connection: duckdb.DuckDBPyConnection, policy: Policy, source: str, spill: Path) -> str:
    """The columns that are read, as Parquet: publishing reads them several times, and a CSV file is slow."""
    unit = () if policy.columns.unit is None else (policy.columns.unit,)
    listed = identifiers(dict.fromkeys((*unit, *policy.columns.published)))
    target = str(spill / "source.parquet")
    connection.execute(f"COPY (SELECT {listed} FROM {source}) TO {literal(target)} (FORMAT parquet)")
    return scan_parquet([target])


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
