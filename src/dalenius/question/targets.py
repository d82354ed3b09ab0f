"""What is to be estimated from a table with a row per person, and what an estimate is.

A question is a set of *scores*: a number per published row (1 where a condition on quasi-identifiers holds,
0 elsewhere; or a number to be summed). Together with a weight per sensitive value a score makes a *total*,
Σ over people of score(row) · weight(value): every COUNT, SUM and AVG is made of such totals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise

import numpy as np

from dalenius.arrays import Codes, Floats, Ints, normal_cdf, normal_quantiles

Range = tuple[Floats, Floats]
"""The least and the most of each target."""

_MOST_WIDER = 2.0
"""How much wider an interval may be that holds whatever the data, to be part of the one that is given."""

_NO_ERROR, _HARDLY = 1e-12, 1e-300
"""Errors and chances are taken to be at least so large."""

_MOST_STEPS, _CLOSE = 60, 1e-10
"""Newton's steps to a quantile (halving where one leads too far), and how close it is, in standard errors."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Score:
    """One number per published row; rows that are not listed have 0."""

    rows: Codes
    values: Floats | None = None
    """The numbers of these rows; None: all 1."""


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
    unbiased: Estimates | None = None
    """What an estimator that is right whatever the data says of the same targets."""
    is_posterior: bool = False
    """Whether this is a law of the truth, not of an estimate that may be impossible."""
    beyond: float = 0.0
    """So much further reach intervals at both ends, where the law's own tails are known to be too short."""
    is_unbounded: bool = False
    """Whether the means are still to be moved to what is possible."""

    def bound(self, possible: Range) -> Estimates:
        """With means that are possible."""
        if not self.is_unbounded:
            return self
        low, high = (as_targets_by_components(end) for end in possible)
        return replace(self, mean=np.clip(self.mean, low, high), is_unbounded=False)

    def shift(self, by: Floats) -> Estimates:
        """Estimates of each target plus a number that is known."""
        others = None if self.unbiased is None else self.unbiased.shift(by)
        return replace(self, mean=self.mean + by[:, None], unbiased=others)

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
        low, high = intervals(self, confidence, possible)
        ends = (low - self.beyond, high + self.beyond)
        if self.unbiased is None:
            return ends
        return spanning(ends, self.unbiased.intervals(confidence, possible), possible)


def mix_estimates(found: Sequence[tuple[float, Estimates]]) -> Estimates:
    """One law of the same targets from several, and how likely each of them is."""
    if len(found) == 1:
        return found[0][1]
    return replace(
        found[0][1],
        mean=np.hstack([own.mean for _, own in found]),
        variance=np.hstack([own.variance for _, own in found]),
        weight=np.hstack([share * own.weight for share, own in found]),
    )


def different_weights(weights: Floats) -> tuple[Ints, Ints, Floats]:
    """Which weights are different, which of these each is a multiple of, and the factor.

    Groups by a published column all weigh the values alike; what depends on weights only is found once.

    >>> first, place, factor = different_weights(np.array([[0.0, 2.0], [1.0, 0.0], [0.0, -3.0]]))
    >>> first.tolist(), place.tolist(), factor.tolist()
    ([0, 1], [0, 1, 0], [1.0, 1.0, -1.5])
    """
    if not weights.size:
        return (
            np.zeros(min(len(weights), 1), dtype=np.int64),
            np.zeros(len(weights), dtype=np.int64),
            np.ones(len(weights)),
        )
    # groups by the sensitive value weigh one value each: only what is not 0 is looked at
    row, column = np.divmod(np.flatnonzero(weights != 0), weights.shape[1])
    numbers, ends = weights[row, column], np.cumsum(np.bincount(row, minlength=len(weights)))
    whole = _largest(row, numbers, len(weights))
    scaled = numbers / whole[row]
    found: dict[
        bytes, int
    ] = {}  # by digest: to sort rows of thousands of numbers would take many times as long
    firsts, place = list[int](), np.empty(len(weights), dtype=np.int64)
    for number, (begin, end) in enumerate(pairwise([0, *ends.tolist()])):
        own = column[begin:end].tobytes() + scaled[begin:end].tobytes()
        place[number] = found.setdefault(blake2b(own, digest_size=16).digest(), len(firsts))
        if place[number] == len(firsts):
            firsts.append(number)
    first = np.array(firsts)
    return first, place, whole / whole[first][place]


def _largest(row: Ints, numbers: Floats, n_rows: int) -> Floats:
    """Of each row the first of its numbers that is furthest from 0; 1 where it has none."""
    found, size = np.ones(n_rows), np.abs(numbers)
    some, starts, n_own = np.unique(row, return_index=True, return_counts=True)
    far = np.flatnonzero(~(size < np.repeat(np.maximum.reduceat(size, starts), n_own)))
    found[some] = numbers[far[np.searchsorted(far, starts)]]
    return found


def largest_error(mean: Floats, possible: Range) -> Floats:
    """The largest standard deviation of a law of what is possible; infinite where its mean is not inside.

    A law on [a, b] with mean m has a variance of at most (m − a)·(b − m) (Bhatia and Davis, 2000).

    >>> largest_error(np.array([1.0, 9.0]), (np.zeros(2), np.full(2, 5.0))).tolist()
    [2.0, inf]
    """
    with np.errstate(invalid="ignore"):  # where nothing limits what is possible
        variance = (mean - possible[0]) * (possible[1] - mean)
    return np.sqrt(np.where(variance > 0, variance, np.inf))


def spanning(ends: Range, unbiased: Range, possible: Range | None) -> Range:
    """Intervals that span those of an unbiased estimate too, where these are not much wider.

    An assumption that makes an interval but little narrower is not worth the risk that it is wrong: where a
    condition determines a value, it is. (Efron and Morris, 1972, limit how far a shrunk estimate may be moved
    likewise; here only the interval is.) Widths are measured inside what is possible.

    >>> own = np.array([2.0, 2.0]), np.array([4.0, 4.0])
    >>> low, high = spanning(own, (np.array([0.0, 0.0]), np.array([4.0, 9.0])), None)
    >>> low.tolist(), high.tolist()
    ([0.0, 2.0], [4.0, 4.0])
    """
    (low, high), (least, most) = (_cut(ends, possible), _cut(unbiased, possible))
    usable = most - least <= _MOST_WIDER * (high - low)
    return (
        np.where(usable, np.minimum(ends[0], unbiased[0]), ends[0]),
        np.where(usable, np.maximum(ends[1], unbiased[1]), ends[1]),
    )


def _cut(ends: Range, possible: Range | None) -> Range:
    if possible is None:
        return ends
    return np.clip(ends[0], *possible), np.clip(ends[1], *possible)


def intervals(estimates: Estimates, confidence: float, possible: Range | None = None) -> Range:
    """Central intervals of the mixtures, to be cut to what is possible.

    One may lie outside what is possible, and cut to that nothing is left of it. Given that the truth is
    possible its law has the tails of one cut there, larger by how likely the law says that is: an end moves
    outwards to where those are.

    >>> one = Estimates(mean=np.full((1, 1), -3.0), variance=np.ones((1, 1)), weight=np.ones((1, 1)))
    >>> [end.round(2).tolist() for end in intervals(one, 0.95)]
    [[-4.96], [-1.04]]
    >>> [end.round(2).tolist() for end in intervals(one, 0.95, (np.zeros(1), np.full(1, 9.0)))]
    [[-4.96], [0.98]]
    """
    turned = replace(estimates, mean=-estimates.mean)
    low = high = np.full(len(estimates.mean), (1 - confidence) / 2)
    if possible is not None:
        low = low * np.maximum(_below(estimates, possible[1]), _HARDLY)
        high = high * np.maximum(_below(turned, -possible[0]), _HARDLY)
    return _low_quantile(estimates, low), -_low_quantile(turned, high)


def _below(estimates: Estimates, numbers: Floats) -> Floats:
    """How likely the mixtures are below these numbers; 1 where the release tells nothing."""
    sd = np.maximum(np.sqrt(np.maximum(estimates.variance, 0.0)), _NO_ERROR)
    is_known = np.isfinite(sd).all(axis=1)
    with np.errstate(invalid="ignore"):
        share = (estimates.weight * normal_cdf((numbers[:, None] - estimates.mean) / sd)).sum(axis=1)
    return np.asarray(np.where(is_known, share, 1.0))


def _low_quantile(estimates: Estimates, q: Floats) -> Floats:
    """The numbers below which the mixtures are so likely, each less than 1/2."""
    sd = np.sqrt(np.maximum(estimates.variance, 0.0))
    normal = estimates.mean + normal_quantiles(q)[:, None] * sd
    low, high = normal.min(axis=1), normal.max(axis=1)
    place, left = low.copy(), np.flatnonzero(np.isfinite(normal).all(axis=1))
    if estimates.mean.shape[1] == 1 or not len(left):
        return np.asarray(place)
    # the mixture's quantile lies between those of its components; `left` are not close enough yet
    low, high, q = low[left], high[left], q[left]
    mean, weight = estimates.mean[left], estimates.weight[left]
    safe, near = np.maximum(sd[left], _NO_ERROR), (low + high) / 2
    for _ in range(_MOST_STEPS):
        z = (near[:, None] - mean) / safe
        over = (weight * normal_cdf(z)).sum(axis=1) - q
        low, high = np.where(over < 0, near, low), np.where(over < 0, high, near)
        slope = (weight * np.exp(-(z**2) / 2) / safe).sum(axis=1) / np.sqrt(2 * np.pi)
        step = near - over / np.maximum(slope, 1e-300)
        last, near = near, np.where((low < step) & (step < high), step, (low + high) / 2)
        place[left] = near
        is_far = np.abs(near - last) > _CLOSE * safe.min(axis=1)
        if not is_far.any():
            break
        if not is_far.all():
            left, near, low, high = left[is_far], near[is_far], low[is_far], high[is_far]
            mean, weight, safe, q = mean[is_far], weight[is_far], safe[is_far], q[is_far]
    return np.asarray(place)


def as_targets_by_components(values: Floats) -> Floats:
    """One component a target."""
    return np.asarray(values)[:, None]
