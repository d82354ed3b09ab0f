"""D-suppression in closed form is D-suppression record by record; theorems 1 and 2 hold."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.errors import InputError, PromiseNotMet
from dalenius.mechanisms.suppress import d_suppression as d
from dalenius.mechanisms.suppress.d_suppression import (
    check_counts,
    is_candidate_for_l,
    is_eligible,
    least_violating_count,
    secret_ranks,
)
from dalenius.randomness import Randomness
from tests.mechanisms.suppress import brute

T = (10, 4, 2, 1, 1)
counts_in_rank_order = st.lists(st.integers(0, 12), min_size=1, max_size=6).map(tuple)


def test_the_papers_examples() -> None:
    assert not is_eligible(T, 3)
    assert d.minimal_suppression(T, 3) == (4, 4, 2, 1, 1)  # example 1: six records of S_1
    assert d.unsafe_d(T, 3) == (4, 4, 2, 1, 1)  # example 3: level 4, six withheld
    assert d.safe_d(T, 3) == (2, 2, 2, 1, 1)  # example 3: level 2, ten withheld
    assert d.after_removals(T, 6) == (4, 4, 2, 1, 1)  # example 2
    assert d.after_removals(T, 7) == (4, 3, 2, 1, 1)
    assert d.after_removals(T, 8) == (3, 3, 2, 1, 1)
    assert d.stop_when(T, lambda kept: is_candidate_for_l(kept, 18, 3)) == (5, 4, 2, 1, 1)  # after 5
    assert d.suppress_all(T) == (0, 0, 0, 0, 0)


@given(counts=counts_in_rank_order)
def test_every_state_is_the_one_reached_record_by_record(counts: tuple[int, ...]) -> None:
    assert [d.after_removals(counts, k) for k in range(sum(counts) + 1)] == list(brute.d_states(counts))


@given(counts=counts_in_rank_order, ell=st.integers(2, 6), withheld=st.integers(0, 15))
@settings(max_examples=500)
def test_stopping_is_the_same_as_record_by_record(counts: tuple[int, ...], ell: int, withheld: int) -> None:
    ell, n_rows = min(ell, len(counts)), sum(counts) + withheld
    if ell < 2 or not n_rows:
        return
    stopped = brute.d_until(
        counts, lambda kept: brute.eligible(kept, ell) and brute.candidate(kept, n_rows, ell)
    )
    assert d.stop_when_eligible_and_candidate(counts, n_rows, ell) == stopped
    assert d.stop_when_eligible(counts, ell) == brute.d_until(counts, lambda kept: brute.eligible(kept, ell))


def test_theorem_1_safe_d_is_the_first_state_with_l_values_on_top() -> None:
    for table, ell in brute.small_tables(14):
        first = next(
            kept
            for kept in brute.d_states(table)
            if brute.eligible(kept, ell) and kept.count(max(kept)) >= ell
        )
        assert d.safe_d(table, ell) == first


def test_theorem_2_nothing_with_both_conditions_keeps_more_than_unsafe_d() -> None:
    for table, ell in brute.small_tables(12, (2, 3, 4)):
        n_rows = sum(table)
        valid = [view for view in brute.all_views(table, ell) if brute.candidate(view, n_rows, ell)]
        assert sum(d.unsafe_d(table, ell)) == max(sum(view) for view in valid)
        assert sum(d.minimal_suppression(table, ell)) == max(map(sum, brute.all_views(table, ell)))


def test_a_billion_rows_are_not_removed_one_by_one() -> None:
    table = (8 * 10**8, 10**8, 5 * 10**7, 3 * 10**7, 2 * 10**7)
    kept = d.safe_d(table, 3), d.unsafe_d(table, 3), d.after_removals(table, 12_345_678)
    assert kept[0] == (5 * 10**7, 5 * 10**7, 5 * 10**7, 3 * 10**7, 2 * 10**7)
    assert kept[2][0] == 8 * 10**8 - 12_345_678


@pytest.mark.parametrize(
    ("counts", "ell", "error", "words"),
    [
        ((3, 1), 3, PromiseNotMet, "the 2 different values"),
        ((3, 1), 0, InputError, "l is 0"),
        ((3, 0, 1), 2, InputError, "1 of the 3 counts are below 1"),
        ((), 1, InputError, "no values"),
    ],
)
def test_what_cannot_be_suppressed_is_refused(
    counts: tuple[int, ...], ell: int, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        check_counts(counts, ell)


@given(n_rows=st.integers(1, 1000), ell=st.integers(1, 12))
def test_the_least_violating_count_is_the_first_above_the_bound(n_rows: int, ell: int) -> None:
    least = least_violating_count(n_rows, ell)
    assert least * ell > n_rows >= (least - 1) * ell


def test_ranks_are_by_count_and_equal_counts_in_any_order() -> None:
    orders = [secret_ranks((2, 5, 2, 2), Randomness.seeded(run).stream("ranks")) for run in range(600)]
    assert {order[0] for order in orders} == {1}
    firsts = [sum(order[1] == value for order in orders) for value in (0, 2, 3)]
    assert min(firsts) > 130  # 200 expected, six standard deviations are 69
    assert len(set(orders)) == 6
