"""Which sizes are searched, and what would do where nothing fits, against trying everything."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dalenius.mechanisms.bucketize.apply import count_alike
from dalenius.mechanisms.bucketize.plan import optimal
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.plan.methods import has_setting, sufficient_max_bucket
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.mechanisms.bucketize.plan.sizes import candidate_sizes


def test_few_sizes_at_which_more_fits_are_all_searched() -> None:
    """However near they are: every size at which a bucket can hold one more of some value."""
    limits = (Fraction(1, 90), Fraction(1, 420), Fraction(1, 424), Fraction(1, 428))
    problem = BucketProblem(counts=(10**6,) * 4, thresholds=limits, max_bucket=500)
    growing = {size for size in range(65, 501) if any(size * t // 1 > (size - 1) * t // 1 for t in limits)}
    assert growing == {90, 180, 270, 360, 420, 424, 428, 450}
    sizes = set(candidate_sizes(problem))
    assert growing | {size + 1 for size in growing} <= sizes


def test_of_many_sizes_one_is_near_every_other() -> None:
    """A bucket of any size from 100 to 1,099 can hold more of some value: some are searched, 3 % apart."""
    limits = tuple(Fraction(1, 100 + i) for i in range(1_000))
    problem = BucketProblem(counts=(1_000,) * 1_000, thresholds=limits, max_bucket=1_100)
    sizes = np.array(candidate_sizes(problem))
    assert len(sizes) < 400
    assert max(np.abs(sizes / size - 1).min() for size in range(100, 1_100)) < 0.03


@pytest.mark.parametrize("method", ["one-size", "two-size", "optimal"])
def test_the_hint_is_the_least_that_would_do(method: str) -> None:
    """Where records could be divided less would do: the first size that is tried often fails."""
    checked = 0
    for n_rows in range(12, 31):
        for threshold in (Fraction(2, 5), Fraction(3, 7)):
            common = int(n_rows * threshold)
            counts = (common, common, n_rows - 2 * common)
            problem = BucketProblem(counts=counts, thresholds=(threshold,) * 3, max_bucket=3)
            if has_setting(problem, method, 3):
                continue
            works = [size for size in range(4, n_rows + 1) if has_setting(problem, method, size)]
            assert sufficient_max_bucket(problem, method) == works[0], (n_rows, threshold)
            checked += works[0] < n_rows
    assert checked > 5


def test_one_bucket_of_all_rows_and_a_few_even_ones_are_tried() -> None:
    problem = BucketProblem(counts=(4, 3, 3), thresholds=(Fraction(2, 5),) * 3, max_bucket=10)
    search = optimal._SizeSearch(problem)
    search._try_even()
    assert search._best is not None
    sizes = np.array(candidate_sizes(problem))
    assert int(search._best @ sizes) == 10
    assert int(search._best.sum()) == 2, "two of five lose less than one of ten"


def test_people_whose_numbers_are_near_are_counted() -> None:
    """A bucket of two near numbers, two of three of which one is far, and one with a missing number."""
    loads = ((1, 2), (1, 2), (0, 2))
    plan = BucketPlan(method="", sizes=(2, 3), n_buckets=(1, 2), loads=loads, lower_bound=None)
    near, far = np.array([1000.0, 1001.0, 1002.0]), np.array([1000.0, 1001.0, 2000.0])
    assert plan.count_near(near, 0.01) == 8
    assert plan.count_near(far, 0.01) == 2
    assert plan.count_near(np.array([1000.0, np.nan, 1000.0]), 0.01) == 0


def test_a_fake_among_values_that_are_seen_once_hides_none_that_is_seen_twice() -> None:
    """Two of each of two values and one more: with one fake it is the last that may be nobody's."""
    listed = (np.array([1, 1, 1]), np.array([0, 1, 2]), np.array([2, 2, 1]))
    cells = [np.array([0, 0, 1])]
    assert count_alike([listed], cells, only_yes=False, n_fakes=0) == 0
    assert count_alike([listed], cells, only_yes=False, n_fakes=1) == 4
    once = (np.array([1, 1, 1]), np.array([0, 1, 2]), np.array([2, 1, 1]))
    assert count_alike([once], cells, only_yes=False, n_fakes=1) == 0
