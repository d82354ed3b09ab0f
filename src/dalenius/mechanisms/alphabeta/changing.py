"""Asking views of a table that changes: the table at each date, and the change between two dates.

Given the views before it, view i shows a tuple of its table with s; any other one that they have shown with
s·e, and one that they have not with β. So Σ_t f(t)·w_t with

    w = (1[t ∈ V_i] − r_t)/(s − r_t),   r_t = s·e if an earlier view shows t, else β

has the mean Σ f over the table of date i, whatever the tables before were, and no other weights are unbiased
for every history. Given the earlier views a tuple adds r(1−r)/(s−r)² to the variance if it is not in the
table and s(1−s)/(s−r)² if it is. The error of a later view has mean 0 given the earlier ones, so errors of
two views are uncorrelated, and the variance of a change is the sum of the two.

So is the last view of an unchanged table, given those before it: only its β differs from view to view.

Intervals of counts invert the law of the sum given the earlier views, whose tuples are of two kinds
(`tuples/weighted.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.alphabeta.plan.law import ViewLaw
from dalenius.mechanisms.tuples.answer.estimation import Covariance, Kernel
from dalenius.mechanisms.tuples.answer.question import Sums
from dalenius.mechanisms.tuples.interval import Interval
from dalenius.mechanisms.tuples.weighted import ClassLaw, Kind, invert


def kernels_of_changing(shown: Ints, law: ViewLaw) -> dict[str, Callable[[], Kernel]]:
    """By name: every view, the last first, and the change from each to each later one."""
    n_views = len(shown)
    views = {f"view-{i}": partial(DateKernel.of, shown, law, i) for i in range(n_views, 0, -1)}
    changes = {
        f"change-{i}-{j}": partial(ChangeKernel.of, shown, law, (i, j))
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
    def law(self) -> ClassLaw:
        """What the view adds for a tuple that it shows."""
        return ClassLaw(
            more=np.array([self.hit - self.miss]),
            inside=np.array([self.retention]),
            outside=np.array([self.rate]),
        )

    def count(self, size: Floats, inside: Floats, sign: float) -> Kind:
        """So many tuples, of which so many are estimated to be in the table."""
        variance = self.covariance(size, np.clip(inside, 0.0, size))
        return Kind(
            law=self.law,
            size=size,
            estimate=inside,
            variance=variance.known + variance.estimated,
            sign=sign,
        )

    def covariance(self, size: Floats, inside: Floats) -> Covariance:
        """Of two totals whose product sums up to this over all tuples of the kind, and to this in the table.

        What a tuple adds at least is known; what it adds more, if it is inside or if it is not, is estimated.
        """
        s, r = self.retention, self.rate
        scale = (s - r) ** 2
        if_inside, if_outside = s * (1 - s) / scale, r * (1 - r) / scale
        more = abs(if_inside - if_outside)
        which = inside if if_inside > if_outside else size - inside
        return Covariance(known=min(if_inside, if_outside) * size, estimated=more * which, most=more * size)


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
            "(n_fresh − b·(n_D − n_shown))/(s − b), shown by earlier views; b is its rate of other noise"
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
        return _add(
            self.seen.covariance(shown, inside_shown),
            self.fresh.covariance(population - shown, inside - inside_shown),
        )

    def count_intervals(self, sums: Sums, summand: int, confidence: float) -> list[Interval]:
        """Intervals for how many tuples of the table the summand counts, per group."""
        counted = self.count(sums, summand)
        most = counted.population
        low, high = invert(counted.kinds, counted.hits, (np.zeros(len(most)), most), confidence)
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def count(self, sums: Sums, summand: int, sign: float = 1.0) -> _Counted:
        """What the view shows of the tuples that a summand counts."""
        population = sums.count_domain(summand)
        shown = sums.count_rows(summand, self.before)
        inside = sums.count_rows(summand, self.weights) + self.fresh.miss * population
        inside_shown = sums.count_rows(summand, (self.weights + self.fresh.miss) * self.before)
        rest, inside_rest = population - shown, inside - inside_shown
        return _Counted(
            population=population,
            hits=inside - self.seen.miss * shown - self.fresh.miss * rest,
            kinds=(self.seen.count(shown, inside_shown, sign), self.fresh.count(rest, inside_rest, sign)),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Counted:
    """A count from one view, per group: how it is distributed."""

    population: Floats
    hits: Floats
    """The sum of what the tuples add that the view shows."""
    kinds: tuple[Kind, Kind]
    """Shown before, and others."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChangeKernel:
    """How much more a later table has than an earlier one; less than nothing where it has less."""

    earlier: DateKernel
    later: DateKernel
    assumption = None
    has_ratios = False

    @classmethod
    def of(cls, shown: Ints, law: ViewLaw, views: tuple[int, int]) -> ChangeKernel:
        """From one view to another."""
        earlier, later = (DateKernel.of(shown, law, view) for view in views)
        return cls(earlier=earlier, later=later)

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
        return _add(*(kernel.covariance(sums, one, two) for kernel in (self.earlier, self.later)))

    def count_intervals(self, sums: Sums, summand: int, confidence: float) -> list[Interval]:
        """By the law of the difference."""
        later, earlier = self.later.count(sums, summand), self.earlier.count(sums, summand, sign=-1.0)
        most = later.population
        kinds, hits = (*later.kinds, *earlier.kinds), later.hits - earlier.hits
        low, high = invert(kinds, hits, (-most, most), confidence)
        return list(zip(low.tolist(), high.tolist(), strict=True))


def _add(one: Covariance, two: Covariance) -> Covariance:
    return Covariance(
        known=one.known + two.known,
        estimated=one.estimated + two.estimated,
        most=one.most + two.most,
    )
