"""What totals can be at all, whatever the matching inside the buckets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Bools, Codes, Floats, Ints, Sparse
from dalenius.mechanisms.bucketize.estimate.buckets import ScoreSums, by_score
from dalenius.question.targets import Range, Score, Targets

_CELLS_AT_ONCE = 4_000_000
_SPARSE = 16
"""Where at most one of so many weights is not 0, the others are passed over."""


def possible_range(sums: ScoreSums, targets: Targets) -> Range:
    """The least and the most that each target can be.

    Of a bucket of size |g| in which q rows have a score and s sensitive values are asked about, between
    max(0, q + s − |g|) and min(q, s) of these rows have one of these values: for a sum those with the least
    or the largest scores. Targets that weigh values other than by 0 and 1: −∞ to ∞.
    """
    low, high = np.zeros(len(targets.score)), np.zeros(len(targets.score))
    is_set, is_count = _are_sets(targets), sums.is_count
    is_open = np.zeros(targets.n_targets, dtype=bool)
    is_open[targets.target[~is_set]] = True  # whatever their other terms can be
    by_value: list[Sparse] = []
    for score, terms in by_score(targets, np.flatnonzero(~is_open[targets.target])):
        if sums.places is not None and is_count[score]:
            wanted = np.asarray(targets.weights[terms].any(axis=0))
            by_type = _ByType.of(sums, score, wanted)
            for part in _parts(terms, len(by_type.size)):
                low[part], high[part] = by_type.bound(targets.weights[part])
            continue
        by_value = by_value or [sums.buckets.composition.transpose()]
        own = _Counted.of(sums, score) if is_count[score] else _ranked(sums, score)
        for part in _parts(terms, own.n_rows):
            low[part], high[part] = own.bound(
                _hold(sums.buckets.composition, by_value[0], targets.weights[part])
            )
    low[~is_set], high[~is_set] = -np.inf, np.inf
    return targets.add_up(low), targets.add_up(high)


def _hold(composition: Sparse, by_value: Sparse, weights: Floats) -> Floats:
    """Types × terms: how many of the asked values (terms × values) a bucket of each type holds.

    Groups by the sensitive value ask about few values each: only the types that hold these are looked at.
    """
    term, value = np.nonzero(weights != 0)  # of numbers it takes several times as long
    if len(value) * _SPARSE > weights.size:
        return composition @ weights.T
    held, shape = by_value.take(value), (len(composition.starts) - 1, len(weights))
    place = held.columns.astype(np.int64) * shape[1] + term[held.rows]
    found = np.bincount(place, held.data * weights[term, value][held.rows], shape[0] * shape[1])
    return np.asarray(found, dtype=np.float64).reshape(shape)


def trivial_range(sums: ScoreSums, targets: Targets) -> Range:
    """The same if nothing is known about the contents: everybody counts, or nobody."""
    low = np.array([_sum(score, np.minimum) for score in sums.scores])[targets.score]
    high = np.array([_sum(score, np.maximum) for score in sums.scores])[targets.score]
    is_set = _are_sets(targets)
    return targets.add_up(np.where(is_set, low, -np.inf)), targets.add_up(np.where(is_set, high, np.inf))


def _ranked(sums: ScoreSums, score: int) -> _Ranked:
    return sums.keep("ranked", score, lambda: _Ranked.of(sums, score))


def _are_sets(targets: Targets) -> Bools:
    return np.asarray(((targets.weights == 0) | (targets.weights == 1)).all(axis=1))


def _parts(terms: Ints, n_rows: int) -> Iterator[Ints]:
    step = max(1, _CELLS_AT_ONCE // max(n_rows, 1))
    for start in range(0, len(terms), step):
        yield terms[start : start + step]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ByType:
    """As `_Counted`: buckets of a type with as many chosen people have one bound, looked up."""

    contents: Floats
    """Types × values."""
    size: Ints
    starts: Ints
    """Where the numbers of each type begin."""
    most: Floats
    """Σ min(q, s) over the buckets of a type, for s = 0, 1, …, |g|: one type after the other."""

    @classmethod
    def of(cls, sums: ScoreSums, score: int, wanted: Bools) -> _ByType:
        """Of the types that hold one of the wanted values."""
        assert sums.places is not None  # noqa: S101  (looked at before)
        parts = np.flatnonzero(sums.places.is_held @ wanted).tolist()
        types = np.concatenate([np.zeros(0, dtype=np.int64), *(sums.places.parts[k].types for k in parts)])
        size = sums.places.size[types]
        starts = np.cumsum(size + 1) - size - 1
        n_buckets = np.concatenate([np.zeros(0), *sums.numbers(score, parts)])  # with q = 0, 1, … chosen
        before = np.cumsum(n_buckets) - n_buckets
        at_least = np.repeat(np.add.reduceat(n_buckets, starts) + before[starts], size + 1) - before
        at_least[starts] = 0.0  # min(q, s) counts the numbers from 1 to s that are at most q
        most = np.cumsum(at_least)
        return cls(
            contents=sums.places.contents[types],
            size=size,
            starts=starts,
            most=most - np.repeat(most[starts], size + 1),
        )

    def bound(self, weights: Floats) -> Range:
        """The least and the most, of terms × values: max(0, q + s − |g|) is q − min(q, |g| − s)."""
        asked = (weights @ self.contents.T).astype(np.int64)  # terms × types: s
        last = self.starts + self.size
        least = self.most[last].sum() - self.most[last - asked].sum(axis=1)
        return least, self.most[self.starts + asked].sum(axis=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Counted:
    """How many buckets of each type have how many rows of a score that counts."""

    kind: Ints
    q: Floats
    n_buckets: Floats
    size: Floats

    @classmethod
    def of(cls, sums: ScoreSums, score: int) -> _Counted:
        where, found = sums.in_buckets(score)
        most = int(found.max(initial=0.0)) + 1
        place = sums.buckets.type_of[where].astype(np.int64) * most + found.astype(np.int64)
        pairs, n_buckets = np.unique(place, return_counts=True)
        kind = pairs // most
        return cls(
            kind=kind,
            q=(pairs % most).astype(np.float64),
            n_buckets=n_buckets.astype(np.float64),
            size=sums.buckets.type_size[kind],
        )

    @property
    def n_rows(self) -> int:
        """Of the tables that are made for each term."""
        return len(self.kind)

    def bound(self, held: Floats) -> Range:
        """The least and the most; `held`: types × terms, how many of the asked values a bucket holds."""
        s, q, size = held[self.kind], self.q[:, None], self.size[:, None]
        least, most = np.maximum(0.0, q + s - size), np.minimum(q, s)
        return self.n_buckets @ least, self.n_buckets @ most


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ranked:
    """The rows of a score of numbers by the type of their bucket, and where each is among those of it."""

    starts: Ints
    """Where the rows of each type begin, and at the end how many there are."""
    value: Floats
    first: Ints
    last: Ints
    """How many of its bucket's are smaller, and how many larger."""
    size: Floats
    """Of its bucket."""

    @classmethod
    def of(cls, sums: ScoreSums, score: int) -> _Ranked:
        listed, buckets = sums.scores[score], sums.buckets
        assert listed.values is not None  # noqa: S101  (a score without values is counted)
        home = buckets.row_bucket[listed.rows]
        first, last = _ranks(home, listed.values)
        kind = buckets.type_of[home]
        order = np.argsort(kind, kind="stable")
        return cls(
            starts=np.searchsorted(kind[order], np.arange(len(buckets.copies) + 1)),
            value=listed.values[order],
            first=first[order],
            last=last[order],
            size=buckets.size[home[order]],
        )

    @property
    def n_rows(self) -> int:
        """Of the tables that are made for each term."""
        return len(self.starts)

    def bound(self, held: Floats) -> Range:
        """The least and the most; `held`: types × terms, how many of the asked values a bucket holds."""
        ends = [self._bound_one(one) for one in held.T]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])

    def _bound_one(self, held: Floats) -> tuple[float, float]:
        types = np.flatnonzero(held)  # of the others nobody has a value that is asked about
        n_rows = np.diff(self.starts)[types]
        ends = np.cumsum(n_rows)
        some = np.repeat(self.starts[types] - ends + n_rows, n_rows) + np.arange(n_rows.sum())
        s, value, first, last = (
            np.repeat(held[types], n_rows),
            self.value[some],
            self.first[some],
            self.last[some],
        )
        needed = np.maximum(0.0, first + last + 1 + s - self.size[some])
        low = ((first < needed) | ((first < s) & (value < 0))) @ value
        high = ((last < needed) | ((last < s) & (value > 0))) @ value
        return float(low), float(high)


def _ranks(home: Codes, values: Floats) -> tuple[Ints, Ints]:
    """Which of its bucket's values each is, from the least and from the largest, beginning with 0."""
    order = np.lexsort((values, home))
    sorted_home, place = home[order], np.arange(len(order))
    first, last = np.empty(len(order), dtype=np.int64), np.empty(len(order), dtype=np.int64)
    first[order] = place - np.searchsorted(sorted_home, sorted_home, side="left")
    last[order] = np.searchsorted(sorted_home, sorted_home, side="right") - 1 - place
    return first, last


def _sum(score: Score, side: np.ufunc) -> float:
    if score.values is None:
        return float(side(len(score.rows), 0.0))
    return float(side(score.values, 0.0).sum())
