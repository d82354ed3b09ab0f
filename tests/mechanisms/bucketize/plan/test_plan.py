"""Every method's plan is valid; the optimum is the least loss there is; a broken plan is caught."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.arrays import Floats
from dalenius.errors import InputError, InternalError, PromiseNotMet
from dalenius.mechanisms.bucketize.plan.integer import Cuts, CutSource
from dalenius.mechanisms.bucketize.plan.methods import PLANNERS, BucketPlan, plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import (
    BucketProblem,
    NoSettingFits,
    ThresholdsTooLow,
    record_bound,
)
from tests.mechanisms.bucketize.problems import EXAMPLE_3, least_loss, problems, skewed

HALF = Fraction(1, 2)


@given(problems())
@settings(deadline=None)
def test_the_optimum_is_what_brute_force_finds(problem: BucketProblem) -> None:
    best = least_loss(problem)
    if best is None:
        with pytest.raises(PromiseNotMet):
            plan_buckets(problem, "optimal")
    else:
        plan = plan_buckets(problem, "optimal")
        assert plan.loss == best
        assert plan.gap == 0


@given(st.integers(3, 12), st.integers(30, 2_000), st.integers(1, 16))
@settings(deadline=None, max_examples=25)
def test_more_sizes_are_never_worse(n_values: int, n_rows: int, times: int) -> None:
    problem = skewed(n_values, n_rows, times)
    two, multi, best = (plan_buckets(problem, method) for method in ("two-size", "multi-size", "optimal"))
    assert best.loss <= multi.loss <= two.loss
    assert best.lower_bound is not None
    assert record_bound(problem) <= best.lower_bound <= best.loss


@given(problems())
@settings(deadline=None, max_examples=40)
def test_permuting_the_values_permutes_the_loads_only(problem: BucketProblem) -> None:
    for method in PLANNERS:
        try:
            plan = plan_buckets(problem, method)
        except PromiseNotMet:
            continue
        for order in list(permutations(range(problem.n_values)))[:6]:
            moved = replace(
                problem,
                counts=tuple(problem.counts[i] for i in order),
                thresholds=tuple(problem.thresholds[i] for i in order),
            )
            other = plan_buckets(moved, method)
            assert replace(other, loads=plan.loads) == plan
            assert labelled(moved, other) == labelled(problem, plan)


def labelled(problem: BucketProblem, plan: BucketPlan) -> list[tuple[int, Fraction, tuple[int, ...]]]:
    return sorted(zip(problem.counts, problem.thresholds, plan.loads, strict=True))


@pytest.mark.parametrize("n_values", [14, 50])
@pytest.mark.parametrize("n_rows", [300_000, 10**9])
def test_large_tables_are_planned_to_a_small_proven_gap(n_values: int, n_rows: int) -> None:
    problem = skewed(n_values, n_rows, 8)
    plan = plan_buckets(problem)  # checks itself in exact integers
    assert plan.gap is not None
    assert 0 <= plan.gap <= 1e-4
    assert plan.n_rows == n_rows
    assert plan == plan_buckets(problem)
    assert plan.loss < plan_buckets(problem, "multi-size").loss


def test_a_plan_with_one_record_moved_is_rejected() -> None:
    plan = plan_buckets(EXAMPLE_3, "two-size")
    assert len(plan.sizes) == 2
    for row, step in ((0, 1), (0, -1), (13, 1)):
        loads = [list(r) for r in plan.loads]
        loads[row][0], loads[row][1] = loads[row][0] + step, loads[row][1] - step
        with pytest.raises(InternalError):
            replace(plan, loads=tuple(map(tuple, loads))).check(EXAMPLE_3)


def test_a_swap_that_keeps_all_sums_is_rejected_by_the_capacity() -> None:
    plan = plan_buckets(EXAMPLE_3, "two-size")
    loads = [list(r) for r in plan.loads]
    rare, common = 0, 13  # a bucket of the small size must not hold a rare value
    loads[rare][0], loads[rare][1] = 1, 0
    loads[common][0], loads[common][1] = loads[common][0] - 1, loads[common][1] + 1
    with pytest.raises(InternalError, match="capacity"):
        replace(plan, loads=tuple(map(tuple, loads))).check(EXAMPLE_3)


@pytest.mark.parametrize(
    "broken",
    [{"n_buckets": (9, 2)}, {"sizes": (4, 15)}, {"sizes": (14, 4)}, {"n_buckets": (9, 0)}],
)
def test_a_plan_whose_buckets_do_not_add_up_is_rejected(broken: dict[str, tuple[int, ...]]) -> None:
    valid = BucketPlan(
        method="two-size",
        sizes=(4, 14),
        n_buckets=(9, 1),
        loads=((0, 1),) * 8 + ((5, 1),) * 4 + ((8, 1),) * 2,
        lower_bound=None,
    )
    valid.check(EXAMPLE_3)  # the paper's own assignment
    assert valid.gap is None
    with pytest.raises(InternalError):
        BucketPlan(
            method=valid.method,
            sizes=broken.get("sizes", valid.sizes),
            n_buckets=broken.get("n_buckets", valid.n_buckets),
            loads=valid.loads,
            lower_bound=None,
        ).check(EXAMPLE_3)


@pytest.mark.parametrize("method", list(PLANNERS))
@pytest.mark.parametrize("counts", [(1,), (5,), (3, 4)])
def test_values_that_are_not_sensitive_get_buckets_of_one(method: str, counts: tuple[int, ...]) -> None:
    problem = BucketProblem(counts=counts, thresholds=(Fraction(1),) * len(counts), max_bucket=50)
    if method == "anatomy":
        assert plan_buckets(problem, method).loss == 0  # ℓ = 1
    plan = plan_buckets(problem, method)
    assert (plan.sizes, plan.loss, plan.mse, plan.gap) == ((1,), 0, 0.0, 0.0)


def test_l_diversity_is_planned_with_buckets_of_l_and_a_little_more() -> None:
    problem = BucketProblem(counts=(30, 30, 21, 20), thresholds=(Fraction(1, 3),) * 4, max_bucket=50)
    anatomy = plan_buckets(problem, "anatomy")
    assert (anatomy.sizes, anatomy.n_buckets) == ((3, 4), (31, 2))
    assert plan_buckets(problem).loss == anatomy.loss


def test_anatomy_says_when_the_commonest_value_is_too_common() -> None:
    problem = BucketProblem(
        counts=(6, 2, 2), thresholds=(Fraction(3, 5), HALF, Fraction(1, 5)), max_bucket=10
    )
    with pytest.raises(PromiseNotMet, match="5-diversity"):
        plan_buckets(problem, "anatomy")
    small = BucketProblem(counts=(5, 5, 5), thresholds=(Fraction(1, 3),) * 3, max_bucket=2)
    with pytest.raises(NoSettingFits) as caught:
        plan_buckets(small, "anatomy")
    assert caught.value.needed == 3


def test_thresholds_below_the_frequencies_are_named_by_index() -> None:
    problem = BucketProblem(counts=(1, 6, 3), thresholds=(HALF, HALF, HALF), max_bucket=10)
    with pytest.raises(ThresholdsTooLow) as caught:
        plan_buckets(problem)
    assert caught.value.indices == (1,)


@given(problems())
@settings(deadline=None, max_examples=50)
def test_too_small_a_bucket_is_told_the_size_that_would_do(problem: BucketProblem) -> None:
    for method, n_sizes in (("optimal", None), ("two-size", 2), ("one-size", 1)):
        if least_loss(problem, n_sizes) is not None:
            continue
        with pytest.raises(NoSettingFits) as caught:
            plan_buckets(problem, method)
        needed = caught.value.needed
        assert needed is not None
        assert needed > problem.max_bucket
        assert f"max_bucket = {needed} would do" in caught.value.message
        assert plan_buckets(replace(problem, max_bucket=needed), method).sizes[-1] <= needed
        if n_sizes is not None:  # for the optimum it is an upper bound only
            assert least_loss(replace(problem, max_bucket=needed - 1), n_sizes) is None


def test_a_threshold_of_one_in_a_thousand_is_planned() -> None:
    counts = (*([1_000] * 1_500), 200)
    thresholds = (*([Fraction(1, 500)] * 1_500), Fraction(1, 1_000))
    problem = BucketProblem(counts=counts, thresholds=thresholds, max_bucket=2_000)
    plan = plan_buckets(problem)
    assert plan.gap is not None
    assert plan.gap <= 1e-4
    assert plan.sizes[-1] >= 1_000
    assert plan.sizes[0] == 500


def test_a_plan_prints_itself() -> None:
    text = str(plan_buckets(EXAMPLE_3, "two-size"))
    assert "two-size: 50 rows" in text
    assert len(text.splitlines()) == 4


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'two-size'"):
        plan_buckets(EXAMPLE_3, "two-sizes")


def mixed(n_values: int, n_rows: int, max_bucket: int) -> BucketProblem:
    """Thresholds of another rule for each value, none of which is near the value's own share."""
    counts = [n_rows // (n_values + 5 * i) for i in range(n_values)]
    total = sum(counts)
    rules = [(3, 5), (2, 20), (8, 2), (5, 100), (20, 0)]
    thresholds = [
        min(HALF, rules[i % 5][0] * Fraction(count, total) + Fraction(rules[i % 5][1], 1_000))
        for i, count in enumerate(counts)
    ]
    return BucketProblem(counts=tuple(counts), thresholds=tuple(thresholds), max_bucket=max_bucket)


@pytest.mark.parametrize(
    "problem",
    [mixed(400, 10**5, 500), mixed(1_000, 10**6, 1_000), mixed(2_000, 10**7, 2_000)],
    ids=["400 values", "1,000 values", "2,000 values"],
)
def test_hard_plans_end_with_a_bound_and_are_the_same_each_time(
    problem: BucketProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a search may do is counted in steps, so that no clock decides a plan."""
    entries = []
    honest = CutSource.find_violated

    def counted(self: CutSource, n_buckets: Floats, slack: float) -> Cuts:
        entries.append(int((n_buckets > 0).sum()) * len(self.counts))
        return honest(self, n_buckets, slack)

    monkeypatch.setattr(CutSource, "find_violated", counted)
    plan = plan_buckets(problem)
    assert sum(entries) < 10**8
    assert plan.gap is not None
    assert plan.gap < 0.05
    assert plan_buckets(problem) == plan


def test_a_refusal_of_a_hard_problem_names_a_size_that_will_do() -> None:
    tight = mixed(300, 10**5, 20)
    with pytest.raises(NoSettingFits) as caught:
        plan_buckets(tight)
    assert caught.value.needed is not None
    assert plan_buckets(replace(tight, max_bucket=caught.value.needed)).sizes[-1] <= caught.value.needed
