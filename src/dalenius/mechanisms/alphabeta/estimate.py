"""Counts of the table from a view: unbiased estimates with their variances.

A query's tuples are independent: one of the table is in V with probability s, one outside it with β. So
n_V = Binomial(Q, s) + Binomial(n_D − Q, β), and every estimate here is a weighted sum over tuples whose
variance is Q·(variance of a tuple inside) + (n_D − Q)·(variance of one outside). Estimates may be negative.

The best linear estimate from all views of a series.

A tuple's pattern matters only through (the view that first shows it, how often it appears after that).
With P_c and R_c the probabilities of class c for a tuple inside and outside the table, Σ_c w_c·n_c is
unbiased iff Σ w_c·P_c = 1 and Σ w_c·R_c = 0, the class "never shown" included. Its variance is
Σ_c w_c²·(Q·P_c + (n_D−Q)·R_c) − Q, least for w_c = (x·P_c + y·R_c)/(π·P_c + (1−π)·R_c) where π is the share
Q/n_D. Any π gives an unbiased estimate, so one is fixed for a release; one view gives algorithm 3's weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dalenius.mechanisms.alphabeta.law import ViewLaw
from dalenius.mechanisms.alphabeta.parameters import round_up


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


Pattern = tuple[int, int]
"""(the first view that shows the tuple, in how many later views it appears)."""
NEVER: Pattern = (0, 0)

_SHARE_DIGITS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternWeights:
    """What a tuple of each pattern counts for."""

    weights: Mapping[Pattern, Fraction]
    tuple_variance: TupleVariance

    @property
    def spread(self) -> Fraction:
        """The largest difference that one tuple can make."""
        return max(self.weights.values()) - min(self.weights.values())

    def estimate(self, pattern_counts: Mapping[Pattern, int], n_domain: int) -> CountEstimate:
        """The count, from how many of the query's tuples show each pattern (those never shown left out)."""
        n_never = n_domain - sum(pattern_counts.values())
        value = self.weights[NEVER] * n_never
        value += sum(self.weights[pattern] * count for pattern, count in pattern_counts.items())
        return CountEstimate(value=value, population=n_domain, tuple_variance=self.tuple_variance)


def combine_views(law: ViewLaw, published: int, share: Fraction) -> PatternWeights:
    """The weights for the first `published` views of a series, best where `share` of the tuples are real."""
    inside, outside = _pattern_laws(law, published)
    mixed = {c: share * inside[c] + (1 - share) * outside[c] for c in inside}
    pp = sum((inside[c] ** 2 / mixed[c] for c in mixed), Fraction(0))
    pr = sum((inside[c] * outside[c] / mixed[c] for c in mixed), Fraction(0))
    rr = sum((outside[c] ** 2 / mixed[c] for c in mixed), Fraction(0))
    determinant = pp * rr - pr**2
    x, y = rr / determinant, -pr / determinant
    weights = {c: (x * inside[c] + y * outside[c]) / mixed[c] for c in mixed}
    variance = TupleVariance(
        inside=sum((inside[c] * w**2 for c, w in weights.items()), Fraction(-1)),
        outside=sum((outside[c] * w**2 for c, w in weights.items()), Fraction(0)),
    )
    return PatternWeights(weights=weights, tuple_variance=variance)


def working_share(n_first_view: int, domain_size: int, law: ViewLaw) -> Fraction:
    """The share of D that is real, from the first view's size, to two digits: enough to choose weights by."""
    total = estimate_count(n_first_view, domain_size, law).value
    return min(round_up(max(total, Fraction(1)) / domain_size, _SHARE_DIGITS), Fraction(1, 2))


def _pattern_laws(law: ViewLaw, published: int) -> tuple[dict[Pattern, Fraction], dict[Pattern, Fraction]]:
    """The probability of each pattern for a tuple inside the table and for one outside."""
    s, again = law.retention, law.seen_rate
    inside, outside = {}, {}
    unseen = Fraction(1)
    for first in range(1, published + 1):
        fresh, left = law.fresh_rate(first), published - first
        for later in range(left + 1):
            ways = math.comb(left, later)
            inside[first, later] = (1 - s) ** (first - 1) * s * ways * s**later * (1 - s) ** (left - later)
            outside[first, later] = unseen * fresh * ways * again**later * (1 - again) ** (left - later)
        unseen *= 1 - fresh
    inside[NEVER], outside[NEVER] = (1 - s) ** published, unseen
    return inside, outside
