"""How much the shares of sensitive values scatter, learned from the release itself.

The random effects' prior needs a scale. On the scale of log-odds the scatter σ² of the values' shares is much
the same for common and for rare conditions, so that one prior of σ² serves all questions: ρ = σ²·κ with
κ = p̄(1−p̄) for a condition of frequency p̄. Its weights on a grid are learned from simple conditions on the
published columns (each common value, and pairs of them) by a few rounds of expectation–maximization; a part
of them stays flat, because more rounds trust the simple conditions too much and cost coverage.

How the sensitive values scatter together, learned from the release's own columns.

Simple conditions on the published columns (each common value, and pairs of them) stand for the questions to
come. Whether rarer values scatter more than common ones is decided by their likelihood. Which values differ
from the rest in the same way (nurses and teachers, say) is learned as the covariance Σ of the values' shares,
d ~ (0, ρ·s²·Σ) with a ρ for each condition, by a few rounds of expectation–maximization.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dalenius.arrays import Codes, Floats
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.regression import Geometry, Spectrum
from dalenius.question.targets import Score

_GRID = np.linspace(np.log(0.005), np.log(20.0), 25)
_ROUNDS = 6
_LEARNED = 0.8
INDEPENDENT_WAYS = 4.0
SCALE_OF_NUMBERS = 0.1
_EVEN_FROM = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterPrior:
    """The prior weight of each log σ² of a grid."""

    weights: tuple[float, ...]

    def log_density(self, scale: Floats, rho: Floats) -> Floats:
        """Scores × grid: the prior of ρ on a grid even in log ρ, for scores of these relative scales κ."""
        log_scatter = np.log(rho)[None, :] - np.log(scale)[:, None]
        logs = np.interp(log_scatter, _GRID, np.log(self.weights))
        beyond = np.maximum(log_scatter - _GRID[-1], 0) + np.maximum(_GRID[0] - log_scatter, 0)
        return np.asarray(logs - beyond)


def log_density_of_numbers(rho: Floats) -> Floats:
    """The prior of ρ on a grid even in log ρ, for differences of numbers such as a mean's.

    Conditions teach nothing about these. Ages, say, can differ between values far more than the share of any
    one age does: even in log ρ for a large ρ, even in ρ below.
    """
    return np.log(np.minimum(rho, _EVEN_FROM))


def relative_scale(sums: ScoreSums) -> Floats:
    """κ of each score: μ²s²/(μ²+s²)², which is p̄(1−p̄) for a condition and at most 1/4.

    Scores with signs or a far-off zero have no natural relative scale: at least that of a share of 0.11.
    """
    mean_square, variance = (sums.total / sums.buckets.n_rows) ** 2, sums.variance
    scale = mean_square * variance / np.maximum(mean_square + variance, 1e-150) ** 2
    return np.asarray(np.maximum(np.where(sums.is_count, scale, np.maximum(scale, SCALE_OF_NUMBERS)), 1e-9))


def evidence_weight(geometry: Geometry) -> float:
    """What a contrast's evidence on ρ counts for, between 0 and 1.

    Sensitive values differ in few independent ways (on Adult and KDD in 4 to 8: rich or poor, men or women),
    so that the contrasts that are known well tell less about those that are not than as many independent
    ones would. Taken at their full number they make ρ far too certain.
    """
    return float(min(1.0, INDEPENDENT_WAYS / max(len(geometry.spread), 1)))


def fit_prior(sums: ScoreSums, geometry: Geometry) -> tuple[float, ScatterPrior]:
    """The log-likelihood of the conditions, and the prior learned from them."""
    if not sums.scores or not len(geometry.spread):
        return fit_weights(np.zeros((0, len(_GRID))))
    return fit_weights(evidence_weight(geometry) * _log_likelihood(sums, geometry))


def fit_weights(logs: Floats) -> tuple[float, ScatterPrior]:
    """The same from the log-likelihood of each condition (conditions × grid)."""
    weight = np.full(len(_GRID), 1 / len(_GRID))
    evidence = 0.0
    if len(logs):
        best = logs.max(axis=1, keepdims=True)
        likelihood = np.exp(logs - best)
        for _ in range(_ROUNDS):
            posterior = likelihood * weight
            weight = (posterior / posterior.sum(axis=1, keepdims=True)).mean(axis=0)
        evidence = float((np.log(likelihood @ weight) + best[:, 0]).sum())
    prior = ScatterPrior(weights=tuple(_LEARNED * weight + (1 - _LEARNED) / len(_GRID)))
    return evidence, prior


def likely_rho(sums: ScoreSums, geometry: Geometry, prior: ScatterPrior) -> Floats:
    """The ρ of each score: the mean of its logarithm, given the contrasts."""
    logs = evidence_weight(geometry) * _log_likelihood(sums, geometry) + np.log(prior.weights)
    weight = np.exp(logs - logs.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    return np.asarray(np.exp((weight * np.log(grid_of_rho(sums))).sum(axis=1)))


def grid_of_rho(sums: ScoreSums) -> Floats:
    """Scores × grid: the ρ that each σ² of the prior's grid means for a score."""
    return np.asarray(np.minimum(np.exp(_GRID)[None, :] * relative_scale(sums)[:, None], 0.9))


def _log_likelihood(sums: ScoreSums, geometry: Geometry) -> Floats:
    """Scores × grid, up to a factor per score."""
    share = sums.total / geometry.counts.sum()
    z = geometry.contrast @ (sums.by_value - np.outer(geometry.counts, share))
    squares = (z**2 / np.maximum(sums.variance, 1e-300)).T
    rho = grid_of_rho(sums)
    logs = np.empty_like(rho)
    for k in range(len(_GRID)):
        spread = (1 - rho[:, k, None]) + rho[:, k, None] * geometry.spread
        logs[:, k] = -0.5 * (np.log(spread) + squares / spread).sum(axis=1)
    return logs


_EXPONENTS = (0.0, 0.25, 0.5, 0.75, 1.0)
_VALUES_PER_COLUMN = 12
_LEAST_SHARE = 0.002
_MOST_PAIRS = 150
_LEARNING_ROUNDS = 4
_OF_INDEPENDENCE = 0.5
"""How many conditions' worth independent values are believed, per condition there is."""
MOST_RELATED = 600
"""More values are taken as independent, and as scattering alike or by 1/o: all else would take too long."""


def learn_prior(buckets: Buckets, columns: Sequence[Codes]) -> tuple[Geometry, ScatterPrior]:
    """Fit scatter and prior to simple conditions on the published columns (their codes)."""
    sums = ScoreSums.of(buckets, simple_conditions(columns))
    spectrum = Spectrum.of(buckets)
    o = spectrum.counts
    exponents = _EXPONENTS if len(o) <= MOST_RELATED else (_EXPONENTS[0], _EXPONENTS[-1])
    powers = [Geometry.scattered(spectrum, np.diag((o.mean() / o) ** exponent)) for exponent in exponents]
    fitted = [(*fit_prior(sums, geometry), geometry) for geometry in powers]
    _, prior, start = max(fitted, key=lambda found: found[0])
    if not sums.scores or not len(start.spread) or len(o) > MOST_RELATED:
        return start, prior
    geometry = start
    for _ in range(_LEARNING_ROUNDS):
        scatter = _expected_scatter(sums, geometry, likely_rho(sums, geometry, prior))
        scatter = (scatter + _OF_INDEPENDENCE * start.scatter) / (1 + _OF_INDEPENDENCE)
        scatter *= (start.scatter.diagonal() @ o) / (scatter.diagonal() @ o)  # ρ has the scale
        geometry = Geometry.scattered(spectrum, scatter)
        _, prior = fit_prior(sums, geometry)
    return geometry, prior


def _expected_scatter(sums: ScoreSums, geometry: Geometry, rho: Floats) -> Floats:
    """The mean over the conditions of E[d dᵀ | contrasts]/(ρ s²)."""
    o = geometry.counts
    surprise = sums.by_value - np.outer(o, sums.total / o.sum())
    z = geometry.contrast @ surprise / np.sqrt(np.maximum(sums.variance, 1e-300))
    told = 1 / ((1 - rho) + rho * geometry.spread[:, None])  # contrasts × conditions
    loads = geometry.random / o[:, None]
    mean = loads @ (z * told)
    seen = (loads * (told * rho).mean(axis=1)) @ loads.T
    return np.asarray((mean * rho) @ mean.T / len(rho) + geometry.scatter - seen)


def simple_conditions(columns: Sequence[Codes]) -> list[Score]:
    """Each common value of the columns (their codes), and pairs of them."""
    singles = []
    for number, codes in enumerate(columns):
        counts = np.bincount(codes)
        common = np.argsort(-counts, kind="stable")[:_VALUES_PER_COLUMN]
        singles += [
            (number, value, np.flatnonzero(codes == value))
            for value in common
            if _LEAST_SHARE * len(codes) < counts[value] < (1 - _LEAST_SHARE) * len(codes)
        ]
    pairs = [(one, two) for one, two in combinations(singles, 2) if one[0] != two[0]]
    chosen = pairs[:: max(1, len(pairs) // _MOST_PAIRS)]
    both = [rows[columns[number][rows] == value] for (_, _, rows), (number, value, _) in chosen]
    least = _LEAST_SHARE * (len(columns[0]) if columns else 0)
    return [Score(rows=rows) for rows in (*(rows for _, _, rows in singles), *both) if len(rows) > least]
