"""A bucketized release as arrays, and what a question sums in each bucket."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from dalenius.arrays import Bools, Codes, Floats, Int32s, Ints, Sparse
from dalenius.mechanisms.bucketize.estimate.by_type import Chosen, PlacesByType
from dalenius.mechanisms.rows.kinds import Alike
from dalenius.question.targets import Estimates, Score, Targets, different_weights

if TYPE_CHECKING:
    from dalenius.mechanisms.rows.effects import Features

Kept = TypeVar("Kept")
_CELLS_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Buckets:
    """Which bucket each row is in, and what the buckets hold.

    Buckets with the same contents are of one *type*: a plan has few, because records are dealt round-robin.
    """

    row_bucket: Int32s
    size: Floats
    """|g| of each bucket."""
    type_of: Int32s
    composition: Sparse
    """Types × values: how many of each sensitive value a bucket of the type holds."""
    copies: Floats
    """How many buckets there are of each type."""
    fakes: Floats | None = None
    """Of each entry of `composition`, which is an expected number then, how likely it is nobody's."""

    @classmethod
    def of(
        cls,
        row_bucket: Codes,
        bucket: Ints,
        value: Ints,
        count: Ints | Floats,
        listed: Ints | None = None,
    ) -> Buckets:
        """From each row's bucket (0-based) and the sensitive table's entries (bucket, value code, count).

        With fakes `listed` is what the table says, and `count` how many of these are expected to be real.

        >>> two = np.array([0, 0, 1, 1])
        >>> b = Buckets.of(two, two, np.array([0, 1, 0, 1]), np.ones(4, dtype=int))
        >>> len(b.copies), b.counts.tolist()
        (1, [2.0, 2.0])
        """
        n_buckets = int(bucket.max()) + 1
        full = Sparse.of(bucket, value, count.astype(np.float64), (n_buckets, int(value.max()) + 1))
        first, type_of = _types(full)
        fakes = None
        if listed is not None:
            every = Sparse.of(bucket, value, (listed - count).astype(np.float64), full.shape)
            fakes = every.take(first).data
        return cls(
            row_bucket=row_bucket.astype(np.int32),
            size=full.sum_rows(),
            type_of=type_of,
            composition=full.take(first),
            copies=np.bincount(type_of).astype(np.float64),
            fakes=fakes,
        )

    @property
    def n_rows(self) -> int:
        """How many people were published."""
        return len(self.row_bucket)

    @property
    def counts(self) -> Floats:
        """How often each sensitive value occurs, o_z."""
        held = self.composition
        counts = np.bincount(held.columns, held.data * self.copies[held.rows], held.n_columns)
        return counts.astype(np.float64)

    @property
    def type_size(self) -> Floats:
        """|g| of the buckets of each type."""
        return self.composition.sum_rows()


def _types(full: Sparse) -> tuple[Ints, Int32s]:
    """A first bucket of each type, and every bucket's type; by hashes, and then compared entry by entry."""
    mixed = (np.arange(full.shape[1], dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    terms = mixed[full.columns] * full.data.astype(np.uint64)
    hashes = np.add.reduceat(terms, full.starts[:-1])
    _, first, type_of = np.unique(hashes, return_index=True, return_inverse=True)
    typical = full.take(first).take(type_of.ravel())
    same = (
        np.array_equal(typical.starts, full.starts)
        and np.array_equal(typical.columns, full.columns)
        and np.array_equal(typical.data, full.data)
    )
    if not same:  # two contents with one hash
        first = type_of = np.arange(full.shape[0])
    return first, type_of.ravel().astype(np.int32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Spread(Sequence[Score]):
    """Scores of kinds, as scores of rows once they are asked for."""

    alike: Alike
    listed: tuple[Score, ...]
    _found: dict[int, Score] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.listed)

    def __getitem__(self, number: Any) -> Any:
        if number not in self._found:
            self._found[number] = self.alike.spread(self.listed[number])
        return self._found[number]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreSums:
    """Scores, and what they add up to: in all, and in each bucket."""

    buckets: Buckets
    listed: tuple[Score, ...]
    """Of rows, or of kinds of rows."""
    alike: Alike | None
    """The kinds; None: rows."""
    scores: Sequence[Score]
    """The same of rows."""
    places: PlacesByType | None
    """The buckets by type, where counts are added up that way."""
    total: Floats
    squares: Floats
    """Σ score² of each score."""
    _sums: list[Sparse] = field(default_factory=list)
    _by_value: list[Floats] = field(default_factory=list)
    _products: dict[tuple[int, int], float] = field(default_factory=dict)
    """Sums of products of two scores that were needed already: groups by the sensitive value share them."""
    _chosen: dict[int, Bools] = field(default_factory=dict)
    _numbers: dict[tuple[int, int], Ints] = field(default_factory=dict)
    _kept: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def keep(self, what: str, key: Any, make: Callable[[], Kept]) -> Kept:
        """What was made for this key, if that was the last: targets come in pieces, of the same scores."""
        if what not in self._kept or self._kept[what][0] != key:
            self._kept[what] = key, make()
        found: Kept = self._kept[what][1]
        return found

    @classmethod
    def of(
        cls,
        buckets: Buckets,
        scores: Sequence[Score],
        alike: Alike | None = None,
        places: PlacesByType | None = None,
    ) -> ScoreSums:
        """Of scores of rows, or of the kinds of rows that are alike."""
        moments = [_moments(score, alike) for score in scores]
        return cls(
            buckets=buckets,
            listed=tuple(scores),
            alike=alike,
            scores=tuple(scores) if alike is None else _Spread(alike=alike, listed=tuple(scores)),
            places=places,
            total=np.array([total for total, _ in moments]),
            squares=np.array([square for _, square in moments]),
        )

    @property
    def sums(self) -> Sparse:
        """Scores × buckets: Σ score over the bucket's rows."""
        if not self._sums:
            columns = [_sum_in_buckets(self.buckets, score.rows, score.values) for score in self.scores]
            ends = np.cumsum([0, *(len(where) for where, _ in columns)])
            where = (
                np.concatenate([where for where, _ in columns]) if columns else np.zeros(0, dtype=np.int64)
            )
            data = np.concatenate([sums for _, sums in columns]) if columns else np.zeros(0)
            sums = Sparse(starts=ends, columns=where, data=data, n_columns=len(self.buckets.size))
            self._sums.append(sums)
        return self._sums[0]

    def row_of_kind(self, score: int) -> Score:
        """A score of rows of which one stands for all that are alike, with the sum of their numbers."""
        own = self.listed[score]
        return own if self.alike is None else self.alike.weigh(own)

    def by_unit(self, score: int) -> Floats:
        """A score as a number of each unit of the places."""
        own = self.listed[score]
        found = np.zeros(self.buckets.n_rows if self.alike is None else len(self.alike.counts))
        found[own.rows] = 1.0 if own.values is None else own.values
        return found

    def choose(self, score: int) -> Bools:
        """Which units a score is about."""
        if score not in self._chosen:
            n_units = self.buckets.n_rows if self.alike is None else len(self.alike.counts)
            found = np.zeros(n_units, dtype=bool)
            found[self.listed[score].rows] = True
            self._chosen.clear()  # of the last one: there may be many
            self._chosen[score] = found
        return self._chosen[score]

    def with_features(self, features: Features, scores: Iterable[int]) -> list[Floats]:
        """The covariances of each feature with some scores."""
        found = []
        for score in scores:
            own, chosen = self.row_of_kind(score), self._chosen.get(score)
            found.append(features.with_score(own.rows, own.values, chosen if self.alike is None else None))
        return found

    def choose_in(self, score: int, part: int, units: Bools) -> Chosen:
        """Whom it chooses in a part of the places."""
        assert self.places is not None  # noqa: S101  (who asks has looked)
        found = self.places.choose(part, units)
        self._numbers[score, part] = found.numbers
        return found

    def numbers(self, score: int, parts: Sequence[int]) -> list[Ints]:
        """How many buckets have 0, 1, … people whom a score chooses, type by type of some parts."""
        missing = [part for part in parts if (score, part) not in self._numbers]
        units = self.choose(score) if missing else np.zeros(0, dtype=bool)
        for part in missing:
            self.choose_in(score, part, units)
        return [self._numbers[score, part] for part in parts]

    @property
    def by_value(self) -> Floats:
        """Values × scores: Anatomy's estimate of each value's total, Σ_g c(g,z)·y_g/|g|."""
        if not self._by_value:
            self._by_value.append(_by_value(self.buckets, self.sums))
        return self._by_value[0]

    @property
    def is_count(self) -> Bools:
        """Which scores are 0 or 1."""
        return np.array([score.values is None for score in self.listed], dtype=bool)

    @property
    def variance(self) -> Floats:
        """The variance of each score over the published rows."""
        n = self.buckets.n_rows
        return np.maximum(self.squares / n - (self.total / n) ** 2, 0.0)

    def covariance(self, first: int, second: int) -> float:
        """The covariance of two scores over the published rows."""
        n = self.buckets.n_rows
        if (first, second) not in self._products:
            self._products[first, second] = self._add_products(first, second)
        dot = self._products[first, second]
        return float(dot / n - self.total[first] * self.total[second] / n**2)

    def _add_products(self, first: int, second: int) -> float:
        rows, values = _product(self.listed[first], self.listed[second])
        return _moments(Score(rows=rows, values=values), self.alike)[0]

    def in_buckets(self, score: int) -> tuple[Ints, Floats]:
        """Buckets where a score has a sum, and the sums."""
        part = slice(self.sums.starts[score], self.sums.starts[score + 1])
        return self.sums.columns[part], self.sums.data[part]

    def bucket_products(self, first: int, second: int) -> tuple[Ints, Floats]:
        """Buckets where the product of two scores has a sum, and the sums."""
        rows, values = _product(self.scores[first], self.scores[second])
        return _sum_in_buckets(self.buckets, rows, values)


class Estimator(Protocol):
    """One way of estimating totals from buckets."""

    name: str
    assumption: str
    formula: str

    def estimate(self, sums: ScoreSums, targets: Targets) -> Estimates:
        """Estimate every target."""


def _by_value(buckets: Buckets, sums: Sparse) -> Floats:
    n_types, n_scores = len(buckets.copies), sums.shape[0]
    by_value = buckets.composition.transpose()
    step = max(1, _CELLS_AT_ONCE // n_types)
    parts = [np.zeros((by_value.shape[0], 0))]
    for first in range(0, n_scores, step):
        end = min(first + step, n_scores)
        part = slice(sums.starts[first], sums.starts[end])
        column = np.repeat(np.arange(end - first), np.diff(sums.starts[first : end + 1]))
        place = buckets.type_of[sums.columns[part]].astype(np.int64) * (end - first) + column
        by_type = np.bincount(place, sums.data[part], n_types * (end - first)).reshape(n_types, -1)
        parts.append(by_value @ (by_type / buckets.type_size[:, None]))
    return np.concatenate(parts, axis=1)


def _sum_in_buckets(buckets: Buckets, rows: Codes, values: Floats | None) -> tuple[Ints, Floats]:
    home = buckets.row_bucket[rows]
    if len(home) * 8 < len(buckets.size):  # few rows: do not touch every bucket
        own, inverse = np.unique(home, return_inverse=True)
        return own.astype(np.int64), np.bincount(inverse, values, len(own)).astype(np.float64)
    sums = np.bincount(home, values, len(buckets.size))
    where = np.flatnonzero(sums)
    return where, sums[where].astype(np.float64)


def _product(first: Score, second: Score) -> tuple[Codes, Floats | None]:
    if first is second:
        return first.rows, None if first.values is None else first.values**2
    rows, left, right = np.intersect1d(first.rows, second.rows, assume_unique=True, return_indices=True)
    if first.values is None and second.values is None:
        return rows, None
    one = 1.0 if first.values is None else first.values[left]
    two = 1.0 if second.values is None else second.values[right]
    return rows, np.asarray(one * two, dtype=np.float64)


def _moments(score: Score, alike: Alike | None) -> tuple[float, float]:
    """The sums of a score and of its squares over all rows; of `alike` where it is one of kinds."""
    values = score.values
    if alike is None:
        n_rows = float(len(score.rows))
        return (n_rows, n_rows) if values is None else (float(values.sum()), float((values**2).sum()))
    counts = alike.counts[score.rows]
    if values is None:
        return float(counts.sum()), float(counts.sum())
    return float(counts @ values), float(counts @ values**2)


def by_score(targets: Targets, terms: Ints) -> Iterator[tuple[int, Ints]]:
    """The scores of some terms, and which terms each has."""
    order = terms[np.argsort(targets.score[terms], kind="stable")]
    scores, starts = np.unique(targets.score[order], return_index=True)
    ends = np.append(starts, len(order))[1:]
    for score, begin, end in zip(scores.tolist(), starts, ends, strict=True):
        yield score, order[begin:end]


def find_batches(sums: ScoreSums, targets: Targets) -> dict[int, list[Ints]]:
    """Terms of targets of several that weigh values alike, by the score that has all rows of the others.

    What is alone in a batch is left to others.
    """
    n_terms = np.bincount(targets.target, minlength=targets.n_targets)
    terms = np.flatnonzero(n_terms[targets.target] > 1)
    if len(terms) == n_terms.max(initial=0):
        return {}
    place = different_weights(targets.weights[terms])[1]
    bases: dict[tuple[int, ...], int | None] = {}
    found: dict[tuple[int, int], list[Ints]] = {}
    starts = np.flatnonzero(np.diff(targets.target[terms], prepend=-1))
    for begin, end in pairwise([*starts.tolist(), len(terms)]):
        scores = tuple(targets.score[terms[begin:end]].tolist())
        if (place[begin:end] == place[begin]).all():
            if scores not in bases:
                bases[scores] = _find_base(sums, scores)
            base = bases[scores]
            if base is not None:
                found.setdefault((base, int(place[begin])), []).append(terms[begin:end])
    by_base: dict[int, list[Ints]] = {}
    for (base, _), listed in found.items():
        if len(listed) > 1:
            by_base.setdefault(base, []).append(np.concatenate(listed))
    return by_base


def _find_base(sums: ScoreSums, scores: Sequence[int]) -> int | None:
    """Which of some scores has the rows of all of them; None: none has."""
    base = max(scores, key=lambda score: len(sums.listed[score].rows))
    rows = sums.listed[base].rows
    for score in scores:
        own = sums.listed[score].rows
        if not np.array_equal(rows[np.minimum(np.searchsorted(rows, own), len(rows) - 1)], own):
            return None
    return base


def numbers_on(score: Score, rows: Codes) -> Floats | Bools:
    """A score's numbers on rows that have all of its own; of a count whether it counts them."""
    found = np.zeros(len(rows), dtype=bool if score.values is None else np.float64)
    found[np.searchsorted(rows, score.rows)] = True if score.values is None else score.values
    return found
