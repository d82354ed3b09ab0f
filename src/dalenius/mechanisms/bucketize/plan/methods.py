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

from dalenius.errors import InputError, InternalError, PromiseNotMet, did_you_mean
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan, assign
from dalenius.mechanisms.bucketize.plan.multi_size import plan_multi_size
from dalenius.mechanisms.bucketize.plan.optimal import (
    can_be_kept,
    has_any_setting,
    plan_optimal,
)
from dalenius.mechanisms.bucketize.plan.problem import (
    BucketProblem,
    NoSettingFits,
    ThresholdsTooLow,
    ValueClasses,
    groups_above,
    least_size,
    record_bound,
    violations,
)
from dalenius.mechanisms.bucketize.plan.sets import plan_sets
from dalenius.mechanisms.bucketize.plan.setting import Setting, plan_setting
from dalenius.mechanisms.bucketize.plan.two_size import plan_two_size
from dalenius.mechanisms.bucketize.plan.windows import deal, without_windows


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
    if size < problem.min_bucket:
        raise NoSettingFits(
            f"Anatomy has buckets of {size}; min_bucket is {problem.min_bucket}", hint="use method 'optimal'"
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


def plan_buckets(problem: BucketProblem, method: str = "optimal", setting: Setting = ()) -> BucketPlan:
    """The plan of one method, or of the publisher's own setting, checked in exact integers.

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
    if problem.groups and method != "optimal":
        raise InputError(f"method {method!r} knows no groups of values; use method 'optimal'")
    if too_low := violations(problem):
        raise ThresholdsTooLow(too_low)
    if groups_above(problem):
        raise PromiseNotMet("the threshold of a group of values is below its share of the rows")
    if problem.min_bucket > problem.n_rows:
        raise NoSettingFits(f"min_bucket is {problem.min_bucket}; the table has {problem.n_rows} rows")
    if problem.overlapping:
        plan = plan_sets(problem, plan_buckets)
    elif problem.windows:
        plan = _plan_windows(problem, method, setting)
    else:
        plan = plan_setting(problem, setting) if setting else _plan_or_say_what_would_do(problem, method)
    plan.check(problem)
    return plan


def _plan_windows(problem: BucketProblem, method: str, setting: Setting) -> BucketPlan:
    """The plan of the single values that windows amount to, with the records dealt window by window."""
    plan = plan_buckets(without_windows(problem), method, setting)
    loads = deal(problem, plan.sizes, plan.n_buckets)
    return replace(plan, loads=tuple(map(tuple, loads.tolist())))


def _plan_or_say_what_would_do(problem: BucketProblem, method: str) -> BucketPlan:
    try:
        return PLANNERS[method](problem)
    except NoSettingFits as error:
        if error.needed is not None or method == "anatomy":
            raise
        needed = sufficient_max_bucket(problem, method)
        message = f"{error.message}; max_bucket = {needed} would do"
        raise NoSettingFits(message, needed=needed) from error


_EVERY_UP_TO = 256
_EVEN_TRIES = 200
_MOST_TRIES = 2
"""Larger sizes are tried so often, which takes about a second each; then buckets are made even."""


def sufficient_max_bucket(problem: BucketProblem, method: str) -> int:
    """A max_bucket for which the method has a setting; up to 256, below which none was found.

    One bucket of all rows always keeps feasible thresholds (Lemma 1), so there is one. Where shares of the
    rows cannot go to any sizes within it (`can_be_kept`), whole buckets cannot either: that is decided by
    halving, without a search. From there on settings are tried in steps that double.
    """
    first = _least_relaxed(problem)
    works, step, n_tries = first, max(1, first // 8), 0
    while works < problem.n_rows and not has_setting(problem, method, works):
        n_tries += works > _EVERY_UP_TO
        if n_tries == _MOST_TRIES and method != "one-size" and not problem.groups:
            return _largest_of_even(problem, works)
        works, step = min(works + step, problem.n_rows), 2 * step
    fails = max(first, works - step // 2)
    while works <= _EVERY_UP_TO and works - fails > 1:
        middle = (fails + works) // 2
        fails, works = (fails, middle) if has_setting(problem, method, middle) else (middle, works)
    return works


def _largest_of_even(problem: BucketProblem, least: int) -> int:
    """The largest of about as many buckets as can be, as even as possible, above a size that fails."""
    classes, most = ValueClasses.of(problem), max(problem.n_rows // least, 1)
    for n_buckets in np.unique(np.geomspace(1, most, _EVEN_TRIES).astype(np.int64))[::-1].tolist():
        size, larger = divmod(problem.n_rows, n_buckets)
        b = np.array([n_buckets - larger, larger], dtype=np.int64)
        room = classes.capacity_table((size, size + 1)) * b
        fills = np.minimum(room, classes.totals[:, None]).sum(axis=0) >= np.array([size, size + 1]) * b
        if (room.sum(axis=1) >= classes.totals).all() and fills.all():  # Theorem 3
            return int(size + (larger > 0))
    return problem.n_rows


def _least_relaxed(problem: BucketProblem) -> int:
    """About the least max_bucket above the problem's that would do if records could be divided."""
    fails, works = max(problem.max_bucket, least_size(problem) - 1), problem.n_rows
    if can_be_kept(replace(problem, max_bucket=fails + 1)):
        return fails + 1
    while works - fails > max(1, works // 64):
        middle = (fails + works) // 2 if works < 4 * fails else 2 * fails
        if can_be_kept(replace(problem, max_bucket=middle)):
            works = middle
        else:
            fails = middle
    return works


def has_setting(problem: BucketProblem, method: str, max_bucket: int) -> bool:
    """Whether the method has a setting with buckets of at most that size."""
    if method == "optimal":
        return has_any_setting(replace(problem, max_bucket=max_bucket))
    try:
        PLANNERS[method](replace(problem, max_bucket=max_bucket))
    except NoSettingFits:
        return False
    return True
