"""Two bucketizations of one table: contents and posteriors beside all pairs of buckets."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from dalenius.mechanisms.bucketize import repeated
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem, Run
from dalenius.mechanisms.bucketize.repeated import RepeatedContents, plan_contents, repeat_buckets
from tests.mechanisms.bucketize.problems import bucket_plans, deal_by_hand


def contents_of(plan: BucketPlan) -> RepeatedContents | None:
    counts = tuple(sum(row) for row in plan.loads)
    if min(counts) < 1:
        return None
    problem = BucketProblem(counts=counts, thresholds=(Fraction(1),) * len(counts), max_bucket=5)
    return plan_contents(plan, problem, None)


@given(bucket_plans())
def test_contents_are_the_different_buckets_and_how_many_there_are(plan: BucketPlan) -> None:
    found = contents_of(plan)
    if found is None:
        return
    m = len(plan.loads)
    dealt = Counter(tuple(bucket.count(x) for x in range(m)) for bucket in deal_by_hand(plan))
    listed: Counter[tuple[int, ...]] = Counter()
    for row, weight in zip(found.real.astype(int).tolist(), found.weight.tolist(), strict=True):
        listed[tuple(row)] += int(weight)
    assert listed == dealt
    assert found.is_complete
    assert found.believed.tolist() == found.real.tolist()


@given(bucket_plans())
def test_two_releases_are_every_pair_of_buckets(plan: BucketPlan) -> None:
    """Belief ∝ c₁(x)·c₂(x)/o_x; the largest of any pair, and the mean success of the best guess."""
    found = contents_of(plan)
    if found is None:
        return
    m, n_rows = len(plan.loads), plan.n_rows
    buckets = [np.array([bucket.count(x) for x in range(m)]) for bucket in deal_by_hand(plan)]
    o = np.array([sum(row) for row in plan.loads])
    largest, success = np.zeros(m), 0.0
    for one in buckets:
        for two in buckets:
            joint = one * two / o  # how many people are expected in both, by value
            if joint.sum():
                largest = np.maximum(largest, joint / joint.sum())
                success += joint.max() / n_rows
    limits = (Fraction(1, 2),) * m
    told = repeat_buckets([found], limits, 2)
    assert told.how == "exact"
    assert told.posterior == pytest.approx(float(largest.max()))
    assert told.success == pytest.approx(success)
    assert told.success_of_one == pytest.approx(sum(bucket.max() for bucket in buckets) / n_rows)
    assert (told.times, told.promised) == (2, 0.5)


def test_the_worst_is_the_value_whose_promise_is_broken_most() -> None:
    """Value 0 is certain and was promised 1/10; value 1 is certain and was promised 9/10."""
    both = RepeatedContents(
        real=np.eye(2),
        believed=np.eye(2),
        weight=np.array([3.0, 3.0]),
        counts=np.array([3.0, 3.0]),
        is_complete=True,
    )
    told = repeat_buckets([both], (Fraction(1, 10), Fraction(9, 10)), 2)
    assert (told.posterior, told.promised) == (1.0, 0.1)
    assert (told.success, told.success_of_one) == (1.0, 1.0)


def test_a_group_of_values_has_a_posterior_together() -> None:
    """A bucket of 0, 1, 2 and one of 0, 1, 3: both have 0 and 1, which are the group, for certain."""
    held = np.array([[1.0, 1, 1, 0], [1, 1, 0, 1]])
    one = RepeatedContents(
        real=held, believed=held, weight=np.ones(2), counts=np.array([2.0, 2, 1, 1]), is_complete=True
    )
    group = Run(begin=0, end=2, threshold=Fraction(1, 2))
    largest, _ = repeated._try_all_pairs(one, [group])
    # in two different buckets only the group's values can be; in the same bucket twice 1/2, 1/2, 1
    assert largest[4] == pytest.approx(1.0)
    assert largest[:2] == pytest.approx([0.5, 0.5])
    assert largest[2:4] == pytest.approx([0.5, 0.5])


def test_people_that_were_withheld_are_a_content_of_their_own() -> None:
    """Of 5, 3 and 2 records 3, 3 and none are published: 2 and 2 are in no bucket."""
    one = RepeatedContents(
        real=np.array([[1.0, 1.0]]),
        believed=np.array([[1.0, 1.0]]),
        weight=np.array([3.0]),
        counts=np.array([3.0, 3.0]),
        is_complete=True,
    )
    wide = one.with_withheld([3, 3, 0], [5, 3, 2])
    assert wide.real.tolist() == [[1.0, 1.0, 0.0], [2.0, 0.0, 2.0]]
    assert wide.weight.tolist() == [3.0, 1.0]
    assert wide.counts.tolist() == [5.0, 3.0, 2.0]
    assert (wide.weight @ wide.real).tolist() == wide.counts.tolist()


def test_more_than_two_releases_are_simulated_and_near_the_exact_answer() -> None:
    plan = BucketPlan(method="", sizes=(3,), n_buckets=(4,), loads=((4,), (4,), (2,), (2,)), lower_bound=None)
    found = contents_of(plan)
    assert found is not None
    limits = (Fraction(1, 2),) * 4
    exact = repeat_buckets([found], limits, 2)
    largest, success = repeated._simulate(found, 2, 20_000, ())
    assert largest.max() == pytest.approx(exact.posterior)
    assert success == pytest.approx(exact.success or 0, abs=0.02)
    three = repeat_buckets([found], limits, 3)
    assert three.how == "simulated"
    assert (three.success or 0) > (exact.success or 0)


def test_regions_are_weighed_by_their_people() -> None:
    sure = RepeatedContents(
        real=np.array([[2.0, 0.0]]),
        believed=np.array([[2.0, 0.0]]),
        weight=np.array([1.0]),
        counts=np.array([2.0, 0.0]),
        is_complete=True,
    )
    even = RepeatedContents(
        real=np.array([[3.0, 3.0]]),
        believed=np.array([[3.0, 3.0]]),
        weight=np.array([1.0]),
        counts=np.array([3.0, 3.0]),
        is_complete=True,
    )
    told = repeat_buckets([sure, even], (Fraction(1, 2), Fraction(1, 2)), 2)
    assert told.posterior == 1.0
    assert told.success_of_one == pytest.approx((1.0 * 2 + 0.5 * 6) / 8)
    assert told.success == pytest.approx((1.0 * 2 + 0.5 * 6) / 8)
