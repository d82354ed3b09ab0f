"""What is to be estimated, and what an estimate is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dalenius.mechanisms.bucketize.estimate_buckets import Floats, Ints, ScoreSums

Range = tuple[Floats, Floats]
"""The least and the most of each target."""


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

    def intervals(self, confidence: float, possible: Range | None = None) -> Range:
        """Central intervals of the mixtures, to be cut to what is possible."""
        ends = intervals(self, confidence)
        if possible is None:
            return ends
        return widened(ends, self.estimate, self.std_error, possible, (1 - confidence) / 2)


class Estimator(Protocol):
    """One way of estimating totals from buckets."""

    name: str
    assumption: str
    formula: str

    def estimate(self, sums: ScoreSums, targets: Targets) -> Estimates:
        """Estimate every target."""


def widened(ends: Range, estimate: Floats, error: Floats, possible: Range, tail: float) -> Range:
    """Ends of intervals that keep their meaning where an estimate is near, or beyond, what is possible.

    A normal interval may lie outside what is possible, and cut to that nothing is left. Given that the truth
    is possible its law has the tails of one cut at `possible`, larger by Φ((estimate − least)/error) and its
    like: an end moves outwards to where those are.

    >>> three = np.array([-3.0])
    >>> low, high = widened((three - 2, three + 2), three, np.ones(1), (np.zeros(1), np.full(1, 9.0)), 0.025)
    >>> low.tolist(), high.round(2).tolist()
    ([-5.0], [0.98])
    """
    from scipy.special import ndtr, ndtri

    usable = np.isfinite(error) & (error > 0)
    scale, (low, high), (least, most) = np.where(usable, error, 1.0), ends, possible
    above = estimate - scale * ndtri(tail * np.maximum(ndtr((estimate - least) / scale), 1e-300))
    below = estimate + scale * ndtri(tail * np.maximum(ndtr((most - estimate) / scale), 1e-300))
    return np.where(usable, np.minimum(low, below), low), np.where(usable, np.maximum(high, above), high)


def intervals(estimates: Estimates, confidence: float) -> Range:
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
