"""What is to be estimated, and what an estimate is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dalenius.mechanisms.bucketize.estimate_buckets import Floats, Ints, ScoreSums


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Targets:
    """Linear combinations: target i is Σ over its terms of weights · (totals of the score by value)."""

    n_targets: int
    target: Ints
    """Which target each term belongs to, ascending."""
    score: Ints
    """Which score it weighs."""
    weights: Floats
    """Terms × values."""

    @classmethod
    def of(cls, terms: Sequence[Sequence[tuple[int, Floats]]]) -> Targets:
        """From the (score, weights) terms of each target.

        >>> Targets.of([[(0, np.ones(2))], [(0, np.ones(2)), (1, np.zeros(2))]]).target.tolist()
        [0, 1, 1]
        """
        flat = [(i, score, weights) for i, parts in enumerate(terms) for score, weights in parts]
        return cls(
            n_targets=len(terms),
            target=np.array([i for i, _, _ in flat], dtype=np.int64),
            score=np.array([score for _, score, _ in flat], dtype=np.int64),
            weights=np.stack([weights for _, _, weights in flat]) if flat else np.zeros((0, 0)),
        )

    def add_up(self, terms: Floats) -> Floats:
        """Sum an array over terms (its first axis) into targets."""
        total = np.zeros((self.n_targets, *terms.shape[1:]))
        np.add.at(total, self.target, terms)
        return total

    def pairs(self) -> tuple[Ints, Ints]:
        """All pairs of different terms of one target, each once."""
        first, second = [], []
        starts = np.searchsorted(self.target, np.arange(self.n_targets + 1))
        for begin, end in pairwise(starts):
            if end - begin > 1:
                left, right = np.triu_indices(end - begin, k=1)
                first.append(left + begin)
                second.append(right + begin)
        if not first:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        return np.concatenate(first), np.concatenate(second)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimates:
    """Estimates of targets: each a mixture of normal distributions (usually of one)."""

    mean: Floats
    """Targets × components."""
    variance: Floats
    """Targets × components; infinite where the release tells nothing."""
    weight: Floats
    """Targets × components, adding up to 1."""

    @property
    def estimate(self) -> Floats:
        """The mean of each mixture."""
        return np.asarray((self.weight * self.mean).sum(axis=1))

    @property
    def std_error(self) -> Floats:
        """The standard deviation of each mixture."""
        spread = self.variance + (self.mean - self.estimate[:, None]) ** 2
        return np.asarray(np.sqrt(np.maximum((self.weight * spread).sum(axis=1), 0.0)))

    def intervals(self, confidence: float) -> tuple[Floats, Floats]:
        """Central intervals of the mixtures."""
        return intervals(self, confidence)


class Estimator(Protocol):
    """One way of estimating totals from buckets."""

    name: str
    assumption: str
    formula: str

    def estimate(self, sums: ScoreSums, targets: Targets) -> Estimates:
        """Estimate every target."""


def possible_range(sums: ScoreSums, targets: Targets) -> tuple[Floats, Floats]:
    """The least and the most that each target can be, whatever the matching inside the buckets.

    For a condition that q rows and s sensitive values of a bucket of size |g| satisfy, the number of people
    who satisfy both is between max(0, q + s − |g|) and min(q, s). Targets that are no such counts: −∞ to ∞.
    """
    buckets = sums.buckets
    low, high = np.zeros(len(targets.score)), np.zeros(len(targets.score))
    is_set = ((targets.weights == 0) | (targets.weights == 1)).all(axis=1) & sums.is_count[targets.score]
    for term in np.flatnonzero(is_set):
        begin, end = sums.sums.indptr[targets.score[term] : targets.score[term] + 2]
        where, q = sums.sums.indices[begin:end], sums.sums.data[begin:end]
        s = np.asarray(buckets.composition @ targets.weights[term])[buckets.type_of[where]]
        low[term] = np.maximum(0.0, q + s - buckets.size[where]).sum()
        high[term] = np.minimum(q, s).sum()
    low[~is_set], high[~is_set] = -np.inf, np.inf
    return targets.add_up(low), targets.add_up(high)


def intervals(estimates: Estimates, confidence: float) -> tuple[Floats, Floats]:
    """Central intervals of the mixtures.

    >>> one = Estimates(mean=np.zeros((1, 1)), variance=np.ones((1, 1)), weight=np.ones((1, 1)))
    >>> intervals(one, 0.95)[1].round(2).tolist()
    [1.96]
    """
    tail = (1 - confidence) / 2
    return _quantile(estimates, tail), _quantile(estimates, 1 - tail)


def _quantile(estimates: Estimates, q: float) -> Floats:
    from scipy.special import ndtr, ndtri

    sd = np.sqrt(np.maximum(estimates.variance, 0.0))
    normal = estimates.mean + ndtri(q) * sd
    low, high = normal.min(axis=1), normal.max(axis=1)
    if estimates.mean.shape[1] == 1 or not np.isfinite(normal).all():
        return np.asarray(low if q < 0.5 else high)
    safe = np.maximum(sd, 1e-12)
    for _ in range(40):  # the mixture's quantile lies between those of its components
        middle = (low + high) / 2
        below = (estimates.weight * ndtr((middle[:, None] - estimates.mean) / safe)).sum(axis=1) < q
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)


def as_targets_by_components(values: NDArray[np.float64]) -> Floats:
    """One component a target."""
    return np.asarray(values)[:, None]
