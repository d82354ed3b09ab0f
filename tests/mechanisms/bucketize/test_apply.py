"""Applying a bucket plan: every record has one place, and which one is a uniformly random choice."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dalenius.errors import InternalError
from dalenius.mechanisms.bucketize.apply import Assigner, Layout
from dalenius.mechanisms.bucketize.plan.methods import BucketPlan, plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.randomness import Randomness
from tests.chance import FALSE_ALARM


def plan_for(counts: list[int], times: int = 2) -> BucketPlan:
    n = sum(counts)
    thresholds = tuple(min(Fraction(1), times * Fraction(count, n) + Fraction(1, 20)) for count in counts)
    problem = BucketProblem(counts=tuple(counts), thresholds=thresholds, max_bucket=50)
    return plan_buckets(problem, "optimal")


def assign(plan: BucketPlan, codes: np.ndarray, seed: int, n_batches: int = 1) -> tuple[Layout, np.ndarray]:
    randomness = Randomness.seeded(seed)
    layout = Layout.shuffled(plan, randomness)
    assigner = Assigner(layout, randomness)
    buckets = np.concatenate([assigner.assign(part) for part in np.array_split(codes, n_batches)])
    assigner.finish()
    return layout, buckets


@given(
    counts=st.lists(st.integers(1, 40), min_size=2, max_size=8),
    seed=st.integers(0, 99),
    n_batches=st.integers(1, 5),
)
def test_the_sensitive_table_is_what_the_assignment_gives(
    counts: list[int], seed: int, n_batches: int
) -> None:
    plan = plan_for(counts)
    codes = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts), dtype=np.int32), counts))
    layout, buckets = assign(plan, codes, seed, n_batches)
    assigned = Counter(zip(buckets.tolist(), codes.tolist(), strict=True))
    listed = {
        (bucket, code): count
        for batch in layout.contents()
        for bucket, code, count in zip(*(column.tolist() for column in batch), strict=True)
    }
    assert assigned == listed
    sizes = Counter(Counter(buckets.tolist()).values())
    assert sizes == dict(zip(plan.sizes, plan.n_buckets, strict=True))


def test_a_batch_too_many_and_a_batch_too_few_are_caught() -> None:
    plan = plan_for([4, 4, 4])
    codes = np.repeat(np.arange(3, dtype=np.int32), 4)
    with pytest.raises(InternalError, match="more records"):
        assign(plan, np.append(codes, np.int32(0)), 1)
    with pytest.raises(InternalError, match="fewer records"):
        assign(plan, codes[:-1], 1)


def partners(seed: int, *, in_file_order: bool) -> tuple[int, ...]:
    """Which of value 1's three records shares a bucket with the first, second and third of value 0."""
    plan = BucketPlan(method="one-size", sizes=(2,), n_buckets=(3,), loads=((3,), (3,)), lower_bound=None)
    codes = np.array([0, 0, 0, 1, 1, 1], dtype=np.int32)
    layout, buckets = assign(plan, codes, seed)
    if in_file_order:  # the control: round-robin without the shuffle
        buckets = np.concatenate([layout.places(0), layout.places(1)])
    return tuple(int(np.flatnonzero(buckets[3:] == bucket)[0]) for bucket in buckets[:3])


def uniformity_p_value(*, in_file_order: bool) -> float:
    seen = Counter(partners(seed, in_file_order=in_file_order) for seed in range(3_000))
    return float(stats.chisquare([seen[order] for order in permutations(range(3))]).pvalue)


def test_every_matching_is_equally_likely_and_file_order_is_caught() -> None:
    assert uniformity_p_value(in_file_order=False) > FALSE_ALARM
    assert uniformity_p_value(in_file_order=True) < FALSE_ALARM
