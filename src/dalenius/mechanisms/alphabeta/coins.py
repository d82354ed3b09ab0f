"""One coin a tuple, wherever and however often it comes: a keyed hash of the tuple decides.

A view is made from a set. A source with repeated rows would have to be made one first, by a sort of all its
records, if each record had a coin of its own. Here the coin is a pseudo-random function of the tuple,
SipHash-2-4 (Aumasson and Bernstein, 2012) with a 128-bit key of the run: copies of a tuple meet the same
fate, in any order, batch or process, and different tuples independent ones as long as the key is secret.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dalenius.mechanisms.alphabeta.domain import IntArray

_Words = NDArray[np.uint64]

_START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_RANGE = 2**64
_MANTISSA = 53
_CACHED_ROWS = 2**13  # a hundred operations on what fits the processor's cache


@dataclass(frozen=True, slots=True, kw_only=True)
class TupleCoins:
    """The coins of all tuples under one key; tuples are given as packed words, a row each.

    >>> first, second = TupleCoins(key=bytes(16)).toss(Fraction(1, 2), np.array([[5], [5]]))
    >>> bool(first == second)
    True
    """

    key: bytes = field(repr=False)
    """At least 16 secret bytes, of which 16 are used."""

    def toss(self, probability: Fraction, words: IntArray) -> NDArray[np.bool_]:
        """Which tuples' coins are heads, each with the probability, rounded down to a multiple of 2⁻⁶⁴."""
        threshold = probability.numerator * _RANGE // probability.denominator
        if threshold >= _RANGE:
            return np.ones(len(words), dtype=np.bool_)
        return np.asarray(self.digests(words) < np.uint64(threshold))

    def uniforms(self, words: IntArray) -> NDArray[np.float64]:
        """A number in [0, 1) a tuple, a multiple of 2⁻⁵³."""
        top: _Words = self.digests(words) >> np.uint64(64 - _MANTISSA)
        return np.ldexp(top.astype(np.float64), -_MANTISSA)

    def digests(self, words: IntArray) -> _Words:
        """SipHash-2-4 of each row, its words taken as 8 bytes each, lowest first."""
        result = np.empty(len(words), dtype=np.uint64)
        for start in range(0, len(words), _CACHED_ROWS):
            rows = slice(start, start + _CACHED_ROWS)
            result[rows] = self._digests(words[rows].astype(np.uint64))
        return result

    def _digests(self, words: _Words) -> _Words:
        halves = [int.from_bytes(self.key[at : at + 8], "little") for at in (0, 8)]
        state = [
            np.full(len(words), start ^ halves[i % 2], dtype=np.uint64) for i, start in enumerate(_START)
        ]
        for word in words.T:
            _absorb(state, word)
        n_bytes = 8 * words.shape[1]
        _absorb(state, np.uint64((n_bytes % 256) << 56))
        state[2] ^= np.uint64(0xFF)
        for _ in range(4):
            _round(state)
        return state[0] ^ state[1] ^ state[2] ^ state[3]


def _absorb(state: list[_Words], word: _Words | np.uint64) -> None:
    state[3] ^= word
    _round(state)
    _round(state)
    state[0] ^= word


def _round(state: list[_Words]) -> None:
    """One SipRound, in place; additions are modulo 2⁶⁴."""
    a, b, c, d = state
    a += b
    c += d
    b = _rotated(b, 13) ^ a
    d = _rotated(d, 16) ^ c
    a = _rotated(a, 32)
    c += b
    a += d
    b = _rotated(b, 17) ^ c
    d = _rotated(d, 21) ^ a
    state[:] = a, b, _rotated(c, 32), d


def _rotated(words: _Words, bits: int) -> _Words:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))
