"""How much the shares of sensitive values scatter, learned from the release itself.

The random effects' prior needs a scale. On the scale of log-odds the scatter σ² of the values' shares is much
the same for common and for rare conditions, so that one prior of σ² serves all questions: ρ = σ²·κ with
κ = p̄(1−p̄) for a condition of frequency p̄. Its weights on a grid are learned from simple conditions on the
published columns (each common value, and pairs of them) by a few rounds of expectation–maximization; a part
of them stays flat, because more rounds trust the simple conditions too much and cost coverage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.mechanisms.bucketize.estimate_buckets import Floats, ScoreSums
from dalenius.mechanisms.bucketize.estimate_geometry import Geometry

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
    weight = np.full(len(_GRID), 1 / len(_GRID))
    evidence = 0.0
    if sums.scores and len(geometry.spread):
        logs = evidence_weight(geometry) * _log_likelihood(sums, geometry)
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
    return np.asarray(np.exp((weight * np.log(_rho(sums))).sum(axis=1)))


def _rho(sums: ScoreSums) -> Floats:
    return np.asarray(np.minimum(np.exp(_GRID)[None, :] * relative_scale(sums)[:, None], 0.9))


def _log_likelihood(sums: ScoreSums, geometry: Geometry) -> Floats:
    """Scores × grid, up to a factor per score."""
    share = sums.total / geometry.counts.sum()
    z = geometry.contrast @ (sums.by_value - np.outer(geometry.counts, share))
    squares = (z**2 / np.maximum(sums.variance, 1e-300)).T
    rho = _rho(sums)
    logs = np.empty_like(rho)
    for k in range(len(_GRID)):
        spread = (1 - rho[:, k, None]) + rho[:, k, None] * geometry.spread
        logs[:, k] = -0.5 * (np.log(spread) + squares / spread).sum(axis=1)
    return logs
