"""Asking αβ views: one of them, or all views of a series together.

Counts of the table from a view: unbiased estimates with their variances.

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.errors import InputError
from dalenius.exact import round_up
from dalenius.mechanisms.alphabeta import published
from dalenius.mechanisms.alphabeta.changing import DateKernel, kernels_of_changing
from dalenius.mechanisms.alphabeta.plan.law import ViewLaw
from dalenius.mechanisms.alphabeta.published import PublishedView, marginal_law
from dalenius.mechanisms.tuples.answer.estimation import Covariance, Kernel, TupleModel, read_codes
from dalenius.mechanisms.tuples.answer.question import Sums
from dalenius.mechanisms.tuples.domain import Domain, TupleCodes, distinct_words, word_ids
from dalenius.mechanisms.tuples.interval import (
    CountEstimate,
    Interval,
    TupleVariance,
    count_interval,
    weighted_interval,
)
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.mechanisms.tuples.weighted import ClassLaw
from dalenius.question.model import Estimators
from dalenius.release.folder import StoredRelease
from dalenius.release.series import earlier_in_series

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


def load(release: StoredRelease) -> TupleModel:
    """The model of a view, or of all views of a series that was opened whole."""
    view = published.read(release.manifest)
    parts = [*earlier_in_series(release), release] if view.is_changing else list(release.parts)
    views = [read_codes(part, view.domain) for part in parts]
    if (release.earlier or view.is_changing) and view.index != len(views):
        raise InputError(
            f"the folder holds {len(views)} views and its last one is view {view.index}",
            hint="put the missing views back" + ("" if view.is_changing else ", or ask one view by itself"),
        )
    names = tuple(column.name for column in release.manifest.columns)
    return model_of(view, names, views)


def model_of(view: PublishedView, names: tuple[str, ...], views: Sequence[TupleCodes]) -> TupleModel:
    """The model of views that show these tuples; `view` says how the last of them was made."""
    codes, shown = join_views(view.domain, views)
    return TupleModel(
        domain=view.domain,
        names=names,
        codes=codes,
        n_shown=tuple(shown.sum(axis=1).tolist()),
        counts_rows=view.counts_rows,
        estimators=Estimators(makers=_kernels(view, codes, shown)),
        noise=view.noise,
    )


def _kernels(view: PublishedView, codes: TupleCodes, shown: Ints) -> dict[str, Callable[[], Kernel]]:
    """By the names of the estimators."""
    if view.noise is not None:  # which a series does not have
        return {"unbiased": partial(ShapedKernel.of, view.law, view.noise, codes)}
    if view.is_changing:
        return kernels_of_changing(shown, view.law)
    if len(shown) == 1:
        return {"unbiased": lambda: _single(marginal_law(view.law, view.index), len(codes[0]))}
    last = partial(DateKernel.of, shown, view.law, len(shown))
    return {"combined": lambda: _combine(shown, view), "last-view": last}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UniformKernel:
    """Views with uniform noise: a tuple counts for the weight of its pattern over the views."""

    formula: str
    row_weights: Floats
    """Per row, its weight less that of a tuple that was never shown."""
    never: Fraction
    variance: TupleVariance
    spread: float
    law: ViewLaw | ClassLaw
    """Of one view, whose counts have exact intervals, or of what a tuple of each pattern adds."""
    assumption = None
    has_ratios = True

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
        if isinstance(self.law, ViewLaw):
            rows = sums.count_rows(summand)
            return [
                _single_interval(round(n), round(size), self.law, confidence)
                for n, size in zip(rows.tolist(), population.tolist(), strict=True)
            ]
        shown = sums.count_rows(summand, self.row_weights)
        low, high = self.law.intervals(shown, population, confidence)
        return list(zip(low.tolist(), high.tolist(), strict=True))


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
    assumption = None
    has_ratios = True

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


def _single(law: ViewLaw, n_rows: int) -> UniformKernel:
    return UniformKernel(
        formula="(n_V − β·n_D)/α: what the view shows, less the insertions to be expected",
        row_weights=np.full(n_rows, float(1 / law.alpha)),
        never=-law.beta / law.alpha,
        variance=estimate_count(0, 1, law).tuple_variance,
        spread=float(1 / law.alpha),
        law=law,
    )


def _combine(shown: Ints, view: PublishedView) -> UniformKernel:
    n_views = len(shown)
    share = working_share(int(shown[0].sum()), view.domain.size, view.law)
    weights = combine_views(view.law, n_views, share)
    first = shown.argmax(axis=0) + 1
    later = shown.sum(axis=0) - 1
    (inside, outside), never = _pattern_laws(view.law, n_views), weights.weights[NEVER]
    more = {pattern: weight - never for pattern, weight in weights.weights.items()}
    table = np.zeros((n_views + 1, n_views))
    for (i, again), weight in more.items():
        table[i, again] = float(weight)
    return UniformKernel(
        formula="a tuple counts its pattern's weight, best for this share of noise",
        row_weights=table[first, later],
        never=never,
        variance=weights.tuple_variance,
        spread=float(weights.spread),
        law=ClassLaw.of((more[c], inside[c], outside[c]) for c in more),
    )


def join_views(domain: Domain, parts: Sequence[TupleCodes]) -> tuple[TupleCodes, Ints]:
    """The tuples of all views, each once, and which views show it (views × tuples)."""
    if len(parts) == 1:
        return parts[0], np.ones((1, len(parts[0][0])), dtype=np.int64)
    words = [domain.pack(part) for part in parts]
    everything = np.concatenate(words)
    ids = word_ids(everything)
    union = distinct_words(everything)
    shown = np.zeros((len(parts), len(union)), dtype=np.int64)
    number = np.repeat(np.arange(len(parts)), [len(part) for part in words])
    shown[number, ids] = 1
    return domain.unpack(union), shown
