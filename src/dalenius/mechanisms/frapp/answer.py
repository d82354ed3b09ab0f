"""Asking FRAPP views: unbiased estimates of counts, with their variances.

Records are independent: one that satisfies the query is published as such a one with probability p_in, any
other with p_out. So n_V = Binomial(Q, p_in) + Binomial(n − Q, p_out). Estimates may be negative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Floats
from dalenius.mechanisms.frapp import published
from dalenius.mechanisms.frapp.plan import FrappLaw
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
    n_rows = len(codes[0])
    return TupleModel(
        domain=view.domain,
        names=names,
        codes=codes,
        n_shown=(n_rows,),
        counts_rows=view.counts_rows,
        estimators=Estimators(makers={"inverse": lambda: FrappKernel.of(view.law, n_rows)}),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrappKernel:
    """A FRAPP view of n records: (Σ_V f − n·q·F)/(γ_f − q), q the rate of one other tuple, F = Σ_D f."""

    law: FrappLaw
    n_rows: int
    other: float
    """q, of the law."""
    slope: float
    """γ_f − q."""
    formula = "(Σ over the view of f, less n·q·Σ f over the domain) / (γ_f − q), q = (1−γ_f)/(m−1)"
    assumption = None
    has_ratios = True

    @classmethod
    def of(cls, law: FrappLaw, n_rows: int) -> FrappKernel:
        """The kernel of a view of so many records by that law."""
        other = float(law.other_rate)
        return cls(law=law, n_rows=n_rows, other=other, slope=float(law.gamma_f) - other)

    @property
    def spread(self) -> float:
        """The largest difference that one record can make."""
        return 1 / abs(self.slope)

    def estimate(self, sums: Sums, summand: int) -> Floats:
        """A total, per group."""
        expected = self.n_rows * self.other * sums.over_domain(summand)
        return (sums.over_rows(summand) - expected) / self.slope

    def covariance(self, sums: Sums, one: int, two: int) -> Covariance:
        """Σ over records of E[f·g] − E[f]·E[g], where E[f] = slope·f(x) + q·F for a record x.

        What is estimated in it is moved to what is possible first.
        """
        other, slope, n = self.other, self.slope, self.n_rows
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
        if n_domain in (0, self.law.domain_size):
            return float(n_view), float(n_view)  # no record, or every record
        estimate = estimate_frapp(n_view, n_domain, self.law, self.n_rows)
        return count_interval(n_view, estimate, *self.law.rates(n_domain), confidence)


def estimate_frapp(n_view: int, n_domain: int, law: FrappLaw, n_rows: int) -> CountEstimate:
    """The count from a FRAPP view, by the inverse of y = Ax: (n_V − n·p_out)/(p_in − p_out).

    >>> from fractions import Fraction
    >>> law = FrappLaw(k=Fraction(1), gamma_f=Fraction(1, 2), domain_size=3)
    >>> estimate_frapp(10, 3, law, n_rows=10).value
    Fraction(10, 1)
    """
    inside, outside = law.rates(n_domain)
    if law.slope == 0:
        raise ZeroDivisionError("gamma_f = 1/m publishes nothing about the table")
    variance = TupleVariance(
        inside=inside * (1 - inside) / law.slope**2, outside=outside * (1 - outside) / law.slope**2
    )
    return CountEstimate(
        value=(n_view - n_rows * outside) / law.slope, population=n_rows, tuple_variance=variance
    )
