"""The people who share a cell of a column, and whether they share a value more often than chance explains."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import log, sqrt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.arrays import Bools, Codes, Floats, Ints
from dalenius.tables.codes import encode, narrowest, number

MUCH = 0.25
"""Of the people whom chance leaves in doubt, so many have a value that their cell tells."""
_SURE = 6.0
"""And they are more, by so many standard deviations, than chance gives."""
NEARLY = 0.9
"""One cell tells a value if so many of the people who have it have the value …"""
COMMON = 0.5
"""… which no more than half of all people have …"""
CHANCE = 1e-9
"""… and if a table whose columns tell nothing has such a cell with no more than this probability."""
MOST = 0.5
"""Such a cell is more than an association if so many of those who have the value have the cell …"""
SEVERAL = 0.001
"""… and if they are so many of all people."""
_CLOSELY = 0.995
"""A number follows another one if their ranks are correlated so much …"""
_MANY = 30
"""… and both have so many different values: fewer are names of things."""
IN_PAIRS = 4
"""Two columns are looked at together if so many people share their cells on average; the words of one are
looked at if fewer do."""
_MOST_COUNTED = 2**20
"""Cells × values that are counted in a table; more are sorted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodedColumn:
    """A column's cells as numbers from 0."""

    codes: Ints
    n_values: int
    ranks: Floats | None = field(default=None)
    """Of numbers and days: their order, NaN where there is none; None for other columns."""
    places: Codes | None = field(default=None)
    """Of numbers, days and texts: where each row is in their order, NULL last; None for other columns."""
    texts: pa.Array | None = field(default=None)
    """The cells by their codes, if they are texts that few people share."""
    last_digits: Ints | None = field(default=None)
    """The last two of each row, if the cells are whole numbers that few people share."""

    @classmethod
    def of(cls, cells: pa.ChunkedArray) -> CodedColumn:
        """What is compared of a column."""
        found, values = encode(cells)
        codes = found.astype(np.int64)
        texts = values if _has_words(values, codes) else None
        order = _order(values) if _is_ordered(values) or _is_text(values) else None
        return cls(
            codes=codes,
            n_values=len(values),
            ranks=None if order is None else _ranks(codes, values, order),
            places=None if order is None else order[codes],
            texts=texts,
            last_digits=_last_digits(codes, values),
        )

    def beside(self, other: CodedColumn) -> CodedColumn:
        """Two columns as one."""
        codes, cells = number(self.codes * other.n_values + other.codes)
        return CodedColumn(codes=codes, n_values=len(cells))


def _has_words(values: pa.Array, codes: Ints) -> bool:
    """Apart from one cell, which may be NULL or stand for nothing: only some have a note."""
    if not _is_text(values):
        return False
    return (len(values) - 1) * IN_PAIRS > len(codes) - int(np.bincount(codes, minlength=1).max())


def _last_digits(codes: Ints, values: pa.Array) -> Ints | None:
    if not pa.types.is_integer(values.type) or (len(values) - 1) * IN_PAIRS <= len(codes):
        return None
    whole = values.cast(pa.int64(), safe=False).fill_null(0).to_numpy()
    return np.asarray(np.abs(whole)[codes] % 100, dtype=np.int64)


def _is_text(values: pa.Array) -> bool:
    return bool(pa.types.is_string(values.type) or pa.types.is_large_string(values.type))


def _is_ordered(values: pa.Array) -> bool:
    return bool(pa.types.is_primitive(values.type) or pa.types.is_decimal(values.type))


def _order(values: pa.Array) -> Codes:
    """The place of each value, NULL last."""
    order = np.empty(len(values), dtype=narrowest(len(values)))
    order[pc.array_sort_indices(values).to_numpy()] = np.arange(len(values))
    return order


def _ranks(codes: Ints, values: pa.Array, order: Codes) -> Floats | None:
    if len(values) < _MANY or not _is_ordered(values):
        return None
    ranks = order.astype(np.float64)
    if values.null_count:
        ranks[values.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return np.asarray(ranks[codes], dtype=np.float64)


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

    def may_tell(self) -> bool:
        """Whether any group has one value nearly always, or hardly less often; most columns have none."""
        return bool((self.top >= (NEARLY - 1e-6) * self.n).any())

    def agreeing(self) -> tuple[int, float] | None:
        """The people whose group agrees, and their share; None: not many more than chance gives."""
        people, certain = float(self.n.sum()), float(self.n[self.top == self.n].sum())
        if not certain:
            return None
        n, n_groups = np.unique(self.n, return_counts=True)
        frequency, n_values = np.unique(self.frequency, return_counts=True)
        by_chance = (n_values[:, None] * frequency[:, None] ** n).sum(axis=0)  # that all of a group agree
        expected = float((n * n_groups * by_chance).sum())
        deviation = sqrt(float((n**2 * n_groups * by_chance * (1 - by_chance)).sum()))
        is_much = certain - expected >= MUCH * (people - expected) > 0
        is_sure = certain - expected >= _SURE * max(deviation, 1.0)
        return (int(certain), certain / people) if is_much and is_sure else None

    def telling(self) -> tuple[int, float] | None:
        """The people of groups that have one value nearly always; None: chance explains all of them.

        That t or more of n people have a value of frequency f has at most the probability exp(−n·KL(t/n, f))
        (Chernoff), for each of the groups and values.
        """
        people = float(self.n[self.is_told()].sum())
        return (int(people), people / float(self.n.sum())) if people else None

    def tell_most(self, most: float = MOST) -> bool:
        """Whether such groups are much of the table, or hold most of the people who have some value."""
        is_told = self.is_told()
        held = np.bincount(self.value[is_told], self.top[is_told], minlength=len(self.frequency))
        is_most = (held >= most * self.frequency * self.n_rows) & (held >= SEVERAL * self.n_rows)
        return bool(is_most.any() or self.n[is_told].sum() >= MUCH * self.n_rows)

    def telling_together(self) -> tuple[int, float] | None:
        """The people of groups that nearly always have one value, if most who have it are in such groups.

        Each group may be too small to be sure of: hundreds of medicines that are all against one disease. By
        chance, at most μ = Σ exp(−n·KL(t/n, f)) groups are so on average, t = ⌈0.9·n⌉, and k of them with at
        most the probability exp(k − μ)·(μ/k)^k (Chernoff; people in any order are negatively associated).
        """
        is_so = (self.top >= NEARLY * self.n) & (self.frequency[self.value] <= COMMON)
        k = np.bincount(self.value[is_so], minlength=len(self.frequency))
        held = np.bincount(self.value[is_so], self.top[is_so], minlength=len(self.frequency))
        is_most = (held >= MOST * self.frequency * self.n_rows) & (held >= SEVERAL * self.n_rows) & (k > 0)
        needed, sure = log(CHANCE / len(self.frequency)), np.zeros(len(k), dtype=np.bool_)
        for value in np.flatnonzero(is_most):
            mu = max(self._expected(float(self.frequency[value])), 1e-300)
            n = float(k[value])
            sure[value] = n > mu and n - mu + n * log(mu / n) <= needed
        people = float(self.n[is_so & sure[self.value]].sum())
        return (int(people), people / float(self.n.sum())) if people else None

    def _expected(self, frequency: float) -> float:
        """A bound on how many groups nearly always have a value of that frequency, by chance."""
        n, n_groups = np.unique(self.n, return_counts=True)
        share = np.ceil(NEARLY * n) / n
        doubt = np.maximum(1 - share, 1e-12)
        surprise = share * np.log(share / frequency) + doubt * np.log(doubt / (1 - frequency))
        return float((n_groups * np.exp(-n * surprise)).sum())

    def is_told(self) -> Bools:
        """Which groups have one value nearly always, more of them than chance explains."""
        share, f = self.top / self.n, np.minimum(self.frequency[self.value], 1 - 1e-9)
        doubt = np.maximum(1 - share, 1e-12)
        surprise = self.n * (share * np.log(share / f) + doubt * np.log(doubt / (1 - f)))
        needed = needed_surprise(len(self.n), len(self.frequency))
        return np.asarray((share >= NEARLY) & (f <= COMMON) & (surprise >= needed))


def needed_surprise(n_groups: int, n_values: int) -> float:
    """The surprise that chance gives to one of so many groups and values with the probability CHANCE."""
    return log(max(n_groups, 1) * n_values / CHANCE)


@lru_cache(maxsize=1)
def any_order(n_rows: int) -> Ints:
    """So that people with the same cell come in an order that says nothing, and not in that of the source."""
    return np.random.default_rng(0).permutation(n_rows)


def follows(column: CodedColumn, secret: CodedColumn) -> bool:
    """Whether both are numbers, and whoever has more of one has more, or less, of the other."""
    if column.ranks is None or secret.ranks is None:
        return False
    one, other = column.ranks, secret.ranks
    is_known = ~(np.isnan(one) | np.isnan(other))
    if not is_known.all():
        one, other = one[is_known], other[is_known]
    if len(one) < _MANY:
        return False
    one, other = one - one.mean(), other - other.mean()
    # not `@`: two threads of BLAS wait for one another far longer than such a sum takes
    both, own, others = (
        float(np.einsum("i,i", *pair)) for pair in ((one, other), (one, one), (other, other))
    )
    return own * others > 0 and abs(both) >= _CLOSELY * sqrt(own * others)
