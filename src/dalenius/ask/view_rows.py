"""The rows of a view, and which of them a formula holds for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dalenius.arrays import Bits, Bools, Ints
from dalenius.mechanisms.tuples.domain import TupleCodes
from dalenius.mechanisms.tuples.formula import All, Formula, Neither, Table

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
