"""Plans whose buckets all have one size (section 4.1), and Anatomy, the baseline (remark 1).

Anatomy has buckets of ℓ or ℓ+1 different values, ℓ = ⌈1/min f′_i⌉. It draws ℓ different values again and
again and lets the fewer than ℓ leftovers join buckets that lack them. Seen as counts that is ⌊n/ℓ⌋ buckets,
as even as can be, with each value at most once in a bucket.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from dalenius.errors import InternalError
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan, assign
from dalenius.mechanisms.bucketize.plan.problem import (
    BucketProblem,
    NoSettingFits,
    ValueClasses,
    record_bound,
)


def plan_one_size(problem: BucketProblem) -> BucketPlan:
    """The smallest size S that divides n and keeps o_i ≤ ⌊f′_i·S⌋·b for every value (Lemma 2).

    >>> from fractions import Fraction
    >>> plan = plan_one_size(BucketProblem(counts=(3, 3), thresholds=(Fraction(1, 2),) * 2, max_bucket=6))
    >>> plan.sizes, plan.n_buckets
    ((2,), (3,))
    """
    n_rows = problem.n_rows
    # Not only the candidate sizes: here divisibility decides, and a size costs next to nothing.
    every = np.arange(problem.smallest_size, problem.largest_size + 1, dtype=np.int64)
    divisors = every[n_rows % every == 0]
    counts = problem.count_array()
    for start in range(0, len(divisors), 64):
        sizes = divisors[start : start + 64]
        fits = (problem.capacity_table(sizes) * (n_rows // sizes) >= counts[:, None]).all(axis=0)
        if fits.any():
            size = int(sizes[fits.argmax()])
            return BucketPlan(
                method="one-size",
                sizes=(size,),
                n_buckets=(n_rows // size,),
                loads=tuple((count,) for count in problem.counts),
                lower_bound=record_bound(problem),
            )
    raise NoSettingFits(
        f"no single bucket size up to {problem.max_bucket} divides {n_rows} rows and keeps the thresholds",
        hint="use method 'optimal', or a larger max_bucket",
    )


def plan_anatomy(problem: BucketProblem) -> BucketPlan:
    """Anatomy's buckets for the strictest threshold.

    >>> from fractions import Fraction
    >>> plan = plan_anatomy(BucketProblem(counts=(3, 3, 2), thresholds=(Fraction(1, 2),) * 3, max_bucket=5))
    >>> plan.sizes, plan.n_buckets
    ((2,), (4,))
    """
    n_rows, diversity = problem.n_rows, ceil(1 / min(problem.thresholds))
    if max(problem.counts) * diversity > n_rows:
        raise NoSettingFits(
            f"Anatomy needs {diversity}-diversity; the commonest value has over 1/{diversity} of the rows",
            hint="use method 'optimal', which gives each value its own threshold",
        )
    n_groups = n_rows // diversity
    size, larger = divmod(n_rows, n_groups)
    if size + (larger > 0) > problem.max_bucket:
        raise NoSettingFits(
            f"Anatomy needs buckets of {size + (larger > 0)}; max_bucket is {problem.max_bucket}",
            needed=size + (larger > 0),
        )
    groups = [(size, n_groups - larger), (size + 1, larger)] if larger else [(size, n_groups)]
    return _fill(problem, groups)


def _fill(problem: BucketProblem, groups: list[tuple[int, int]]) -> BucketPlan:
    n_buckets = np.array([b for _, b in groups], dtype=np.int64)
    targets = np.array([size * b for size, b in groups], dtype=np.int64)
    classes = ValueClasses.of(problem)
    limits = classes.n_members[:, None] * n_buckets  # each value at most once in a bucket
    loads = assign(classes.totals, limits, targets).loads
    if loads is None:
        raise InternalError("values that are rare enough for Anatomy did not fit its buckets")
    return BucketPlan(
        method="anatomy",
        sizes=tuple(size for size, _ in groups),
        n_buckets=tuple(b for _, b in groups),
        loads=classes.to_loads(loads),
        lower_bound=record_bound(problem),
    )
