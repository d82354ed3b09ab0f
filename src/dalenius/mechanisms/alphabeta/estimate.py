"""Counts of the table from a view: unbiased estimates with their variances.

A query's tuples are independent: one of the table is in V with probability s, one outside it with β. So
n_V = Binomial(Q, s) + Binomial(n_D − Q, β), and every estimate here is a weighted sum over tuples whose
variance is Q·(variance of a tuple inside) + (n_D − Q)·(variance of one outside). Estimates may be negative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dalenius.mechanisms.alphabeta.law import ViewLaw


@dataclass(frozen=True, slots=True, kw_only=True)
class TupleVariance:
    """What one tuple of the query adds to the variance of an estimate."""

    inside: Fraction
    """A tuple of the table (for FRAPP: a record that satisfies the query)."""
    outside: Fraction
    """A tuple of the domain that is not in the table (for FRAPP: a record that does not satisfy it)."""

    def total(self, count: Fraction | int, population: int) -> Fraction:
        """The estimate's variance at a true count, of a population of n_D tuples (FRAPP: n records)."""
        return count * self.inside + (population - count) * self.outside


@dataclass(frozen=True, slots=True, kw_only=True)
class CountEstimate:
    """An unbiased estimate of a count, and an estimate of its variance.

    The variance is the exact one at the estimate, moved into the possible range of counts first.
    """

    value: Fraction
    population: int
    tuple_variance: TupleVariance

    @property
    def variance(self) -> float:
        """The estimated variance."""
        possible = min(max(self.value, Fraction(0)), Fraction(self.population))
        return float(self.tuple_variance.total(possible, self.population))

    @property
    def std_error(self) -> float:
        """The estimated standard error."""
        return math.sqrt(self.variance)


def estimate_count(n_view: int, n_domain: int, law: ViewLaw) -> CountEstimate:
    """Q̃ = (n_V − β·n_D)/α (algorithm 3), exactly.

    >>> law = ViewLaw(retention=Fraction(2, 3) + Fraction(1, 150), beta=Fraction(1, 150))
    >>> round(float(estimate_count(6, 549, law).value), 2)
    3.51
    """
    s, beta, alpha = law.retention, law.beta, law.alpha
    variance = TupleVariance(inside=s * (1 - s) / alpha**2, outside=beta * (1 - beta) / alpha**2)
    return CountEstimate(
        value=(n_view - beta * n_domain) / alpha, population=n_domain, tuple_variance=variance
    )


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
