"""Published columns that give the secret away: a code of the diagnosis beside the diagnosis.

Whoever has a cell of such a column has one value, so that no limit on what buckets or coins tell is of use.
Groups of few people agree by chance as well, above all on a common value. A column is told of if far more
people are in groups that agree than that explains; if a cell goes with one value nearly always, for more
people than chance explains (those who take a medicine against one disease); and if it is a number that
follows the secret one, as a net salary follows the gross. So are two columns that tell together.

Most tables have cells that nearly always go with one value: hardly anybody under 20 has married. Such columns
are told of, and only one that tells the value of many people, or of most who have it, is taken for a giveaway
that nobody should publish by accident.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import log, prod, sqrt
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.arrays import Bools, Floats, Int32s, Ints
from dalenius.exact import percent
from dalenius.tables.codes import encode, number

LOOKED_AT = 20_000
"""Of more records a random choice is looked at: what a column gives away shows in any part of a table."""
_MUCH = 0.25
"""Of the people whom chance leaves in doubt, so many have a value that their cell tells."""
_SURE = 6.0
"""And they are more, by so many standard deviations, than chance gives."""
_NEARLY = 0.9
"""One cell tells a value if so many of the people who have it have the value …"""
_COMMON = 0.5
"""… which no more than half of all people have …"""
_CHANCE = 1e-9
"""… and if a table whose columns tell nothing has such a cell with no more than this probability."""
_MOST = 0.5
"""Such a cell is more than an association if so many of those who have the value have the cell …"""
_SEVERAL = 0.001
"""… and if they are so many of all people."""
_CLOSELY = 0.995
"""A number follows another one if their ranks are correlated so much …"""
_MANY = 30
"""… and both have so many different values: fewer are names of things."""
_IN_PAIRS = 4
"""Two columns are looked at together if so many people share their cells on average."""

_KINDS = 3
"""Into so many kinds the values of a secret are dealt out where pairs of columns are looked over."""
_SLACK = 1e-6
"""More than rounding: a bound that rules something out is wider by it."""
_CELLS_AT_ONCE = 2**16
"""Counts of several pairs that are looked at together, in a processor's cache."""
_MOST_COUNTED = 2**20
"""Cells × values that are counted in a table; more are sorted."""

How = Literal["agree", "nearly", "follows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Giveaway:
    """A published column, or two of them, whose cells tell sensitive values."""

    column: str
    share: float
    """Of the people who share their cell with others, those whose cell tells the value."""
    people: int
    """How many these are, among those looked at."""
    looked_at: int
    """How many people were looked at."""
    beside: str | None = None
    """The column that it tells the value together with; None: it does so by itself."""
    told: str | None = None
    """Which of several sensitive columns it tells; None: all of them."""
    how: How = "agree"
    """Cells have one value only; or one value nearly always; or they are numbers that follow the secret."""
    is_loose: bool = False
    """Few people are concerned, and few of those who have the value: told of, and no reason to refuse."""

    def sentence(self, sensitive: Sequence[str]) -> str:
        """In plain words.

        >>> Giveaway(column="icd", share=0.98, people=98, looked_at=100).sentence(("diagnosis",))
        "'icd' gives 'diagnosis' away: 98 % of the people who share a cell of it share the value too"
        >>> Giveaway(column="rx", share=0.1, people=6, looked_at=60, how="nearly").sentence(("hiv",))
        "'rx' gives 'hiv' away: 6 of 60 people looked at have a cell of it that nearly always tells the value"
        """
        what = " × ".join(map(repr, sensitive)) if self.told is None else repr(self.told)
        names, give, it = (
            (f"{self.column!r}", "gives", "it")
            if self.beside is None
            else (f"{self.column!r} and {self.beside!r} together", "give", "both")
        )
        found = {
            "agree": f"{percent(self.share)} of the people who share a cell of {it} share the value too",
            "nearly": f"{self.people:,} of {self.looked_at:,} people looked at have a cell of {it} that "
            "nearly always tells the value",
            "follows": "who has more of the one has more of the other, or less, nearly without exception",
        }
        return f"{names} {give} {what} away: {found[self.how]}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodedColumn:
    """A column's cells as numbers from 0."""

    codes: Ints
    n_values: int
    ranks: Floats | None = field(default=None)
    """Of numbers and days: their order, NaN where there is none; None for other columns."""

    @classmethod
    def of(cls, cells: pa.ChunkedArray) -> CodedColumn:
        """What is compared of a column."""
        found, values = encode(cells)
        codes = found.astype(np.int64)
        return cls(codes=codes, n_values=len(values), ranks=_ranks(codes, values))

    def beside(self, other: CodedColumn) -> CodedColumn:
        """Two columns as one."""
        codes, cells = number(self.codes * other.n_values + other.codes)
        return CodedColumn(codes=codes, n_values=len(cells))


def _ranks(codes: Ints, values: pa.Array) -> Floats | None:
    if len(values) < _MANY or not (pa.types.is_primitive(values.type) or pa.types.is_decimal(values.type)):
        return None
    order = np.empty(len(values))
    order[pc.array_sort_indices(values).to_numpy()] = np.arange(len(values), dtype=np.float64)
    order[values.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return np.asarray(order[codes], dtype=np.float64)


def find_giveaways(records: pa.Table, quasi: Sequence[str], sensitive: Sequence[str]) -> tuple[Giveaway, ...]:
    """The columns that give the sensitive ones away, or one of them.

    >>> code = ["E11", "E11", "J10", "J10", "B20", "B20"] * 10
    >>> value = ["Diabetes", "Diabetes", "Flu", "Flu", "HIV", "HIV"] * 10
    >>> records = pa.table({"icd": code, "sex": ["F", "M"] * 30, "diagnosis": value})
    >>> [found.column for found in find_giveaways(records, ["icd", "sex"], ["diagnosis"])]
    ['icd']
    """
    if not len(records):
        return ()
    known = {name: CodedColumn.of(records[name]) for name in quasi}
    parts = [CodedColumn.of(records[name]) for name in sensitive]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.beside(part)
    secrets: dict[str | None, CodedColumn] = {None: whole}
    if len(parts) > 1:
        secrets |= dict(zip(sensitive, parts, strict=True))
    alone = [found for name, column in known.items() for found in _tells(name, column, secrets)]
    told = {found.column for found in alone}
    others = {name: column for name, column in known.items() if name not in told}
    return (*alone, *_tell_together(others, secrets))


def _tells(name: str, column: CodedColumn, secrets: Mapping[str | None, CodedColumn]) -> Iterator[Giveaway]:
    """What one column tells: all of a value, or else one column of it."""
    for told, secret in secrets.items():
        groups, n_rows = CellTable.of(column, secret), len(column.codes)
        ways: dict[How, tuple[int, float] | None] = {
            "agree": groups.agreeing(),
            "nearly": groups.telling(),
            "follows": (n_rows, 1.0) if _follows(column, secret) else None,
        }
        found = next(((how, one) for how, one in ways.items() if one is not None), None)
        if found is not None:
            how, (n, share) = found
            loose = how == "nearly" and not groups.tell_most()
            yield Giveaway(
                column=name, share=share, people=n, looked_at=n_rows, told=told, how=how, is_loose=loose
            )
            return


def _tell_together(
    columns: Mapping[str, CodedColumn], secrets: Mapping[str | None, CodedColumn]
) -> Iterator[Giveaway]:
    """Two columns that tell much of the table, where neither does so by itself."""
    names, coded = [*columns], [*columns.values()]
    candidates = {told: set(_PairScreen.of(secret).passed(coded)) for told, secret in secrets.items()}
    for i, j in sorted(set().union(*candidates.values())):
        one, other, n_rows = coded[i], coded[j], len(coded[i].codes)
        # few enough to be counted without numbering those that occur
        n_both = one.n_values * other.n_values
        both = CodedColumn(codes=one.codes * other.n_values + other.codes, n_values=n_both)
        for told, secret in secrets.items():
            found = CellTable.of(both, secret).telling() if (i, j) in candidates[told] else None
            if found is not None and found[0] >= _MUCH * n_rows:
                yield Giveaway(
                    column=names[i],
                    share=found[1],
                    people=found[0],
                    looked_at=n_rows,
                    beside=names[j],
                    told=told,
                    how="nearly",
                )
                break


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _PairScreen:
    """What rules out, far sooner than counting all values does, that two columns tell much of a secret.

    A group that tells a value has many people with it: at least needed / log(1/f), by Chernoff's bound.
    So in a cell of one column, which the other splits into k groups, no more people have a value that is told
    than have its k commonest ones. And a group that has one value nearly always has values of one kind nearly
    always, whatever is taken for a kind. Both bounds are exact: no pair that tells is left out.
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
    def of(cls, secret: CodedColumn) -> _PairScreen:
        """Deal the values out, so that all kinds have about as many people."""
        n_rows = len(secret.codes)
        frequency = np.bincount(secret.codes, minlength=secret.n_values) / n_rows
        surprise = np.where(frequency <= _COMMON, -np.log(np.maximum(frequency, 1 / n_rows)), 0.0)
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
        enough = (_NEARLY - _SLACK) * _MUCH * n_rows
        most_told = [self._most_told(column) for column in columns]
        told = [[own[min(size, len(own)) - 1] >= enough for size in different.tolist()] for own in most_told]
        is_told = np.array(told, dtype=np.bool_).reshape(len(columns), len(different))
        kinds, most = self.kinds[self.secret.codes], self._most_of_kinds()
        for i, column in enumerate(columns):
            can_tell = (sizes * (sizes[i] * _IN_PAIRS) <= n_rows) & is_told[i, which] & is_told[:, which[i]]
            can_tell &= (sizes > 1) & (sizes[i] > 1) & (np.arange(len(columns)) > i)
            codes = kinds * sizes[i] + column.codes
            for size in np.unique(sizes[can_tell]).tolist():
                others, first = np.flatnonzero(can_tell & (sizes == size)).tolist(), codes * size
                shape = (self.n_kinds, int(sizes[i]) * size)
                at_once = max(1, _CELLS_AT_ONCE // prod(shape))
                for start in range(0, len(others), at_once):
                    some = others[start : start + at_once]
                    tables = np.empty((len(some), *shape), dtype=np.int32)
                    for k, j in enumerate(some):
                        counts = np.bincount(first + columns[j].codes, minlength=prod(shape))
                        tables[k] = counts.reshape(shape)
                    people = self._people(tables, most)
                    yield from ((i, some[k]) for k in np.flatnonzero(people >= _MUCH * n_rows))

    def _most_told(self, column: CodedColumn) -> Sequence[int]:
        """At most so many people have a value that is told if each cell is split into 1, 2, … groups."""
        n_rows, shape = len(column.codes), (column.n_values, self.secret.n_values)
        if shape[0] * shape[1] > n_rows:
            return [n_rows]
        keys = column.codes * shape[1] + self.secret.codes
        table = np.bincount(keys, minlength=shape[0] * shape[1]).reshape(shape)
        table[table * self.surprise < self._needed(1)] = 0
        return [*accumulate(np.sort(table, axis=1)[:, ::-1].sum(axis=0).tolist())]

    def _most_of_kinds(self) -> Floats:
        """The most that a person adds to the surprise, by kind."""
        most = np.zeros(self.n_kinds)
        np.maximum.at(most, self.kinds, self.surprise)
        return most[self.n_common :, None]

    def _people(self, tables: Int32s, most: Floats) -> Ints:
        """At most so many people are in groups that tell, by pairs × kinds × groups."""
        n, rare = tables.sum(axis=1, dtype=np.int32), tables[:, self.n_common :]
        needed = self._needed(1) + np.log(np.maximum(np.count_nonzero(n > 1, axis=1), 1)) - _SLACK
        least = np.ceil(needed[:, None, None] / np.maximum(most, _SLACK)).astype(np.int32)
        nearly = np.ceil((_NEARLY - _SLACK) * n).astype(np.int32)
        is_told = (rare >= np.maximum(np.maximum(least, 2), nearly[:, None])).any(axis=1)
        people: Ints = (n * is_told).sum(axis=1)
        return people

    def _needed(self, n_groups: int) -> float:
        return _needed(n_groups, self.secret.n_values) - _SLACK


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellTable:
    """The people who share a cell of a column, two or more of them, and their commonest value."""

    n: Floats
    """How many people each group has."""
    top: Floats
    """How many of them have their commonest value."""
    value: Ints
    """Which value that is."""
    frequency: Floats
    """The share of every value in the table."""
    n_rows: int
    """Of the table."""

    @classmethod
    def of(cls, column: CodedColumn, secret: CodedColumn) -> CellTable:
        """Count the values of every group."""
        if column.n_values * secret.n_values <= _MOST_COUNTED:
            return cls._of_table(column, secret)
        keys, counts = np.unique(column.codes * secret.n_values + secret.codes, return_counts=True)
        cell, value = np.divmod(keys, secret.n_values)
        order = np.lexsort((counts, cell))  # the commonest value of a cell comes last
        last = np.flatnonzero(np.diff(cell[order], append=-1))
        n = np.bincount(column.codes, minlength=column.n_values).astype(np.float64)
        n = n[cell[order][last]]
        frequency = np.bincount(secret.codes, minlength=secret.n_values) / len(secret.codes)
        shared = n > 1
        top = counts[order][last][shared].astype(np.float64)
        return cls(
            n=n[shared],
            top=top,
            value=value[order][last][shared],
            frequency=frequency,
            n_rows=len(secret.codes),
        )

    @classmethod
    def _of_table(cls, column: CodedColumn, secret: CodedColumn) -> CellTable:
        """The same by a table of all cells and values, which need not be sorted."""
        keys, shape = column.codes * secret.n_values + secret.codes, (column.n_values, secret.n_values)
        table = np.bincount(keys, minlength=shape[0] * shape[1]).reshape(shape)
        frequency = table.sum(axis=0) / len(keys)
        n = table.sum(axis=1)
        table, n = table[n > 1], n[n > 1]
        value = shape[1] - 1 - table[:, ::-1].argmax(axis=1)  # of several that are as common, the last
        top = table[np.arange(len(n)), value]
        return cls(
            n=n.astype(np.float64),
            top=top.astype(np.float64),
            value=value,
            frequency=frequency,
            n_rows=len(keys),
        )

    def agreeing(self) -> tuple[int, float] | None:
        """The people whose group agrees, and their share; None: not many more than chance gives."""
        n, n_groups = np.unique(self.n, return_counts=True)
        people, certain = float(self.n.sum()), float(self.n[self.top == self.n].sum())
        frequency, n_values = np.unique(self.frequency, return_counts=True)
        by_chance = (n_values[:, None] * frequency[:, None] ** n).sum(axis=0)  # that all of a group agree
        expected = float((n * n_groups * by_chance).sum())
        deviation = sqrt(float((n**2 * n_groups * by_chance * (1 - by_chance)).sum()))
        is_much = certain - expected >= _MUCH * (people - expected) > 0
        is_sure = certain - expected >= _SURE * max(deviation, 1.0)
        return (int(certain), certain / people) if is_much and is_sure else None

    def telling(self) -> tuple[int, float] | None:
        """The people of groups that have one value nearly always; None: chance explains all of them.

        That t or more of n people have a value of frequency f has at most the probability exp(−n·KL(t/n, f))
        (Chernoff), for each of the groups and values.
        """
        people = float(self.n[self._is_told()].sum())
        return (int(people), people / float(self.n.sum())) if people else None

    def tell_most(self) -> bool:
        """Whether such groups are much of the table, or hold most of the people who have some value."""
        is_told = self._is_told()
        held = np.bincount(self.value[is_told], self.top[is_told], minlength=len(self.frequency))
        is_most = (held >= _MOST * self.frequency * self.n_rows) & (held >= _SEVERAL * self.n_rows)
        return bool(is_most.any() or self.n[is_told].sum() >= _MUCH * self.n_rows)

    def _is_told(self) -> Bools:
        share, f = self.top / self.n, np.minimum(self.frequency[self.value], 1 - 1e-9)
        doubt = np.maximum(1 - share, 1e-12)
        surprise = self.n * (share * np.log(share / f) + doubt * np.log(doubt / (1 - f)))
        needed = _needed(len(self.n), len(self.frequency))
        return np.asarray((share >= _NEARLY) & (f <= _COMMON) & (surprise >= needed))


def _needed(n_groups: int, n_values: int) -> float:
    """The surprise that chance gives to one of so many groups and values with the probability _CHANCE."""
    return log(max(n_groups, 1) * n_values / _CHANCE)


def _follows(column: CodedColumn, secret: CodedColumn) -> bool:
    """Whether both are numbers, and whoever has more of one has more, or less, of the other."""
    if column.ranks is None or secret.ranks is None:
        return False
    is_known = ~(np.isnan(column.ranks) | np.isnan(secret.ranks))
    one, other = column.ranks[is_known], secret.ranks[is_known]
    if len(one) < _MANY or one.std() == 0 or other.std() == 0:
        return False
    return bool(abs(np.corrcoef(one, other)[0, 1]) >= _CLOSELY)
