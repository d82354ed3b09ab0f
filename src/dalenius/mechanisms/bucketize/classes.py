"""Values with the same count and threshold, planned as one.

k values with the same o and f′ may together put k·⌊f′·S⌋ records into a bucket of size S, and whatever the
searches give them jointly can be dealt to them round-robin: each then gets at most its own share of every
size. With thresholds that depend on counts only there are fewer than √(2n) classes, however many values.
Sorted classes also make a plan independent of the order and the labels of the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.mechanisms.bucketize.problem import BucketProblem, IntArray, capacity_table


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueClasses:
    """The classes of a problem, in ascending order of count and threshold."""

    totals: IntArray  # k·o, the records of each class
    n_members: IntArray  # k
    thresholds: tuple[Fraction, ...]
    class_of: IntArray  # per value
    rank: IntArray  # per value, 0..k−1 within its class

    @classmethod
    def of(cls, problem: BucketProblem) -> ValueClasses:
        """Group the values of a problem.

        >>> half = Fraction(1, 2)
        >>> problem = BucketProblem(counts=(3, 2, 3), thresholds=(half,) * 3, max_bucket=4)
        >>> classes = ValueClasses.of(problem)
        >>> classes.totals.tolist(), classes.class_of.tolist(), classes.rank.tolist()
        ([2, 6], [1, 0, 1], [0, 0, 1])
        """
        ratios = (t.as_integer_ratio() for t in problem.thresholds)
        keys = list(zip(problem.counts, ratios, strict=True))
        # Equal counts are ordered by (numerator, denominator): any fixed order will do.
        index = {key: j for j, key in enumerate(sorted(set(keys)))}
        class_of = np.array([index[key] for key in keys], dtype=np.int64)
        n_members = np.bincount(class_of)
        by_class = np.argsort(class_of, kind="stable")
        rank = np.empty_like(class_of)
        rank[by_class] = np.arange(len(keys)) - np.repeat(np.cumsum(n_members) - n_members, n_members)
        return cls(
            totals=n_members * np.array([count for count, _ in index], dtype=np.int64),
            n_members=n_members,
            thresholds=tuple(Fraction(*ratio) for _, ratio in index),
            class_of=class_of,
            rank=rank,
        )

    def capacity_table(self, sizes: tuple[int, ...]) -> IntArray:
        """How many records of each class one bucket of each size may hold, min(k·⌊f′·S⌋, S)."""
        jointly = self.n_members[:, None] * capacity_table(self.thresholds, sizes)
        return np.asarray(np.minimum(jointly, np.array(sizes, dtype=np.int64)))

    def to_loads(self, loads: IntArray) -> tuple[tuple[int, ...], ...]:
        """The loads of the values from those of the classes, dealt round-robin (values × sizes)."""
        edges = np.cumsum(loads, axis=1)[self.class_of]
        edges = np.concatenate([np.zeros((len(edges), 1), dtype=np.int64), edges], axis=1)
        # Member r of k gets the positions r, r + k, r + 2k, … of its class.
        before = -((self.rank[:, None] - edges) // self.n_members[self.class_of][:, None])
        return tuple(map(tuple, np.diff(before, axis=1).tolist()))
