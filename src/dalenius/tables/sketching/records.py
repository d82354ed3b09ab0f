"""Whole records as texts, put together from codes.

To join the texts of hundreds of cells is most of what it takes to hash a record. Here each cell is a few
bytes of a machine word, filled up with a byte that no text has: the words of a record are looked up and laid
side by side, and the filling is taken out of all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dalenius.arrays import Codes, Int32s

_WORD = 8
_FILLING = b"\xff"
"""No byte of UTF-8."""
_ROWS_AT_ONCE = 2**13
"""Whose words stay in a processor's cache."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextColumn:
    """A column's cells: by code its text, and each row's code."""

    texts: Sequence[bytes]
    codes: Codes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Lane:
    """Where a column is in the words of a record."""

    first: int
    """The first word that it has bytes in."""
    words: NDArray[np.uint64]
    """By code, its bytes in that word and the next ones; other columns' bytes are 0."""
    lengths: Int32s
    """By code, of its text."""
    is_even: bool
    """Whether these are all the same."""
    codes: Codes


def join_texts(before: bytes, columns: Sequence[TextColumn], between: bytes) -> Iterator[pa.StringArray]:
    """The texts of all records, some at a time: cells with something between them, and before the first.

    >>> columns = [TextColumn(texts=[b"a", b"bcd"], codes=np.array([0, 1, 1])),
    ...            TextColumn(texts=[b"10", b"9"], codes=np.array([1, 0, 1]))]
    >>> [text for part in join_texts(b"x:", columns, b"|") for text in part.to_pylist()]
    ['x:a|9', 'x:bcd|10', 'x:bcd|9']
    """
    n_rows = len(columns[0].codes)
    constant = TextColumn(texts=[before], codes=np.zeros(n_rows, dtype=np.uint8))
    lanes, n_words = _lay_lanes([constant, *columns], between)
    room = bytearray()
    for start in range(0, n_rows, _ROWS_AT_ONCE):
        rows = slice(start, min(start + _ROWS_AT_ONCE, n_rows))
        n_bytes = (rows.stop - start) * n_words * _WORD
        room = room if len(room) == n_bytes else bytearray(n_bytes)
        yield _join_rows(lanes, room, rows)


def _lay_lanes(columns: Sequence[TextColumn], between: bytes) -> tuple[list[_Lane], int]:
    """One column after the other; none begins in a word that it does not fit into."""
    ends = [b"", *(between for _ in columns[2:]), b""]
    texts = [[text + end for text in column.texts] for column, end in zip(columns, ends, strict=True)]
    widths = [max(map(len, own)) for own in texts]
    places, free = [], 0
    for width in widths:
        if free % _WORD + width > _WORD:
            free += -free % _WORD
        places.append(free)
        free += width
    stops = [*places[1:], free + -free % _WORD]  # with what is left of a word, which nobody else fills up
    lanes = []
    for own, column, place, stop in zip(texts, columns, places, stops, strict=True):
        first, after = place // _WORD, -stop % _WORD
        filled = (bytes(place % _WORD) + text.ljust(stop - place, _FILLING) + bytes(after) for text in own)
        words = np.frombuffer(b"".join(filled), dtype=np.uint64).reshape(len(own), -1)
        lengths = np.array([len(text) for text in own], dtype=np.int32)
        is_even = bool((lengths == lengths[0]).all())
        lanes.append(
            _Lane(first=first, words=words.copy("F"), lengths=lengths, is_even=is_even, codes=column.codes)
        )
    return lanes, stops[-1] // _WORD


def _join_rows(lanes: Sequence[_Lane], room: bytearray, rows: slice) -> pa.StringArray:
    n_rows = rows.stop - rows.start
    side_by_side = np.frombuffer(room, dtype=np.uint64).reshape(n_rows, -1)
    word, some = np.zeros((2, n_rows), dtype=np.uint64)
    lengths, length = np.zeros((2, n_rows), dtype=np.int32)
    for lane, after in zip(lanes, [*lanes[1:], None], strict=True):
        codes = lane.codes[rows].astype(np.intp)
        for k in range(lane.words.shape[1]):  # no code is outside: this way of saying so is the fastest
            word |= np.take(lane.words[:, k], codes, out=some, mode="clip")
            if after is None or after.first > lane.first + k:
                side_by_side[:, lane.first + k] = word
                word[:] = 0
        if lane.is_even:
            lengths += lane.lengths[0]
        else:
            lengths += np.take(lane.lengths, codes, out=length, mode="clip")
    together = room.translate(None, _FILLING)
    offsets = np.concatenate([[0], lengths]).cumsum(dtype=np.int32)
    return pa.StringArray.from_buffers(n_rows, pa.py_buffer(offsets), pa.py_buffer(together))
