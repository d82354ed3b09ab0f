"""Intervals for counts, also for small ones.

A count lies between 0 and the number of rows asked about, and its variance is linear in the true count. The
score interval solves (estimate − T)² ≤ z²·Var(T) for T instead of fixing the variance at the estimate
(Wilson's idea for a mixture of two binomials), which is what keeps the coverage at small counts. Hoeffding's
interval holds at its confidence for any number of rows, and is wide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from dalenius.mechanisms.perturb.estimate import estimate_product
from dalenius.mechanisms.perturb.matrix import Channel


def score_interval(
    channels: Sequence[Channel], observed: ArrayLike, is_asked: ArrayLike, confidence: float = 0.95
) -> tuple[float, float]:
    """The interval of a count of rows whose value satisfies a predicate, cut to what is possible.

    `observed` is k × m as in `estimate_product`; `is_asked` is 0 or 1 for each value.
    """
    counts, asked = np.asarray(observed, dtype=np.float64), np.asarray(is_asked, dtype=np.float64)
    found = estimate_product(channels, counts, asked)
    z2 = float(ndtri((1 + confidence) / 2)) ** 2
    slope = _variance_slope(channels, counts, asked)
    centre = found.value + z2 * slope / 2
    reach = math.sqrt(z2 * found.variance + (z2 * slope / 2) ** 2)
    return _possible(channels, counts, asked, (centre - reach, centre + reach))


def hoeffding_interval(
    channels: Sequence[Channel], observed: ArrayLike, is_asked: ArrayLike, confidence: float = 0.95
) -> tuple[float, float]:
    """An interval that holds with at least that probability, whatever the number of rows."""
    counts, asked = np.asarray(observed, dtype=np.float64), np.asarray(is_asked, dtype=np.float64)
    value = estimate_product(channels, counts, asked).value
    spread = sum(
        float(rows.sum()) / float(channel.retention) ** 2
        for channel, rows in zip(channels, counts, strict=True)
        if 0 < asked[list(channel.codes)].sum() < channel.n_values  # otherwise the part's answer is certain
    )
    reach = math.sqrt(math.log(2 / (1 - confidence)) / 2 * spread)
    return _possible(channels, counts, asked, (value - reach, value + reach))


def _possible(
    channels: Sequence[Channel], counts: np.ndarray, asked: np.ndarray, ends: tuple[float, float]
) -> tuple[float, float]:
    """Cut an interval to the counts that the parts' domains and rows allow."""
    certain = possible = 0.0
    for channel, rows in zip(channels, counts, strict=True):
        within = asked[list(channel.codes)]
        certain += float(rows.sum()) if within.all() else 0.0
        possible += float(rows.sum()) if within.any() else 0.0
    return min(max(ends[0], certain), possible), max(min(ends[1], possible), certain)


def _variance_slope(channels: Sequence[Channel], counts: np.ndarray, asked: np.ndarray) -> float:
    """By how much the variance grows per record that satisfies the predicate, averaged over the rows.

    In part j it is (1 − p − 2qA)/p, A the number of its values that are asked for.
    """
    slopes, weights = [0.0], [0.0]
    for channel, rows in zip(channels, counts, strict=True):
        p, q, n_asked = float(channel.retention), float(channel.replacement), asked[list(channel.codes)].sum()
        if 0 < n_asked < channel.n_values:
            slopes.append((1 - p - 2 * q * n_asked) / p)
            weights.append(float(rows.sum()))
    return float(np.average(slopes, weights=weights)) if sum(weights) else 0.0
