"""Which two columns may tell a secret together: ruled out without counting, for most of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from dalenius.arrays import Bools, Codes, Floats, Ints
from dalenius.tables.codes import narrowest
from dalenius.tables.giveaways.cells import COMMON, IN_PAIRS, MUCH, NEARLY, CodedColumn, needed_surprise

_KINDS = 3
"""Into so many kinds the values of a secret are dealt out where pairs of columns are looked over."""
_SLACK = 1e-6
"""More than rounding: a bound that rules something out is wider by it."""
_CELLS_AT_ONCE = 2**16
"""Counts of several pairs that are looked at together, in a processor's cache."""
_SPARED = 0.8
"""Of the people who would be enough, so many are taken for told and not looked at."""
_STEPS, _MOST_STEPS = 8, 2**10
"""How finely people are told apart by how little it says that they agree, and how little is too little."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Look:
    """What one column may tell together with another one, whichever that is."""

    table: Ints | None
    """Cells × values: how many people, or 0 if these are too few to be told; None: not counted."""
    needed: float
    """The surprise that a group must have, at least."""
    most: Sequence[int]
    """At most so many people have a value that is told if each cell is split into 1, 2, … groups."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Twos:
    """People who share a cell of a column and a value, two by two.

    Together with another column the cell tells the value only if t of these n people share a cell of that
    too. The n − t others are in at most n − t of the ⌊n/2⌋ twos, so t − ⌈n/2⌉ twos or more agree.
    """

    rows: Ints
    """Two rows: the one and the other of each two."""
    starts: Ints
    """Where the twos of each cell and value begin."""
    people: Ints
    """Of each cell and value."""
    agreeing: Ints
    """So many of their twos agree, at least, if they are told."""
    ratio: float
    """No cell and value has more people for each of these."""
    enough: float
    """So many of these people are told, at least, if two columns tell much; all others are taken for told."""

    @classmethod
    def of(cls, column: CodedColumn, look: _Look, screen: PairScreen) -> _Twos | None:
        """None: to agree says too little of too many people."""
        if look.table is None:
            return None
        needed = np.ceil(look.needed / np.maximum(screen.surprise, _SLACK)).astype(np.int64)
        n, agreeing = look.table.ravel(), (needed - (look.table + 1) // 2).ravel()
        # the more people for each two that must agree, the less it says that they do
        steps = np.minimum(_STEPS * n // np.maximum(agreeing, 1), _MOST_STEPS)
        steps[(agreeing < 1) & (n > 0)] = _MOST_STEPS
        held = np.bincount(steps, n, minlength=_MOST_STEPS + 1)
        above = held.sum() - np.cumsum(held)
        limit = int(np.argmax(above <= _SPARED * screen.enough))
        if limit == _MOST_STEPS:
            return None
        is_kept = (n > 1) & (steps <= limit)
        people = n[is_kept]
        return cls(
            rows=_in_twos(column.codes * screen.secret.n_values + screen.secret.codes, is_kept, people),
            starts=np.cumsum(people // 2) - people // 2,
            people=people,
            agreeing=agreeing[is_kept],
            ratio=(limit + 1) / _STEPS,
            enough=screen.enough - float(above[limit]),
        )

    def may_tell(self, codes: Codes) -> bool:
        """Whether enough of them may be told with a column of these codes."""
        one, other = codes.take(self.rows)
        agree = one == other
        if np.count_nonzero(agree) * self.ratio < self.enough:
            return False
        agreeing = np.add.reduceat(agree, self.starts, dtype=np.int64)
        return bool(self.people[agreeing >= self.agreeing].sum() >= self.enough)


def _in_twos(keys: Ints, is_kept: Bools, people: Ints) -> Ints:
    """The rows of those keys that are kept, two of one key below one another, key by key."""
    rows = np.flatnonzero(is_kept[keys])
    rows = rows[np.argsort(keys[rows].astype(narrowest(len(is_kept))), kind="stable")]
    place = np.arange(len(rows)) - np.repeat(np.cumsum(people) - people, people)
    first = np.flatnonzero((place % 2 == 0) & (place + 1 < np.repeat(people, people)))
    return np.stack([rows[first], rows[first + 1]])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairScreen:
    """What rules out, far sooner than counting all values does, that two columns tell much of a secret.

    A group that tells a value has many people with it: at least needed / log(1/f), by Chernoff's bound.
    So in a cell of one column, which the other splits into k groups, no more people have a value that is told
    than have its k commonest ones; its k − 1 commonest ones, unless all groups tell and those k are nearly
    all of the cell. And so many of the people with that cell and value share a cell of the other column too.
    And a group that has one value nearly always has values of one kind nearly always, whatever is taken for a
    kind. All bounds are exact: no pair that tells is left out.
    """

    secret: CodedColumn
    surprise: Floats
    """Of each value, log(1/f): what one more person who has it adds, at most. 0: too common to be told."""
    kinds: Ints
    """Of what kind each value is: values too common to be told, if there are any, are kind 0, no others."""
    n_common: int
    """How many kinds these are: one, or none."""
    n_kinds: int

    @classmethod
    def of(cls, secret: CodedColumn) -> PairScreen:
        """Deal the values out, so that all kinds have about as many people."""
        n_rows = len(secret.codes)
        frequency = np.bincount(secret.codes, minlength=secret.n_values) / n_rows
        surprise = np.where(frequency <= COMMON, -np.log(np.maximum(frequency, 1 / n_rows)), 0.0)
        rare = np.flatnonzero(surprise)[np.argsort(-frequency[surprise > 0], kind="stable")]
        n_rare, n_common = max(1, min(len(rare), _KINDS)), int(len(rare) < secret.n_values)
        kinds = np.zeros(secret.n_values, dtype=np.int64)
        kinds[rare] = n_common + np.arange(len(rare)) % n_rare
        return cls(
            secret=secret, surprise=surprise, kinds=kinds, n_common=n_common, n_kinds=n_common + n_rare
        )

    def passed(self, columns: Sequence[CodedColumn]) -> Iterator[tuple[int, int]]:
        """The pairs that may tell the secret together, by their places; the first is the smaller one."""
        sizes = np.array([column.n_values for column in columns])
        narrow = [column.codes.astype(narrowest(column.n_values)) for column in columns]  # for the cache
        can_tell = self._can_tell(columns, sizes, narrow)
        kinds, most = self.kinds[self.secret.codes], self._most_of_kinds()
        for i, column in enumerate(columns):
            others = can_tell[i] & (np.arange(len(columns)) > i)
            codes = kinds * sizes[i] + column.codes if others.any() else kinds
            for size in np.unique(sizes[others]).tolist():
                same, shape = np.flatnonzero(others & (sizes == size)), (self.n_kinds, int(sizes[i]) * size)
                first = (codes * size).astype(narrowest(prod(shape)))
                at_once = max(1, _CELLS_AT_ONCE // prod(shape))
                for start in range(0, len(same), at_once):
                    some = same[start : start + at_once].tolist()
                    tables = np.empty((len(some), *shape), dtype=np.float32)
                    for table, j in zip(tables, some, strict=True):
                        counts = np.bincount(first + narrow[j], minlength=prod(shape))
                        table[:] = counts.reshape(shape)
                    yield from ((i, some[k]) for k in self._may_tell(tables, most))

    def _can_tell(self, columns: Sequence[CodedColumn], sizes: Ints, narrow: Sequence[Codes]) -> Bools:
        """Which columns may tell the secret together with which, before whole pairs are counted."""
        different, which = np.unique(sizes, return_inverse=True)
        looks = [self._look_at(column) for column in columns]
        told = [
            [look.most[min(k, len(look.most)) - 1] >= self.enough for k in different.tolist()]
            for look in looks
        ]
        is_told = np.array(told, dtype=np.bool_).reshape(len(columns), len(different))[:, which]
        is_small = np.multiply.outer(sizes * IN_PAIRS, sizes) <= len(self.secret.codes)
        can_tell: Bools = is_told & is_told.T & is_small & np.logical_and.outer(sizes > 1, sizes > 1)
        np.fill_diagonal(can_tell, val=False)
        for i in np.argsort(-sizes, kind="stable").tolist():  # the smaller the cells, the fewer are looked at
            twos = _Twos.of(columns[i], looks[i], self) if can_tell[i].any() else None
            if twos is not None:
                out = [j for j in np.flatnonzero(can_tell[i]).tolist() if not twos.may_tell(narrow[j])]
                can_tell[i, out] = can_tell[out, i] = False
        return can_tell

    @property
    def enough(self) -> float:
        """So many people have the value that their group tells, at least, if two columns tell much."""
        return (NEARLY - _SLACK) * MUCH * len(self.secret.codes)

    def _look_at(self, column: CodedColumn) -> _Look:
        n_rows, shape = len(column.codes), (column.n_values, self.secret.n_values)
        if shape[0] * shape[1] > n_rows:
            return _Look(table=None, needed=0.0, most=[n_rows])
        keys = column.codes * shape[1] + self.secret.codes
        table = np.bincount(keys, minlength=shape[0] * shape[1]).reshape(shape)
        people, most = table.sum(axis=1, keepdims=True), int(table[:, self.surprise > 0].max(initial=1))
        needed = self._needed(max(1, ceil(self.enough / most)))  # no group has more people with its value
        table[table * self.surprise < needed] = 0
        told = np.cumsum(np.sort(table, axis=1)[:, ::-1], axis=1)
        but_one = np.append(np.zeros_like(people), told[:, :-1], axis=1)
        all_tell = told >= (NEARLY - _SLACK) * people
        # more groups than values add nothing: all values of a cell are told, or the rarest of them is not
        found: list[int] = np.where(all_tell, told, but_one).sum(axis=0).tolist()
        return _Look(table=table, needed=needed, most=found)

    def _most_of_kinds(self) -> Floats:
        """The most that a person adds to the surprise, by kind."""
        most = np.zeros(self.n_kinds)
        np.maximum.at(most, self.kinds, self.surprise)
        return most[self.n_common :, None]

    def _may_tell(self, tables: NDArray[np.float32], most: Floats) -> Ints:
        """Which pairs may have enough people in groups that tell, by pairs × kinds × groups."""
        n, top = tables.sum(axis=1), tables[:, self.n_common :].max(axis=1)
        people = (n * (top >= (NEARLY - _SLACK) * n)).sum(axis=1)
        enough = (MUCH - _SLACK) * len(self.secret.codes)
        left = np.flatnonzero(people >= enough)
        if not len(left):
            return left
        n, rare = n[left], tables[left, self.n_common :]
        needed = self._needed(1) + np.log(np.maximum(np.count_nonzero(n > 1, axis=1), 1)) - _SLACK
        least = np.ceil(needed[:, None, None] / np.maximum(most, _SLACK))
        nearly = np.ceil((NEARLY - _SLACK) * n)
        is_told = (rare >= np.maximum(np.maximum(least, 2), nearly[:, None])).any(axis=1)
        told: Ints = left[(n * is_told).sum(axis=1) >= enough]
        return told

    def _needed(self, n_groups: int) -> float:
        return needed_surprise(n_groups, self.secret.n_values) - _SLACK
