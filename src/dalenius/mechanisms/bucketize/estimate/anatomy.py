"""Anatomy's estimator, the papers' one: inside a bucket every matching is taken as equally likely."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.bucketize.estimate.buckets import ScoreSums
from dalenius.question.targets import Estimates, Targets, as_targets_by_components


@dataclass(frozen=True, slots=True, kw_only=True)
class Anatomy:
    """Σ_g q_g·s_g/|g|, with the variance of a uniformly random matching."""

    name = "anatomy"
    assumption = (
        "within a bucket every matching of people with sensitive values is equally likely; where the "
        "sensitive values depend on the columns asked about, the estimate leans towards independence by more "
        "than its interval"
    )
    formula = "Σ_g y_g·s_g/|g|, variance Σ_g Σ(y−ȳ)²·Σ(s−s̄)²/(|g|−1)"

    def estimate(self, sums: ScoreSums, targets: Targets) -> Estimates:
        """Estimate every target."""
        by_value = sums.by_value
        terms = np.einsum("tz,zt->t", targets.weights, by_value[:, targets.score])
        own = np.arange(len(targets.score))
        first, second = targets.pairs()
        variance = targets.add_up(self._covariance(sums, targets, own, own))
        np.add.at(variance, targets.target[first], 2 * self._covariance(sums, targets, first, second))
        return Estimates(
            mean=as_targets_by_components(targets.add_up(terms)),
            variance=as_targets_by_components(np.maximum(variance, 0.0)),
            weight=np.ones((targets.n_targets, 1)),
        )

    def _covariance(self, sums: ScoreSums, targets: Targets, first: Ints, second: Ints) -> Floats:
        """Of pairs of terms: doubly centred sums of products (SPEC: hypergeometric for counts)."""
        buckets = sums.buckets
        result = np.zeros(len(first))
        for k, (i, j) in enumerate(zip(first, second, strict=True)):
            a, b = targets.weights[i], targets.weights[j]
            held = buckets.composition @ np.stack([a * b, a, b], axis=1)  # types × 3
            values = held[:, 0] - held[:, 1] * held[:, 2] / buckets.type_size
            where, squares = sums.bucket_products(targets.score[i], targets.score[j])
            rows = np.zeros(len(buckets.size))
            rows[where] = squares
            rows -= _column(sums, targets.score[i]) * _column(sums, targets.score[j]) / buckets.size
            result[k] = (rows * values[buckets.type_of] / np.maximum(buckets.size - 1, 1)).sum()
        return result


def _column(sums: ScoreSums, score: int) -> Floats:
    dense = np.zeros(sums.sums.shape[0])
    begin, end = sums.sums.indptr[score : score + 2]
    dense[sums.sums.indices[begin:end]] = sums.sums.data[begin:end]
    return dense
