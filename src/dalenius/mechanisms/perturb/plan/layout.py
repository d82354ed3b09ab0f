"""The plan of a perturbation: which part gets how many records of each value, and each part's law.

It is a function of the counts and the promise alone, so it costs the same for 10⁵ and for 10⁹ rows.

What holds for a value outside SA′ (commoner than ρ1): nothing is promised, its posterior can exceed ρ2, and
`unprotected_posterior` says how high it goes. What cannot happen in a valid part: a single value (it would
be published as it is; in SA′ its ρ1_i is 1, outside it the part has no ρ1_i), or no protected value at all
(γ_i would be unbounded). So every part has two values or more and 1 < γ_i < ∞.

The posterior is that of one record from its own published value and part, the prior being the part's
histogram, independent of the other records. Who knows the exact counts of a small part and looks at all of
it learns more (three values once each, γ = 4: 34/39 instead of 2/3; 0.668 at a hundred times each).

Error bounds of a partition, and the objective that the searches minimise.

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
from dalenius.errors import InternalError
from dalenius.mechanisms.perturb.channel import Channel, largest_posterior
from dalenius.plain import plain_fields
from dalenius.promises.rho_privacy import RhoPrivacy
from dalenius.tables.histogram import Counted

DELTA = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part: its records by value, and the law that perturbs them."""

    n_rows: int
    codes: tuple[int, ...]
    counts: tuple[int, ...]
    gamma: Fraction
    rho1: Fraction
    """The largest frequency of a protected value here (small-domain), or the promise's ρ1 (uniform)."""
    weights: tuple[int, ...] | None = None
    """How often each value is a replacement, in proportion; None: all alike."""

    @property
    def channel(self) -> Channel:
        """What is public of the part."""
        return Channel(codes=self.codes, gamma=self.gamma, weights=self.weights)

    @property
    def retention(self) -> Fraction:
        """The probability p that a value is kept."""
        return self.channel.retention

    @property
    def diagonal(self) -> Fraction:
        """The probability p + q that a value is published as it is; with weights, of the part's records."""
        if self.weights is None:
            return self.channel.diagonal
        drawn = sum(weight * count for weight, count in zip(self.weights, self.counts, strict=True))
        p = self.retention
        return p + (1 - p) * Fraction(drawn, sum(self.weights) * self.n_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbPlan(Counted):
    """How a table with these counts is perturbed. `str(plan)` is a table."""

    method: str
    promise: RhoPrivacy
    counts: tuple[int, ...]
    protected: tuple[int, ...]
    """The codes in SA′."""
    parts: tuple[Part, ...]
    search: str
    """Which search found the partition."""
    error_bound: float
    """The paper's ε(Part)."""
    error_bound_hoeffding: float
    value_rmse: float
    """The root mean square error of the values' reconstructed counts, in rows."""
    paper_error_bound: float
    """ε(Part) of the partition that the paper's own procedure finds."""
    n_groups: int
    """The number t of the paper's initial groups; 1 for the uniform method."""

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The public law of each part."""
        return tuple(part.channel for part in self.parts)

    @property
    def is_for_any_prior(self) -> bool:
        """Whether the promise holds whatever is believed of a person: the whole table is one part."""
        return self.method in ("uniform", "weighted")

    @property
    def largest_amplification(self) -> Fraction:
        """Of the value and part of which several published values together tell most."""
        if self.method == "weighted":
            return self.promise.amplification(self.parts[0].rho1)
        return max(part.gamma for part in self.parts)

    @property
    def average_retention(self) -> float:
        """The plain mean of the parts' p, as in the paper's table 2."""
        return float(sum(part.retention for part in self.parts)) / len(self.parts)

    @property
    def smallest_top(self) -> int:
        """The smallest number of records that a part has of its commonest protected value."""
        return min(int(part.rho1 * part.n_rows) for part in self.parts)

    @property
    def posterior(self) -> Fraction:
        """The highest posterior of a protected value, exactly."""
        return self._largest_posterior(self.protected)

    @property
    def unprotected_posterior(self) -> Fraction:
        """The highest posterior of a value for which nothing is promised (0 if there is none)."""
        return self._largest_posterior(set(range(self.n_values)) - set(self.protected))

    def quota(self) -> Ints:
        """Values × parts: how many records of each value go to each part."""
        quota = np.zeros((self.n_values, len(self.parts)), dtype=np.int64)
        for number, part in enumerate(self.parts):
            quota[list(part.codes), number] = part.counts
        return quota

    def check(self) -> None:
        """Check the plan in exact arithmetic, against the counts and by Bayes' rule."""
        if self.quota().sum(axis=1).tolist() != list(self.counts):
            raise InternalError("the parts' quotas do not sum to the table's counts")
        for number, part in enumerate(self.parts):
            if min(part.counts) <= 0 or sum(part.counts) != part.n_rows:
                raise InternalError(f"part {number} does not hold the records that it says")
        if self.posterior > self.promise.rho2:
            raise InternalError(
                f"a protected value's posterior reaches {float(self.posterior):.6g}, above rho2 "
                f"({self.promise.rho2})"
            )
        if self.method == "uniform" and self.parts[0].gamma > self.promise.amplification(
            self.promise.prior_limit(self.counts)
        ):
            raise InternalError("gamma is above what rho1 and rho2 allow against every prior")

    def to_dict(self) -> dict[str, object]:
        """What `plan --json` shows of it."""
        return {
            "mechanism": "perturb",
            "method": self.method,
            "feasible": True,
            "rows": self.n_rows,
            "search": self.search,
            "parts": [
                {
                    "rows": part.n_rows,
                    "values": len(part.codes),
                    "gamma": float(part.gamma),
                    "retention": float(part.retention),
                    "diagonal": float(part.diagonal),
                    "weighted": part.weights is not None,
                }
                for part in self.parts
            ],
            **plain_fields(self, "error_bound", "error_bound_hoeffding", "value_rmse"),
            **plain_fields(self, "paper_error_bound", "average_retention"),
        }

    def __str__(self) -> str:
        lines = [f"{'part':>4} {'rows':>12} {'values':>7} {'gamma':>8} {'p':>7} {'p + q':>7}"]
        lines += [
            f"{number:>4} {part.n_rows:>12,} {len(part.codes):>7,} {float(part.gamma):>8.3f} "
            f"{float(part.retention):>7.2%} {float(part.diagonal):>7.2%}"
            for number, part in enumerate(self.parts)
        ]
        lines.append(
            f"{self.method} ({self.search}): error bound {self.error_bound:.4g} (the paper's procedure "
            f"{self.paper_error_bound:.4g}), Hoeffding {self.error_bound_hoeffding:.4g}, "
            f"root mean square error of a count {self.value_rmse:.4g} rows, average retention "
            f"{self.average_retention:.2%}"
        )
        return "\n".join(lines)

    def _largest_posterior(self, targets: Sequence[int] | set[int]) -> Fraction:
        aimed = set(targets)
        return max(
            largest_posterior(
                part.codes,
                part.counts,
                [part.channel.amplification(place) for place in range(len(part.codes))]
                if part.weights is not None
                else part.gamma,
                aimed,
            )
            for part in self.parts
        )


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


def weighted_rmse(counts: Sequence[int], channel: Channel) -> float:
    """The same of one part whose replacements have weights π, by the counts of its values.

    A record with value z adds (1−p)/p·(1 − 2π_z + Σπ²) + (1−p)/p²·(1 − Σπ²), summed over the values.

    >>> weighted_rmse([70, 30], Channel(codes=(0, 1), gamma=Fraction(3), weights=(1, 1)))
    8.660254037844387
    """
    drawn, p = channel.drawn(), float(channel.retention)
    records, agreement = np.asarray(counts, dtype=np.float64), float(drawn @ drawn)
    own = records.sum() * (1 + agreement) - 2 * float(records @ drawn)
    coins = (1 - p) / p * own + (1 - p) / p**2 * records.sum() * (1 - agreement)
    return math.sqrt(coins / len(counts))


class LayoutMeasure(Enum):
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
    measure: LayoutMeasure = LayoutMeasure.EPSILON
    least_top: int = 1
    """A part's top protected count must be this or more."""

    def of_shape(self, n_rows: Ints | Floats, n_values: Ints | Floats, top: Ints | Floats) -> Floats:
        """The cost of parts with these rows, distinct values and counts of their top protected value.

        No rows cost nothing.
        """
        cost: Floats = top / np.maximum(
            n_rows, 1
        )  # a share; the rest in its place: searches ask for many shapes
        is_valid = (top >= self.least_top) & (cost < self.rho2)
        slack = np.where(is_valid, self.rho2 - cost, 1.0)
        cost *= n_values
        cost *= 1 - self.rho2
        cost /= slack
        cost += 1  # c = 1 + m/(γ−1)
        cost *= np.sqrt(np.maximum(n_rows, 0))
        if self.measure is LayoutMeasure.VARIANCE:
            np.square(cost, out=cost)
        cost[~is_valid] = np.inf
        cost[n_rows == 0] = 0.0
        return cost

    def of_parts(self, quotas: Ints) -> Floats:
        """The cost of each row of a k × m table of quotas."""
        top = np.where(self.protected, quotas, 0).max(axis=1)
        return self.of_shape(quotas.sum(axis=1), np.count_nonzero(quotas, axis=1).astype(np.int64), top)

    def total(self, quotas: Ints) -> float:
        """The cost of a partition."""
        return float(self.of_parts(quotas).sum())
