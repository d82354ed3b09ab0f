"""Laws of a random order: expectations and variances of every count beside all orders of small buckets."""

from __future__ import annotations

from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dalenius.mechanisms.bucketize.attacks import order as module
from dalenius.mechanisms.bucketize.attacks.order import (
    Lines,
    attack_bucket_numbers,
    attack_dealing,
    attack_row_order,
    attack_source_order,
)
from dalenius.threats.chance import Chance
from dalenius.threats.counts import Counts
from dalenius.threats.facets import Facet
from tests.mechanisms.bucketize.attacks.cases import make_case

HELD = [[0, 0, 1], [0, 1, 2, 2]]
"""The codes of two buckets."""


def lines(contents: list[tuple[int, ...]]) -> Lines:
    bucket = np.array([g for g, own in enumerate(contents) for _ in own])
    codes = np.array([code for own in contents for code in own])
    return Lines.of(bucket, Facet(name="value", codes=codes, n_cells=3, label=str))


def all_orders() -> list[Lines]:
    """Every order of the rows of both buckets: 3! · 4! of them, equally likely."""
    return [lines(list(both)) for both in product(*(permutations(own) for own in HELD))]


def check_law(counts: list[Counts], *, exact_variance: bool = True) -> None:
    """The stated expectation is the mean over all orders, and the stated variance is theirs or more."""
    observed = np.array([one.observed for one in counts])
    assert observed.mean(axis=0) == pytest.approx(counts[0].expected, abs=1e-9)
    found = observed.var(axis=0)
    if exact_variance:
        assert found == pytest.approx(counts[0].variance, abs=1e-9)
    else:
        assert (found <= counts[0].variance + 1e-9).all()
    assert (observed <= counts[0].trials + 1e-9).all()


@pytest.mark.parametrize("k", [0, 1, 2, 3])
def test_what_stands_at_a_place_from_the_top(k: int) -> None:
    check_law([own.at_place(k, own.place == k, "") for own in all_orders()])


@pytest.mark.parametrize("k", [0, 2, 3])
def test_what_stands_at_a_place_from_the_end(k: int) -> None:
    check_law([own.at_place(k, own.size[own.bucket] - 1 - own.place == k, "") for own in all_orders()])


def test_which_of_two_comes_first() -> None:
    """A value that is twice in a bucket has its first row before another's in two of three orders."""
    counts = [own.precedence() for own in all_orders()]
    check_law(counts)
    named = {counts[0].label(i): counts[0].expected[i] for i in range(len(counts[0].expected))}
    assert named["0 before 1"] == pytest.approx(2 / 3 + 1 / 2)
    assert named["1 before 2"] == pytest.approx(1 / 3)


def test_an_order_learnt_in_one_half_is_not_followed_by_the_other() -> None:
    counts = [own.learnt_order() for own in all_orders()]
    observed = np.array([one.observed for one in counts])
    assert observed.mean(axis=0) == pytest.approx([0, 0], abs=1e-9)
    # the variance is that given what was learnt: on average it is the observed one
    stated = np.array([one.variance for one in counts]).mean(axis=0)
    assert observed.var(axis=0) == pytest.approx(stated)
    assert all((np.abs(one.observed) <= one.largest * 1 + 1e-9).all() for one in counts)


def test_rows_of_buckets_with_one_row_say_nothing() -> None:
    own = lines([(0, 1), (2,), (1, 1, 0)])
    assert own.bucket.tolist() == [0, 0, 1, 1, 1]
    assert own.codes.tolist() == [0, 1, 1, 1, 0]
    assert own.size.tolist() == [2, 3]
    assert own.place.tolist() == [0, 1, 0, 1, 2]
    assert [part.tolist() for part in own.entries] == [[0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 2], [0, 1, 2, 0]]
    assert list(lines([(0,), (1,)]).tests()) == []
    assert len(list(own.tests())) == 3 + 3 + 2


@pytest.mark.parametrize("values", [[0, 0, 1], [0, 1, 2], [0, 0, 1, 1]])
def test_the_kth_row_has_the_kth_value_as_often_as_chance_has_it(values: list[int]) -> None:
    """The stated expectation of hits is their mean over all orders of the rows."""
    hits, baselines = [], set()
    n = len(values)
    for order in permutations(range(n)):
        found = attack_row_order(make_case(values, [0] * n, order=list(order)))
        hits.append(found.success)
        baselines.add(found.baseline)
    mean = sum((values.count(v) / n) * values.count(v) for v in set(values)) / n
    assert np.mean(hits) == pytest.approx(mean)
    (baseline,) = baselines
    assert baseline == pytest.approx(mean)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_neighbours_in_the_sources_order_vary_as_harper_says(n: int) -> None:
    """Ascents of all n! orders: mean (n−1)/2, variance (n+1)/12."""
    ascents = [sum(b > a for a, b in pairwise(p)) for p in permutations(range(n))]
    assert np.mean(ascents) == pytest.approx((n - 1) / 2)
    assert np.var(ascents) == pytest.approx((n + 1) / 12)
    rising = attack_source_order(make_case([0] * n, [0] * n, order=list(range(n))))
    falling = attack_source_order(make_case([0] * n, [0] * n, order=list(range(n))[::-1]))
    assert rising.success == falling.success == 1.0  # both are as bad
    assert rising.n_trials == n - 1


def test_chance_has_the_variance_of_all_buckets_orders() -> None:
    """Buckets of 4, 4, 3 and one of a single row: (5 + 5 + 4)/12, and nothing for the row alone."""
    bucket = [0] * 4 + [1] * 4 + [2] * 3 + [3]
    found = attack_source_order(make_case([0] * 12, bucket, order=list(range(12))))
    chance = Chance(expected=8 / 2, variance=14 / 12, sides=2)
    assert (found.n_trials, found.success) == (8, 1.0)
    assert found.p_value == pytest.approx(chance.p_value(8))
    assert found.bound == pytest.approx(min(1.0, chance.limit() / 8))


def test_rows_in_the_sources_order_in_many_buckets_are_noticed() -> None:
    n = 300
    bucket = [row % 60 for row in range(n)]
    in_order = np.lexsort((np.arange(n), np.array(bucket))).tolist()
    rng = np.random.default_rng(1)
    shuffled = np.lexsort((rng.permutation(n), np.array(bucket))).tolist()
    assert attack_source_order(make_case([0] * n, bucket, order=in_order)).holds is False
    assert attack_source_order(make_case([0] * n, bucket, order=shuffled)).holds


def test_numbers_that_follow_the_source_contents_or_size_are_correlated() -> None:
    n = 400
    values = [row % 2 for row in range(n)]
    found = attack_bucket_numbers(make_case(values, [row // 2 for row in range(n)]))
    assert found.holds is False
    rng = np.random.default_rng(2)
    numbers = rng.permutation(200)
    assert attack_bucket_numbers(make_case(values, [int(numbers[row // 2]) for row in range(n)])).holds


@given(st.lists(st.integers(0, 4), min_size=3, max_size=9))
def test_ties_share_their_mean_rank(measure: list[int]) -> None:
    found = module._tied_correlation(np.arange(len(measure)), np.array(measure))
    if len(set(measure)) == 1:
        assert found == 0.0
    else:
        expected = stats.spearmanr(np.arange(len(measure)), measure).statistic
        assert found == pytest.approx(float(expected))


def test_coincidences_of_steps_are_counted_over_all_dealings() -> None:
    """Two values with places in three buckets; how many steps of one are steps of the other too, on average.

    A step goes from the bucket of a record to that of the next of its value, in the source's order. Two of
    three pairs agree on average. That no step stays where it is, is left out, and 1 is expected: random
    dealing is accused less often for it, never more.
    """
    values, bucket = [0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]
    coincidences = []
    for one, two in product(permutations([0, 1, 2]), repeat=2):
        first = [(one[i], one[i + 1]) for i in (0, 1)]
        second = [(two[i], two[i + 1]) for i in (0, 1)]
        coincidences.append(sum(a == b for a in first for b in second))
    case = make_case(values, bucket)
    found = module._expected_coincidences(case, np.array([3, 3]))
    assert np.mean(coincidences) == pytest.approx(2 / 3)
    assert found == pytest.approx(1)
    # with 60 buckets what is left out is a sixtieth
    many = make_case([v for v in (0, 1) for _ in range(60)], list(range(60)) * 2)
    assert module._expected_coincidences(many, np.array([60, 60])) == pytest.approx(60 / 60)


def test_round_robin_repeats_its_steps() -> None:
    n_buckets, n_values = 30, 6
    values = [v for v in range(n_values) for _ in range(n_buckets)]
    in_order = [b for _ in range(n_values) for b in range(n_buckets)]
    rng = np.random.default_rng(3)
    shuffled = [int(b) for _ in range(n_values) for b in rng.permutation(n_buckets)]
    assert attack_dealing(make_case(values, in_order)).holds is False
    assert attack_dealing(make_case(values, shuffled)).holds


def test_entries_are_counted_by_bucket_and_value() -> None:
    case = make_case([0, 0, 1, 2, 1], [0, 0, 0, 1, 1])
    found = module._entry_counts(case, np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 0, 1, 2]))
    assert found.tolist() == [2, 1, 0, 0, 1, 1]
