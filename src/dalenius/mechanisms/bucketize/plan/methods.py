"""Plan buckets: counts and thresholds in, a checked plan out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dalenius.errors import InputError, did_you_mean
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.plan.multi_size import plan_multi_size
from dalenius.mechanisms.bucketize.plan.one_size import plan_anatomy, plan_one_size
from dalenius.mechanisms.bucketize.plan.optimal import plan_optimal
from dalenius.mechanisms.bucketize.plan.problem import (
    BucketProblem,
    NoSettingFits,
    ThresholdsTooLow,
    violations,
)
from dalenius.mechanisms.bucketize.plan.two_size import plan_two_size

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
