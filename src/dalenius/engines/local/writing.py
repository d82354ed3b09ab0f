"""Writing tables on this machine: rows in the order of random keys, or of codes, as one Parquet file each.

Memory does not grow with the number of rows: they are dealt to piles by the range of their first key, and
each pile is then sorted by itself. The piles of a large table are files. All columns travel as they are, so
that a column that is coded stays a byte per row. The codes of a table's records in ascending order are kept
in a file: eight bytes per number and record on the disk save another pass over the source and another sort.
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

from dalenius.arrays import Ints
from dalenius.engines.local.errors import engine_errors
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
_MOST_HELD = 2**27
"""Bytes of rows that are held in memory before they go to files."""
_DIGIT = 16
_FEW_NUMBERS = 2**12
"""Fewer are compared as fast."""


def sort_rows(batches: Batches, keys: Sequence[str], bits: int, n_rows: int, folder: Path) -> Batches:
    """The rows in the order of their keys.

    Args:
        batches: The rows.
        keys: Columns of whole numbers from 0.
        bits: The first key is ordered by this many of its low bits; those above are the same in all rows.
        n_rows: About how many rows there are.
        folder: Where the files may be; they are removed.
    """
    # a few piles also for a table of one pile's size: one is written while the next is sorted
    n_piles = max(min(n_rows // FILE_ROWS, _MOST_FILES - 1), min(n_rows // _FEWER_ROWS, _FEW_FILES - 1))
    pile_bits = min(bits, n_piles.bit_length())
    if not pile_bits:
        yield from _sort(pa.Table.from_batches(batches), keys, bits)
        return
    bits_left = bits - pile_bits
    piles = [Pile(folder / f"rows{bits}-{number}.arrow") for number in range(2**pile_bits)]
    _deal(prefetch(rebatch(batches, len(piles) * _PIECE_ROWS)), keys[0], bits_left, piles)
    for rows in prefetch(_sort_pile(pile, keys, bits_left) for pile in piles):
        yield from rows


def _sort_pile(pile: Pile, keys: Sequence[str], bits: int) -> Batches:
    """The rows of a pile in order; dealt again, if most keys are in its range, as codes may be."""
    if pile.n_rows > _MOST_SORTED and bits:
        return sort_rows(pile.take(), keys, bits, pile.n_rows, pile.path.parent)
    return iter(_sort(pa.Table.from_batches(pile.take()), keys, bits))


def _deal(batches: Batches, key: str, shift: int, piles: list[Pile]) -> None:
    """Put every row on the pile of its key's range; once there are many rows, the piles are files."""
    n_bytes = 0
    with ExitStack() as opened:
        for batch in batches:
            numbers = ((batch.column(key).to_numpy() >> shift) & (len(piles) - 1)).astype(np.uint8)
            # a stable sort of bytes counts them
            together = _take(batch, np.argsort(numbers, kind="stable"))
            ends = np.cumsum(np.bincount(numbers, minlength=len(piles)))
            for pile, start, end in zip(piles, [0, *ends[:-1]], ends, strict=True):
                pile.put(together.slice(start, end - start))
            n_bytes += together.nbytes
            if n_bytes > _MOST_HELD:
                for pile in piles:
                    pile.save(opened)


class Pile:
    """Rows in any order: in memory, and those before them in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_rows = 0
        self._held: list[pa.RecordBatch] = []
        self._file: pa.RecordBatchStreamWriter | None = None

    def put(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        self._held.append(batch)
        self.n_rows += batch.num_rows

    def save(self, opened: ExitStack) -> None:
        """Write all rows to the file, which stays open with others."""
        for batch in self._held:
            if self._file is None:
                file = opened.enter_context(pa.OSFile(str(self.path), "wb"))
                self._file = opened.enter_context(pa.ipc.new_stream(file, batch.schema))
            self._file.write_batch(batch)
        self._held = []

    def take(self) -> Batches:
        """All rows, once; the file is removed at its end."""
        if self._file is not None:
            with pa.OSFile(str(self.path), "rb") as file, pa.ipc.open_stream(file) as stream:
                yield from stream
            self.path.unlink()
        held, self._held = self._held, []
        yield from held


def _sort(rows: pa.Table, keys: Sequence[str], bits: int) -> list[pa.RecordBatch]:
    numbers = [rows.column(key).to_numpy() for key in keys]
    if rows.column_names == [keys[0]]:  # nothing goes along
        return [pa.RecordBatch.from_arrays([pa.array(np.sort(numbers[0]))], names=rows.column_names)]
    order = order_of(numbers[0], bits) if len(numbers) == 1 else np.lexsort(numbers[::-1])
    batches: list[pa.RecordBatch] = _take(rows.combine_chunks(), order).to_batches()
    return batches


def order_of(numbers: Ints, bits: int) -> Ints:
    """Where the least number is, then the next …; numbers of which all but so many low bits are the same.

    By the two highest digits of 16 bits, each of which numpy counts instead of comparing; random numbers
    that these do not tell apart are few, and compared.
    """
    if bits <= 2 * _DIGIT or len(numbers) < _FEW_NUMBERS:
        return np.argsort(numbers)
    order = np.argsort((numbers >> (bits - 2 * _DIGIT)).astype(np.uint16), kind="stable")
    high = (numbers >> (bits - _DIGIT)).astype(np.uint16)
    order = order[np.argsort(high[order], kind="stable")]
    prefix = (numbers >> (bits - 2 * _DIGIT))[order]
    is_tied = np.zeros(len(order) + 1, dtype=np.bool_)
    is_tied[1:-1] = prefix[1:] == prefix[:-1]
    tied = np.flatnonzero(is_tied[1:] | is_tied[:-1])
    if len(tied):
        order[tied] = order[tied][np.argsort(numbers[order[tied]])]
    return order


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
    """Writes tables from records that this machine reads."""

    n_rows: int
    """How many records there are."""
    batches: Callable[[], Batches]
    """The records."""
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
        rows = table.rows(self.batches if reads is None else lambda: self.codes(reads).batches())
        if table.order_by:
            rows = sort_rows(rows, table.order_by, table.order_bits, self.n_rows, self.staging)
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
