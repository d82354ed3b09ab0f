"""Error bounds of a partition, and the objective that the searches minimise.

The paper's bound for a part (equation 11) is ε_i = a·c_i/√n_i with c_i = (m_i−1+γ_i)/(γ_i−1) = 1/p_i and
a = 2√ln(2/δ); a partition's is the mean of its parts' weighted with their rows (equation 12, lost in the
text; only the weighted mean gives the paper's example 4). It is an objective, not a 1−δ bound for several
parts. Hoeffding's inequality gives one: a record's weight for a value varies over a range of c_i, so a
reconstructed frequency is within √(½·ln(2/δ)·Σ_j n_j·c_j²)/n of the truth with probability 1−δ.

The two disagree about partitions. ε(Part) adds the parts' errors up as if they all went the same way, so it
likes few large parts; independent errors add in squares, and Σ_j n_j·c_j² is, nearly, the sum of the
variances of all the values' counts (`value_rmse` has it exactly). So both can be minimised here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.perturb.channel import Channel

DELTA = 0.05


def part_bound(n_rows: int, retention: Fraction, delta: float = DELTA) -> float:
    """ε_i of a part with that many rows."""
    return 2 * math.sqrt(math.log(2 / delta)) / (float(retention) * math.sqrt(n_rows))


def partition_bound(sizes: Sequence[int], retentions: Sequence[Fraction], delta: float = DELTA) -> float:
    """ε(Part), the paper's objective.

    >>> bound = partition_bound([36, 6], [Fraction(1, 3), Fraction(3, 5)])
    >>> round(bound / (2 * math.sqrt(math.log(2 / DELTA))), 5)
    0.52577
    """
    total = sum(sizes)
    return sum(n / total * part_bound(n, p, delta) for n, p in zip(sizes, retentions, strict=True))


def hoeffding_bound(sizes: Sequence[int], retentions: Sequence[Fraction], delta: float = DELTA) -> float:
    """The error of one value's frequency that is exceeded with probability at most δ."""
    spread = sum(n / float(p) ** 2 for n, p in zip(sizes, retentions, strict=True))
    return math.sqrt(math.log(2 / delta) / 2 * spread) / sum(sizes)


def value_rmse(sizes: Sequence[int], channels: Sequence[Channel], n_values: int) -> float:
    """The root of the mean variance of the m values' reconstructed counts, in rows.

    In a part the variances of its values' counts sum to n_j·(1 − (p+q)² − (m_j−1)·q²)/p², whatever the
    counts are.

    >>> value_rmse([100], [Channel(codes=(0, 1), gamma=Fraction(3))], 2)  # 100·(3/4)(1/4)/(1/2)² each
    8.660254037844387
    """
    total = Fraction(0)
    for n_rows, channel in zip(sizes, channels, strict=True):
        agreement = channel.diagonal**2 + (channel.n_values - 1) * channel.replacement**2
        total += n_rows * (1 - agreement) / channel.retention**2
    return math.sqrt(total / n_values)


class Measure(Enum):
    """What a partition's cost sums over its parts."""

    EPSILON = "epsilon"
    """√n_i·c_i, the paper's: the sum divided by n is ε(Part)/a."""
    VARIANCE = "variance"
    """n_i·c_i², of which Hoeffding's bound is the root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """The cost of candidate parts.

    A part must hold protected values (`least_top`), and none at a frequency of ρ2 or more: otherwise it
    costs ∞ and is never chosen. Comparing floats is safe here: rounding is monotone, so fl(f) < fl(ρ2)
    implies f < ρ2.
    """

    protected: Bools
    """Which codes are in SA′."""
    rho2: float
    measure: Measure = Measure.EPSILON
    least_top: int = 1
    """A part's top protected count must be this or more."""

    def of_shape(self, n_rows: Ints, n_values: Ints, top: Ints) -> Floats:
        """The cost of parts with these rows, distinct values and counts of their top protected value.

        No rows cost nothing.
        """
        share = top / np.maximum(n_rows, 1)
        is_valid = (top >= self.least_top) & (share < self.rho2)
        slack = np.where(is_valid, self.rho2 - share, 1.0)
        factor = 1 + n_values * share * (1 - self.rho2) / slack  # c = 1 + m/(γ−1)
        cost = np.sqrt(np.maximum(n_rows, 0)) * factor
        if self.measure is Measure.VARIANCE:
            cost = np.square(cost)
        return np.where(n_rows == 0, 0.0, np.where(is_valid, cost, np.inf))

    def of_parts(self, quotas: Ints) -> Floats:
        """The cost of each row of a k × m table of quotas."""
        top = np.where(self.protected, quotas, 0).max(axis=1)
        return self.of_shape(quotas.sum(axis=1), np.count_nonzero(quotas, axis=1).astype(np.int64), top)

    def total(self, quotas: Ints) -> float:
        """The cost of a partition."""
        return float(self.of_parts(quotas).sum())
