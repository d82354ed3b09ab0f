"""Writing tables on this machine: rows in the order of random keys, or of codes, as one Parquet file each.

Memory does not grow with the number of rows: they are dealt to files by the range of their first key, and
each file is then sorted by itself. All columns travel as they are, so that a text column that is coded stays
a byte per row. The codes of a table's records in ascending order are kept in a file: eight bytes per number
and record on the disk save another pass over the source and another sort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from threading import Event
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dalenius.engines.local.errors import engine_errors
from dalenius.engines.local.source import LocalSource
from dalenius.engines.parquet import write_parquet
from dalenius.errors import EngineError
from dalenius.mechanisms.base import Batches, Coding, PublishedTable
from dalenius.prefetch import prefetch
from dalenius.release.folder import sha256
from dalenius.release.manifest import FileEntry, TableEntry
from dalenius.tables.reading import rebatch

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)

FILE_ROWS = 2**20
_FEWER_ROWS = 2**17
_MOST_FILES = 2**8
_FEW_FILES = 2**3
_PIECE_ROWS = 2**13
_MOST_SORTED = 2**22
"""Rows that are sorted in memory at once, unless their first keys are all the same."""


def sort_rows(batches: Batches, keys: Sequence[str], bits: int, n_rows: int, folder: Path) -> Batches:
    """The rows in the order of their keys.

    Args:
        batches: The rows.
        keys: Columns of whole numbers from 0.
        bits: The first key is ordered by this many of its low bits; those above are the same in all rows.
        n_rows: About how many rows there are.
        folder: Where the files may be; they are removed.
    """
    # a few files also for a table of one file's size: one is written while the next is sorted
    n_files = max(min(n_rows // FILE_ROWS, _MOST_FILES - 1), min(n_rows // _FEWER_ROWS, _FEW_FILES - 1))
    file_bits = min(bits, n_files.bit_length())
    files = [folder / f"rows{bits}-{number}.arrow" for number in range(2**file_bits)]
    if len(files) == 1:
        yield from _sort(pa.Table.from_batches(batches), keys)
        return
    bits_left = bits - file_bits
    counts = _deal(prefetch(rebatch(batches, len(files) * _PIECE_ROWS)), keys[0], bits_left, files)
    for rows in prefetch(_sort_file(*file, keys, bits_left) for file in zip(files, counts, strict=True)):
        yield from rows


def _sort_file(path: Path, n_rows: int, keys: Sequence[str], bits: int) -> Batches:
    """The rows of a file in order; dealt again, if most keys are in its range, as codes may be."""
    if n_rows > _MOST_SORTED and bits:
        return sort_rows(_read(path), keys, bits, n_rows, path.parent)
    return iter(_sort(pa.Table.from_batches(_read(path)), keys))


def _deal(batches: Batches, key: str, shift: int, files: list[Path]) -> list[int]:
    """Append every row to the file of its key's range, and say how many each has."""
    counts = np.zeros(len(files), dtype=np.int64)
    with ExitStack() as opened:
        writers: list[pa.RecordBatchStreamWriter] = []
        for batch in batches:
            writers = writers or [_open(opened, file, batch.schema) for file in files]
            numbers = ((batch.column(key).to_numpy() >> shift) & (len(files) - 1)).astype(np.uint8)
            # a stable sort of bytes counts them
            together = _take(batch, np.argsort(numbers, kind="stable"))
            in_files = np.bincount(numbers, minlength=len(files))
            ends = np.cumsum(in_files)
            for writer, start, end in zip(writers, [0, *ends[:-1]], ends, strict=True):
                writer.write_batch(together.slice(start, end - start))
            counts += in_files
    return [int(count) for count in counts]


def _open(opened: ExitStack, path: Path, schema: pa.Schema) -> pa.RecordBatchStreamWriter:
    file = opened.enter_context(pa.OSFile(str(path), "wb"))
    return opened.enter_context(pa.ipc.new_stream(file, schema))


def _read(path: Path) -> Batches:
    """The rows of a file, which is removed at their end."""
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as stream:
        yield from stream
    path.unlink()


def _sort(rows: pa.Table, keys: Sequence[str]) -> list[pa.RecordBatch]:
    numbers = [rows.column(key).to_numpy() for key in keys]
    if rows.column_names == [keys[0]]:  # nothing goes along
        return [pa.RecordBatch.from_arrays([pa.array(np.sort(numbers[0]))], names=rows.column_names)]
    order: NDArray[np.intp] = np.argsort(numbers[0]) if len(numbers) == 1 else np.lexsort(numbers[::-1])
    batches: list[pa.RecordBatch] = _take(rows.combine_chunks(), order).to_batches()
    return batches


def _take(rows: Rows, places: NDArray[np.intp]) -> Rows:
    """The rows at these places, which a sort has found: none is outside."""
    return pc.take(rows, pa.array(places), boundscheck=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedCodes:
    """All copies of a record are in one batch."""

    path: Path
    n_different: int

    @classmethod
    def write(cls, batches: Batches, path: Path) -> SortedCodes:
        """Keep batches that together ascend, and of which no two have a record in common."""
        first = next(batches)
        n_different = 0
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, first.schema) as writer:
            for batch in chain([first], batches):
                writer.write_batch(batch)
                n_different += _count_different(batch)
        return cls(path=path, n_different=n_different)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The codes, copies and all."""
        with pa.OSFile(str(self.path), "rb") as file, pa.ipc.open_stream(file) as stream:
            yield from stream


def _count_different(ascending: pa.RecordBatch) -> int:
    is_new = np.zeros(max(ascending.num_rows - 1, 0), dtype=np.bool_)
    for column in ascending.columns:
        numbers = column.to_numpy()
        is_new |= numbers[1:] != numbers[:-1]
    return int(np.count_nonzero(is_new)) + min(1, int(ascending.num_rows))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalWriter:
    """Writes tables from a source that this machine reads."""

    source: LocalSource
    codes: Callable[[Coding], SortedCodes]
    staging: Path
    """Where rows are sorted that outgrow memory."""

    def write(self, tables: Sequence[PublishedTable], folder: Path) -> list[TableEntry]:
        """The first table reads the source; others, which the plan alone decides, are made meanwhile."""
        first, *others = tables
        failed = Event()
        with engine_errors(), ThreadPoolExecutor(1) as background:
            waiting = [
                background.submit(_write_file, table, _stop_if(failed, self._rows(table)), folder)
                for table in others
            ]
            try:
                written = _write_file(first, self._rows(first), folder)
            except BaseException:
                failed.set()
                raise
            return [written, *(future.result() for future in waiting)]

    def _rows(self, table: PublishedTable) -> Batches:
        reads = table.reads
        rows = table.rows(self.source.batches if reads is None else lambda: self.codes(reads).batches())
        if table.order_by:
            rows = sort_rows(rows, table.order_by, table.order_bits, self.source.n_rows, self.staging)
        return rows if table.finish is None else table.finish(rows)


def _write_file(table: PublishedTable, rows: Batches, folder: Path) -> TableEntry:
    path = folder / f"{table.name}.parquet"
    n_rows = write_parquet(path, rows, table.columns)
    return TableEntry(name=table.name, rows=n_rows, files=(FileEntry(file=path.name, sha256=sha256(path)),))


def _stop_if(failed: Event, rows: Batches) -> Batches:
    """The rows, unless something stops the work: who presses Ctrl-C does not wait for them."""
    for batch in rows:
        if failed.is_set():
            raise EngineError("another table could not be written")
        yield batch
