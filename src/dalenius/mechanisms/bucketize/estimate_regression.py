"""Regression of bucket sums on bucket contents: unbiased whatever the data, and noisy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.mechanisms.bucketize.estimate_buckets import Floats, Ints, ScoreSums
from dalenius.mechanisms.bucketize.estimate_geometry import Geometry
from dalenius.mechanisms.bucketize.estimate_noise import assignment_variance, ratio, value_variances
from dalenius.mechanisms.bucketize.estimate_targets import (
    Estimates,
    Targets,
    as_targets_by_components,
    different_weights,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Regression:
    """Generalized least squares, β = t/λ in every direction that the release tells anything about."""

    geometry: Geometry
    name = "regression"
    assumption = (
        "none about the data for the estimate, which uses only the publisher's random assignment; the "
        "interval takes the shares within each value from Anatomy's estimates"
    )
    formula = "O^½ U Λ⁻¹ Uᵀ O^-½ · Anatomy's totals by value, variance from the random assignment"

    def estimate(self, sums: ScoreSums, targets: Targets) -> Estimates:
        """Estimate every target; one that the release tells nothing about has an infinite variance."""
        g = self.geometry
        different, place, factor = different_weights(targets.weights)
        directed = targets.weights[different] @ g.directions  # different weights × directions
        t = g.directions.T @ (sums.by_value / g.counts[:, None])  # directions × scores
        terms = factor * ((directed / g.eigenvalues)[place] * t.T[targets.score]).sum(axis=1)
        noise = directed * np.sqrt((1 - g.eigenvalues) / g.eigenvalues)
        alike = targets.add_up(sums.variance[targets.score] * factor**2 * (noise**2).sum(axis=1)[place])
        loads = (directed / g.eigenvalues) @ g.directions.T / g.counts
        by_value = assignment_variance(sums.buckets, loads)[place]
        within = value_variances(sums, targets.score)
        own = targets.add_up(factor**2 * (within * by_value).sum(axis=1))
        variance = alike.copy()
        first, second = targets.pairs()
        cross = factor[first] * factor[second] * (noise[place[first]] * noise[place[second]]).sum(axis=1)
        cross *= score_covariances(sums, targets, first, second)
        np.add.at(variance, targets.target[first], 2 * cross)
        hidden = np.abs(targets.weights[different] @ g.hidden).sum(axis=1)[place]
        unknown = targets.add_up(np.abs(factor) * hidden)
        variance = variance * ratio(own, alike)
        variance = np.where(unknown > 1e-6 * np.sqrt(g.counts.sum()), np.inf, np.maximum(variance, 0.0))
        return Estimates(
            mean=as_targets_by_components(targets.add_up(terms)),
            variance=as_targets_by_components(variance),
            weight=np.ones((targets.n_targets, 1)),
        )

    def estimate_values(self, sums: ScoreSums) -> tuple[Floats, Floats]:
        """Scores × values: every value's total of every score, and its variance (infinite: nothing is told).

        What `estimate` gives for each value alone, without a target for each pair of score and value.
        """
        g = self.geometry
        loads = g.directions / g.eigenvalues
        t = g.directions.T @ (sums.by_value / g.counts[:, None])
        by_value = assignment_variance(sums.buckets, loads @ g.directions.T / g.counts)
        every_score = np.arange(sums.by_value.shape[1])
        variance = value_variances(sums, every_score) @ by_value.T
        unknown = np.abs(g.hidden).sum(axis=1) > 1e-6 * np.sqrt(g.counts.sum())
        return np.asarray((loads @ t).T), np.where(unknown, np.inf, np.maximum(variance, 0.0))


def score_covariances(sums: ScoreSums, targets: Targets, first: Ints, second: Ints) -> Floats:
    """The covariance over rows of the scores of pairs of terms."""
    pairs = zip(targets.score[first], targets.score[second], strict=True)
    return np.array([sums.covariance(int(i), int(j)) for i, j in pairs])
