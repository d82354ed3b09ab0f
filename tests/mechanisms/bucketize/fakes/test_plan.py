"""Mixing, dealing and the choice of the fakes' law, beside enumeration."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dalenius.errors import PromiseNotMet
from dalenius.mechanisms.bucketize.fakes import plan as fake_plan
from dalenius.mechanisms.bucketize.fakes.plan import (
    FakePlan,
    MixedLayout,
    count_values,
    deal_contents,
    mix_contents,
    plan_fakes,
    simulate_contents,
)
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.plan.methods import plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.randomness import Randomness
from dalenius.tables.histogram import Histogram
from tests.chance import FALSE_ALARM
from tests.mechanisms.bucketize.fakes.enumeration import LAW, brute_contents
from tests.mechanisms.bucketize.problems import bucket_plans, deal_by_hand

COUNTS = (26, 24, 20, 16, 10, 4)
PROBLEM = BucketProblem(counts=COUNTS, thresholds=(Fraction(1, 3),) * 6, max_bucket=8)


@given(bucket_plans())
def test_contents_are_dealt_as_records_are(plan: BucketPlan) -> None:
    by_hand, first = deal_by_hand(plan), 0
    for j, b in enumerate(plan.n_buckets):
        dealt = deal_contents(plan, j, np.arange(b))
        assert dealt.tolist() == by_hand[first : first + b]
        some = deal_contents(plan, j, np.array([b - 1, 0]))
        assert some.tolist() == [by_hand[first + b - 1], by_hand[first]]
        first += b


@given(st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=5))
def test_values_are_counted_bucket_by_bucket(contents: list[list[int]]) -> None:
    found = count_values(np.array(contents, dtype=np.int32), 5)
    assert found.tolist() == [[row.count(value) for value in range(5)] for row in contents]


@given(
    one=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    two=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    seed=st.integers(0, 99),
)
def test_a_trade_keeps_the_pool_and_every_capacity(one: list[int], two: list[int], seed: int) -> None:
    held = [max(one.count(x), two.count(x)) for x in range(4)]
    capacity = np.array([max(h, 1) for h in held])
    pair = np.array([one], dtype=np.int32), np.array([two], dtype=np.int32)
    first, second = fake_plan._trade(*pair, capacity, np.random.default_rng(seed))
    assert Counter([*first[0].tolist(), *second[0].tolist()]) == Counter([*one, *two])
    for side in (first[0].tolist(), second[0].tolist()):
        assert len(side) == 4
        assert all(side.count(x) <= capacity[x] for x in range(4))


def test_a_trade_deals_every_split_of_what_is_free_equally_often() -> None:
    """0 is in both buckets and may be there once: it stays. Of 1, 2, 3, 4 two go to each: six splits."""
    n = 6_000
    one, two = (np.tile(np.array(row, dtype=np.int32), (n, 1)) for row in ([0, 1, 2], [0, 3, 4]))
    first, _ = fake_plan._trade(one, two, np.ones(5, dtype=np.int64), np.random.default_rng(1))
    seen = Counter(tuple(sorted(row)) for row in first.tolist())
    assert len(seen) == 6
    assert all(row[0] == 0 for row in seen)
    assert stats.chisquare(list(seen.values())).pvalue > FALSE_ALARM


def test_a_bucket_alone_is_not_mixed() -> None:
    one = np.array([[3, 1, 2]], dtype=np.int32)
    assert mix_contents(one, np.ones(4, dtype=np.int64), np.random.default_rng(1)).tolist() == [[1, 2, 3]]


def brute_floor(real: np.ndarray, capacity: np.ndarray, size: int) -> float:
    """How often the likeliest value is the last person's, of all matchings of all contents to the people.

    The people of a bucket with counts c have its values in S!/Π c! different orders, all equally likely.
    """
    joint: dict[tuple[int, ...], dict[int, float]] = {}
    for contents, p in brute_contents(real, capacity, size).items():
        ways = math.factorial(size) / math.prod(map(math.factorial, contents))
        for order in product(range(len(real)), repeat=size):
            if tuple(order.count(x) for x in range(len(real))) == contents:
                by_value = joint.setdefault(order[:-1], {})
                by_value[order[-1]] = by_value.get(order[-1], 0.0) + p / ways
    return sum(max(by_value.values()) for by_value in joint.values())


@pytest.mark.parametrize("capacity", [(1, 1, 1, 1), (2, 1, 1, 1), (3, 2, 1, 1), (3, 3, 3, 3)])
def test_the_floor_is_what_the_others_and_the_histogram_tell(capacity: tuple[int, ...]) -> None:
    real, size = np.array([4.0, 2.0, 1.0, 0.5]), 3
    law = brute_contents(real, np.array(capacity), size)
    found = sum(
        p * fake_plan._floor(real, np.array(capacity), np.array([contents])) for contents, p in law.items()
    )
    assert found == pytest.approx(brute_floor(real, np.array(capacity), size))


def test_fakes_are_drawn_by_a_power_of_the_odds_to_be_real() -> None:
    real, capacity = np.array([np.inf, 4.0, 1.0, 0.25, 0.0, 0.0]), np.array([1, 1, 1, 1, 1, 0])
    law = fake_plan._law(real, capacity, 3, 1, 0.5)
    # 4^½, 1^½, ¼^½; a thousandth of the least for one that is never real; none where it cannot be told
    assert law.fake.tolist() == pytest.approx([0, 2, 1, 0.5, 0.0005, 0])
    nobody = fake_plan._law(np.array([np.inf, 0.0]), np.array([1, 1]), 1, 1, 0.5)
    assert nobody.fake.tolist() == [0, 1e-3]


def test_the_law_with_the_least_success_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each exponent alone gives no less than the chosen one, on the buckets that it is tried on."""
    plan = plan_buckets(PROBLEM, "optimal")
    chosen = plan_fakes(plan, PROBLEM, 1)
    samples = [simulate_contents(plan, PROBLEM, j) for j in range(len(plan.sizes))]
    people = [s * b / plan.n_rows for s, b in zip(plan.sizes, plan.n_buckets, strict=True)]

    def success(found: FakePlan) -> float:
        pairs = zip(found.laws, samples, strict=True)
        each = (fake_plan._success(law, counts)[0] for law, counts in pairs)
        return sum(share * value for share, value in zip(people, each, strict=True))

    for tau in fake_plan.TAUS:
        monkeypatch.setattr(fake_plan, "TAUS", (tau,))
        assert success(chosen) <= success(plan_fakes(plan, PROBLEM, 1)) + 1e-12


def test_simulated_contents_have_the_plans_loads_in_some_order() -> None:
    plan = plan_buckets(PROBLEM, "optimal")
    for j in range(len(plan.sizes)):
        counts = simulate_contents(plan, PROBLEM, j)
        assert counts.sum(axis=0).tolist() == [row[j] for row in plan.loads]
        assert (counts.sum(axis=1) == plan.sizes[j]).all()
        assert (counts <= PROBLEM.capacity(plan.sizes[j])).all()


def test_the_layout_has_every_place_once_and_fakes_that_are_nobodys() -> None:
    plan = plan_buckets(PROBLEM, "optimal")
    fakes = plan_fakes(plan, PROBLEM, 1)
    layout = MixedLayout(plan, PROBLEM, fakes, Randomness.seeded(4))
    ((bucket, code, count),) = layout.contents()
    real = Counter((int(b), x) for x in range(6) for b in layout.places(x))
    listed = Counter({(int(b), int(x)): int(n) for b, x, n in zip(bucket, code, count, strict=True)})
    assert sorted(layout.numbers.tolist()) == list(range(1, layout.n_buckets + 1))
    assert layout.n_places == list(COUNTS)
    extra = listed - real
    assert real - listed == Counter()
    assert Counter(b for b, _ in extra.elements()) == dict.fromkeys(range(1, layout.n_buckets + 1), 1)
    assert all((b, x) not in real for b, x in extra)
    assert [tuple(pair) for pair in zip(bucket.tolist(), code.tolist(), strict=True)] == sorted(listed)


FOUND = FakePlan(n_fakes=2, laws=(LAW,), posterior=0.62, largest=0.987, floor=0.41)


def test_what_a_plan_says_about_fakes() -> None:
    assert FOUND.to_summary() == {
        "per_bucket": 2,
        "posterior": 0.62,
        "largest_posterior": 0.987,
        "posterior_without_table": 0.41,
        "naive_posterior": pytest.approx(1 / 3),
    }
    text = FOUND.statement()
    assert "law of the 2 fakes" in text
    assert "right about the last person 62% of the time" in text
    assert "(41% from the others and the histogram alone)" in text
    assert "up to 98.7%" in text


def test_the_manifest_has_a_law_a_size_and_null_for_what_is_everywhere() -> None:
    plan = BucketPlan(method="", sizes=(3,), n_buckets=(2,), loads=((2,), (2,), (2,)), lower_bound=None)
    law = replace(LAW, real=np.array([np.inf, 1.0, 0.5]), fake=np.array([0.0, 1.0, 0.5]))
    histogram = Histogram.of(("ill",), Counter({("a",): 2, ("b",): 2, (None,): 2}))
    written = replace(FOUND, laws=(law,)).to_dict(plan, histogram)
    assert written["sizes"] == [
        {"size": 3, "counts": [2, 2, 2], "real": [None, 1.0, 0.5], "fake": [0.0, 1.0, 0.5]}
    ]
    assert sorted(written["values"], key=str) == sorted([["a"], ["b"], [None]], key=str)


def test_fakes_that_cannot_be_told_apart_from_all_values_are_refused() -> None:
    """Buckets of 3 of 4 values, one absent each: one fake is possible, two are not."""
    problem = BucketProblem(counts=(6, 6, 6, 6), thresholds=(Fraction(1, 3),) * 4, max_bucket=3)
    plan = plan_buckets(problem, "optimal")
    assert plan.sizes == (3,)
    fake_plan._refuse_impossible(plan, problem, 1)
    with pytest.raises(PromiseNotMet, match=r"fakes = 2: of the 4 values .* bucket of 3 people"):
        fake_plan._refuse_impossible(plan, problem, 2)


def test_more_ways_to_choose_fakes_than_can_be_looked_through_are_refused() -> None:
    """C(22, 5) = 26,334 is above 20,000, C(21, 5) = 20,349 too, C(20, 5) = 15,504 is not."""
    for size, is_refused in ((17, True), (16, True), (15, False)):
        m = 3 * size
        problem = BucketProblem(counts=(size,) * m, thresholds=(Fraction(1, size),) * m, max_bucket=size)
        plan = BucketPlan(method="", sizes=(size,), n_buckets=(m,), loads=((size,),) * m, lower_bound=None)
        assert (math.comb(size + 5, 5) > 20_000) == is_refused
        if is_refused:
            with pytest.raises(PromiseNotMet, match=f"{math.comb(size + 5, 5)} ways to choose them"):
                fake_plan._refuse_impossible(plan, problem, 5)
        else:
            fake_plan._refuse_impossible(plan, problem, 5)
