"""Shrinkage: the same target written in two ways, its likelihood, and what makes up a mixture."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dalenius.mechanisms.bucketize.estimate import ESTIMATORS, make_estimator, shrinkage
from dalenius.mechanisms.bucketize.estimate.buckets import ScoreSums
from dalenius.mechanisms.bucketize.estimate.posterior import Posterior
from dalenius.mechanisms.bucketize.estimate.prior import ScatterPrior
from dalenius.mechanisms.bucketize.estimate.regions import RegionalRegression, RegionalShrinkage
from dalenius.mechanisms.bucketize.estimate.regression import Anatomy, Geometry, Regression, Spectrum
from dalenius.mechanisms.bucketize.estimate.shrinkage import OWN_WAYS, RHO, Shrinkage, _common_factors
from dalenius.question.targets import Score, Targets
from tests.mechanisms.bucketize.estimate.tables import People

RNG = np.random.default_rng(41)
N = 240
TABLE = People(bucket=RNG.permutation(np.repeat(np.arange(60), 4)), value=RNG.integers(4, size=N))
ONE, TWO = RNG.normal(size=N), (RNG.random(N) < 0.4).astype(float)
A = np.array([1.0, 0.0, 0.0, 1.0])
FLAT = ScatterPrior(weights=(0.04,) * 25)


def made() -> Shrinkage:
    spectrum = Spectrum.of(TABLE.release())
    return Shrinkage(geometry=Geometry.scattered(spectrum, np.eye(4) + 0.2), prior=FLAT)


def sums(*scores: np.ndarray) -> ScoreSums:
    return ScoreSums.of(TABLE.release(), [Score(rows=np.arange(N), values=s) for s in scores])


def test_factors_that_weights_have_in_common() -> None:
    assert _common_factors(np.array([A, -2 * A, 0 * A])) == pytest.approx([1, -2, 0])
    assert _common_factors(np.array([A, A + 1e-6])) is None
    assert _common_factors(np.array([0 * A, A])) is None
    assert _common_factors(np.array([A, A * (1 + 1e-12)])) is not None


def test_terms_that_weigh_values_alike_are_one_score() -> None:
    """3·ONE − 2·TWO as two terms, or as one score: the same means and variances, ρ by ρ."""
    estimator = made()
    apart = estimator.estimate(sums(ONE, TWO), Targets.of([[(0, 3 * A), (1, -2 * A)]]))
    together = estimator.estimate(sums(3 * ONE - 2 * TWO), Targets.of([[(0, A)]]))
    assert apart.mean == pytest.approx(together.mean)
    without_own_way = slice(0, len(RHO))
    assert apart.variance[:, without_own_way] == pytest.approx(together.variance[:, without_own_way], rel=0.5)
    assert apart.unbiased is not None
    assert together.unbiased is not None
    assert apart.unbiased.mean == pytest.approx(together.unbiased.mean)


def test_joint_scores_of_combinations_are_those_of_the_combined_score() -> None:
    estimator = made()
    both, one = sums(ONE, TWO), sums(3 * ONE - 2 * TWO)

    def joint(own: ScoreSums, terms: list[tuple[int, np.ndarray]]) -> shrinkage._Joint:
        g = estimator.geometry
        z = g.contrast @ (own.by_value - np.outer(g.counts, own.total / g.counts.sum()))
        return estimator._joint_scores(own, Targets.of([terms]), z)

    apart, together = joint(both, [(0, 3 * A), (1, -2 * A)]), joint(one, [(0, A)])
    assert apart.is_one.tolist() == together.is_one.tolist() == [True]
    assert apart.is_number.tolist() == [True]
    # the first term's weights are 3·A: the score is the combination by thirds
    assert 3 * apart.z[0] == pytest.approx(together.z[0])
    assert 9 * apart.variance[0] == pytest.approx(together.variance[0])
    assert apart.weights[0] == pytest.approx(3 * together.weights[0])
    other = joint(both, [(0, A), (1, 1 - A)])
    assert other.is_one.tolist() == [False]


def test_the_likelihood_by_rho_is_that_of_normal_contrasts() -> None:
    estimator, own = made(), sums(ONE)
    g = estimator.geometry
    z = g.contrast @ (own.by_value - np.outer(g.counts, own.total / g.counts.sum()))
    found = estimator.log_likelihood(z, own.variance)[0]
    dense = [
        stats.norm.logpdf(z[:, 0], scale=np.sqrt(own.variance[0] * ((1 - r) + r * g.spread))).sum()
        for r in RHO
    ]
    assert np.diff(found) == pytest.approx(np.diff(dense))  # three contrasts: all of them count


def test_a_mixture_has_a_component_for_each_way_and_rho() -> None:
    found = made().estimate(sums(ONE), Targets.of([[(0, A)]]))
    shape = (1, len(OWN_WAYS) * len(RHO))
    assert found.mean.shape == found.variance.shape == found.weight.shape == shape
    assert found.weight.sum() == pytest.approx(1)
    ways = found.weight.reshape(len(OWN_WAYS), len(RHO))
    assert ways.sum(axis=1) == pytest.approx(OWN_WAYS)
    assert ways[1] / OWN_WAYS[1] == pytest.approx(ways[0] / OWN_WAYS[0])
    variance = found.variance.reshape(len(OWN_WAYS), len(RHO))
    assert (np.diff(variance, axis=0) >= -1e-9).all()  # a way of its own only adds
    mean = found.mean.reshape(len(OWN_WAYS), len(RHO))
    assert mean == pytest.approx(np.tile(mean[0], (len(OWN_WAYS), 1)))


def test_moments_are_the_same_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    own = sums(ONE, TWO)
    terms = [[(0, A)], [(1, 1 - A)], [(0, 2 * A), (1, np.eye(4)[1])]]
    whole = made().estimate(own, Targets.of(terms))
    monkeypatch.setattr(shrinkage, "_CELLS_AT_ONCE", 1)
    parts = made().estimate(own, Targets.of(terms))
    for name in ("mean", "variance", "weight"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name))


def test_no_scatter_is_anatomy_and_much_is_the_regression() -> None:
    own, targets = sums(TWO), Targets.of([[(0, np.eye(4)[2])]])
    estimator = made()
    found = estimator.estimate(own, targets).mean[0, : len(RHO)]
    anatomy = Anatomy().estimate(own, targets).estimate[0]
    unbiased = Regression(geometry=estimator.geometry).estimate(own, targets).estimate[0]
    assert found[0] == pytest.approx(anatomy, abs=0.05)
    assert abs(found[-1] - unbiased) < abs(found[0] - unbiased)
    order = np.argsort(found if unbiased > anatomy else -found)
    assert order.tolist() == list(range(len(RHO)))  # from one to the other, step by step


def test_a_constant_score_and_all_values_are_known() -> None:
    found = made().estimate(sums(np.ones(N), ONE), Targets.of([[(0, A)], [(1, np.ones(4))]]))
    counts = TABLE.contents.sum(axis=0)
    assert found.estimate == pytest.approx([A @ counts, ONE.sum()])
    assert found.std_error == pytest.approx([0, 0], abs=1e-4)


def test_estimators_are_chosen_by_name_and_regions() -> None:
    columns = [RNG.integers(3, size=N)]
    region = np.arange(60) % 3
    kinds = {
        "matching": (Posterior, Posterior),
        "shrinkage": (Shrinkage, RegionalShrinkage),
        "regression": (Regression, RegionalRegression),
        "anatomy": (Anatomy, Anatomy),
    }
    assert list(ESTIMATORS) == list(kinds)
    for name, (plain, regional) in kinds.items():
        assert isinstance(make_estimator(name, TABLE.release(), columns), plain)
        assert isinstance(make_estimator(name, TABLE.release(), columns, region), regional)
        assert isinstance(make_estimator(name, TABLE.release(), columns, 0 * region), plain)
    # without a column to learn from there is nothing to match by
    assert isinstance(make_estimator("matching", TABLE.release(), []), Shrinkage)
