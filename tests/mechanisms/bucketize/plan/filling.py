"""The least loss of small tables, by filling buckets one by one in every way: nothing clever."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np

from dalenius.mechanisms.bucketize.apply import Layout
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.randomness import Randomness

Limits = tuple[tuple[tuple[int, ...], Fraction], ...]
"""Codes of values, and how much of a bucket they may be together."""


def histograms(n_values: int, most: int) -> Iterator[tuple[int, ...]]:
    """Every histogram of so many values and at most so many people."""
    return (c for c in product(range(1, most), repeat=n_values) if sum(c) <= most)


@cache
def contents(limits: Limits, n_values: int, size: int) -> list[tuple[int, ...]]:
    """Every content of one bucket that keeps every limit, by the definition alone."""
    return [
        held
        for held in product(range(size + 1), repeat=n_values)
        if sum(held) == size
        and all(Fraction(sum(held[code] for code in codes), size) <= limit for codes, limit in limits)
    ]


def least_loss(problem: BucketProblem, limits: Limits) -> int | None:
    """The least Σ (S−1)² over all ways to fill buckets; None: there is none."""

    @cache
    def best(left: tuple[int, ...]) -> int | None:
        if not any(left):
            return 0
        first = next(i for i, n in enumerate(left) if n)
        found = []
        for size in range(1, min(problem.max_bucket, sum(left)) + 1):
            for held in contents(limits, problem.n_values, size):
                if held[first] and all(h <= n for h, n in zip(held, left, strict=True)):
                    rest = best(tuple(n - h for n, h in zip(left, held, strict=True)))
                    if rest is not None:
                        found.append(rest + (size - 1) ** 2)
        return min(found, default=None)

    return best(problem.counts)


def dealt(plan: BucketPlan) -> np.ndarray:
    """Buckets × values, as they would be published."""
    layout = Layout.shuffled(plan, Randomness.seeded(1))
    held = np.zeros((layout.n_buckets + 1, len(plan.loads)), dtype=np.int64)
    for bucket, code, count in layout.contents():
        held[bucket, code] += count
    return held[1:]
