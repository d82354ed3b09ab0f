"""Two sizes: the three searches find what brute force finds, and records are split as in section 4.3."""

from __future__ import annotations

from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.errors import PromiseNotMet
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.mechanisms.bucketize.plan.two_size import (
    Search,
    index_settings,
    partition,
    plan_two_size,
    search_two_size,
)
from tests.mechanisms.bucketize.problems import EXAMPLE_3, least_loss, problems, skewed

SEARCHES: tuple[Search, ...] = get_args(Search)


def test_example_3_moves_six_records() -> None:
    counts, capacity = EXAMPLE_3.count_array(), EXAMPLE_3.capacity_table([4, 14])
    limits = capacity * np.array([9, 1])
    most = np.minimum(limits, counts[:, None])
    assert most[:, 0].tolist() == [0] * 8 + [6] * 4 + [9] * 2
    assert most[:, 1].tolist() == [1] * 8 + [4] * 4 + [5] * 2
    loads = partition(counts, limits, target=36)
    assert most[:, 0].sum() - loads[:, 0].sum() == 6
    assert loads.sum(axis=0).tolist() == [36, 14]
    assert (loads <= limits).all()
    assert loads.sum(axis=1).tolist() == list(EXAMPLE_3.counts)


@given(problems())
@settings(deadline=None)
def test_every_search_finds_the_least_loss_of_two_sizes(problem: BucketProblem) -> None:
    best = least_loss(problem, n_sizes=2)
    for search in SEARCHES:
        if best is None:
            with pytest.raises(PromiseNotMet):
                plan_two_size(problem, search)
        else:
            plan = plan_two_size(problem, search)
            plan.check(problem)
            assert plan.loss == best


@given(st.integers(2, 8), st.integers(60, 3_000), st.integers(1, 8))
@settings(deadline=None, max_examples=40)
def test_the_searches_give_the_same_setting(n_values: int, n_rows: int, times: int) -> None:
    problem = skewed(n_values, n_rows, times, max_bucket=30)
    sizes = tuple(range(problem.smallest_size, 31))
    counts, capacity = problem.count_array(), problem.capacity_table(sizes)
    first, *others = (search_two_size(counts, capacity, sizes, search) for search in SEARCHES)
    assert all(other == first for other in others)


@given(
    capacities=st.tuples(st.integers(0, 4), st.integers(0, 9)),
    count=st.integers(1, 60),
    n_rows=st.integers(10, 400),
    sizes=st.sampled_from([(2, 3), (4, 6), (5, 9), (3, 12)]),
)
def test_the_positions_where_one_value_fits_are_one_interval(
    capacities: tuple[int, int], count: int, n_rows: int, sizes: tuple[int, int]
) -> None:
    # min(u_1, o) + min(u_2, o) ≥ o is u_1 + u_2 ≥ o for u ≥ 0, and that is linear along Γ.
    lists = index_settings(n_rows, sizes)
    b_small, b_large = lists.buckets_at(np.arange(int(lists.last[0]) + 1))
    first, second = (np.minimum(c * b, count) for c, b in zip(capacities, (b_small, b_large), strict=True))
    holds = (first + second >= count).astype(int)
    assert (np.abs(np.diff(np.concatenate([[0], holds, [0]]))).sum()) <= 2


def test_a_billion_rows_are_planned_exactly() -> None:
    problem = skewed(50, 10**9, 8)
    plan = plan_two_size(problem)
    plan.check(problem)
    assert plan.n_rows == 10**9


def test_a_single_candidate_size_is_used_if_it_divides_the_rows() -> None:
    half = (Fraction(1, 2),)
    plan = plan_two_size(BucketProblem(counts=(20, 20), thresholds=half * 2, max_bucket=2))
    assert (plan.sizes, plan.n_buckets) == ((2,), (20,))
    with pytest.raises(PromiseNotMet):
        plan_two_size(BucketProblem(counts=(20, 20, 1), thresholds=half * 3, max_bucket=2))
