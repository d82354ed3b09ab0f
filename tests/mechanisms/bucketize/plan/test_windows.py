"""Windows of near numbers, against filling buckets one by one and against every guess."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from dalenius.errors import InputError, InternalError, PromiseNotMet
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.plan.methods import PLANNERS, plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem, NoSettingFits
from dalenius.mechanisms.bucketize.plan.windows import cover, densest_share, without_windows
from tests.mechanisms.bucketize.plan.filling import dealt, histograms, least_loss

LIMITS = tuple(map(Fraction, ("1/2", "2/5", "2/3")))


def families(n_values: int) -> Iterator[tuple[int, ...]]:
    """Every way in which windows can end: each proper interval order of so many values."""
    for ends in product(range(1, n_values + 1), repeat=n_values):
        is_one = list(ends) == sorted(ends) and all(end > begin for begin, end in enumerate(ends))
        if is_one and ends[-1] == n_values:
            yield ends


def problem_of(
    counts: tuple[int, ...], windows: tuple[int, ...], limit: Fraction, most: int
) -> BucketProblem:
    return BucketProblem(counts=counts, thresholds=(limit,) * len(counts), max_bucket=most, windows=windows)


def least(problem: BucketProblem) -> int | None:
    limit = problem.thresholds[0]
    return least_loss(
        problem, tuple((tuple(range(begin, end)), limit) for begin, end in enumerate(problem.windows))
    )


def breaks(problem: BucketProblem, plan: BucketPlan) -> bool:
    return any(
        Fraction(int(held[begin:end].sum()), int(held.sum())) > problem.thresholds[0]
        for held in dealt(plan)
        for begin, end in enumerate(problem.windows)
    )


@pytest.mark.parametrize(("n_values", "most"), [(2, 8), (3, 8), (4, 6), (5, 6)])
def test_the_plan_is_the_best_of_all_and_exists_where_any_does(n_values: int, most: int) -> None:
    """All tables of up to so many people with every family of windows, against filling buckets one by one."""
    n_found = n_none = 0
    for counts, windows, limit in product(histograms(n_values, most), families(n_values), LIMITS):
        problem = problem_of(counts, windows, limit, 5 if sum(counts) % 2 else 8)
        wanted = least(problem)
        if wanted is None:
            n_none += 1
            with pytest.raises(PromiseNotMet):
                plan_buckets(problem)
            continue
        n_found += 1
        plan = plan_buckets(problem)
        assert plan.loss == wanted, problem
        assert not breaks(problem, plan), problem
    assert min(n_found, n_none) > 10


def test_windows_cover_as_much_as_any_choice_of_them() -> None:
    for counts, windows in product(histograms(4, 7), families(4)):
        problem = problem_of(counts, windows, Fraction(1, 2), 9)
        for m, found in enumerate(cover(problem, 9), start=1):
            runs = [set(range(begin, end)) for begin, end in enumerate(windows)]
            chosen = combinations(runs, min(m, len(runs)))
            assert found == max(sum(counts[v] for v in set().union(*some)) for some in chosen)
        covered = np.array([0, *cover(problem, 9)])
        assert (np.diff(covered, n=2) <= 0).all(), "each further window covers no more than the last"
        assert densest_share(problem) == Fraction(int(covered[1]), problem.n_rows)


@pytest.mark.parametrize("method", PLANNERS)
def test_every_method_keeps_every_window(method: str) -> None:
    random = np.random.default_rng(3)
    n_planned = 0
    for _ in range(20):
        n_values = int(random.integers(5, 40))
        counts = tuple(int(c) for c in random.integers(1, 30, n_values))
        at = np.cumsum(random.integers(1, 9, n_values))
        windows = tuple(int(e) for e in np.searchsorted(at, at + random.integers(2, 12), side="right"))
        problem = problem_of(counts, windows, Fraction(int(random.integers(3, 9)), 13), 50)
        try:
            plan = plan_buckets(problem, method)
        except PromiseNotMet:
            continue
        n_planned += 1
        assert not breaks(problem, plan)
    assert n_planned >= 5


def test_a_plan_of_single_values_breaks_windows_and_is_refused() -> None:
    """The twin: the same counts and limit without windows."""
    alone = problem_of((6, 2, 2, 2), (4, 4, 4, 4), Fraction(1, 2), 10)
    plan = plan_buckets(replace(alone, windows=()))
    assert breaks(alone, plan)
    with pytest.raises(InternalError, match="window"):
        plan.check(alone)
    with pytest.raises(PromiseNotMet):
        plan_buckets(alone)


def test_one_value_that_everybody_may_be_known_to_have_has_a_window_too() -> None:
    plan = plan_buckets(problem_of((3,), (1,), Fraction(1), 4))
    assert (plan.sizes, plan.n_buckets) == ((1,), (3,))


def test_more_windows_than_the_largest_bucket_are_not_looked_for() -> None:
    problem = problem_of((1,) * 60, tuple(range(1, 61)), Fraction(1, 3), 6)
    assert len(cover(problem, 6)) == 6
    assert without_windows(problem).counts == (1,) * 60
    assert plan_buckets(problem).sizes == (3,)


def test_where_nothing_fits_the_size_that_would_do_is_named() -> None:
    problem = problem_of((29, 71), (1, 2), Fraction(71, 100), 20)
    with pytest.raises(NoSettingFits) as refused:
        plan_buckets(problem)
    needed = refused.value.needed
    assert needed is not None
    assert not breaks(problem, plan_buckets(replace(problem, max_bucket=needed)))


@pytest.mark.parametrize("windows", [(2, 1), (1,), (1, 1), (0, 2), (2, 3)])
def test_what_is_no_family_of_windows_is_refused(windows: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="window"):
        problem_of((1, 1), windows, Fraction(1, 2), 4)
