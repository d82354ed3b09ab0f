"""Estimates record by record and part by part, as the definitions say: what the fast ones must equal.

A question asks for Σ_r a_r(X_r), X_r the true value of row r; for a count a is 0 or 1. A record published as
y in part j contributes its score

    g_r = Σ_{x ∈ SA_j} w_j(y, x)·a_r(x) = (a_r(y) − q_j·A_rj)/p_j,   A_rj = Σ_{x ∈ SA_j} a_r(x),

which is equation 7 record by record, and E[g_r | part j, X_r = x] = a_r(x) in **every** part.

Which variance: parts are dealt at random and values are drawn at random. Given the parts the expectation of
the sum is the table's true answer, whatever the parts are, so the dealing adds no variance of its own
(Var = E[Var(·| parts)] + Var(E[·| parts]), and the second term is 0). The parts are published, so the right
error bar is the one given the parts: Σ_r Var(g_r | j, X_r), independent over the records.

The variance of one record is E[g_r²] − a_r(X_r)², and the score of a² is unbiased for a_r(X_r)². So
Σ_r g_r(a)² − g_r(a²) is an unbiased estimate of it. It is never negative: multiplied with p² it is
(1−p)·a_y² − 2qA·a_y + pq·A₂ + q²A², A₂ = Σ a_x² ≥ A²/m, a quadratic without two roots. The covariance of two
questions a, b follows in the same way: Σ_r g_r(a)·g_r(b) − g_r(ab).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dalenius.arrays import Codes, Floats, Int32s, Ints
from dalenius.mechanisms.dealing import deal
from dalenius.mechanisms.perturb.apply import perturb_values
from dalenius.mechanisms.perturb.channel import Channel
from dalenius.mechanisms.perturb.plan.layout import PerturbPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An unbiased estimate and the unbiased estimate of its variance given the parts."""

    value: float
    variance: float

    @property
    def std_error(self) -> float:
        """The square root of the variance."""
        return math.sqrt(self.variance)


def estimate_product(channels: Sequence[Channel], observed: ArrayLike, values: ArrayLike) -> Estimate:
    """Σ a(X_r) over rows chosen by their other columns, a the same function of the value for each of them.

    Args:
        channels: the law of each part.
        observed: k × m, how many chosen rows part j publishes as value y.
        values: a(x) of each of the m values: 1 where a predicate holds, or a number to be summed.
    """
    counts, asked = np.asarray(observed, dtype=np.float64), np.asarray(values, dtype=np.float64)
    value = variance = 0.0
    for channel, published in zip(channels, counts, strict=True):
        codes = list(channel.codes)
        scores, spreads = _scores(channel, asked[codes], asked[codes].sum(), np.square(asked[codes]).sum())
        value += float(published[codes] @ scores)
        variance += float(published[codes] @ spreads)
    return Estimate(value=value, variance=max(variance, 0.0))


def estimate_rows(
    channels: Sequence[Channel],
    parts: Codes,
    published: Codes,
    values: ArrayLike,
) -> Estimate:
    """Σ a_r(X_r) for any predicate: `values` holds a_r(x), rows × m, a row for each published record."""
    asked = np.asarray(values, dtype=np.float64)
    value = variance = 0.0
    for number, channel in enumerate(channels):
        rows = np.flatnonzero(parts == number)
        within = asked[rows][:, list(channel.codes)]
        scores, spreads = _scores(
            channel, asked[rows, published[rows]], within.sum(axis=1), np.square(within).sum(axis=1)
        )
        value += float(scores.sum())
        variance += float(spreads.sum())
    return Estimate(value=value, variance=max(variance, 0.0))


def exact_variance(channels: Sequence[Channel], true_counts: ArrayLike, values: ArrayLike) -> float:
    """The variance of `estimate_product` given the parts, from the true counts (k × m) of the chosen rows."""
    counts, asked = np.asarray(true_counts, dtype=np.float64), np.asarray(values, dtype=np.float64)
    variance = 0.0
    for channel, true in zip(channels, counts, strict=True):
        codes = list(channel.codes)
        p, q, a = float(channel.retention), float(channel.replacement), asked[codes]
        mean = p * a + q * a.sum()  # of a(Y), by true value
        mean_square = p * a**2 + q * np.square(a).sum()
        variance += float(true[codes] @ (mean_square - mean**2)) / p**2
    return variance


def _scores(
    channel: Channel, asked: Floats, total: float | Floats, total_square: float | Floats
) -> tuple[Floats, Floats]:
    """The score of each published value, and its contribution to the estimated variance."""
    p, q = float(channel.retention), float(channel.replacement)
    scores = (asked - q * total) / p
    return scores, scores**2 - (asked**2 - q * total_square) / p


def perturb_batch(
    codes: Codes,
    quota: Ints,
    plan: PerturbPlan,
    part_stream: np.random.Generator,
    value_stream: np.random.Generator,
) -> tuple[Int32s, Int32s]:
    """The part and the published code of each record of a batch that has these quotas."""
    parts = deal(codes, quota, part_stream)
    return parts, perturb_values(codes, parts, plan.channels, value_stream)
