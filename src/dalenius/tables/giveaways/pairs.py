"""Which two columns may tell a secret together: ruled out without counting, for most of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from dalenius.arrays import Floats, Ints
from dalenius.tables.giveaways.cells import COMMON, IN_PAIRS, MUCH, NEARLY, CodedColumn, needed_surprise

_KINDS = 3
"""Into so many kinds the values of a secret are dealt out where pairs of columns are looked over."""
_SLACK = 1e-6
"""More than rounding: a bound that rules something out is wider by it."""
_CELLS_AT_ONCE = 2**16
"""Counts of several pairs that are looked at together, in a processor's cache."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairScreen:
    """What rules out, far sooner than counting all values does, that two columns tell much of a secret.

    A group that tells a value has many people with it: at least needed / log(1/f), by Chernoff's bound.
    So in a cell of one column, which the other splits into k groups, no more people have a value that is told
    than have its k commonest ones; its k − 1 commonest ones, unless all groups tell and those k are nearly
    all of the cell. And a group that has one value nearly always has values of one kind nearly always,
    whatever is taken for a kind. All bounds are exact: no pair that tells is left out.
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
        n_rows, sizes = len(self.secret.codes), np.array([column.n_values for column in columns])
        different, which = np.unique(sizes, return_inverse=True)
        most_told = [self._most_told(column) for column in columns]
        told = [[own[min(k, len(own)) - 1] >= self._enough for k in different.tolist()] for own in most_told]
        is_told = np.array(told, dtype=np.bool_).reshape(len(columns), len(different))
        kinds, most = self.kinds[self.secret.codes], self._most_of_kinds()
        for i, column in enumerate(columns):
            can_tell = (sizes * (sizes[i] * IN_PAIRS) <= n_rows) & is_told[i, which] & is_told[:, which[i]]
            can_tell &= (sizes > 1) & (sizes[i] > 1) & (np.arange(len(columns)) > i)
            codes = kinds * sizes[i] + column.codes
            for size in np.unique(sizes[can_tell]).tolist():
                others, first = np.flatnonzero(can_tell & (sizes == size)).tolist(), codes * size
                shape = (self.n_kinds, int(sizes[i]) * size)
                at_once = max(1, _CELLS_AT_ONCE // prod(shape))
                for start in range(0, len(others), at_once):
                    some = others[start : start + at_once]
                    tables = np.empty((len(some), *shape), dtype=np.float32)
                    for table, j in zip(tables, some, strict=True):
                        counts = np.bincount(first + columns[j].codes, minlength=prod(shape))
                        table[:] = counts.reshape(shape)
                    yield from ((i, some[k]) for k in self._may_tell(tables, most))

    @property
    def _enough(self) -> float:
        """So many people have the value that their group tells, at least, if two columns tell much."""
        return (NEARLY - _SLACK) * MUCH * len(self.secret.codes)

    def _most_told(self, column: CodedColumn) -> Sequence[int]:
        """At most so many people have a value that is told if each cell is split into 1, 2, … groups."""
        n_rows, shape = len(column.codes), (column.n_values, self.secret.n_values)
        if shape[0] * shape[1] > n_rows:
            return [n_rows]
        keys = column.codes * shape[1] + self.secret.codes
        table = np.bincount(keys, minlength=shape[0] * shape[1]).reshape(shape)
        people, most = table.sum(axis=1, keepdims=True), int(table[:, self.surprise > 0].max(initial=1))
        n_groups = max(1, ceil(self._enough / most))  # no group has more people with its value
        table[table * self.surprise < self._needed(n_groups)] = 0
        told = np.cumsum(np.sort(table, axis=1)[:, ::-1], axis=1)
        but_one = np.append(np.zeros_like(people), told[:, :-1], axis=1)
        all_tell = told >= (NEARLY - _SLACK) * people
        # more groups than values add nothing: all values of a cell are told, or the rarest of them is not
        found: list[int] = np.where(all_tell, told, but_one).sum(axis=0).tolist()
        return found

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
