"""Asking FRAPP views: unbiased estimates of counts, with their variances.

Records are independent: one that satisfies the query is published as such a one with probability p_in, any
other with p_out. So n_V = Binomial(Q, p_in) + Binomial(n − Q, p_out). Estimates may be negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dalenius.arrays import Floats
from dalenius.mechanisms.frapp import published
from dalenius.mechanisms.frapp.published import PublishedFrapp
from dalenius.mechanisms.tuples.answer.estimation import Covariance, TupleModel, read_codes
from dalenius.mechanisms.tuples.answer.question import Sums
from dalenius.mechanisms.tuples.domain import TupleCodes
from dalenius.mechanisms.tuples.interval import CountEstimate, Interval, TupleVariance, count_interval
from dalenius.question.model import Estimators
from dalenius.release.folder import StoredRelease


def load(release: StoredRelease) -> TupleModel:
    """The model of a view."""
    view = published.read(release.manifest)
    names = tuple(column.name for column in release.manifest.columns)
    return model_of(view, names, read_codes(release, view.domain))


def model_of(view: PublishedFrapp, names: tuple[str, ...], codes: TupleCodes) -> TupleModel:
    """The model of a view that shows these tuples."""
    n_rows, size = len(codes[0]), view.domain.size
    return TupleModel(
        domain=view.domain,
        names=names,
        codes=codes,
        n_shown=(n_rows,),
        counts_rows=view.counts_rows,
        estimators=Estimators(
            makers={"inverse": lambda: FrappKernel(gamma_f=view.law.gamma_f, domain_size=size, n_rows=n_rows)}
        ),
    )


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
    assumption = None
    has_ratios = True

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


@dataclass(frozen=True, slots=True, kw_only=True)
class FrappRates:
    """How likely a record is to be published as one that satisfies the query."""

    inside: Fraction
    outside: Fraction

    @classmethod
    def of(cls, gamma_f: Fraction, n_domain: int, domain_size: int) -> FrappRates:
        """For a query that n_D of the domain's m tuples satisfy."""
        other = (1 - gamma_f) / (domain_size - 1)
        return cls(inside=gamma_f + other * (n_domain - 1), outside=other * n_domain)


def estimate_frapp(
    n_view: int, n_domain: int, *, n_rows: int, domain_size: int, gamma_f: Fraction
) -> CountEstimate:
    """The count from a FRAPP view, by the inverse of y = Ax: (n_V − n·p_out)/(p_in − p_out).

    >>> estimate_frapp(10, 3, n_rows=10, domain_size=3, gamma_f=Fraction(1, 2)).value
    Fraction(10, 1)
    """
    rates = FrappRates.of(gamma_f, n_domain, domain_size)
    slope = gamma_f - (1 - gamma_f) / (domain_size - 1)
    if slope == 0:
        raise ZeroDivisionError("gamma_f = 1/m publishes nothing about the table")
    variance = TupleVariance(
        inside=rates.inside * (1 - rates.inside) / slope**2,
        outside=rates.outside * (1 - rates.outside) / slope**2,
    )
    return CountEstimate(
        value=(n_view - n_rows * rates.outside) / slope, population=n_rows, tuple_variance=variance
    )
