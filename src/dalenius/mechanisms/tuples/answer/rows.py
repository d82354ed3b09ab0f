"""The rows of a view, which of them a formula holds for, and what a question adds up over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dalenius.arrays import Bits, Bools, Codes, Floats, Ints
from dalenius.mechanisms.tuples.answer.formula import All, Formula, Neither, Table
from dalenius.mechanisms.tuples.answer.question import TupleQuestion
from dalenius.mechanisms.tuples.domain import Domain, TupleCodes
from dalenius.tables.columns import Coded, CodedTable


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ViewRows:
    """The rows of a view, each column in the codes of its domain."""

    table: CodedTable
    columns: tuple[Coded, ...]
    """The same by number."""

    @classmethod
    def of(cls, domain: Domain, codes: TupleCodes) -> ViewRows:
        """Rows with these codes."""
        columns = {
            column.name: Coded(codes=own, values={column.name: column.values})
            for column, own in zip(domain.columns, codes, strict=True)
        }
        table = CodedTable(n_rows=len(codes[0]), columns=columns)
        return cls(table=table, columns=tuple(columns.values()))

    def where(self, formula: Formula) -> Ints:
        """The rows for which the formula holds."""
        return self.table.rows(self._bits(formula))

    def at(self, columns: Sequence[int], rows: Ints) -> tuple[Codes, ...]:
        """The codes of some columns, by number, in some rows."""
        return tuple(self.columns[column].codes[rows] for column in columns)

    def _bits(self, formula: Formula) -> Bits:
        match formula:
            case Table(columns=(), holds=holds):
                return self.table.all_rows() if holds else self.table.no_rows()
            case Table(columns=(column,), holds=holds):
                return self.columns[column].select(holds)
            case Table():
                return self._select_together(formula)
            case All(parts=parts):
                return np.asarray(np.bitwise_and.reduce([self._bits(part) for part in parts]), dtype=np.uint8)
            case Neither(of=of):
                return ~self._bits(of)  # the bits beyond the last row are cut off when bits become rows

    def _select_together(self, table: Table) -> Bits:
        """Those rows of which every column has some value that can hold are looked up."""
        possible = [
            self.columns[column].select(_some_hold(table.holds, axis))
            for axis, column in enumerate(table.columns)
        ]
        rows = self.table.rows(np.asarray(np.bitwise_and.reduce(possible)))
        found = np.zeros(self.table.n_rows, dtype=np.bool_)
        found[rows] = table.holds[self.at(table.columns, rows)]
        return np.packbits(found)


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
            numbers = numbers * self._numbers(index, rows)
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

    def _numbers(self, summand: int, rows: Ints) -> Floats | float:
        """What the summand is for rows that it counts."""
        number = self.question.summands[summand].number
        return 1.0 if number is None else number.values[self.rows.at(number.columns, rows)]

    def _cells(self, rows: Ints) -> Ints:
        """Which combination of values of the columns that the group keys name each row has."""
        kept = self.question.kept
        if not kept:
            return np.zeros(len(rows), dtype=np.int64)
        shape = [self.question.domain.sizes[column] for column in kept]
        return np.asarray(np.ravel_multi_index(self.rows.at(kept, rows), shape))
