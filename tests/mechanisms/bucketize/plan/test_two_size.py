"""Two sizes: the three searches find what brute force finds, and records are split as in section 4.3."""

from __future__ import annotations

from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.errors import PromiseNotMet
from dalenius.mechanisms.bucketize.plan import two_size
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.mechanisms.bucketize.plan.two_size import (
    Search,
    index_settings,
    most_buckets,
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


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Counts, capacities (a value more in a larger bucket, or as many) and two to four sizes."""
    sizes = sorted(draw(st.sets(st.integers(1, 7), min_size=2, max_size=4)))
    counts = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    rows = [
        sorted(draw(st.lists(st.integers(0, 4), min_size=len(sizes), max_size=len(sizes)))) for _ in counts
    ]
    capacity = np.minimum(np.array(rows, dtype=np.int64), np.array(sizes))
    return np.array(counts, dtype=np.int64), capacity, tuple(sizes)


def fills(counts: np.ndarray, capacity: np.ndarray, size: int, b: int) -> bool:
    """FC as printed: Σ_i min(⌊f′_i·S⌋·b, o_i) ≥ S·b."""
    return bool(np.minimum(capacity * b, counts).sum() >= size * b)


@given(tables())
def test_the_most_buckets_of_a_size_are_those_that_trying_finds(
    table: tuple[np.ndarray, np.ndarray, tuple[int, ...]],
) -> None:
    counts, capacity, sizes = table
    found = most_buckets(counts, capacity, np.array(sizes))
    for j, size in enumerate(sizes):
        tried = [b for b in range(int(counts.sum()) // size + 1) if fills(counts, capacity[:, j], size, b)]
        assert tried == list(range(len(tried)))  # monotone: what the searches rely on
        assert found[j] == tried[-1]


def listed_settings(
    counts: np.ndarray, capacity: np.ndarray, sizes: tuple[int, ...]
) -> list[tuple[int, int, int, int, int]]:
    """(loss, S_1's column, S_2's column, b_1, b_2) of every valid setting of two sizes, by theorem 3."""
    n_rows, found = int(counts.sum()), []
    for i, small in enumerate(sizes):
        for j in range(i + 1, len(sizes)):
            for b_2 in range(n_rows // sizes[j] + 1):
                b_1, rest = divmod(n_rows - sizes[j] * b_2, small)
                if rest:
                    continue
                first, second = np.minimum(capacity[:, i] * b_1, counts), capacity[:, j] * b_2
                covers = bool((first + np.minimum(second, counts) >= counts).all())
                if (
                    covers
                    and fills(counts, capacity[:, i], small, b_1)
                    and fills(counts, capacity[:, j], sizes[j], b_2)
                ):
                    loss = b_1 * (small - 1) ** 2 + b_2 * (sizes[j] - 1) ** 2
                    found.append((loss, i, j, b_1, b_2))
    return found


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("block", [1, 7, 2**17])
@given(table=tables())
@settings(max_examples=60)
def test_the_setting_is_the_first_of_the_best_whatever_the_blocks(
    search: Search, block: int, table: tuple[np.ndarray, np.ndarray, tuple[int, ...]]
) -> None:
    """Of equal losses the pair of sizes that comes first; looked at one, a few or all entries at a time."""
    counts, capacity, sizes = table
    listed = listed_settings(counts, capacity, sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(two_size, "_BLOCK", block)
        found = search_two_size(counts, capacity, sizes, search)
    if not listed:
        assert found is None
        return
    assert found is not None
    loss, i, j, b_1, b_2 = min(listed)
    assert (found.loss, found.columns, found.n_buckets) == (loss, (i, j), (b_1, b_2))


@pytest.mark.parametrize("search", SEARCHES)
@given(table=tables())
@settings(max_examples=60)
def test_only_settings_below_a_loss_are_of_interest(
    search: Search, table: tuple[np.ndarray, np.ndarray, tuple[int, ...]]
) -> None:
    counts, capacity, sizes = table
    best = search_two_size(counts, capacity, sizes, search)
    if best is not None:
        assert search_two_size(counts, capacity, sizes, search, below=best.loss + 1) == best
        assert search_two_size(counts, capacity, sizes, search, below=best.loss) is None


@given(tables())
def test_records_are_split_within_both_limits_wherever_theorem_3_holds(
    table: tuple[np.ndarray, np.ndarray, tuple[int, ...]],
) -> None:
    counts, capacity, sizes = table
    for _, i, j, b_1, b_2 in listed_settings(counts, capacity, sizes):
        limits = capacity[:, [i, j]] * np.array([b_1, b_2])
        loads = partition(counts, limits, sizes[i] * b_1)
        assert loads.sum(axis=0).tolist() == [sizes[i] * b_1, sizes[j] * b_2]
        assert loads.sum(axis=1).tolist() == counts.tolist()
        assert (loads >= 0).all()
        assert (loads <= limits).all()


def test_losses_along_a_list_rise_by_the_same_step() -> None:
    """n = 28, sizes 2 and 4 (example 4): 14·1, then two small buckets become one of loss 9: + 9 − 2 = 7."""
    lists = index_settings(28, (2, 4))
    assert lists.first_loss.tolist() == [14]
    assert lists.loss_step.tolist() == [7]
    assert [int(lists.loss_at(np.array([i]))[0]) for i in range(8)] == [14 + 7 * i for i in range(8)]


def test_a_list_that_is_empty_has_no_position() -> None:
    """2 and 4 cannot add up to 7; 3 and 5 cannot add up to 7 either, though their divisor is 1."""
    assert index_settings(7, (2, 4)).last.tolist() == [-1]
    assert index_settings(7, (3, 5)).last.tolist() == [-1]
    assert index_settings(8, (3, 5)).last.tolist() == [0]


def test_one_candidate_size_has_its_limits_too() -> None:
    counts = np.array([4, 4], dtype=np.int64)
    fits, short = np.array([[1], [1]]), np.array([[1], [0]])
    found = search_two_size(counts, fits, (2,))
    assert found is not None
    assert (found.n_buckets, found.loss) == ((4, 0), 4)
    assert search_two_size(counts, short, (2,)) is None
    assert search_two_size(counts, fits, (3,)) is None
    assert search_two_size(counts, fits, (2,), below=4) is None
    assert search_two_size(counts, fits, (2,), below=5) == found
    assert search_two_size(counts, np.zeros((2, 0), dtype=np.int64), ()) is None
