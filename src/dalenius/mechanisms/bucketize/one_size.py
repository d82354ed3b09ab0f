"""Buckets of one size (section 4.1)."""

from __future__ import annotations

import numpy as np

from dalenius.mechanisms.bucketize.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.problem import BucketProblem, NoSettingFits, record_bound


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
