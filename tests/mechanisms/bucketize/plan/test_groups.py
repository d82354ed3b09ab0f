"""Groups of values: the planner against all assignments of small tables, bucket by bucket."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from dalenius.errors import InputError, InternalError, PromiseNotMet
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.plan.methods import plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem, NoSettingFits, Run
from dalenius.mechanisms.bucketize.shards import BucketGroups
from dalenius.randomness import Randomness
from tests.mechanisms.bucketize.plan.filling import dealt, histograms, least_loss
from tests.mechanisms.bucketize.problems import skewed

HALF = Fraction(1, 2)


def run(begin: int, end: int, threshold: str) -> Run:
    return Run(begin=begin, end=end, threshold=Fraction(threshold))


FAMILIES: dict[int, tuple[tuple[Run, ...], ...]] = {
    2: ((run(0, 2, "1"),), (run(0, 1, "1/2"),), (run(0, 1, "1/3"),)),
    3: (
        (run(0, 2, "1/2"),),
        (run(0, 2, "3/5"),),
        (run(1, 3, "2/3"),),
        (run(0, 1, "1/3"), run(0, 2, "3/4")),
        (run(0, 1, "1/3"), run(1, 3, "3/4")),
    ),
    4: (
        (run(0, 2, "1/2"),),
        (run(0, 3, "4/5"),),
        (run(1, 4, "2/3"),),
        (run(0, 2, "1/2"), run(2, 4, "1/2")),
        (run(0, 2, "1/2"), run(2, 4, "2/3")),
        (run(0, 2, "2/5"), run(0, 3, "3/4")),
        (run(1, 3, "1/3"), run(0, 4, "1")),
    ),
}
"""By the number of values: one group, two apart, one within another."""


def least(problem: BucketProblem) -> int | None:
    single = tuple(((code,), limit) for code, limit in enumerate(problem.thresholds))
    grouped = tuple((tuple(range(g.begin, g.end)), g.threshold) for g in problem.groups)
    return least_loss(problem, single + grouped)


def breaks(problem: BucketProblem, plan: BucketPlan) -> bool:
    return any(
        Fraction(int(held[g.begin : g.end].sum()), int(held.sum())) > g.threshold
        for held in dealt(plan)
        for g in problem.groups
    )


@pytest.mark.parametrize("n_values", FAMILIES)
@pytest.mark.parametrize("threshold", ["1/2", "1"])
def test_the_plan_is_the_best_of_all_and_exists_where_any_does(n_values: int, threshold: str) -> None:
    """All tables of up to 8 people with each family of groups, against filling buckets one by one."""
    n_found = n_none = 0
    for counts, groups in product(histograms(n_values, 8), FAMILIES[n_values]):
        problem = BucketProblem(
            counts=counts,
            thresholds=(Fraction(threshold),) * n_values,
            max_bucket=4 if sum(counts) % 2 else 8,
            groups=groups,
        )
        wanted = least(problem)
        if wanted is None:
            n_none += 1
            with pytest.raises(PromiseNotMet):
                plan_buckets(problem)
            continue
        n_found += 1
        plan = plan_buckets(problem)
        assert plan.loss == wanted, problem
        assert plan.lower_bound is not None
        assert plan.lower_bound <= wanted
        assert not breaks(problem, plan)
    assert n_found > 5
    assert n_none > 5


def test_values_out_of_the_groups_order_are_dealt_past_a_limit() -> None:
    """The twin: loads that keep a group size by size, dealt in an order in which it does not stand together.

    Of 2 buckets of 4, `b` and `d` may have 2 in each. With `c` between them both may fall into one bucket.
    """
    problem = BucketProblem(
        counts=(3, 1, 1, 3),
        thresholds=(Fraction(1, 2),) * 4,
        max_bucket=4,
        groups=(run(1, 3, "1/4"),),
    )
    plan = BucketPlan(method="", sizes=(4,), n_buckets=(2,), loads=((3,), (1,), (1,), (3,)), lower_bound=None)
    plan.check(problem)
    assert not breaks(problem, plan)
    swapped = replace(problem, counts=(1, 3, 1, 3), groups=())
    apart = replace(plan, loads=((1,), (3,), (1,), (3,)))
    apart.check(swapped)
    together = [int(held[0] + held[2]) for held in dealt(apart)]
    assert sorted(together) == [0, 2], "both values of the group, of which a bucket of 4 may have 1"


def test_loads_above_a_groups_capacity_are_rejected() -> None:
    problem = BucketProblem(
        counts=(2, 2, 4), thresholds=(HALF,) * 3, max_bucket=4, groups=(run(0, 2, "1/2"),)
    )
    plan = plan_buckets(problem)
    plan.check(problem)
    with pytest.raises(InternalError, match="loads of a group"):
        plan.check(replace(problem, groups=(run(0, 2, "1/5"),)))


def test_a_group_of_everything_changes_nothing_and_its_size_matters() -> None:
    plain = skewed(30, 20_000, 4)
    assert plan_buckets(replace(plain, groups=(run(0, 30, "1"),))).loss == plan_buckets(plain).loss
    share = Fraction(sum(plain.counts[5:12]), plain.n_rows)
    grouped = replace(plain, groups=(Run(begin=5, end=12, threshold=share + Fraction(1, 20)),))
    plan = plan_buckets(grouped)
    assert plan.loss > plan_buckets(plain).loss
    assert plan.gap is not None
    assert plan.gap < 1e-3
    assert not breaks(grouped, plan)


def test_a_group_that_needs_larger_buckets_is_told_the_size_that_would_do() -> None:
    problem = BucketProblem(
        counts=(10,) * 10, thresholds=(HALF,) * 10, max_bucket=4, groups=(run(0, 2, "21/100"),)
    )
    with pytest.raises(NoSettingFits, match=r"max_bucket = \d+ would do") as caught:
        plan_buckets(problem)
    assert caught.value.needed is not None
    assert not breaks(problem, plan_buckets(replace(problem, max_bucket=caught.value.needed)))


def test_what_is_no_family_of_groups_is_refused() -> None:
    fine = BucketProblem(counts=(2, 2, 2, 2), thresholds=(HALF,) * 4, max_bucket=8)
    for groups in (
        (run(0, 2, "1/2"), run(1, 3, "1/2")),
        (run(0, 3, "1/2"), run(0, 2, "1/2")),
        (run(0, 5, "1/2"),),
        (run(0, 2, "2"),),
    ):
        with pytest.raises(InputError, match="group"):
            replace(fine, groups=groups)
    with pytest.raises(InputError, match="up to 2147483647 rows"):
        replace(fine, counts=(2**30,) * 4, groups=(run(0, 2, "1/2"),))
    for method in ("two-size", "multi-size", "one-size", "anatomy"):
        with pytest.raises(InputError, match="knows no groups"):
            plan_buckets(replace(fine, groups=(run(0, 2, "1/2"),)), method)


def test_groups_of_buckets_for_tasks_keep_the_limits_too() -> None:
    plain = skewed(20, 3_000, 4)
    share = Fraction(sum(plain.counts[3:9]), plain.n_rows)
    problem = replace(plain, groups=(Run(begin=3, end=9, threshold=share + Fraction(1, 10)),))
    plan = plan_buckets(problem)
    shards = BucketGroups.cut(plan, 7, Randomness.seeded(2))
    assert not any(breaks(problem, shards.layout(group).plan) for group in range(7))
