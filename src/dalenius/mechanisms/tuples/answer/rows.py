"""The rows of a view, which of them a formula holds for, and what a question adds up over them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dalenius.arrays import Bits, Bools, Floats, Ints
from dalenius.mechanisms.tuples.answer.formula import All, Formula, Neither, Table
from dalenius.mechanisms.tuples.answer.question import TupleQuestion
from dalenius.mechanisms.tuples.domain import TupleCodes

_BITMAP_BYTES = 64_000_000
"""Bitmaps are kept for the columns whose bitmaps of all values fit into this."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ViewRows:
    """The codes of a view's rows, column by column.

    A bitmap of each value is made when a question first names it: a view has millions of rows, and the same
    values are asked for again and again.
    """

    codes: TupleCodes
    _bitmaps: dict[tuple[int, int], Bits] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.codes[0])

    def where(self, formula: Formula) -> Ints:
        """The rows for which the formula holds."""
        return self._rows(self._bits(formula))

    def _rows(self, bits: Bits) -> Ints:
        return np.flatnonzero(np.unpackbits(bits, count=self.n_rows).view(np.bool_))

    def _bits(self, formula: Formula) -> Bits:
        match formula:
            case Table(columns=(), holds=holds):
                return np.full((self.n_rows + 7) // 8, 255 if holds else 0, dtype=np.uint8)
            case Table(columns=(column,), holds=holds):
                return self._select(column, holds)
            case Table():
                return self._select_together(formula)
            case All(parts=parts):
                return np.asarray(np.bitwise_and.reduce([self._bits(part) for part in parts]), dtype=np.uint8)
            case Neither(of=of):
                return ~self._bits(of)  # the bits beyond the last row are cut off when bits become rows

    def _select_together(self, table: Table) -> Bits:
        """Those rows of which every column has some value that can hold are looked up."""
        possible = [
            self._select(column, _some_hold(table.holds, axis)) for axis, column in enumerate(table.columns)
        ]
        rows = self._rows(np.asarray(np.bitwise_and.reduce(possible)))
        found = np.zeros(self.n_rows, dtype=np.bool_)
        found[rows] = table.holds[tuple(self.codes[column][rows] for column in table.columns)]
        return np.packbits(found)

    def _select(self, column: int, holds: Bools) -> Bits:
        if holds.size * self.n_rows > 8 * _BITMAP_BYTES:
            return np.packbits(holds[self.codes[column]])
        chosen = np.flatnonzero(holds)
        if 2 * len(chosen) > len(holds):
            return ~self._select(column, ~holds)
        found = np.zeros((self.n_rows + 7) // 8, dtype=np.uint8)
        for value in chosen.tolist():
            found |= self._bitmap(column, value)
        return found

    def _bitmap(self, column: int, value: int) -> Bits:
        if (column, value) not in self._bitmaps:
            self._bitmaps[column, value] = np.packbits(self.codes[column] == value)
        return self._bitmaps[column, value]


def _some_hold(holds: Bools, axis: int) -> Bools:
    """Which values along an axis hold together with some values along the others."""
    flat = np.moveaxis(holds, axis, 0).reshape(holds.shape[axis], -1)
    return np.asarray(flat.any(axis=1), dtype=np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sums:
    """Sums of a question's summands, and of products of two, per group: over a view's rows and the domain."""

    question: TupleQuestion
    rows: ViewRows
    _counted: dict[int, Ints] = field(default_factory=dict)

    def over_domain(self, *summands: int, power: int = 0) -> Floats:
        """Per group, the sum of the summands' product over the domain, weighed by (P(t)/max P)^power."""
        return self.question.over_domain(*summands, power=power)

    def count_domain(self, summand: int, power: int = 0) -> Floats:
        """Per group, how many tuples of the domain the summand counts, weighed by (P(t)/max P)^power."""
        return self.question.count_domain(summand, power=power)

    def over_rows(self, *summands: int, weights: Floats | None = None) -> Floats:
        """Per group, the sum of the summands' product over the view's rows, weighed."""
        rows = self._rows(summands[0])
        for index in summands[1:]:
            if index != summands[0]:
                rows = np.intersect1d(rows, self._rows(index), assume_unique=True)
        numbers = np.ones(len(rows)) if weights is None else weights[rows]
        for index in summands:
            numbers = numbers * self.question.summands[index].at(self.rows.codes, rows)
        return self.question.groups.add_up(self._cells(rows), numbers)

    def count_rows(self, summand: int, weights: Floats | None = None) -> Floats:
        """Per group, how many rows of the view the summand counts, weighed."""
        rows = self._rows(summand)
        numbers = np.ones(len(rows)) if weights is None else weights[rows]
        return self.question.groups.add_up(self._cells(rows), numbers)

    def _rows(self, summand: int) -> Ints:
        """The rows of the view that the summand counts."""
        if summand not in self._counted:
            self._counted[summand] = self.rows.where(self.question.summands[summand].holds)
        return self._counted[summand]

    def _cells(self, rows: Ints) -> Ints:
        """Which combination of values of the columns that the group keys name each row has."""
        kept = self.question.kept
        if not kept:
            return np.zeros(len(rows), dtype=np.int64)
        shape = [self.question.domain.sizes[column] for column in kept]
        return np.asarray(np.ravel_multi_index([self.rows.codes[column][rows] for column in kept], shape))
