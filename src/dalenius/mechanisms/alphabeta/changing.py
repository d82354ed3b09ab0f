"""Asking views of a table that changes: the table at each date, and the change between two dates.

Given the views before it, view i shows a tuple of its table with s; any other one that they have shown with
s·e, and one that they have not with β. So Σ_t f(t)·w_t with

    w = (1[t ∈ V_i] − r_t)/(s − r_t),   r_t = s·e if an earlier view shows t, else β

has the mean Σ f over the table of date i, whatever the tables before were, and no other weights are unbiased
for every history. Given the earlier views a tuple adds r(1−r)/(s−r)² to the variance if it is not in the
table and s(1−s)/(s−r)² if it is. The error of a later view has mean 0 given the earlier ones, so errors of
two views are uncorrelated, and the variance of a change is the sum of the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.alphabeta.plan.law import ViewLaw
from dalenius.mechanisms.tuples.answer.estimation import Covariance, Kernel
from dalenius.mechanisms.tuples.answer.question import Sums
from dalenius.mechanisms.tuples.interval import CountEstimate, Interval, TupleVariance, weighted_interval


def kernels_of_changing(shown: Ints, law: ViewLaw) -> dict[str, Callable[[], Kernel]]:
    """By name: every view, the last first, and the change from each to each later one."""
    n_views = len(shown)
    views = {f"view-{i}": partial(DateKernel.of, shown, law, i) for i in range(n_views, 0, -1)}
    changes = {
        f"change-{i}-{j}": partial(ChangeKernel.of, shown, law, i, j)
        for i, j in combinations(range(1, n_views + 1), 2)
    }
    return {**views, **changes}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ViewKind:
    """Tuples that earlier views have shown, or have not: their rate r outside the table."""

    rate: float
    retention: float

    @property
    def hit(self) -> float:
        return (1 - self.rate) / (self.retention - self.rate)

    @property
    def miss(self) -> float:
        return -self.rate / (self.retention - self.rate)

    @property
    def outside(self) -> float:
        """What a tuple adds to the variance that is not in the table."""
        return self.rate * (1 - self.rate) / (self.retention - self.rate) ** 2

    @property
    def slope(self) -> float:
        """How much more one adds that is."""
        s = self.retention
        return s * (1 - s) / (s - self.rate) ** 2 - self.outside


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DateKernel:
    """The table as it was at one of the views."""

    view: int
    seen: _ViewKind
    fresh: _ViewKind
    before: Floats
    """Per row, 1 if a view before this one shows it."""
    weights: Floats
    """Per row, its weight less that of a fresh tuple that the view does not show."""
    assumption = None
    has_ratios = True

    @classmethod
    def of(cls, shown: Ints, law: ViewLaw, view: int) -> DateKernel:
        """From which views show which rows (views × rows)."""
        s = float(law.retention)
        seen = _ViewKind(rate=float(law.seen_rate), retention=s)
        fresh = _ViewKind(rate=float(law.fresh_rate(view)), retention=s)
        before: Bools = np.asarray(shown[: view - 1].any(axis=0))
        now: Bools = shown[view - 1] == 1
        weights = np.where(before, np.where(now, seen.hit, seen.miss), np.where(now, fresh.hit, fresh.miss))
        return cls(
            view=view,
            seen=seen,
            fresh=fresh,
            before=before.astype(np.float64),
            weights=weights - fresh.miss,
        )

    @property
    def formula(self) -> str:
        """How a total comes about."""
        return (
            f"the table as it was at view {self.view}: (n_again − s·e·n_shown)/(s(1−e)) + "
            "(n_fresh − β·(n_D − n_shown))/(s − β), shown by earlier views"
        )

    @property
    def spread(self) -> float:
        """The largest difference that one tuple can make."""
        kinds = (self.seen, self.fresh) if self.before.any() else (self.fresh,)
        return max(kind.hit for kind in kinds) - min(kind.miss for kind in kinds)

    def estimate(self, sums: Sums, summand: int) -> Floats:
        """A total, per group."""
        return sums.over_rows(summand, weights=self.weights) + self.fresh.miss * sums.over_domain(summand)

    def covariance(self, sums: Sums, one: int, two: int) -> Covariance:
        """Of two totals, per group: of the tuples shown before, and of the others."""
        population = sums.over_domain(one, two)
        shown = sums.over_rows(one, two, weights=self.before)
        inside = sums.over_rows(one, two, weights=self.weights) + self.fresh.miss * population
        # what is inside of those shown before: their own weights are (1[t ∈ V] − r)/(s − r)
        inside_shown = sums.over_rows(one, two, weights=(self.weights + self.fresh.miss) * self.before)
        rest = population - shown
        return Covariance(
            known=self.seen.outside * shown + self.fresh.outside * rest,
            estimated=self.seen.slope * inside_shown + self.fresh.slope * (inside - inside_shown),
            most=max(self.seen.slope, 0.0) * shown + max(self.fresh.slope, 0.0) * rest,
        )

    def count_intervals(self, sums: Sums, summand: int, confidence: float) -> list[Interval]:
        """Intervals for how many tuples of the table the summand counts, per group."""
        population = sums.count_domain(summand)
        shown = sums.count_rows(summand, self.before)
        values = sums.count_rows(summand, self.weights) + self.fresh.miss * population
        known = self.seen.outside * shown + self.fresh.outside * (population - shown)
        slope = max(self.fresh.slope, self.seen.slope, 0.0)
        return [
            weighted_interval(
                CountEstimate(
                    value=Fraction(value),
                    population=round(size),
                    tuple_variance=TupleVariance(
                        inside=Fraction(variance / max(size, 1.0) + slope),
                        outside=Fraction(variance / max(size, 1.0)),
                    ),
                ),
                Fraction(self.spread),
                confidence,
            )
            for value, size, variance in zip(
                values.tolist(), population.tolist(), known.tolist(), strict=True
            )
        ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChangeKernel:
    """How much more a later table has than an earlier one; less than nothing where it has less."""

    earlier: DateKernel
    later: DateKernel
    assumption = None
    has_ratios = False

    @classmethod
    def of(cls, shown: Ints, law: ViewLaw, earlier: int, later: int) -> ChangeKernel:
        """From one view to another."""
        return cls(earlier=DateKernel.of(shown, law, earlier), later=DateKernel.of(shown, law, later))

    @property
    def formula(self) -> str:
        """How a total comes about."""
        return (
            f"the change from view {self.earlier.view} to view {self.later.view}: the estimate of the later "
            "table less that of the earlier one, whose errors are uncorrelated"
        )

    @property
    def spread(self) -> float:
        """The largest difference that one tuple can make."""
        return self.earlier.spread + self.later.spread

    def estimate(self, sums: Sums, summand: int) -> Floats:
        """The change of a total, per group."""
        return self.later.estimate(sums, summand) - self.earlier.estimate(sums, summand)

    def covariance(self, sums: Sums, one: int, two: int) -> Covariance:
        """Of two totals, per group."""
        parts = [kernel.covariance(sums, one, two) for kernel in (self.earlier, self.later)]
        return Covariance(
            known=_add([part.known for part in parts]),
            estimated=_add([part.estimated for part in parts]),
            most=_add([part.most for part in parts]),
        )

    def count_intervals(self, sums: Sums, summand: int, confidence: float) -> list[Interval]:
        """Both tables' intervals, whose reaches add up in squares where errors are as good as normal.

        An interval of one table reaches from its estimate by what its own law needs, few tuples included.
        """
        one, two = (k.count_intervals(sums, summand, confidence) for k in (self.earlier, self.later))
        first, second = (k.estimate(sums, summand) for k in (self.earlier, self.later))
        return [
            (
                after - before - math.hypot(after - low_two, high_one - before),
                after - before + math.hypot(high_two - after, before - low_one),
            )
            for before, after, (low_one, high_one), (low_two, high_two) in zip(
                first.tolist(), second.tolist(), one, two, strict=True
            )
        ]


def _add(parts: Sequence[Floats]) -> Floats:
    return np.asarray(sum(parts, start=np.zeros(1)))
