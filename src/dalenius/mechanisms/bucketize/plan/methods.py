"""Plan buckets: counts and thresholds in, a checked plan out.

Plans whose buckets all have one size (section 4.1) are made here, and Anatomy, the baseline (remark 1).
Anatomy has buckets of ℓ or ℓ+1 different values, ℓ = ⌈1/min f′_i⌉. It draws ℓ different values again and
again and lets the fewer than ℓ leftovers join buckets that lack them. Seen as counts that is ⌊n/ℓ⌋ buckets,
as even as can be, with each value at most once in a bucket.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil

import numpy as np

from dalenius.errors import InputError, InternalError, did_you_mean
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan, assign
from dalenius.mechanisms.bucketize.plan.optimal import plan_multi_size, plan_optimal
from dalenius.mechanisms.bucketize.plan.problem import (
    BucketProblem,
    NoSettingFits,
    ThresholdsTooLow,
    ValueClasses,
    record_bound,
    violations,
)
from dalenius.mechanisms.bucketize.plan.two_size import plan_two_size


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


__all__ = ["PLANNERS", "BucketPlan", "plan_buckets"]

PLANNERS: dict[str, Callable[[BucketProblem], BucketPlan]] = {
    "optimal": plan_optimal,
    "multi-size": plan_multi_size,
    "two-size": plan_two_size,
    "one-size": plan_one_size,
    "anatomy": plan_anatomy,
}


def plan_buckets(problem: BucketProblem, method: str = "optimal") -> BucketPlan:
    """The plan of one method, checked in exact integers.

    It depends on the counts and thresholds only: other labels or another order of the values permute
    the rows of its loads and nothing else.

    Raises:
        ThresholdsTooLow: some thresholds are below their frequencies; no release can keep them.
        NoSettingFits: the method has no setting within `max_bucket`.

    >>> from fractions import Fraction
    >>> problem = BucketProblem(counts=(2, 4, 2), thresholds=(Fraction(1, 2),) * 3, max_bucket=10)
    >>> print(plan_buckets(problem))
        size        buckets             rows                 loss
           2              4                8                    4
    optimal: 8 rows, MSE 0.5714, loss 4 (at most 0.0000% of it could be saved)
    """
    if method not in PLANNERS:
        raise InputError(f"no bucketization method {method!r}; {did_you_mean(method, PLANNERS)}")
    if too_low := violations(problem):
        raise ThresholdsTooLow(too_low)
    plan = _plan_or_say_what_would_do(problem, method)
    plan.check(problem)
    return plan


def _plan_or_say_what_would_do(problem: BucketProblem, method: str) -> BucketPlan:
    try:
        return PLANNERS[method](problem)
    except NoSettingFits as error:
        if error.needed is not None or method == "anatomy":
            raise
        needed = sufficient_max_bucket(problem, "one-size" if method == "one-size" else "two-size")
        message = f"{error.message}; max_bucket = {needed} would do"
        hint = (
            None
            if method == "one-size"
            else f"{needed} is enough for two sizes; a smaller one may do for more"
        )
        raise NoSettingFits(message, needed=needed, hint=hint) from error


def sufficient_max_bucket(problem: BucketProblem, method: str) -> int:
    """The smallest max_bucket found, by doubling and halving, for which the method has a setting.

    One bucket of all rows always keeps feasible thresholds (Lemma 1), so there is one. For the optimum this
    is an upper bound: more than two sizes may get by with smaller buckets.
    """
    fails, works = problem.max_bucket, max(problem.max_bucket, problem.smallest_size)
    while not has_setting(problem, method, works):
        fails, works = works, min(2 * works, problem.n_rows)
    while works - fails > 1:
        middle = (fails + works) // 2
        if has_setting(problem, method, middle):
            works = middle
        else:
            fails = middle
    return works


def has_setting(problem: BucketProblem, method: str, max_bucket: int) -> bool:
    """Whether the method has a setting with buckets of at most that size."""
    try:
        PLANNERS[method](replace(problem, max_bucket=max_bucket))
    except NoSettingFits:
        return False
    return True
