"""The cells that regions are cut from: a few groups of values of each quasi-identifier, in a fixed order.

Numbers are cut into ranges that hold about as many people each; NULL comes before every number. The values of
other columns are cells of their own, the commonest first. Cells depend on quasi-identifiers alone, all of
which a release publishes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.arrays import Floats, Ints
from dalenius.errors import InternalError
from dalenius.tables.codes import find_codes
from dalenius.tables.histogram import write_cells

MOST_VALUES = 256
"""A column of texts with more different values is not cut; numbers are first grouped into as many ranges."""
_RANGES = 16
"""Of a column of numbers, as long as a region is cut."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumberCells:
    """Ranges of numbers: the first is NULL, the next end at the given values, the last has no end."""

    column: str
    ends: Floats
    has_null: bool

    @property
    def n_cells(self) -> int:
        """NULL, and one more range than ends."""
        return len(self.ends) + 2

    def encode(self, cells: pa.Array) -> Ints:
        """The cell of each row."""
        numbers = pc.cast(cells, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        found = np.searchsorted(self.ends, numbers, side="left") + 1
        found[cells.is_null().to_numpy(zero_copy_only=False)] = 0
        return np.asarray(found, dtype=np.int64)

    def ordered(self, counts: Ints) -> NumberCells:
        """Fewer ranges, with about as many people each."""
        if len(self.ends) < _RANGES:
            return self
        ranges = counts[1:]
        share = np.cumsum(ranges)[:-1] * _RANGES / max(int(ranges.sum()), 1)
        last = np.flatnonzero(np.diff(np.floor(share), append=_RANGES) > 0)
        return NumberCells(column=self.column, ends=self.ends[last], has_null=self.has_null)

    def condition(self, first: int, last: int) -> dict[str, Any]:
        """What the rows of cells `first` to `last` have in common; empty: nothing."""
        if first == 0 and last == self.n_cells - 1:
            return {}
        if last == 0:
            return {"column": self.column, "in": [None]}
        above = {"above": _plain(self.ends[first - 2])} if first > 1 else {}
        at_most = {"at_most": _plain(self.ends[last - 1])} if last < self.n_cells - 1 else {}
        return {"column": self.column, **above, **at_most, "null": self.has_null and first == 0}


def _plain(number: float) -> int | float:
    return int(number) if float(number).is_integer() else float(number)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextCells:
    """One cell a value, in a given order."""

    column: str
    values: pa.Array
    """The different values, NULL among them."""
    cell_of: Ints
    """The cell of each value."""

    @property
    def n_cells(self) -> int:
        """As many as values."""
        return len(self.values)

    def encode(self, cells: pa.Array) -> Ints:
        """The cell of each row."""
        found = find_codes(cells, self.values)
        if found.null_count:
            raise InternalError("the table changed between two passes over it: a quasi-identifier is new")
        return np.asarray(self.cell_of[found.to_numpy(zero_copy_only=False)])

    def ordered(self, counts: Ints) -> TextCells:
        """The commonest value first, equals in the order of values."""
        cell_of = np.empty(len(counts), dtype=np.int64)
        cell_of[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
        return TextCells(column=self.column, values=self.values, cell_of=cell_of)

    def condition(self, first: int, last: int) -> dict[str, Any]:
        """What the rows of cells `first` to `last` have in common; empty: nothing."""
        if first == 0 and last == self.n_cells - 1:
            return {}
        order = np.argsort(self.cell_of)[first : last + 1]
        cells = self.values.take(pa.array(np.sort(order))).to_pylist()
        return {"column": self.column, "in": list(write_cells(cells))}


Cells = NumberCells | TextCells


def first_cells(column: str, values: pa.Array) -> Cells | None:
    """Cells before anything is counted, from the different values in ascending order, NULL last.

    None: the column has too many texts to be cut.
    """
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = pc.cast(values.drop_null(), pa.float64(), safe=False).to_numpy()
        different = np.unique(numbers[~np.isnan(numbers)])
        every = max(1, -(-len(different) // MOST_VALUES))
        ends = different[every - 1 : -1 : every]
        return NumberCells(column=column, ends=ends, has_null=values.null_count > 0)
    if len(values) > MOST_VALUES:
        return None
    return TextCells(column=column, values=values, cell_of=np.arange(len(values)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """The cells of all columns, numbered one column after the other."""

    columns: tuple[Cells, ...]

    @property
    def offsets(self) -> Ints:
        """The number of the first cell of each column, and how many cells there are in all."""
        return np.cumsum([0, *(cells.n_cells for cells in self.columns)])

    def encode(self, batch: pa.RecordBatch) -> Ints:
        """Columns × rows: the cell of each row in each column."""
        found = [cells.encode(batch.column(cells.column)) for cells in self.columns]
        return np.stack(found) if found else np.zeros((0, batch.num_rows), dtype=np.int64)

    def ordered(self, counts: Ints) -> Grid:
        """Cells made from how many people the present ones hold."""
        own = (counts[start:end] for start, end in pairwise(self.offsets))
        return Grid(columns=tuple(c.ordered(n) for c, n in zip(self.columns, own, strict=True)))

    def conditions(self, first: Sequence[int], last: Sequence[int]) -> list[dict[str, Any]]:
        """What the rows between two corners of the grid have in common."""
        stated = [c.condition(*ends) for c, *ends in zip(self.columns, first, last, strict=True)]
        return [condition for condition in stated if condition]
