"""Attacks on αβ views, and whether a view keeps and inserts tuples by the law that its manifest states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.alphabeta.attacks.views import (
    ViewCase,
    attack_all_views,
    attack_correlated_tuples,
    attack_exclusive_set,
    attack_independent_views,
    attack_likely_tuples,
    attack_one_tuple,
    attack_shared_noise,
    attack_views,
)
from dalenius.mechanisms.alphabeta.published import PublishedView, read
from dalenius.mechanisms.tuples.attacks import ComparedTuples, find_rows, judge_tuples
from dalenius.mechanisms.tuples.domain import are_among, distinct_words
from dalenius.release.folder import StoredRelease
from dalenius.release.series import earlier_in_series
from dalenius.threats.counts import Counts, make_counts, sum_by
from dalenius.threats.facets import Facets
from dalenius.threats.laws import Coins
from dalenius.threats.original import Subject
from dalenius.threats.result import AttackResult
from dalenius.threats.traces import attack_metadata


def attack(subject: Subject) -> Iterator[AttackResult]:
    """All attacks."""
    release = subject.release
    view = read(release.manifest)
    tuples = ComparedTuples.of(view.domain, subject.original, release)
    case = ViewCase.of(view, tuples)
    yield attack_one_tuple(case)
    yield attack_views(case)
    earlier = list(earlier_in_series(release))
    if earlier:
        yield attack_all_views(case, tuples, earlier)
    yield attack_correlated_tuples(case)
    if view.noise is None:
        yield attack_likely_tuples(case, tuples)
    yield attack_exclusive_set(case)
    own = {one.manifest.id for one in (*earlier, release)}
    others = [other for other in subject.also if other.manifest.id not in own]
    if others:
        yield attack_independent_views(case, len(others))
    for other in others:
        yield attack_shared_noise(case, tuples, other)
    yield from attack_laws(view, tuples, earlier, len(release.files("view")))
    yield attack_metadata(subject, genuine=())  # noise may be any tuple of the domain, in the table or not


_LAGS = (1, 2, 3)
_AGAIN = "tuples were not kept and inserted as the manifest states: publish again"


def attack_laws(
    view: PublishedView, tuples: ComparedTuples, earlier: Sequence[StoredRelease], n_files: int
) -> Iterator[AttackResult]:
    """The laws of what is kept, of noise, and of the rows' order."""
    noise = _Noise.of(view, tuples, earlier)
    yield from judge_tuples(
        tuples,
        n_files,
        keeping=_test_keeping(view, tuples),
        noise=noise.tests(),
        n_noise=int(noise.is_fresh.sum()),
        advice=_AGAIN,
    )


def _test_keeping(view: PublishedView, tuples: ComparedTuples) -> Iterator[Counts]:
    """A tuple of the table is shown with α + β(t)."""
    chance = np.full(len(tuples.position), float(view.law.retention))
    if view.noise is not None:
        chance = float(view.law.alpha) + float(view.law.beta) * view.noise.relative(tuples.own)
    coins = Coins(what="kept", heads=tuples.is_shown, chance=chance)
    yield coins.total()
    for facet in tuples.own_facets():
        yield from coins.by(facet)
    for lag in _LAGS:
        yield from coins.count_lagged(np.argsort(tuples.position), lag)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Noise:
    """The rows that are not of the table: those that earlier views have shown, and fresh ones."""

    view: PublishedView
    tuples: ComparedTuples
    seen: Ints
    """Noise of earlier views, packed."""
    is_fresh: Bools
    """Which rows of the view are noise that no earlier view has shown."""

    @classmethod
    def of(cls, view: PublishedView, tuples: ComparedTuples, earlier: Sequence[StoredRelease]) -> _Noise:
        words = [find_rows(view.domain, other)[0] for other in earlier]
        seen = distinct_words(np.concatenate([tuples.own_words[:0], *words]))
        seen = seen[~are_among(seen, tuples.own_words)]
        is_fresh = ~tuples.is_own & ~are_among(tuples.row_words, seen)
        return cls(view=view, tuples=tuples, seen=seen, is_fresh=is_fresh)

    def tests(self) -> Iterator[Counts]:
        """Noise by every column and by every two; of later views also what comes again."""
        yield self._total()
        noise, known = self.tuples.rows_of(self.is_fresh), self.tuples.domain.unpack(self.seen)
        for facet in self.tuples.domain_facets():
            shares = facet.share(self._shares)
            own, seen, rows = facet.of(self.tuples.own), facet.of(known), facet.of(noise)
            size = len(shares)
            taken = sum_by(own.codes, None, size) + sum_by(seen.codes, None, size)
            trials = np.maximum(facet.share(self._even) * float(self.view.domain.size) - taken, 0.0)
            inside = sum_by(own.codes, self._beta_of_own, size)
            inside += sum_by(seen.codes, None, size) * self._beta
            expected = np.maximum(shares * self._mean - inside, 0.0)
            yield Counts(
                name=f"noise by {rows.name}",
                observed=sum_by(rows.codes, None, size),
                expected=expected,
                variance=expected,
                trials=trials,
                label=rows.label,
            )
        if self.view.noise is None:
            for column, n_near, n_found in self.tuples.nearby(self.is_fresh, self.seen):
                mean = n_near * self._beta
                yield make_counts(
                    f"noise that is like the table but in {column}", n_found, mean, mean, n_near
                )
        if len(self.seen):
            yield from self._again()

    @property
    def _beta(self) -> float:
        """Of a tuple that no earlier view has shown; the largest, where the noise is not uniform."""
        return float(self.view.law.fresh_rate(self.view.index))

    @property
    def _mean(self) -> float:
        """Σβ(t) over the whole domain."""
        if self.view.noise is None:
            return float(self.view.domain.size) * self._beta
        return float(self.view.noise_rows)

    @property
    def _even(self) -> list[Floats]:
        return [np.full(size, 1.0 / size) for size in self.view.domain.sizes]

    @property
    def _shares(self) -> list[Floats]:
        """Of the noise, column by column."""
        if self.view.noise is None:
            return self._even
        return [np.array([float(share) for share in column]) for column in self.view.noise.shares]

    @property
    def _beta_of_own(self) -> Floats:
        if self.view.noise is None:
            return np.full(len(self.tuples.position), self._beta)
        return np.asarray(self._beta * self.view.noise.relative(self.tuples.own))

    def _total(self) -> Counts:
        n_taken = len(self.tuples.position) + len(self.seen)
        mean = self._mean - float(self._beta_of_own.sum()) - self._beta * len(self.seen)
        spread = mean * (1 - self._beta) if self.view.noise is None else mean
        return make_counts(
            "noise", float(self.is_fresh.sum()), mean, spread, float(self.view.domain.size - n_taken)
        )

    def _again(self) -> Iterator[Counts]:
        """Noise that earlier views have shown comes again with a rate of its own."""
        chance = np.full(len(self.seen), float(self.view.law.seen_rate))
        coins = Coins(
            what="noise shown again", heads=are_among(self.seen, self.tuples.row_words), chance=chance
        )
        yield coins.total()
        codes = self.tuples.domain.unpack(self.seen)
        columns = self.tuples.domain.columns
        for facet in Facets.of([(c.name, c.values, k) for c, k in zip(columns, codes, strict=True)]):
            yield from coins.by(facet)
