"""Tables held in codes, with bitmaps of the rows of each value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.arrays import Bits, Bools, Codes, Ints
from dalenius.tables.codes import encode, narrowest, number

_BITMAP_BYTES = 64_000_000
"""Bitmaps per value are kept for columns where they fit into this."""
_FEW = 24
"""How many bitmaps are joined rather than looking every row up."""
_MOST_COMBINED = 64
"""How many combinations of columns are kept."""
_MOST_KEYS = 2**62
"""Of combinations before they are numbered: a number has 63 bits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Coded:
    """A column, or a combination of columns: which of the different values each row has."""

    codes: Codes
    values: Mapping[str, pa.Array]
    """Per column, the cell of each different value, by code."""

    @classmethod
    def of(cls, name: str, column: pa.Array | pa.ChunkedArray) -> Coded:
        """Code a column."""
        codes, cells = encode(column)
        return cls(codes=codes, values={name: cells})

    @property
    def n_values(self) -> int:
        """How many different values there are."""
        return len(next(iter(self.values.values()))) if self.values else 1

    @property
    def cells(self) -> pa.Array:
        """The different values of a single column, by code."""
        (cells,) = self.values.values()
        return cells

    def to_pylist(self, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """The different combinations, by code, as cells of these columns."""
        return list(zip(*(self.values[name].to_pylist() for name in names), strict=True))

    @cached_property
    def code_of(self) -> dict[object, int]:
        """The code of each value of a single column."""
        return {cell: code for code, cell in enumerate(self.cells.to_pylist())}

    def decode(self, rows: Codes | slice = slice(None)) -> pa.Array:
        """The cells of a single column in these rows."""
        return self.cells.take(pa.array(self.codes[rows]))

    @property
    def is_number(self) -> bool:
        """Whether the cells of a single column are numbers."""
        kind = self.cells.type
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))

    def ranked(self) -> tuple[Codes, bool]:
        """A column's codes, ascending with its cells where these are numbers, and whether they are."""
        if not self.is_number:
            return self.codes, False
        order = pc.array_sort_indices(pc.cast(self.cells, pa.float64(), safe=False)).to_numpy()
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return rank[self.codes], True

    @cached_property
    def _bitmaps(self) -> dict[int, Bits]:
        """Of the values that were asked for: the same ones are asked for again and again."""
        return {}

    def _bitmap(self, code: int) -> Bits:
        if code not in self._bitmaps:
            self._bitmaps[code] = np.packbits(self.codes == code)
        return self._bitmaps[code]

    def select(self, chosen: Bools) -> Bits:
        """The rows whose value is chosen."""
        wanted, others = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        few = wanted if len(wanted) <= len(others) else others
        n_bytes = len(self.codes) // 8 + 1
        if len(few) > _FEW or self.n_values * n_bytes > _BITMAP_BYTES:
            return np.packbits(chosen[self.codes])
        found = np.zeros((len(self.codes) + 7) // 8, dtype=np.uint8)
        for code in few.tolist():
            found |= self._bitmap(code)
        return (
            found if few is wanted else ~found
        )  # bits beyond the last row are cut off when bits become rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodedTable:
    """Coded columns of equal length, and combinations of them as they are asked for."""

    n_rows: int
    columns: Mapping[str, Coded]
    _combined: dict[tuple[str, ...], Coded] = field(default_factory=dict)

    @classmethod
    def of(cls, table: pa.Table) -> CodedTable:
        """Encode every column."""
        return cls(
            n_rows=table.num_rows,
            columns={name: Coded.of(name, table.column(name)) for name in table.column_names},
        )

    def combine(self, names: Sequence[str]) -> Coded:
        """The different combinations of values of some columns that occur."""
        key = tuple(sorted(names))
        if len(key) == 1:
            return self.columns[key[0]]
        if key not in self._combined:
            if len(self._combined) >= _MOST_COMBINED:
                self._combined.clear()
            self._combined[key] = self._code_combinations(key)
        return self._combined[key]

    def _code_combinations(self, key: tuple[str, ...]) -> Coded:
        keys, n_keys = np.zeros(self.n_rows, dtype=np.int64), 1
        for column in (self.columns[name] for name in key):
            if n_keys * column.n_values > _MOST_KEYS:
                keys, different = number(keys)
                n_keys = len(different)
            keys = keys * column.n_values + column.codes
            n_keys *= column.n_values
        codes, different = number(keys)
        one_row = np.zeros(len(different), dtype=np.int64)
        one_row[codes] = np.arange(self.n_rows)
        values = {name: self.columns[name].decode(one_row) for name in key}
        return Coded(codes=codes.astype(narrowest(len(different))), values=values)

    def rows(self, bits: Bits) -> Ints:
        """The rows whose bit is set."""
        return np.flatnonzero(np.unpackbits(bits, count=self.n_rows).view(np.bool_))

    def all_rows(self) -> Bits:
        """Every bit set."""
        return np.full((self.n_rows + 7) // 8, 255, dtype=np.uint8)

    def no_rows(self) -> Bits:
        """No bit set."""
        return np.zeros((self.n_rows + 7) // 8, dtype=np.uint8)
