"""How sums over a view become estimates, covariances and intervals: one kernel per kind of view.

Every estimate is a weighted sum over the view's rows, plus a multiple of a sum over the domain. Its
covariances have a known part, from the domain alone, and a part that is itself estimated, from the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np

from dalenius.arrays import Floats
from dalenius.ask.view_sums import Sums
from dalenius.mechanisms.alphabeta.estimate import estimate_count
from dalenius.mechanisms.alphabeta.law import ViewLaw
from dalenius.mechanisms.frapp.estimate import FrappRates, estimate_frapp
from dalenius.mechanisms.tuples.interval import (
    CountEstimate,
    Interval,
    TupleVariance,
    count_interval,
    weighted_interval,
)
from dalenius.mechanisms.tuples.noise import NoiseLaw


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Covariance:
    """Of two totals, per group: what the domain decides, and what is estimated, with its largest value."""

    known: Floats
    estimated: Floats
    most: Floats


class Kernel(Protocol):
    """One way of estimating totals."""

    @property
    def formula(self) -> str:
        """How the estimate comes about, for `explain`."""

    @property
    def spread(self) -> float:
        """The largest difference that one tuple that counts 1 can make."""

    def estimate(self, sums: Sums, summand: int) -> Floats:
        """A total, per group."""

    def covariance(self, sums: Sums, one: int, two: int) -> Covariance:
        """Of two totals, per group."""

    def count_intervals(self, sums: Sums, summand: int, confidence: float) -> list[Interval]:
        """Per group, an interval for how many tuples of the table the summand counts."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UniformKernel:
    """Views with uniform noise: a tuple counts for the weight of its pattern over the views."""

    formula: str
    row_weights: Floats
    """Per row, its weight less that of a tuple that was never shown."""
    never: Fraction
    variance: TupleVariance
    spread: float
    single: ViewLaw | None
    """The law, if there is one view, whose counts have exact intervals."""

    def estimate(self, sums: Sums, summand: int) -> Floats:
        """A total, per group."""
        shown = sums.over_rows(summand, weights=self.row_weights)
        return shown + float(self.never) * sums.over_domain(summand)

    def covariance(self, sums: Sums, one: int, two: int) -> Covariance:
        """Of two totals, per group."""
        population = sums.over_domain(one, two)
        inside = sums.over_rows(one, two, weights=self.row_weights) + float(self.never) * population
        slope = float(self.variance.inside - self.variance.outside)
        outside = float(self.variance.outside)
        return Covariance(known=outside * population, estimated=slope * inside, most=slope * population)

    def count_intervals(self, sums: Sums, summand: int, confidence: float) -> list[Interval]:
        """Intervals for how many tuples of the table the summand counts, per group."""
        population = sums.count_domain(summand)
        if self.single is not None:
            rows = sums.count_rows(summand)
            return [
                _single_interval(round(n), round(size), self.single, confidence)
                for n, size in zip(rows.tolist(), population.tolist(), strict=True)
            ]
        shown = sums.count_rows(summand, self.row_weights)
        return [
            weighted_interval(
                CountEstimate(
                    value=Fraction(weight) + self.never * round(size),
                    population=round(size),
                    tuple_variance=self.variance,
                ),
                Fraction(self.spread),
                confidence,
            )
            for weight, size in zip(shown.tolist(), population.tolist(), strict=True)
        ]


@lru_cache(maxsize=65536)
def _single_interval(n_view: int, n_domain: int, law: ViewLaw, confidence: float) -> Interval:
    estimate = estimate_count(n_view, n_domain, law)
    return count_interval(n_view, estimate, law.retention, law.beta, confidence)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShapedKernel:
    """A view whose noise follows declared distributions: (Σ_V f − Σ_D β(t)·f)/α."""

    law: ViewLaw
    row_beta: Floats
    """β(t) of each row."""
    spread: float
    formula = "Σ over the view of f, less Σ β(t)·f(t) over the domain, divided by α"

    @classmethod
    def of(cls, law: ViewLaw, noise: NoiseLaw, codes: tuple[np.ndarray, ...]) -> ShapedKernel:
        """For the rows with these codes."""
        beta = float(law.beta) * noise.relative(codes)
        return cls(law=law, row_beta=beta, spread=1 / float(law.alpha))

    def _beta_sum(self, sums: Sums, *summands: int, power: int) -> Floats:
        return float(self.law.beta) ** power * sums.over_domain(*summands, power=power)

    def estimate(self, sums: Sums, summand: int) -> Floats:
        """A total, per group."""
        inserted = self._beta_sum(sums, summand, power=1)
        return (sums.over_rows(summand) - inserted) / float(self.law.alpha)

    def covariance(self, sums: Sums, one: int, two: int) -> Covariance:
        """Σ_D f²·β(1−β)/α² + Σ_I f²·(1−α−2β)/α, since s(1−s) − β(1−β) = α(1−α−2β) with s = α+β."""
        alpha = float(self.law.alpha)
        first = self._beta_sum(sums, one, two, power=1)
        second = self._beta_sum(sums, one, two, power=2)
        inside = (sums.over_rows(one, two) - first) / alpha
        inside_beta = (sums.over_rows(one, two, weights=self.row_beta) - second) / alpha
        return Covariance(
            known=(first - second) / alpha**2,
            estimated=((1 - alpha) * inside - 2 * inside_beta) / alpha,
            most=(1 - alpha) / alpha * sums.over_domain(one, two),
        )

    def count_intervals(self, sums: Sums, summand: int, confidence: float) -> list[Interval]:
        """Intervals for how many tuples of the table the summand counts, per group."""
        alpha = self.law.alpha
        rows, population = sums.count_rows(summand), sums.count_domain(summand)
        inserted = (float(self.law.beta) * sums.count_domain(summand, power=1)).tolist()
        s = self.law.retention
        inside = (s * (1 - s) if s <= Fraction(1, 2) else Fraction(1, 4)) / alpha**2
        return [
            weighted_interval(
                CountEstimate(
                    value=(round(n) - Fraction(beta_sum)) / alpha,
                    population=round(size),
                    tuple_variance=TupleVariance(
                        inside=inside, outside=Fraction(beta_sum) / max(round(size), 1) / alpha**2
                    ),
                ),
                1 / alpha,
                confidence,
            )
            for n, size, beta_sum in zip(rows.tolist(), population.tolist(), inserted, strict=True)
        ]


@lru_cache(maxsize=64)
def _other_rate(gamma_f: Fraction, domain_size: int) -> float:
    return float((1 - gamma_f) / (domain_size - 1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrappKernel:
    """A FRAPP view of n records: (Σ_V f − n·q·F)/(γ_f − q), q the rate of one other tuple, F = Σ_D f."""

    gamma_f: Fraction
    domain_size: int
    n_rows: int
    formula = "(Σ over the view of f, less n·q·Σ f over the domain) / (γ_f − q), q = (1−γ_f)/(m−1)"

    @property
    def _other(self) -> float:
        return _other_rate(self.gamma_f, self.domain_size)

    @property
    def _slope(self) -> float:
        return float(self.gamma_f) - self._other

    @property
    def spread(self) -> float:
        """The largest difference that one record can make."""
        return 1 / abs(self._slope)

    def estimate(self, sums: Sums, summand: int) -> Floats:
        """A total, per group."""
        expected = self.n_rows * self._other * sums.over_domain(summand)
        return (sums.over_rows(summand) - expected) / self._slope

    def covariance(self, sums: Sums, one: int, two: int) -> Covariance:
        """Σ over records of E[f·g] − E[f]·E[g], where E[f] = slope·f(x) + q·F for a record x.

        What is estimated in it is moved to what is possible first.
        """
        other, slope, n = self._other, self._slope, self.n_rows
        product = sums.over_domain(one, two)
        first, second = sums.over_domain(one), sums.over_domain(two)
        inside = (sums.over_rows(one, two) - n * other * product) / slope
        inside = np.maximum(inside, 0.0) if one == two else inside
        mixed = first * self._possible(sums, two) + second * self._possible(sums, one)
        total = slope * (1 - slope) * inside - slope * other * mixed
        total += n * (other * product - other**2 * first * second)
        nothing = np.zeros(len(product))
        return Covariance(known=total / slope**2, estimated=nothing, most=nothing)

    def _possible(self, sums: Sums, summand: int) -> Floats:
        """An estimate of a total, between 0 and n where it is a count."""
        is_count = sums.question.summands[summand].number is None
        estimate = self.estimate(sums, summand)
        return np.clip(estimate, 0.0, self.n_rows) if is_count else estimate

    def count_intervals(self, sums: Sums, summand: int, confidence: float) -> list[Interval]:
        """Intervals for how many tuples of the table the summand counts, per group."""
        rows, population = sums.count_rows(summand), sums.count_domain(summand)
        return [
            self._interval(round(n), round(size), confidence)
            for n, size in zip(rows.tolist(), population.tolist(), strict=True)
        ]

    def _interval(self, n_view: int, n_domain: int, confidence: float) -> Interval:
        if n_domain in (0, self.domain_size):
            return float(n_view), float(n_view)  # no record, or every record
        rates = FrappRates.of(self.gamma_f, n_domain, self.domain_size)
        estimate = estimate_frapp(
            n_view, n_domain, n_rows=self.n_rows, domain_size=self.domain_size, gamma_f=self.gamma_f
        )
        return count_interval(n_view, estimate, rates.inside, rates.outside, confidence)
