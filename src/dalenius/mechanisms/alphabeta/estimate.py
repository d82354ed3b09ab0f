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

from dalenius.exact import round_up
from dalenius.mechanisms.alphabeta.plan.law import ViewLaw
from dalenius.mechanisms.tuples.interval import CountEstimate, TupleVariance

Pattern = tuple[int, int]
"""(the first view that shows the tuple, in how many later views it appears)."""
NEVER: Pattern = (0, 0)
_SHARE_DIGITS = 2


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
