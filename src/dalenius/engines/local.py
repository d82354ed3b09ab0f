"""One machine: DuckDB scans, sorts and spills; kernels see Arrow batches of a fixed size."""

from __future__ import annotations

import hashlib
import hmac
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from dalenius.engines.base import Progress
from dalenius.errors import EngineError, InternalError, PolicyError, SourceError
from dalenius.histogram import Histogram
from dalenius.mechanism_configs import COPY
from dalenius.mechanisms.base import Batches, Counting, PublishedTable, Reads
from dalenius.policy import Policy
from dalenius.recode import NUMERIC_TYPES
from dalenius.sql import connect, count, identifier, identifiers, literal, one_row

BATCH_ROWS = 131_072
_ROW_GROUP_ROWS = 122_880


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
            recoded = dict(policy.recode)
            columns = ", ".join(
                f"{recoded[name].expression(name)} AS {identifier(name)}"
                if name in recoded
                else identifier(name)
                for name in policy.columns.published
            )
            scan = LocalScan(
                connection=connection,
                select=f"SELECT {columns} FROM {source}",
                spill=spill,
                progress=progress,
            )
            if not scan.n_rows():
                raise SourceError(f"{policy.source.name} has no rows", hint="there is nothing to publish")
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
        """A keyed digest of the records that does not depend on their order.

        Each record's cells, with their lengths, are hashed under the key; the hashes are added up.
        """
        cells = " || ".join(
            f"coalesce(length({identifier(name)}::VARCHAR) || ':' || {identifier(name)}::VARCHAR, 'N')"
            for name in self.schema.names
        )
        halves = ", ".join(f"sum(('0x' || substr(h, {start}, 15))::BIGINT)" for start in (1, 16, 31))
        sums = one_row(
            self.connection,
            f"SELECT count(*), {halves} FROM (SELECT sha256('{key.hex()}' || {cells}) AS h "
            f"FROM ({self.select}))",
        )
        described = "\n".join([str(self.schema.remove_metadata()), *map(str, sums)])
        return hmac.new(key, described.encode(), hashlib.sha256).hexdigest()

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
        for batch in _rebatch(reader):
            yield batch
            done += batch.num_rows
            self.progress("reading", done, total)

    def write(self, table: PublishedTable, path: Path) -> int:
        """Write one table as Parquet, in its order; the number of rows written."""
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
    writer.register("rows", rows)
    writer.execute(
        f"COPY (SELECT {identifiers(table.columns)} FROM rows{order}) TO {literal(str(path))}"
        f" (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_ROW_GROUP_ROWS})"
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


def _rebatch(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of exactly BATCH_ROWS, but for the last."""
    held: list[pa.RecordBatch] = []
    n_held = 0
    for batch in reader:
        while batch.num_rows:
            taken = batch.slice(0, BATCH_ROWS - n_held)
            batch = batch.slice(taken.num_rows)  # noqa: PLW2901
            held.append(taken)
            n_held += taken.num_rows
            if n_held == BATCH_ROWS:
                yield _joined(held)
                held, n_held = [], 0
    if held:
        yield _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _check_recodes(connection: duckdb.DuckDBPyConnection, policy: Policy, source: str) -> None:
    types = {
        name: kind for name, kind, *_ in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    }
    for name, recode in policy.recode:
        if recode.needs_numbers and not types[name].startswith(NUMERIC_TYPES):
            raise PolicyError(
                f"[recode] {name}: the column is not numeric ({types[name].lower()})",
                hint='use map = "file.csv" for texts',
            )
        n_outside = count(connection, f"SELECT count(*) FROM {source} WHERE {recode.outside(name)}")
        if n_outside:
            raise PolicyError(
                f"[recode] {name}: {n_outside} rows have a value that the recoding does not cover",
                hint="widen the bins, or complete the mapping file",
            )


def _check_units(connection: duckdb.DuckDBPyConnection, policy: Policy, source: str) -> None:
    """Every promise is per row, so a person with several rows is refused."""
    if policy.columns.unit is None:
        return
    unit = identifier(policy.columns.unit)
    unknown = count(connection, f"SELECT count(*) FROM {source} WHERE {unit} IS NULL")
    repeated = count(
        connection, f"SELECT count(*) FROM (SELECT {unit} FROM {source} GROUP BY {unit} HAVING count(*) > 1)"
    )
    if unknown:
        raise SourceError(f"{unknown} rows have no {policy.columns.unit!r}: whose rows they are is not known")
    if repeated:
        raise SourceError(
            f"{repeated} people have more than one row (unit {policy.columns.unit!r}), "
            "and every promise is per row",
            hint="keep one row a person, e.g. the latest, before publishing",
        )
