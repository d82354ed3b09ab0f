"""A bucket plan beside its buckets dealt record by record, and the flow beside every way to load it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InternalError
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan, assign
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from tests.mechanisms.bucketize.problems import bucket_plans, deal_by_hand

HALF = Fraction(1, 2)
TWO = BucketPlan(
    method="by hand", sizes=(2, 4), n_buckets=(3, 1), loads=((3, 2), (3, 1), (0, 1)), lower_bound=10
)
PROBLEM = BucketProblem(counts=(5, 4, 1), thresholds=(HALF,) * 3, max_bucket=4)


@given(bucket_plans())
def test_loss_rows_and_mse_are_those_of_the_dealt_buckets(plan: BucketPlan) -> None:
    dealt = deal_by_hand(plan)
    n_rows = sum(map(len, dealt))
    assert plan.n_rows == n_rows
    assert plan.loss == sum((len(bucket) - 1) ** 2 for bucket in dealt)
    assert plan.mse == (plan.loss / (n_rows - 1) if n_rows > 1 else 0)


@given(bucket_plans())
def test_a_buckets_share_of_a_value_is_the_load_divided_evenly(plan: BucketPlan) -> None:
    """Lemma 2: no bucket gets more than ⌈load/b⌉ of a value, and none fewer than ⌊load/b⌋."""
    dealt, first = deal_by_hand(plan), 0
    for j, b in enumerate(plan.n_buckets):
        for code, row in enumerate(plan.loads):
            held = [bucket.count(code) for bucket in dealt[first : first + b]]
            assert sum(held) == row[j]
            assert {min(held), max(held)} <= {row[j] // b, -(-row[j] // b)}
        first += b


@given(bucket_plans())
def test_who_is_certain_is_counted_bucket_by_bucket(plan: BucketPlan) -> None:
    alone: Counter[int] = Counter()
    for bucket in deal_by_hand(plan):
        if len(set(bucket)) == 1:
            alone[bucket[0]] += len(bucket)
    assert plan.certain == tuple(alone[code] for code in range(len(plan.loads)))
    assert plan.count_certain() == alone.total()


@given(bucket_plans(), st.data())
def test_so_is_of_whom_a_column_is_certain(plan: BucketPlan, data: st.DataObject) -> None:
    cells = [
        np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
        for n in [len(plan.loads)] * data.draw(st.integers(1, 2))
    ]
    certain = sum(
        len(bucket)
        for bucket in deal_by_hand(plan)
        if any(len({int(column[code]) for code in bucket}) == 1 for column in cells)
    )
    assert plan.count_certain(cells) == certain


@given(bucket_plans())
def test_the_spread_of_a_value_is_summed_over_the_dealt_buckets(plan: BucketPlan) -> None:
    for code in range(len(plan.loads)):
        shares = [(bucket.count(code), len(bucket)) for bucket in deal_by_hand(plan)]
        assert plan.spread(code) == pytest.approx(float(sum(Fraction(k * (s - k), s) for k, s in shares)))


def test_the_spread_is_the_variance_of_a_random_choice() -> None:
    """A bucket of 4 people of whom 2 have the value, each of them asked for with probability 1/2.

    Σ k(S−k)/S = 2·2/4 = 1. Given who is asked for, the number of them who have the value varies over the
    6 matchings; averaged over all 16 choices that variance is 1/2·1/2 times 1.
    """
    plan = BucketPlan(method="", sizes=(4,), n_buckets=(1,), loads=((2,), (2,)), lower_bound=None)
    matchings = [m for m in product((0, 1), repeat=4) if sum(m) == 2]
    within = []
    for chosen in product((0, 1), repeat=4):
        counts = [sum(c * m for c, m in zip(chosen, match, strict=True)) for match in matchings]
        mean = Fraction(sum(counts), len(counts))
        within.append(Fraction(sum((c - mean) ** 2 for c in counts), len(counts)))
    assert sum(within, Fraction(0)) / len(within) == Fraction(1, 4) * Fraction(plan.spread(0))


def test_a_plan_of_ten_rows_in_numbers() -> None:
    """3 buckets of 2 lose 1 each, one of 4 loses 9: 12 in all, over 9 pairs of neighbours 1.3333."""
    TWO.check(PROBLEM)
    assert (TWO.n_rows, TWO.loss) == (10, 12)
    assert TWO.gap == pytest.approx(2 / 12)
    assert TWO.mse == pytest.approx(12 / 9)
    assert TWO.to_table() == [
        {"size": 2, "count": 3, "rows": 6, "loss": 3},
        {"size": 4, "count": 1, "rows": 4, "loss": 9},
    ]
    head, small, large, last = str(TWO).splitlines()
    assert [line.split() for line in (small, large)] == [["2", "3", "6", "3"], ["4", "1", "4", "9"]]
    assert head.split() == ["size", "buckets", "rows", "loss"]
    assert last == "by hand: 10 rows, MSE 1.3333, loss 12 (at most 16.6667% of it could be saved)"
    assert str(replace(TWO, lower_bound=None)).endswith("loss 12")


def test_a_plan_without_loss_has_no_gap() -> None:
    plain = BucketPlan(method="", sizes=(1,), n_buckets=(3,), loads=((3,),), lower_bound=0)
    assert (plain.gap, plain.mse, plain.certain) == (0.0, 0.0, (3,))
    assert replace(plain, lower_bound=None).gap is None


BROKEN: list[tuple[BucketPlan, BucketProblem, str]] = [
    (replace(TWO, sizes=(4, 2)), PROBLEM, "positive, ascending and in use"),
    (replace(TWO, sizes=(4, 4)), PROBLEM, "positive, ascending and in use"),
    (replace(TWO, n_buckets=(3, 0)), PROBLEM, "positive, ascending and in use"),
    (replace(TWO, sizes=(0, 4)), PROBLEM, "positive, ascending and in use"),
    (replace(TWO, sizes=(), n_buckets=(), loads=((), (), ())), PROBLEM, "positive, ascending and in use"),
    (TWO, replace(PROBLEM, max_bucket=3), "a bucket of 4 passes max_bucket 3"),
    (replace(TWO, loads=((4, 1), (2, 2), (0, 1, 0))), PROBLEM, "not one for each size"),
    (replace(TWO, loads=((4, 1), (2, 2))), PROBLEM, "a value has no loads"),
    (TWO, replace(PROBLEM, counts=(5, 3, 2)), "do not add up to its count"),
    (replace(TWO, loads=((4, 1), (3, 1), (0, 1))), PROBLEM, "do not fill its buckets"),
    (replace(TWO, n_buckets=(3, 2)), PROBLEM, "do not fill its buckets"),
    (replace(TWO, loads=((4, 1), (2, 2), (0, 1))), PROBLEM, "capacity that its threshold allows"),
    (replace(TWO, loads=((2, 3), (4, 0), (0, 1))), PROBLEM, "capacity that its threshold allows"),
    (replace(TWO, loads=((7, -2), (-1, 5), (0, 1))), PROBLEM, "capacity that its threshold allows"),
]


@pytest.mark.parametrize(("plan", "problem", "message"), BROKEN)
def test_each_rule_of_a_plan_has_a_plan_that_breaks_it(
    plan: BucketPlan, problem: BucketProblem, message: str
) -> None:
    with pytest.raises(InternalError, match=message):
        plan.check(problem)


@given(bucket_plans())
def test_the_check_agrees_with_the_dealt_buckets(plan: BucketPlan) -> None:
    """Round-robin is within a threshold in every bucket iff the load is within ⌊f′·S⌋·b (Lemma 2)."""
    counts = tuple(sum(row) for row in plan.loads)
    if min(counts) < 1:
        return
    for threshold in (Fraction(1, 3), HALF, Fraction(2, 3), Fraction(3, 4)):
        problem = BucketProblem(counts=counts, thresholds=(threshold,) * len(counts), max_bucket=5)
        dealt = deal_by_hand(plan)
        keeps = all(Fraction(b.count(code), len(b)) <= threshold for b in dealt for code in set(b))
        try:
            plan.check(problem)
        except InternalError:
            assert not keeps
        else:
            assert keeps


def ways(counts: tuple[int, ...], limits: tuple[tuple[int, ...], ...]) -> set[tuple[int, ...]]:
    """Every total of the sizes that some loads of two values within their limits give."""
    found = set()
    rows = [
        [row for row in product(*(range(limit + 1) for limit in own)) if sum(row) == count]
        for count, own in zip(counts, limits, strict=True)
    ]
    for chosen in product(*rows):
        found.add(tuple(map(sum, zip(*chosen, strict=True))))
    return found


@pytest.mark.parametrize("n_sizes", [2, 3])
def test_the_flow_fills_exactly_what_some_loads_fill(n_sizes: int) -> None:
    """All limits of 0, 1 or 2 of two values and two sizes, and some with three, against all loads."""
    rows = list(product(range(3), repeat=n_sizes))
    n_valid = n_not = 0
    for limits in product(rows, rows) if n_sizes == 2 else zip(rows, reversed(rows), strict=True):
        for counts in product(range(1, 4), repeat=2):
            possible = ways(counts, limits)
            for head in product(range(sum(counts) + 1), repeat=n_sizes - 1):
                targets = (*head, sum(counts) - sum(head))
                if targets[-1] < 0:
                    continue
                outcome = assign(np.array(counts), np.array(limits), np.array(targets))
                assert (outcome.loads is not None) == (targets in possible), (counts, limits, targets)
                n_valid += targets in possible
                n_not += targets not in possible
    assert min(n_valid, n_not) > 100


def test_more_records_than_all_limits_hold_violate_all_sizes() -> None:
    outcome = assign(np.array([5, 1]), np.array([[2, 2], [9, 9]]), np.array([3, 3]))
    assert outcome.loads is None
    assert outcome.violated is not None
    assert outcome.violated.tolist() == [True, True]


def test_counts_beyond_32_bits_are_loaded_exactly() -> None:
    """scipy's own flows are of 32 bits; 5·10⁹ records of a value would wrap around."""
    big = 5 * 10**9
    outcome = assign(
        np.array([big, big, 1]), np.array([[big, 7], [3, big], [1, 1]]), np.array([big - 4, big + 5])
    )
    assert outcome.loads is not None
    assert outcome.loads.sum(axis=1).tolist() == [big, big, 1]
    assert outcome.loads.sum(axis=0).tolist() == [big - 4, big + 5]
    assert outcome.loads[0, 1] <= 7
