"""A keyed sketch of a table: a few kilobytes by which its people are known again in another table.

Cells are known by what they say, not by their column's name, place or type: 5, 5.0 and "5" are one cell. A
cell becomes a keyed number, a combination of columns the sum of its cells' numbers, so that the order of
columns does not matter. Of some combinations (all columns, all but one, pairs of the most distinctive ones …)
the sketch keeps the smallest sums and how often each occurs: a sample of records that two tables about the
same people share, whatever else was changed in one of them.

Whether two tables are about the same people is decided from their sketches, without assuming what people are
like. Take a combination of cells that occurs t times in both tables together. If the tables are of different
people, each of the t is in the first table by the toss of a coin, however common the combination is and
however its columns go together. If they are of the same people, it is not: it is in both tables equally
often, up to what was changed. So unlikely evenness is the sign, and columns that many tables share, such as
age and sex, are none. What is tested is the dispersion of the counts; its chance is bounded (Chernoff), not
approximated.
"""

from __future__ import annotations

import hashlib
import math
import struct
from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Floats, Ints

_BITS = 48
SUM_MASK = 2**_BITS - 1
"""Sums are taken modulo its successor."""
BY_CELLS = "cells:"
"""How the fingerprint of a large table begins, which is made of its cells' numbers for the sketch."""
_BYTES = _BITS // 8
_VERSION = 2
_HEAD = struct.Struct("<BQH")
_SET = struct.Struct("<HBBB")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SketchedPair:
    """What is kept of one combination of columns: the smallest keyed sums and how often each occurs."""

    width: int
    """How many columns."""
    whole: bool
    """Whether it is all columns of the table."""
    complete: bool
    """Whether all sums are kept, not only the smallest."""
    sums: Ints
    counts: Ints

    @property
    def limit(self) -> int:
        """Up to here every sum of the table is known."""
        return SUM_MASK if self.complete else int(self.sums[-1])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sketch:
    """A table as a ledger remembers it."""

    n_rows: int
    combinations: tuple[SketchedPair, ...]

    def pack(self, key: bytes) -> bytes:
        """As bytes, of which nothing can be read without the key."""
        parts = [_HEAD.pack(_VERSION, self.n_rows, len(self.combinations))]
        for one in self.combinations:
            size = next(size for size in (1, 2, 4, 8) if int(one.counts.max()) < 256**size)
            parts.append(_SET.pack(one.width, one.whole * 2 + one.complete, len(one.sums), size))
            parts.append(one.sums.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :_BYTES].tobytes())
            parts.append(one.counts.astype(f"<u{size}").tobytes())
        nonce = hashlib.sha256(b"".join([key, *parts])).digest()[:16]
        return nonce + _hide(b"".join(parts), key, nonce)

    @classmethod
    def unpack(cls, packed: bytes, key: bytes) -> Sketch:
        """The sketch that was packed under the key."""
        content = _hide(packed[16:], key, packed[:16])
        _, n_rows, n_combinations = _HEAD.unpack_from(content)
        place, found = _HEAD.size, []
        for _ in range(n_combinations):
            width, flags, n_sums, size = _SET.unpack_from(content, place)
            place += _SET.size
            raw = np.frombuffer(content, np.uint8, n_sums * _BYTES, place).reshape(-1, _BYTES)
            sums = np.zeros((n_sums, 8), np.uint8)
            sums[:, :_BYTES] = raw
            place += n_sums * _BYTES
            counts = np.frombuffer(content, f"<u{size}", n_sums, place).astype(np.int64)
            place += n_sums * size
            found.append(
                SketchedPair(
                    width=width,
                    whole=bool(flags & 2),
                    complete=bool(flags & 1),
                    sums=sums.view("<u8").ravel().astype(np.int64),
                    counts=counts,
                )
            )
        return cls(n_rows=n_rows, combinations=tuple(found))


def _hide(content: bytes, key: bytes, nonce: bytes) -> bytes:
    """Exclusive or with a stream that only the key gives; twice is as before."""
    stream = hashlib.shake_256(key + nonce).digest(len(content))
    return bytes(np.frombuffer(content, np.uint8) ^ np.frombuffer(stream, np.uint8))


_TILTS = np.geomspace(0.01, 1000, 60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """How much of a table is in another one."""

    people: int
    """About how many of the new table's people are in the earlier one."""
    rows: int
    """Of how many."""
    earlier_rows: int


FALSE_ALARM = 1e-6
"""The chance that two tables of different people are taken for the same; half is for whole records."""


def find_overlap(new: Sketch, earlier: Sketch) -> Overlap | None:
    """About how many people are in both tables; None where chance may have made them alike."""
    if not np.isin(_all_sums(new), _all_sums(earlier)).any():
        return None  # soon, for most of a long ledger
    shared = [
        (ours, theirs)
        for ours in new.combinations
        for theirs in earlier.combinations
        if ours.width == theirs.width and np.isin(ours.sums, theirs.sums, assume_unique=True).any()
    ]
    n_parts = sum(not (ours.whole and theirs.whole) for ours, theirs in shared)
    found: list[tuple[int, float]] = []
    for ours, theirs in shared:
        allowed = FALSE_ALARM / 2 / (1 if ours.whole and theirs.whole else n_parts)
        x, y = _counts(ours, theirs)
        if _log_chance(x, y) <= math.log(allowed):
            found.append((ours.width, float(np.minimum(x, y).sum() / x.sum())))
    if not found:
        return None
    # more columns are more surely the same person's
    _, share = max(found)
    return Overlap(people=round(share * new.n_rows), rows=new.n_rows, earlier_rows=earlier.n_rows)


def _all_sums(sketch: Sketch) -> Ints:
    return np.concatenate([one.sums for one in sketch.combinations])


def _counts(ours: SketchedPair, theirs: SketchedPair) -> tuple[Ints, Ints]:
    """How often each sum occurs in the one and in the other table, as far as both know all of them."""
    limit = min(ours.limit, theirs.limit)
    sums = np.union1d(ours.sums, theirs.sums)
    sums = sums[sums <= limit]
    counted = []
    for one in (ours, theirs):
        counts = np.zeros(len(sums), dtype=np.int64)
        inside = one.sums <= limit
        counts[np.searchsorted(sums, one.sums[inside])] = one.counts[inside]
        counted.append(counts)
    return counted[0], counted[1]


_NOT_EVEN = 0.55
"""Of the dispersion that chance gives: counts that have more of it are not suspiciously even."""


def _log_chance(x: Ints, y: Ints) -> float:
    """A bound on the chance, as a logarithm, that counts of different people are spread as evenly as these.

    What occurs once in all says nothing. The coin is that of these cells, not of the tables' sizes: a table
    of one town has more in common with some cells of a country's than with others, and an average of coins
    only spreads counts more.
    """
    total = x + y
    x, total = x[total > 1], total[total > 1]
    if not len(x) or not 0 < x.sum() < total.sum():
        return 0.0
    share = float(x.sum() / total.sum())
    observed = float(_deviation(x, total, share).sum())
    if observed >= _NOT_EVEN * len(x):
        return 0.0  # soon, for most of a long ledger; no bound would be small enough
    sizes, n_cells = np.unique(total, return_counts=True)
    exponents = _TILTS * observed
    for size, n in zip(sizes.tolist(), n_cells.tolist(), strict=True):
        exponents = exponents + n * _log_transform(size, share)
    return float(min(0.0, exponents.min()))


def _deviation(x: Ints, total: Ints | int, share: float) -> Floats:
    """The square of the distance from what is expected, in standard deviations."""
    return np.asarray((x - share * total) ** 2 / (total * share * (1 - share)), dtype=np.float64)


_MANY = 400
"""So many tosses are as good as normal."""
_LOG_FACTORIALS = np.array([math.lgamma(i + 1) for i in range(_MANY + 1)])


def _log_transform(size: int, share: float) -> Floats:
    """Log E exp(-θ deviation) of so many tosses, for every tilt θ."""
    if size > _MANY:
        return np.asarray(-0.5 * np.log1p(2 * _TILTS), dtype=np.float64)
    x = np.arange(size + 1)
    ways = _LOG_FACTORIALS[size] - _LOG_FACTORIALS[x] - _LOG_FACTORIALS[size - x]
    log_p = ways + x * math.log(share) + (size - x) * math.log1p(-share)
    terms = np.exp(log_p[None, :] - _TILTS[:, None] * _deviation(x, size, share)[None, :])
    return np.asarray(np.log(terms.sum(axis=1)), dtype=np.float64)
