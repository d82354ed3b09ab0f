"""Asking views: one of αβ or FRAPP, or all views of a series together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.ask.view_kernels import FrappKernel, Kernel, ShapedKernel, UniformKernel
from dalenius.ask.view_rows import ViewRows
from dalenius.errors import InputError, ReleaseCorrupt
from dalenius.mechanisms import registry
from dalenius.mechanisms.alphabeta.estimate import (
    NEVER,
    PatternWeights,
    combine_views,
    estimate_count,
    working_share,
)
from dalenius.mechanisms.alphabeta.law import ViewLaw
from dalenius.mechanisms.alphabeta.published import PublishedView, marginal_law
from dalenius.mechanisms.frapp.published import PublishedFrapp
from dalenius.mechanisms.tuples.domain import Domain, TupleCodes, distinct_words, word_ids
from dalenius.mechanisms.tuples.interval import TupleVariance
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.release.folder import StoredRelease

ONE, COMBINED, LAST, INVERSE = "unbiased", "combined", "last-view", "inverse"


@dataclass(frozen=True, kw_only=True, eq=False)
class ViewModel:
    """The tuples of one view, or of all views of a series, encoded."""

    view: PublishedView | PublishedFrapp
    names: tuple[str, ...]
    """The columns that can be asked about."""
    codes: TupleCodes
    """Of every tuple that some view shows."""
    shown: Ints
    """Views × tuples: 1 where the view shows the tuple."""

    @classmethod
    def load(cls, release: StoredRelease) -> ViewModel:
        """Read and encode the views."""
        view = registry.room(release.mechanism, release.method, "published").read(release.manifest)
        parts = [_read(part, view.domain) for part in release.parts]
        if release.earlier and isinstance(view, PublishedView) and view.index != len(parts):
            raise InputError(
                f"the folder holds {len(parts)} views and its last one is view {view.index}",
                hint="put the missing views back, or ask one view by itself",
            )
        names = tuple(column.name for column in release.manifest.columns)
        if len(parts) == 1:
            shown = np.ones((1, len(parts[0][0])), dtype=np.int64)
            return cls(view=view, names=names, codes=parts[0], shown=shown)
        codes, shown = _join(view.domain, parts)
        return cls(view=view, names=names, codes=codes, shown=shown)

    @property
    def domain(self) -> Domain:
        """Every tuple that a row could be."""
        return self.view.domain

    @property
    def noise(self) -> NoiseLaw | None:
        """How insertions spread over the domain; None: evenly."""
        return self.view.noise if isinstance(self.view, PublishedView) else None

    @property
    def n_rows(self) -> int:
        """How many different rows there are."""
        return int(self.shown.shape[1])

    @cached_property
    def rows(self) -> ViewRows:
        """The rows, as questions look them up."""
        return ViewRows(codes=self.codes)

    @property
    def estimators(self) -> tuple[str, ...]:
        """The names of the ways of estimating; the first is the default."""
        if isinstance(self.view, PublishedFrapp):
            return (INVERSE,)
        return (ONE,) if len(self.shown) == 1 else (COMBINED, LAST)

    @property
    def default_estimator(self) -> str:
        """The one with the least variance."""
        return self.estimators[0]

    def kernel(self, estimator: str) -> Kernel:
        """How totals are estimated."""
        if estimator not in self._kernels:
            self._kernels[estimator] = self._make_kernel(estimator)
        return self._kernels[estimator]

    @cached_property
    def _kernels(self) -> dict[str, Kernel]:
        return {}

    def _make_kernel(self, estimator: str) -> Kernel:
        view = self.view
        if isinstance(view, PublishedFrapp):
            return FrappKernel(gamma_f=view.law.gamma_f, domain_size=view.domain.size, n_rows=self.n_rows)
        if view.noise is not None:
            return ShapedKernel.of(view.law, view.noise, self.codes)
        if estimator == ONE:
            return _single(marginal_law(view.law, view.index), self.n_rows)
        return _combined(self.shown, view) if estimator == COMBINED else _last(self.shown, view.law)

    def summary(self) -> str:
        """What was read, for `explain`."""
        rows = ", ".join(f"{int(n):,}" for n in self.shown.sum(axis=1))
        counted = "rows" if self.view.counts_rows else "different rows"
        return (
            f"view: {rows} rows, of a domain of {self.domain.size:,} tuples; answers count {counted}, not "
            "clipped: an estimate may be negative"
        )


def _single(law: ViewLaw, n_rows: int) -> UniformKernel:
    return UniformKernel(
        formula="(n_V − β·n_D)/α: what the view shows, less the insertions to be expected",
        row_weights=np.full(n_rows, float(1 / law.alpha)),
        never=-law.beta / law.alpha,
        variance=estimate_count(0, 1, law).tuple_variance,
        spread=float(1 / law.alpha),
        single=law,
    )


def _combined(shown: Ints, view: PublishedView) -> UniformKernel:
    n_views = len(shown)
    share = working_share(int(shown[0].sum()), view.domain.size, view.law)
    weights = combine_views(view.law, n_views, share)
    first = shown.argmax(axis=0) + 1
    later = shown.sum(axis=0) - 1
    return _weighted(weights, first, later, "its pattern's weight, best for this share of noise")


def _weighted(weights: PatternWeights, first: Ints, later: Ints, formula: str) -> UniformKernel:
    never = weights.weights[NEVER]
    n_views = max(pattern[0] for pattern in weights.weights)
    table = np.zeros((n_views + 1, n_views))
    for (i, again), weight in weights.weights.items():
        if (i, again) != NEVER:
            table[i, again] = float(weight - never)
    return UniformKernel(
        formula=f"a tuple counts {formula}",
        row_weights=table[first, later],
        never=never,
        variance=weights.tuple_variance,
        spread=float(weights.spread),
        single=None,
    )


def _last(shown: Ints, law: ViewLaw) -> UniformKernel:
    """The unbiased estimate from the last view alone, given the ones before it.

    Tuples shown before and others appear by different rates, so each kind is corrected by its own (the
    printed estimator uses one rate for both and is biased).
    """
    index = len(shown)
    s, seen, fresh = law.retention, law.seen_rate, law.fresh_rate(index)
    unseen = math.prod((1 - law.fresh_rate(view) for view in range(1, index)), start=Fraction(1))
    hidden = (1 - s) ** (index - 1)
    again, gone = (1 - seen) / (s - seen), -seen / (s - seen)
    new, never = (1 - fresh) / (s - fresh), -fresh / (s - fresh)
    inside = (
        (1 - hidden) * (s * again**2 + (1 - s) * gone**2) + hidden * (s * new**2 + (1 - s) * never**2) - 1
    )
    outside = (1 - unseen) * (seen * again**2 + (1 - seen) * gone**2)
    outside += unseen * (fresh * new**2 + (1 - fresh) * never**2)
    before, now = shown[:-1].any(axis=0), shown[-1] == 1
    weights = np.where(before, np.where(now, float(again), float(gone)), float(new))
    return UniformKernel(
        formula="(n_again − s·e·n_shown)/(s(1−e)) + (n_fresh − b·(n_D − n_shown))/(s − b), b = b_i",
        row_weights=weights - float(never),
        never=never,
        variance=TupleVariance(inside=inside, outside=outside),
        spread=float(max(again, new) - min(gone, never)),
        single=None,
    )


def _join(domain: Domain, parts: list[TupleCodes]) -> tuple[TupleCodes, Ints]:
    """The tuples of all views, each once, and which views show it."""
    words = [domain.pack(part) for part in parts]
    everything = np.concatenate(words)
    ids = word_ids(everything)
    union = distinct_words(everything)
    shown = np.zeros((len(parts), len(union)), dtype=np.int64)
    number = np.repeat(np.arange(len(parts)), [len(part) for part in words])
    shown[number, ids] = 1
    return domain.unpack(union), shown


def _read(release: StoredRelease, domain: Domain) -> TupleCodes:
    try:
        return domain.encode(release.read("view", domain.names))
    except (pa.ArrowException, InputError) as error:
        raise ReleaseCorrupt(f"{release.path}: the view cannot be read") from error
