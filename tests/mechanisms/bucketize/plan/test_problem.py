"""Capacities are exact, sizes suffice, and bad input is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InputError, PromiseNotMet
from dalenius.mechanisms.bucketize.plan.problem import (
    BucketProblem,
    ThresholdsTooLow,
    candidate_sizes,
    least_size,
    record_bound,
    violations,
)
from tests.mechanisms.bucketize.problems import least_loss, problems, skewed


def test_a_capacity_on_the_boundary_is_not_lost_to_floating_point() -> None:
    problem = BucketProblem(counts=(1, 1), thresholds=(Fraction("0.29"), Fraction(1)), max_bucket=100)
    assert int(0.29 * 100) == 28  # what a float would give
    assert problem.capacity(100).tolist() == [29, 100]


@given(
    tops=st.lists(st.integers(1, 10**25), min_size=1, max_size=4),
    bottom=st.integers(10**25, 10**26),
    sizes=st.lists(st.integers(1, 5_000), min_size=1, max_size=4),
)
def test_capacities_equal_those_of_fractions_at_any_precision(
    tops: list[int], bottom: int, sizes: list[int]
) -> None:
    thresholds = tuple(Fraction(top, bottom) for top in tops)
    problem = BucketProblem(counts=(1,) * len(tops), thresholds=thresholds, max_bucket=5_000)
    expected = [[(t * s).__floor__() for s in sizes] for t in thresholds]
    assert problem.capacity_table(sizes).tolist() == expected


@pytest.mark.parametrize(
    ("counts", "thresholds", "max_bucket"),
    [
        ((), (), 5),
        ((1, 2), (Fraction(1),), 5),
        ((3, 0), (Fraction(1), Fraction(1)), 5),
        ((3,), (Fraction(0),), 5),
        ((3,), (Fraction(11, 10),), 5),
        ((3,), (Fraction(1),), 0),
        ((2**61,), (Fraction(1),), 50),
    ],
)
def test_bad_input_is_refused(
    counts: tuple[int, ...], thresholds: tuple[Fraction, ...], max_bucket: int
) -> None:
    with pytest.raises(InputError):
        BucketProblem(counts=counts, thresholds=thresholds, max_bucket=max_bucket)


def test_violations_are_exact_at_the_boundary() -> None:
    third = Fraction(1, 3)
    assert violations(BucketProblem(counts=(1, 2), thresholds=(third, Fraction(2, 3)), max_bucket=3)) == ()
    below = third - Fraction(1, 10**30)
    assert violations(BucketProblem(counts=(1, 2), thresholds=(below, Fraction(1)), max_bucket=3)) == (0,)
    assert ThresholdsTooLow((0,)).indices == (0,)
    assert issubclass(ThresholdsTooLow, PromiseNotMet)


@given(problems())
def test_the_record_bound_is_below_every_setting(problem: BucketProblem) -> None:
    best = least_loss(problem)
    assert best is None or record_bound(problem) <= best


def test_every_size_is_a_candidate_up_to_fifty() -> None:
    assert candidate_sizes(skewed(50, 300_000, 8)) == tuple(range(2, 51))


def test_large_buckets_are_searched_at_few_sizes() -> None:
    counts = (100, *([1_000] * 999))  # a value that may be one in a thousand
    problem = BucketProblem(counts=counts, thresholds=(Fraction(1, 1_000),) * 1_000, max_bucket=3_000)
    assert violations(problem) == tuple(range(1, 1_000))
    sizes = candidate_sizes(problem)
    assert {1_000, 1_001, 2_000, 2_001, 3_000} <= set(sizes)
    assert len(sizes) < 100
    assert len(candidate_sizes(skewed(3_200, 10**7, 8, max_bucket=2_000))) < 600


@given(st.integers(1, 30), st.integers(1, 60), st.integers(1, 60), st.integers(1, 60))
def test_the_least_size_is_what_trying_finds(count: int, rest: int, top: int, more: int) -> None:
    share, threshold = Fraction(count, count + rest), Fraction(top, top + more)
    if threshold < share:
        return
    problem = BucketProblem(
        counts=(count, rest), thresholds=(threshold, Fraction(1)), max_bucket=count + rest
    )
    sizes = range(1, count + rest + 1)
    tried = next(
        size for size in sizes if any(share <= Fraction(k, size) <= threshold for k in range(size + 1))
    )
    assert least_size(problem) == tried
