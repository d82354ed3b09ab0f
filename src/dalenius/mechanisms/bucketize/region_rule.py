"""When a region is cut in two, and where.

*Where* is decided by quasi-identifiers alone: the cut after which two people of one region most often agree
in the column that is cut, compared with two people of the whole table.

*Whether* may not depend on what the halves would hold. If a region stayed whole because a half broke a
threshold, that would tell everybody that it does (a minimality attack: docs/regions.md). A cut is made only
if it is **sure**: however the region's sensitive values are dealt to the two halves, both can be published.
That is a function of the region's own counts, which the release shows anyway, and so a region that is not
cut tells nothing that its buckets do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dalenius.mechanisms.bucketize.problem import capacity_table

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_LARGEST_SIZE = 64
"""Every search considers all sizes up to this one, and so finds the setting that makes a cut sure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Rows of the column's cells up to `last` on one side, the others on the other."""

    column: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CutRule:
    """What decides about cuts: the thresholds, and public facts about the table."""

    thresholds: tuple[Fraction, ...]
    max_bucket: int
    least_rows: int
    """No region is smaller."""
    offsets: Ints
    """Where the cells of each column begin."""
    spread: Floats
    """Of each column: how often two people of the table differ in it."""

    def choose(self, cells: Ints, values: Ints) -> Cut | None:
        """The best sure cut of a region that holds so many people of each cell and of each value."""
        rows = int(values.sum())
        gains, column, last, left = self.candidates(cells, rows)
        for i in np.argsort(-gains, kind="stable"):
            if all(self.is_sure(values, side) for side in (int(left[i]), rows - int(left[i]))):
                return Cut(column=int(column[i]), last=int(last[i]))
        return None

    def is_sure(self, values: Ints, rows: int) -> bool:
        """Whether any `rows` people of a region with these values can be published.

        b buckets of s or s+1 people, s = ⌊rows/b⌋, dealt round-robin, hold at most ⌈o_i/b⌉ of value i,
        and o_i is at most what the region has: ⌊f′_i·s⌋·b ≥ o_i for every i is enough.
        """
        most = np.minimum(values, rows)
        sizes = np.arange(min(self.max_bucket, _LARGEST_SIZE, rows), 0, -1)
        n_buckets = -(-rows // sizes)
        room = capacity_table(self.thresholds, rows // n_buckets) * n_buckets
        return bool((most[:, None] <= room).all(axis=0).any())

    def candidates(self, cells: Ints, rows: int) -> tuple[Floats, Ints, Ints, Ints]:
        """Gain, column, last cell and rows of the first side of every cut into large enough halves."""
        found = [self._cuts(column, cells, rows) for column in range(len(self.spread))]
        if not found:
            empty = np.zeros(0, dtype=np.int64)
            return np.zeros(0), empty, empty, empty
        gains, columns, lasts, lefts = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return gains, columns, lasts, lefts

    def _cuts(self, column: int, cells: Ints, rows: int) -> tuple[Floats, Ints, Ints, Ints]:
        own = cells[self.offsets[column] : self.offsets[column + 1]].astype(np.float64)
        left, agreeing = np.cumsum(own)[:-1], np.cumsum(own**2)
        last = np.flatnonzero((own[:-1] > 0) & (np.minimum(left, rows - left) >= self.least_rows))
        n, pairs = left[last], agreeing[:-1][last]
        after = pairs / np.maximum(n, 1) + (agreeing[-1] - pairs) / np.maximum(rows - n, 1)
        gain = (after - agreeing[-1] / rows) / rows / max(float(self.spread[column]), 1e-12)
        return gain, np.full(len(last), column), last, n.astype(np.int64)


def spreads(cells: Ints, offsets: Ints) -> Floats:
    """How often two people differ in each column, of people who are so many in each cell."""
    parts = (cells[start:end].astype(np.float64) for start, end in pairwise(offsets))
    return np.array([1 - float((own**2).sum()) / max(float(own.sum()), 1.0) ** 2 for own in parts])
