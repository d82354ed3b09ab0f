"""How much values scatter: densities, likelihoods and conditions beside their definitions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from dalenius.mechanisms.bucketize.estimate import prior as module
from dalenius.mechanisms.bucketize.estimate.buckets import ScoreSums
from dalenius.mechanisms.bucketize.estimate.prior import (
    ScatterPrior,
    evidence_weight,
    fit_prior,
    learn_prior,
    likely_rho,
    log_density_of_numbers,
    relative_scale,
    simple_conditions,
)
from dalenius.mechanisms.bucketize.estimate.regression import Geometry, Spectrum
from dalenius.question.targets import Score
from tests.mechanisms.bucketize.estimate.tables import People

GRID = np.linspace(np.log(0.005), np.log(20.0), 25)
RNG = np.random.default_rng(31)
TABLE = People(bucket=RNG.permutation(np.repeat(np.arange(60), 5)), value=RNG.integers(5, size=300))
COLUMNS = [RNG.integers(3, size=300), RNG.integers(4, size=300)]


def test_the_density_is_read_off_the_grid_and_falls_beyond_it() -> None:
    weights = np.linspace(1, 5, 25)
    prior = ScatterPrior(weights=tuple(weights / weights.sum()))
    scale = np.array([0.25, 0.01])
    rho = np.exp(GRID[[0, 7, 24]]) * 0.25
    found = prior.log_density(scale, rho)
    assert found[0] == pytest.approx(np.log(weights[[0, 7, 24]] / weights.sum()))
    # κ = 0.01 is log 25 further along: the last lies beyond the end by that much
    assert found[1, 2] == pytest.approx(np.log(weights[-1] / weights.sum()) - np.log(25))
    below = prior.log_density(np.array([1.0]), np.exp(GRID[:1] - 2.0))
    assert below[0, 0] == pytest.approx(np.log(weights[0] / weights.sum()) - 2)


def test_differences_of_numbers_may_be_large() -> None:
    found = np.exp(log_density_of_numbers(np.array([0.01, 0.1, 0.5, 0.9])))
    assert found == pytest.approx([0.01, 0.1, 0.1, 0.1])


def test_the_relative_scale_of_a_condition_is_that_of_its_share() -> None:
    """p(1−p); for a number μ²s²/(μ²+s²)², and at least 0.1."""
    scores = [
        Score(rows=np.arange(75)),
        Score(rows=np.arange(300)),
        Score(rows=np.arange(300), values=np.tile([-1.0, 1.0], 150)),
        Score(rows=np.arange(300), values=np.tile([1.0, 3.0], 150)),
    ]
    found = relative_scale(ScoreSums.of(TABLE.release(), scores))
    # ¼·¾; everybody; mean 0: no scale of its own; mean 2 and variance 1: 4·1/25
    assert found == pytest.approx([0.1875, 1e-9, 0.1, 0.16])


def test_contrasts_count_for_four_at_most() -> None:
    g = Geometry.of(TABLE.release())
    assert len(g.spread) == 4
    assert evidence_weight(g) == 1.0
    many = People(bucket=RNG.permutation(np.repeat(np.arange(60), 5)), value=RNG.integers(9, size=300))
    assert evidence_weight(Geometry.of(many.release())) == 0.5


def test_the_likelihood_is_that_of_normal_contrasts() -> None:
    """z ~ N(0, s²·((1−ρ) + ρ·ω)): differences between points of the grid, against scipy's density."""
    g = Geometry.of(TABLE.release())
    scores = [Score(rows=np.flatnonzero(COLUMNS[0] == 0)), Score(rows=np.arange(40))]
    sums = ScoreSums.of(TABLE.release(), scores)
    logs = module._log_likelihood(sums, g)
    rho = np.minimum(np.exp(GRID)[None, :] * relative_scale(sums)[:, None], 0.9)
    for k in range(2):
        expected = sums.by_value[:, k] - g.counts * sums.total[k] / g.counts.sum()
        z = g.contrast @ expected
        dense = [
            stats.norm.logpdf(z, scale=np.sqrt(sums.variance[k] * ((1 - r) + r * g.spread))).sum()
            for r in rho[k]
        ]
        assert np.diff(logs[k]) == pytest.approx(np.diff(dense))


def test_without_conditions_the_prior_is_flat() -> None:
    evidence, prior = fit_prior(ScoreSums.of(TABLE.release(), []), Geometry.of(TABLE.release()))
    assert evidence == 0.0
    assert prior.weights == pytest.approx((1 / 25,) * 25)


def test_the_prior_adds_up_and_is_never_without_hope() -> None:
    sums = ScoreSums.of(TABLE.release(), simple_conditions(COLUMNS))
    _, prior = fit_prior(sums, Geometry.of(TABLE.release()))
    assert sum(prior.weights) == pytest.approx(1)
    assert min(prior.weights) >= 0.2 / 25 - 1e-12


def test_more_scatter_is_found_where_a_condition_follows_the_value() -> None:
    rng = np.random.default_rng(32)
    value = np.sort(rng.integers(5, size=2_000))
    table = People(bucket=np.argsort(np.argsort(rng.random(2_000))) % 800, value=value)
    related, unrelated = np.flatnonzero(value < 2), np.flatnonzero(rng.random(2_000) < 0.4)
    sums = ScoreSums.of(table.release(), [Score(rows=related), Score(rows=unrelated)])
    g = Geometry.of(table.release())
    large, small = likely_rho(sums, g, ScatterPrior(weights=(0.04,) * 25))
    assert large > 10 * small


def conditions_by_hand(columns: list[np.ndarray]) -> list[set[int]]:
    """Each value of more than 0.2 % and less than 99.8 % of the people, and pairs of two columns' values."""
    n = len(columns[0])
    singles = [
        (number, set(np.flatnonzero(codes == value).tolist()))
        for number, codes in enumerate(columns)
        for value in sorted(set(codes.tolist()), key=lambda v: (-(codes == v).sum(), v))
        if 0.002 * n < (codes == value).sum() < 0.998 * n
    ]
    pairs = [one & two for (a, one), (b, two) in combinations(singles, 2) if a != b]
    return [own for own in (*(rows for _, rows in singles), *pairs) if len(own) > 0.002 * n]


def test_simple_conditions_are_common_values_and_pairs_of_them() -> None:
    constant = np.zeros(300, dtype=int)
    columns = [*COLUMNS, constant]
    found = [set(score.rows.tolist()) for score in simple_conditions(columns)]
    assert found == conditions_by_hand(columns)
    assert len(found) == 3 + 4 + 3 * 4
    assert simple_conditions([]) == []


def test_rare_values_and_long_lists_are_left_out() -> None:
    codes = np.concatenate([np.zeros(988, dtype=int), np.repeat([1], 10), [2, 3]])
    found = [len(score.rows) for score in simple_conditions([codes])]
    assert found == [988, 10]  # one of a thousand is too rare
    many = [np.arange(1_200) % 20, np.arange(1_200) // 60]
    assert len(simple_conditions(many)) <= 24 + 2 * 150


def test_learning_keeps_the_scale_of_the_scatter() -> None:
    """ρ has the scale: Σ o·Σ_zz is what it was for independent values, whatever was learned."""
    geometry, prior = learn_prior(TABLE.release(), COLUMNS)
    o = geometry.counts
    exponents = [np.diag((o.mean() / o) ** e).diagonal() @ o for e in (0, 0.25, 0.5, 0.75, 1)]
    assert min(abs(geometry.scatter.diagonal() @ o - total) for total in exponents) < 1e-6 * o.sum()
    assert np.linalg.eigvalsh(geometry.scatter).min() > 0
    assert geometry.scatter == pytest.approx(geometry.scatter.T)
    assert sum(prior.weights) == pytest.approx(1)


def test_the_expected_scatter_is_that_of_conditioning_on_the_contrasts() -> None:
    """E[d dᵀ | z]/(ρs²) of d ~ N(0, ρs²Σ), z = contrasts of d plus noise, for each condition; averaged."""
    scatter = np.eye(5) + 0.3
    g = Geometry.scattered(Spectrum.of(TABLE.release()), scatter)
    sums = ScoreSums.of(TABLE.release(), simple_conditions(COLUMNS)[:4])
    rho = np.array([0.05, 0.2, 0.5, 0.8])
    held = TABLE.contents
    M = held.T @ (held / held.sum(axis=1, keepdims=True))
    expected = np.zeros((5, 5))
    for k in range(4):
        s2 = sums.variance[k]
        z = g.contrast @ (sums.by_value[:, k] - g.counts * sums.total[k] / g.counts.sum())
        to_z = g.contrast @ M  # contrasts × values: what z is of d
        prior = rho[k] * s2 * scatter
        cov_z = s2 * (1 - rho[k]) * np.eye(len(z)) + to_z @ prior @ to_z.T
        gain = prior @ to_z.T @ np.linalg.inv(cov_z)
        mean, left = gain @ z, prior - gain @ to_z @ prior
        expected += (np.outer(mean, mean) + left) / (rho[k] * s2)
    assert module._expected_scatter(sums, g, rho) == pytest.approx(expected / 4, rel=1e-6, abs=1e-9)
