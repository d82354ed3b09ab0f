"""What totals can be, beside every matching; values that go a way of their own."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.possible import possible_range, trivial_range
from dalenius.mechanisms.bucketize.estimate.regression import Geometry
from dalenius.mechanisms.bucketize.estimate.shrinkage import OWN_WAYS, own_way_variance
from dalenius.question.targets import Score, Targets

PLACES = np.array([0, 0, 0, 0, 1, 1, 1])
VALUES = np.array([0, 1, 1, 2, 0, 2, 2])
NUMBERS = st.integers(-3, 3).map(float)


def buckets() -> Buckets:
    return Buckets.of(PLACES, PLACES, VALUES, np.ones(len(PLACES), dtype=int))


def every_total(score: np.ndarray, weights: np.ndarray) -> list[float]:
    """Of all matchings of the people of each bucket with its values."""
    orders = [set(permutations(VALUES[g == PLACES].tolist())) for g in (0, 1)]
    return [float(score @ weights[[*one, *two]]) for one, two in product(*orders)]


@given(
    st.lists(NUMBERS, min_size=7, max_size=7), st.lists(st.sampled_from([0.0, 1.0]), min_size=3, max_size=3)
)
def test_the_range_is_that_of_all_matchings(numbers: list[float], chosen: list[float]) -> None:
    score, weights = np.array(numbers), np.array(chosen)
    rows = np.flatnonzero(score)
    for values, whole in ((score[rows], score), (None, (score != 0).astype(float))):
        sums = ScoreSums.of(buckets(), [Score(rows=rows, values=values)])
        targets = Targets.of([[(0, weights)]])
        low, high = possible_range(sums, targets)
        totals = every_total(whole, weights)
        assert (low[0], high[0]) == pytest.approx((min(totals), max(totals)))
        wide = trivial_range(sums, targets)
        assert wide[0][0] <= low[0]
        assert high[0] <= wide[1][0]


def test_other_weights_have_no_range() -> None:
    sums = ScoreSums.of(buckets(), [Score(rows=np.arange(3))])
    targets = Targets.of([[(0, np.array([0.5, 0.0, 0.0]))], [(0, np.ones(3))]])
    for low, high in (possible_range(sums, targets), trivial_range(sums, targets)):
        assert (low[0], high[0]) == (-np.inf, np.inf)
        assert low[1] >= 0


def test_what_a_sum_without_limits_has_besides_is_not_worked_out() -> None:
    sums = ScoreSums.of(buckets(), [Score(rows=np.arange(3)), Score(rows=np.arange(2))])
    targets = Targets.of([[(0, np.array([0.5, 0.0, 0.0])), (1, np.ones(3))]])
    low, high = possible_range(sums, targets)
    assert (low.tolist(), high.tolist()) == ([-np.inf], [np.inf])
    assert not sums._sums


@pytest.mark.parametrize("rho", [0.01, 0.3])
def test_a_way_of_their_own_adds_what_the_contrasts_leave_of_it(rho: float) -> None:
    """Against dense conditioning of δ on the contrasts."""
    rng = np.random.default_rng(3)
    value = np.sort(rng.choice(4, 240, p=[0.4, 0.3, 0.2, 0.1]))
    place = rng.permutation(240) % 60
    held = Buckets.of(place, place, value, np.ones(240, dtype=int))
    g = Geometry.of(held)
    C = np.stack([np.bincount(place[value == z], minlength=60) for z in range(4)], axis=1).astype(float)
    M = C.T @ (C / C.sum(axis=1, keepdims=True))
    a = g.centre(np.array([[1.0, 0.0, 0.0, 1.0]]))
    u, s2, kappa = a[0] / np.abs(a[0]).max(), 0.2, 0.16
    h, factors = g.contrast @ M @ u, rng.normal(size=len(g.spread))
    by_rho, one = [(rho, factors[None, :])], np.zeros(1, dtype=int)
    found = own_way_variance(g, a, one, np.array([s2]), np.array([kappa]), by_rho)[0, :, 0]
    V = s2 * np.diag((1 - rho) + rho * g.spread)
    missed = (a[0] * u) @ C.sum(axis=0) - factors @ h
    for k, eta in enumerate((0.0, kappa, 1.0)):  # 8κ, and no more than 1
        prior = eta * s2
        left = prior - prior**2 * h @ np.linalg.solve(V + prior * np.outer(h, h), h)
        assert found[k] == pytest.approx(missed**2 * left, rel=1e-6, abs=1e-12)
    assert OWN_WAYS.sum() == pytest.approx(1)
