"""What a partition costs and is expected to err by, against sums that are written out."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InternalError
from dalenius.mechanisms.perturb.channel import Channel
from dalenius.mechanisms.perturb.plan.improvers import _join_parts, merge_runs
from dalenius.mechanisms.perturb.plan.layout import (
    LayoutMeasure,
    Objective,
    hoeffding_bound,
    part_bound,
    partition_bound,
    value_rmse,
)
from dalenius.mechanisms.perturb.plan.methods import _part, plan_for_release, plan_perturbation
from dalenius.mechanisms.perturb.plan.starts import split_band
from dalenius.mechanisms.perturb.plan.thresholds import (
    ValueLimit,
    find_limits,
    plan_thresholds,
    weigh_replacements,
)
from dalenius.promises.d_gamma_privacy import published_rows
from dalenius.promises.f_privacy import FPrivacy, LinearLimit
from dalenius.promises.rho_privacy import RhoPrivacy
from dalenius.tables.histogram import Histogram
from tests.mechanisms.perturb.histograms import EXAMPLE, array, counts_lists, everything_protected

SURE = 2 / math.e
"""The δ of which ln(2/δ) is 1."""
HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


def test_the_bounds_are_those_of_the_paper_and_of_hoeffding() -> None:
    """Of 2n·exp(−2t²/Σ(1/p)²) ≤ δ, solved for t."""
    assert part_bound(100, HALF, SURE) == pytest.approx(2 / (0.5 * 10))
    assert part_bound(100, HALF, SURE / math.e) == pytest.approx(2 * math.sqrt(2) / (0.5 * 10))
    parts = 0.25 * part_bound(100, HALF, SURE) + 0.75 * part_bound(300, QUARTER, SURE)
    assert partition_bound([100, 300], [HALF, QUARTER], SURE) == pytest.approx(parts)
    spread = 100 * 2**2 + 300 * 4**2
    bound = hoeffding_bound([100, 300], [HALF, QUARTER], SURE)
    assert 2 * math.exp(-2 * (400 * bound) ** 2 / spread) == pytest.approx(SURE)


def test_the_error_of_several_parts_is_the_sum_of_what_their_coins_add() -> None:
    """A record of a part is any of its values; Var of (1[y = v] − q)/p is P(1 − P)/p² for P = P(y = v)."""
    sizes = [100, 60]
    channels = [Channel(codes=(0, 1), gamma=Fraction(3)), Channel(codes=(1, 2, 3), gamma=Fraction(2))]
    total = 0.0
    for n_rows, channel in zip(sizes, channels, strict=True):
        p, q, m = float(channel.retention), float(channel.replacement), channel.n_values
        law = p * np.eye(m) + q * np.ones((m, m))
        assert law.sum(axis=1) == pytest.approx(1)
        total += n_rows * (law[0] * (1 - law[0])).sum() / p**2
    assert value_rmse(sizes, channels, 4) == pytest.approx(math.sqrt(total / 4))


def unprotected_last(counts: list[int], n_free: int) -> Objective:
    protected = np.array([True] * (len(counts) - n_free) + [False] * n_free)
    top = max(counts[: len(counts) - n_free])
    return replace(
        everything_protected(len(counts), (1 + Fraction(top, sum(counts))) / 2), protected=protected
    )


@given(counts_lists, st.lists(st.integers(1, 90), min_size=1, max_size=2))
def test_a_split_has_the_unprotected_values_where_they_dilute_best(
    secret: list[int], free: list[int]
) -> None:
    counts = [*secret, *free]
    objective = unprotected_last(counts, len(free))
    split = split_band(array(counts), objective)
    if split is None:
        return
    assert (split.sum(axis=0) == counts).all()
    own = np.where(objective.protected, 0, split)
    assert ((own == 0).all(axis=1)).sum() == 1, "together on one side"
    other = split - own + own[::-1]
    assert objective.of_parts(split).sum() <= objective.of_parts(other).sum() * (1 + 1e-12)


@given(counts_lists)
def test_parts_are_joined_as_long_as_two_of_them_cost_less_together(counts: list[int]) -> None:
    """From parts of two values each, of which the last ones have all that is left."""
    n_parts = max(len(counts) // 2, 1)
    labels = np.arange(n_parts)
    groups = np.zeros((n_parts, len(counts)), dtype=np.int64)
    for code, count in enumerate(counts):
        groups[code % n_parts, code] = count
    objective = everything_protected(len(counts), Fraction(99, 100))
    found = _join_parts(groups, labels, objective)
    assert found.shape == labels.shape
    parts = np.array([groups[found == label].sum(axis=0) for label in np.unique(found)])
    assert (parts.sum(axis=0) == counts).all()
    costs = objective.of_parts(parts)
    for one in range(len(parts)):
        for other in range(one):
            joined = objective.of_parts((parts[one] + parts[other])[None])[0]
            assert joined >= costs[one] + costs[other] - 1e-6 * costs[one]
    assert costs.sum() <= objective.of_parts(groups).sum() * (1 + 1e-9)


def test_a_part_in_which_a_value_is_as_frequent_as_allowed_afterwards_is_no_part() -> None:
    promise = RhoPrivacy(rho1=None, rho2=HALF)
    quota = array([5, 5])
    for rho1 in (HALF, Fraction(0), Fraction(2, 3)):
        with pytest.raises(InternalError):
            _part(quota, rho1, promise)
    assert _part(array([4, 6]), Fraction(2, 5), promise).n_rows == 10


def test_thirty_records_of_the_top_value_are_enough_for_a_part() -> None:
    """What has as many is published as it was planned; with one fewer the search begins again."""
    promise = RhoPrivacy(rho1=None, rho2=HALF)
    for times, stays in ((30, True), (29, False)):
        counts = [times * count for count in EXAMPLE]
        planned = plan_perturbation(counts, promise, "small-domain")
        assert (len(planned.parts), planned.smallest_top) == (3, times)
        published = plan_for_release(counts, promise, "small-domain")
        assert (published == planned) == stays
        assert len(published.parts) == 1 or published.smallest_top >= 30


@pytest.mark.parametrize("count", [7, 99, 100, 999, 1_001, 1_099, 25_000, 25_001, 123_456])
def test_a_limit_by_a_rule_is_taken_below_the_count_and_not_far_below(count: int) -> None:
    """Two digits of the count, or the ten, below it: never more than was asked for."""
    rule = LinearLimit(times=Fraction(3), plus=Fraction(1, 20))
    n_rows = 20 * count + 1_000
    held = Histogram.of(("ill",), {("flu",): count, ("cold",): n_rows - count})
    (limit,) = [
        one
        for value, one in zip(held.values, find_limits(held, FPrivacy(default=rule)), strict=True)
        if value == ("flu",)
    ]
    high = published_rows(count)
    step = max(10, 10 ** (len(str(count)) - 2))
    assert limit.before == Fraction(high, n_rows) >= Fraction(count, n_rows)
    assert rule.at(Fraction(count - step, n_rows)) <= limit.after <= rule.at(Fraction(count, n_rows))
    assert limit.after == rule.at(Fraction(high - step, n_rows))


def test_the_example_is_planned_in_parts_whose_top_value_occurs_once() -> None:
    """Only a release needs larger parts."""
    plan = plan_perturbation(EXAMPLE, RhoPrivacy(rho1=None, rho2=Fraction(2, 3)), "small-domain")
    assert plan.smallest_top == 1
    assert plan.error_bound <= plan.paper_error_bound


@pytest.mark.parametrize("befores", [[10, 20, 30], [1, 1, 5, 40], [7, 7]])
def test_weights_are_in_proportion_to_what_the_limits_need(befores: list[int]) -> None:
    """1/(g − 1) each, to nine digits and rounded up; the coin keeps the tightest limit, and hardly more."""
    limits = [ValueLimit(before=Fraction(b, 100), after=Fraction(b + 10, 100)) for b in befores]
    limits.append(ValueLimit(before=Fraction(1, 2), after=Fraction(1)))  # no secret: as the least needed
    needs = [1 / (limit.amplification - 1) for limit in limits[:-1]]
    needs.append(min(needs))
    coin, weights = weigh_replacements(limits)
    assert all(
        0 <= weight - 10**9 * need / sum(needs) < 1 for weight, need in zip(weights, needs, strict=True)
    )
    for weight, need in zip(weights, needs, strict=True):
        reached = 1 + coin / (1 - coin) * Fraction(sum(weights), weight)
        assert reached <= 1 + 1 / need
        assert float(reached) == pytest.approx(float(1 + 1 / need), rel=1e-6)


def test_a_weighted_plan_says_what_bayes_rule_gives() -> None:
    """With the whole matrix: 1 − p by weight, whatever the value was."""
    held = Histogram.of(("ill",), {("flu",): 600, ("cold",): 300, ("hiv",): 100})
    promise = FPrivacy(default=LinearLimit(times=Fraction(2), plus=Fraction(1, 50), cap=Fraction(9, 10)))
    plan, _ = plan_thresholds(held, promise, "best")
    (part,) = plan.parts
    assert part.weights is not None
    p, drawn = part.retention, [Fraction(w, sum(part.weights)) for w in part.weights]
    law = [[p * (x == y) + (1 - p) * drawn[y] for y in range(3)] for x in range(3)]
    evidence = [sum(part.counts[x] * law[x][y] for x in range(3)) for y in range(3)]
    posteriors = {(x, y): part.counts[x] * law[x][y] / evidence[y] for x in range(3) for y in range(3)}
    assert plan.posterior == max(found for (x, _), found in posteriors.items() if x in plan.protected)
    kept = sum(part.counts[x] * law[x][x] for x in range(3)) / part.n_rows
    assert part.diagonal == kept


def test_the_first_group_may_be_a_part_of_its_own() -> None:
    """Rare values are better off without common ones, whichever of the groups comes first."""
    groups = array([[500] * 4 + [0] * 4, [0] * 4 + [5] * 4])
    objective = replace(everything_protected(8, HALF), measure=LayoutMeasure.VARIANCE)
    assert objective.total(groups) < objective.total(groups.sum(axis=0)[None])
    for order in ([0, 1], [1, 0]):
        assert sorted(merge_runs(groups, [array(order)], objective)[0].tolist()) == [0, 1]
