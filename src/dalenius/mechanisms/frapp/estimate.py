"""Counts of the table from a FRAPP view: unbiased estimates with their variances.

Records are independent: one that satisfies the query is published as such a one with probability p_in, any
other with p_out. So n_V = Binomial(Q, p_in) + Binomial(n − Q, p_out). Estimates may be negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dalenius.mechanisms.tuples.interval import CountEstimate, TupleVariance


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
