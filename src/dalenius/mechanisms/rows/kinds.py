"""Kinds of people: all that effects of columns know of a person is which combination of features it has.

A table has fewer combinations than rows, often by far, and whatever is the same for all people of a kind is
worked out once for each kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dalenius.arrays import Codes, Floats, Ints
from dalenius.question.targets import Score
from dalenius.tables.codes import narrowest, number
from dalenius.tables.columns import Coded, CodedTable

if TYPE_CHECKING:
    import scipy.sparse as sp

_DENSE = 400_000
"""Kinds × features that are kept as a dense table of zeros and ones."""
_JOINED = 1_024
"""Combinations of some columns that are looked up together."""
_AT_ONCE = 2_048
_FEW_CELLS = 200_000
"""Kinds × values that are added up without scipy, which takes 0.13 s to load and is ten times as fast."""
_FAR = 2**62
"""Keys stay below this, within 64 bits."""
_HARDLY = 0.5
"""Where more than this part of all rows are different, kinds are no shorter to look at."""
_MANY_ROWS, _PAIRS = 100_000, 400
"""Of more rows it takes long to tell which are the same."""


def find_kinds(columns: Sequence[Codes]) -> tuple[Ints, Ints]:
    """The different rows of some columns of codes, and which of them each row is.

    >>> rows, kind = find_kinds([np.array([1, 0, 1]), np.array([0, 0, 0])])
    >>> rows.tolist(), kind.tolist()
    ([[1, 0], [0, 0]], [0, 1, 0])
    """
    kind, n_kinds = _number_kinds(columns)
    first = _first_rows(kind, n_kinds)
    return np.stack([codes[first] for codes in columns], axis=1).astype(np.int64), kind


def _number_kinds(columns: Sequence[Codes]) -> tuple[Ints, int]:
    """Which kind each row is, and how many there are."""
    kind, n_kinds = np.zeros(len(columns[0]), dtype=np.int64), 1
    for codes in columns:
        width = int(codes.max()) + 1
        if n_kinds * width >= _FAR:
            kind, known = number(kind)
            n_kinds = len(known)
        kind, n_kinds = kind * width + codes, n_kinds * width
    kind, known = number(kind)
    return kind, len(known)


def is_hardly_alike(columns: Sequence[Codes]) -> bool:
    """Whether most rows of some columns of codes seem to be different: so few of a part are the same.

    Were all rows of kinds of two, about `_PAIRS` of them would be.
    """
    n_rows = len(columns[0])
    step = max(1, int((n_rows / _PAIRS) ** 0.5))
    if n_rows < _MANY_ROWS:
        return False
    some = [codes[::step] for codes in columns]
    return len(some[0]) - _number_kinds(some)[1] < _PAIRS / 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Joined:
    """Some columns together: the combination of each kind, and the features of each combination."""

    code: Codes
    features: Floats
    """Combinations × features: 1 where the combination has the feature."""

    @classmethod
    def of(cls, places: Ints, n_features: int) -> _Joined:
        """Of these features of each kind (kinds × columns)."""
        key, n_keys = np.zeros(len(places), dtype=np.int64), 1
        for column in places.T:
            least = int(column.min())
            width = int(column.max()) + 1 - least
            key, n_keys = key * width + column - least, n_keys * width
        last = np.full(n_keys, -1)  # few keys are possible: nothing has to be sorted
        last[key] = np.arange(len(key))
        known = np.flatnonzero(last >= 0)
        number = np.zeros(n_keys, dtype=np.uint16)
        number[known] = np.arange(len(known))
        features = np.zeros((len(known), n_features))
        features[np.arange(len(known))[:, None], places[last[known]]] = 1.0
        return cls(code=number[key], features=features)

    def add(self, by_kind: Floats) -> Floats:
        """Combinations × values: the sums over the kinds that have the combination."""
        order = np.argsort(self.code, kind="stable")
        starts = np.searchsorted(self.code[order], np.arange(len(self.features) + 1))
        found = np.zeros((len(self.features), by_kind.shape[1]), dtype=by_kind.dtype)
        some = np.flatnonzero(np.diff(starts))  # where only some kinds are looked at, others have none
        found[some] = np.add.reduceat(by_kind[order], starts[some], axis=0)
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kinds:
    """Combinations of features, and sums over what they have in common."""

    places: Ints
    """Kinds × columns: which features."""
    n_features: int
    dense: Floats | None
    """Kinds × features; None: too many."""
    joined: tuple[_Joined, ...]
    _sparse: list[sp.csc_array] = field(default_factory=list)
    """Entries of the tables × kinds: 1 where the kind has the entry."""

    @classmethod
    def of(cls, places: Ints, n_features: int) -> Kinds:
        """Of the features of each kind (kinds × columns)."""
        places = places.astype(np.int32)
        if len(places) * n_features > _DENSE:
            joined = tuple(_Joined.of(places[:, own], n_features) for own in _groups(places))
            return cls(places=places, n_features=n_features, dense=None, joined=joined)
        dense = np.zeros((len(places), n_features))
        dense[np.arange(len(places))[:, None], places] = 1.0
        return cls(places=places, n_features=n_features, dense=dense, joined=())

    def __len__(self) -> int:
        return len(self.places)

    def take(self, kinds: Ints) -> Kinds:
        """Some of them, or some several times; they have the same tables (`look_up`)."""
        return Kinds(
            places=self.places[kinds],
            n_features=self.n_features,
            dense=None if self.dense is None else self.dense[kinds],
            joined=tuple(_Joined(code=own.code[kinds], features=own.features) for own in self.joined),
        )

    def sum_effects(self, effects: Floats) -> Floats:
        """Kinds × values, from effects features × values, as exactly as these are."""
        return self.look_up(self.tables(effects))

    def tables(self, effects: Floats) -> list[Floats]:
        """Combinations × values of the columns that are looked up together: sums of their effects."""
        if self.dense is not None:
            return [effects]
        return [(own.features @ effects).astype(effects.dtype) for own in self.joined]

    def look_up(self, tables: Sequence[Floats]) -> Floats:
        """Kinds × values: the sum of each kind's entries of these tables."""
        if self.dense is not None:
            return np.asarray(self.dense @ tables[0], dtype=tables[0].dtype)
        found = np.empty((len(self), tables[0].shape[1]), dtype=tables[0].dtype)
        more = np.empty_like(found[:_AT_ONCE])
        for begin in range(0, len(self), _AT_ONCE):
            part = slice(begin, begin + _AT_ONCE)
            some = found[part]
            np.take(tables[0], self.joined[0].code[part], axis=0, out=some, mode="clip")
            for own, table in zip(self.joined[1:], tables[1:], strict=True):
                some += np.take(table, own.code[part], axis=0, out=more[: len(some)], mode="clip")
        return found

    def add(self, by_kind: Floats) -> Floats:
        """Features × values: the sums over the kinds that have the feature."""
        return self.add_tables(self.add_by_table(by_kind, by_kind.size))

    def add_by_table(self, by_kind: Floats, n_cells: int) -> Floats:
        """The sums over the kinds of each entry of the tables, one table after the other.

        `n_cells`: of these and of others that are added up too.
        """
        if self.dense is not None:
            return np.asarray(self.dense.T @ by_kind)
        if n_cells <= _FEW_CELLS:
            return np.concatenate([own.add(by_kind) for own in self.joined])
        if not self._sparse:
            from scipy.sparse import csc_array

            # column by column the kinds are read in their order, and what they add up to stays in the cache
            n, n_tables = len(self), len(self.joined)
            sizes = np.cumsum([0, *(len(own.features) for own in self.joined)])
            place = np.stack(
                [own.code + start for own, start in zip(self.joined, sizes, strict=False)], axis=1
            )
            entries = np.ones(n * n_tables, by_kind.dtype), place.ravel().astype(np.int32)
            ends = np.arange(n + 1, dtype=np.int32) * n_tables
            self._sparse.append(csc_array((*entries, ends), shape=(int(sizes[-1]), n)))
        return np.asarray(self._sparse[0] @ by_kind)

    def add_tables(self, sums: Floats) -> Floats:
        """Features × values, from sums by entry of the tables."""
        if self.dense is not None:
            return sums
        features = np.concatenate([own.features for own in self.joined])
        return np.asarray(features.T @ sums)

    def add_some(self, kinds: Codes, values: Floats | None) -> Floats:
        """Of each feature: the sum of a number (1) over the listed kinds that have it."""
        if len(kinds) > sum(len(own.features) for own in self.joined) > 0:  # several columns at a time
            sums = [np.bincount(own.code[kinds], values, len(own.features)) for own in self.joined]
            found = sum(own.features.T @ part for own, part in zip(self.joined, sums, strict=True))
            return np.asarray(found, dtype=np.float64)
        weights = None if values is None else np.repeat(values, self.places.shape[1])
        return np.bincount(self.places[kinds].ravel(), weights, self.n_features).astype(np.float64)

    def cross(self, counts: Floats) -> Floats:
        """Features × features: how many people have both, given how many people are of each kind."""
        if self.dense is not None:
            return np.asarray(self.dense.T @ (counts[:, None] * self.dense))
        weights = None if (counts == 1).all() else counts
        found = np.zeros((self.n_features, self.n_features))
        for i, one in enumerate(self.joined):
            own = np.bincount(one.code, weights, len(one.features))
            found += one.features.T @ (own[:, None] * one.features) / 2
            for two in self.joined[i + 1 :]:
                size = len(one.features), len(two.features)
                both = np.bincount(one.code.astype(np.int64) * size[1] + two.code, weights, size[0] * size[1])
                found += one.features.T @ both.reshape(size) @ two.features
        return np.asarray(found + found.T)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Alike:
    """People whose published rows are the same: a question is about all of a kind, or about none."""

    table: CodedTable
    """One row a kind, in the codes of all rows."""
    kind_of_row: Codes
    """Which of these rows each row is like."""
    counts: Floats
    """How many rows are of each kind."""
    first: Ints
    """A row of each kind."""

    @classmethod
    def of(cls, rows: CodedTable) -> Alike | None:
        """The kinds of a table's rows; None: hardly any two are alike."""
        if not rows.columns or not rows.n_rows:
            return None
        columns = rows.columns
        codes = [column.codes for column in columns.values()]
        if is_hardly_alike(codes):
            return None
        kind, n_kinds = _number_kinds(codes)
        if n_kinds > _HARDLY * rows.n_rows:
            return None
        first = _first_rows(kind, n_kinds)
        return cls(
            table=CodedTable(
                n_rows=n_kinds,
                columns={
                    name: Coded(codes=column.codes[first], values=column.values)
                    for name, column in columns.items()
                },
            ),
            kind_of_row=kind.astype(narrowest(n_kinds)),
            counts=np.bincount(kind, minlength=n_kinds).astype(np.float64),
            first=first,
        )

    def spread(self, score: Score) -> Score:
        """A score of kinds as one of rows."""
        chosen = np.zeros(len(self.counts), dtype=np.bool_)
        chosen[score.rows] = True
        rows = np.flatnonzero(chosen[self.kind_of_row])
        if score.values is None:
            return Score(rows=rows)
        values = np.zeros(len(self.counts))
        values[score.rows] = score.values
        return Score(rows=rows, values=values[self.kind_of_row[rows]])

    def weigh(self, score: Score) -> Score:
        """A score of kinds, each as often as there are people of it, on one row of each kind."""
        counts = self.counts[score.rows]
        values = counts if score.values is None else counts * score.values
        return Score(rows=self.first[score.rows], values=values)


def _first_rows(kind: Ints, n_kinds: int) -> Ints:
    """The first row of each kind."""
    first = np.zeros(n_kinds, dtype=np.int64)
    first[kind[::-1]] = np.arange(len(kind))[::-1]
    return first


def _groups(places: Ints) -> list[list[int]]:
    """Columns that are looked up together, so that each group has few combinations."""
    groups: list[list[int]] = []
    n_joined = _JOINED + 1
    for column, codes in enumerate(places.T):
        n_codes = int(codes.max()) + 1 - int(codes.min())
        if n_joined * n_codes > _JOINED:
            groups.append([])
            n_joined = 1
        groups[-1].append(column)
        n_joined *= n_codes
    return groups
