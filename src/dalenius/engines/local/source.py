"""A policy's source as this machine reads it: recoded, in a fixed order, in batches of a fixed size.

Columns of few values are read as codes. These, and whatever else will be needed before the records are
read, are looked for on a second connection while the plan is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from dalenius.arrays import different
from dalenius.engines.base import Progress
from dalenius.engines.preparing import (
    Recodes,
    refuse_empty,
    refuse_intervals,
    selection,
)
from dalenius.policy import Policy
from dalenius.prefetch import prefetch
from dalenius.randomness import Randomness
from dalenius.sql import count, identifiers, literal, scan_parquet
from dalenius.tables.files.csv import CsvSource
from dalenius.tables.frames import FrameSource
from dalenius.tables.reading import BATCH_ROWS, DictionaryColumns, rebatch
from dalenius.tables.sketching.held import HeldRows
from dalenius.tables.source import Source

T = TypeVar("T")

_SECONDS_BETWEEN_LOOKS = 0.05


class Background:
    """A second connection to a database, and a thread that works on it; what is left at the end is dropped.

    It does not see what is registered on the first connection only.

    >>> with duckdb.connect() as connection, Background(connection) as background:
    ...     answer = background.start(lambda second: second.sql("SELECT 6 * 7").fetchall())
    ...     print(answer.result())
    [(42,)]
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection.cursor()
        self._worker = ThreadPoolExecutor(1)
        self._started: list[Future[Any]] = []

    def sees(self, source: Source) -> bool:
        """Whether the second connection has what a source shows the first; it is shown cells in memory."""
        if isinstance(source, FrameSource | CsvSource):
            source.scan(self._connection)
            return True
        return source.is_shared

    def start(self, work: Callable[[duckdb.DuckDBPyConnection], T]) -> Future[T]:
        """Do this after what was started before."""
        answer = self._worker.submit(work, self._connection)
        self._started.append(answer)
        return answer

    def __enter__(self) -> Background:
        return self

    def __exit__(self, *_: object) -> None:
        running = [answer for answer in self._started if not answer.cancel()]
        # who presses Ctrl-C does not wait for answers; a question that is about to be asked is stopped too
        while wait(running, timeout=0).not_done:
            self._connection.interrupt()
            wait(running, timeout=_SECONDS_BETWEEN_LOOKS)
        self._worker.shutdown()
        self._connection.close()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalSource:
    """The published columns, recoded."""

    connection: duckdb.DuckDBPyConnection
    background: Background | None
    """For what publishing needs later; None for planning, and for a frame, which one connection sees."""
    relation: str
    """SQL to select all columns of the source from, as they are before recoding."""
    names: tuple[str, ...]
    recode: Recodes
    as_they_are: tuple[str, ...]
    """The published columns that are not recoded."""
    select: str
    schema: pa.Schema
    """Types of the published columns, after recoding."""
    n_rows: int
    progress: Progress
    _coded: list[Future[DictionaryColumns]] = field(default_factory=list, init=False)
    """Found when they are needed first, or before."""
    _held: list[HeldRows] = field(default_factory=list, init=False)
    """All columns of the source, as they are before recoding, once they were read."""

    def table(self) -> pa.Table:
        """All records, in memory."""
        return self.connection.sql(self.select).to_arrow_table()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The records in a fixed order and in batches of a fixed size, so that a seeded run repeats.

        Columns of few texts, or of whole numbers near one another, are dictionary arrays.
        """
        if not self._is_held():
            return self._watch(self._read_batches())
        return self._watch(self._held[0].batches(self.schema.names, BATCH_ROWS))

    def last_batches(self) -> Iterator[pa.RecordBatch]:
        """The same; what is held is let go of as it is read, and what is made of it has the memory.

        Whoever asks for the records once more has them read again.
        """
        if not self._is_held():
            return self.batches()
        return self._watch(self._held.pop().batches(self.schema.names, BATCH_ROWS, last=True))

    def _watch(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        done = 0
        for batch in batches:
            yield batch
            done += batch.num_rows
            self.progress("reading", done, self.n_rows)

    def _read_batches(self) -> Iterator[pa.RecordBatch]:
        reader = self.connection.sql(self.coded_select()).to_arrow_reader(BATCH_ROWS)
        return map(self.columns().decode, prefetch(rebatch(reader, BATCH_ROWS)))

    def _is_held(self) -> bool:
        """Whether all published columns were read before, as exact codes or as cells."""
        names = self.schema.names
        if not self._held or set(names) - set(self.as_they_are):
            return False
        return all(name in self._held[0].held for name in names)

    def held(self, connection: duckdb.DuckDBPyConnection) -> HeldRows:
        """All columns of the source, as they are before recoding: read when they are needed first."""
        if not self._held:
            known = self.columns().only(self.as_they_are)
            self._held.append(HeldRows.read(connection, self.relation, self.names, known, self.n_rows))
        return replace(self._held[0], connection=connection)

    def sample(self, columns: Sequence[str], n_rows: int) -> pa.Table:
        """Columns of about so many records, chosen at random, or of all if there are not more."""
        share = n_rows / max(self.n_rows, 1)
        are_held = self._held and all(
            name in self.as_they_are and name in self._held[0].held for name in columns
        )
        if share < 1 and are_held:
            stream = Randomness.fresh().stream("sample")
            rows = different(stream.integers(self.n_rows, size=n_rows))
            return pa.Table.from_batches([self._held[0].sample(columns, rows)])
        chosen = "" if share >= 1 else f" USING SAMPLE {100 * share:.9f} PERCENT (bernoulli)"
        query = f"SELECT {identifiers(columns)} FROM ({self.select}){chosen}"
        return self.connection.sql(query).to_arrow_table()

    def coded_select(self) -> str:
        """SQL for the records with columns of few values as codes."""
        return self.columns().code(self.select)

    def columns(self) -> DictionaryColumns:
        """Which columns are read as codes, and of which values."""
        if not self._coded:
            found: Future[DictionaryColumns] = Future()
            found.set_result(self._find_coded(self.connection))
            self._coded.append(found)
        return self._coded[0].result()

    def find_columns_early(self, background: Background) -> None:
        """Look for them now, while the connection is used for something else."""
        self._coded.append(background.start(self._find_coded))

    def _find_coded(self, connection: duckdb.DuckDBPyConnection) -> DictionaryColumns:
        return DictionaryColumns.of(connection, self.select, numbers=True, schema=self.schema)


def find_relation(connection: duckdb.DuckDBPyConnection, policy: Policy, spill: Path | None) -> str:
    """SQL to select the source's columns from; not recoded yet."""
    relation = policy.source.scan(connection)
    if spill is not None and policy.source.is_slow:
        return _copy_to_parquet(connection, relation, spill)
    return relation


def prepare(
    connection: duckdb.DuckDBPyConnection,
    background: Background | None,
    policy: Policy,
    relation: str,
    progress: Progress,
) -> LocalSource:
    """The published columns, recoded; refuses what cannot be published."""
    select = selection(policy.recode, relation, policy.columns.published)
    schema = connection.sql(f"{select} LIMIT 0").to_arrow_table().schema
    refuse_intervals(schema)
    n_rows = count(connection, f"SELECT count(*) FROM ({select})")
    refuse_empty(policy, n_rows)
    return LocalSource(
        connection=connection,
        background=background,
        relation=relation,
        names=policy.source.column_names,
        recode=policy.recode,
        as_they_are=tuple(name for name in schema.names if name not in dict(policy.recode)),
        select=select,
        schema=schema,
        n_rows=n_rows,
        progress=progress,
    )


def _copy_to_parquet(connection: duckdb.DuckDBPyConnection, source: str, spill: Path) -> str:
    """All columns, as Parquet: publishing reads them several times, and each time the same rows."""
    target = str(spill / "source.parquet")
    connection.execute(f"COPY (SELECT * FROM {source}) TO {literal(target)} (FORMAT parquet)")
    return scan_parquet([target])
