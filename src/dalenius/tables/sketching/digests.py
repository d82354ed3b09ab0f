"""MD5 of many short texts at once, as DuckDB's `md5_number` has it, in a third of the time.

What stands before every text, a key, is digested once. Texts of one length have the rest of the message in
the same places, so that words that no text reaches are constants; each step of the algorithm (RFC 1321) is
taken for thousands of texts together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sin

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dalenius.arrays import Int32s, Ints

Words = NDArray[np.uint64]
Words32 = NDArray[np.uint32]

MANY_TEXTS = 2**15
"""So many are digested together in half of DuckDB's time."""
_BLOCK = 64
LONGEST = _BLOCK - 9
"""Bytes of a message in its last block, which ends with a mark and the length."""
_AT_ONCE = 2**14
"""So many words of each kind stay in a processor's cache."""
_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
_WHOLE = 2**32 - 1
_ADDED = [int(abs(sin(step + 1)) * 2**32) for step in range(64)]
_TURNS = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))
_FACTORS = ((1, 0), (5, 1), (3, 5), (7, 0))


def digest_texts(before: bytes, texts: pa.StringArray) -> Words | None:
    """The lower half of the digest of each text behind what all share; None where one is too long.

    >>> halves = digest_texts(b"key:", pa.array(["a", "bc"]))
    >>> halves[1].tobytes() == __import__("hashlib").md5(b"key:bc").digest()[:8]
    True
    """
    n_done = len(before) // _BLOCK * _BLOCK
    letters, starts, lengths = in_letters(texts)
    if int(lengths.max(initial=0)) > LONGEST - (len(before) - n_done):
        return None
    state: Sequence[int] = _START
    for start in range(0, n_done, _BLOCK):
        words = np.frombuffer(before[start : start + _BLOCK], "<u4").tolist()
        state = [int(word[0]) for word in _digest_block(state, words, 1)]
    found = np.empty(len(texts), dtype=np.uint64)
    for length, rows in _by_length(lengths):
        message = (before[n_done:] + bytes(length) + b"\x80").ljust(_BLOCK - 8, b"\0")
        message += (8 * (len(before) + length)).to_bytes(8, "little")
        block = _lay_texts(message, letters, starts[rows], length, len(before) - n_done)
        low, high, *_ = _digest_block(state, block, len(rows))
        half = high.astype(np.uint64)
        half <<= np.uint64(32)
        half |= low
        found[rows] = half
    return found


def in_letters(texts: pa.StringArray) -> tuple[NDArray[np.uint8], Int32s, Int32s]:
    """The bytes of texts, none of them NULL, and where each one starts and how long it is."""
    _, offsets, letters = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(letters or b"", np.uint8), ends[:-1], np.diff(ends)


def _by_length(lengths: Int32s) -> Iterator[tuple[int, Ints]]:
    """The places of texts of one length, some at a time."""
    order = np.argsort(lengths.astype(np.uint8), kind="stable")  # of bytes: counted
    ends = np.cumsum(np.bincount(lengths, minlength=1))
    for length, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        for first in range(start, end, _AT_ONCE):
            yield length, order[first : min(first + _AT_ONCE, end)]


def _lay_texts(
    message: bytes, letters: NDArray[np.uint8], starts: Int32s, length: int, place: int
) -> list[Words32 | int]:
    """The words of a block: one for each text where it reaches, and else one for all."""
    words: list[Words32 | int] = [*np.frombuffer(message, "<u4").tolist()]
    if length:
        first, last = place // 4, (place + length - 1) // 4
        reached = np.empty((len(starts), 4 * (last + 1 - first)), dtype=np.uint8)
        reached[:] = np.frombuffer(message, np.uint8)[4 * first : 4 * (last + 1)]
        # a text from every letter on: one is copied whole, wherever it starts
        every = np.ndarray(len(letters) - length + 1, f"V{length}", letters, strides=(1,))
        reached[:, place - 4 * first :][:, :length] = every[starts].view(np.uint8).reshape(-1, length)
        words[first : last + 1] = np.ascontiguousarray(reached.view("<u4").T)
    return words


def _digest_block(state: Sequence[int], block: Sequence[Words32 | int], n_texts: int) -> list[Words32]:
    a, b, c, d = (np.full(n_texts, word, dtype=np.uint32) for word in state)
    turned, mixed = np.empty((2, n_texts), dtype=np.uint32)
    for step, added in enumerate(_ADDED):
        kind = step // 16
        _mix(kind, b, c, d, mixed)
        mixed += a
        factor, plus = _FACTORS[kind]
        word = block[(factor * step + plus) % 16]
        if isinstance(word, int):
            mixed += np.uint32((added + word) & _WHOLE)
        else:
            mixed += word
            mixed += np.uint32(added)
        turns = _TURNS[kind][step % 4]
        np.left_shift(mixed, np.uint32(turns), out=turned)
        mixed >>= np.uint32(32 - turns)
        mixed |= turned
        mixed += b
        a, b, c, d, mixed = d, mixed, b, c, a
    ends = [a, b, c, d]
    for end, first in zip(ends, state, strict=True):
        np.add(end, np.uint32(first), out=end)
    return ends


def _mix(kind: int, b: Words32, c: Words32, d: Words32, out: Words32) -> None:
    """One of the four functions of three words, with as few operations as will do."""
    if kind == 0:
        np.bitwise_xor(c, d, out=out)
        out &= b
        out ^= d
    elif kind == 1:
        np.bitwise_xor(b, c, out=out)
        out &= d
        out ^= c
    elif kind == 2:
        np.bitwise_xor(b, c, out=out)
        out ^= d
    else:
        np.bitwise_not(d, out=out)
        out |= b
        out ^= c
