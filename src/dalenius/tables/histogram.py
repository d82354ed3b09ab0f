"""How often each sensitive value occurs: all that a plan ever sees of the records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dalenius.arrays import Bools, Ints
from dalenius.errors import InternalError
from dalenius.tables.domains import whole_range

Value = tuple[Any, ...]
"""One value of the sensitive attribute: a cell of each sensitive column. None is NULL."""

_MOST_LISTED = 2**20
_MOST_COMPARED = 2**16
_FAR = 2**62
_LONGEST_SHOWN = 80
_TURNING = {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x7F)}
"""Marks that change the direction of text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Counts of the sensitive values, in an order that the values alone decide.

    >>> h = Histogram.of(("disease",), {("HIV",): 1, ("Flu",): 3})
    >>> h.values, h.counts, h.frequency(1)
    ((('Flu',), ('HIV',)), (3, 1), Fraction(1, 4))
    """

    columns: tuple[str, ...]
    values: tuple[Value, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, columns: Sequence[str], counted: dict[Value, int]) -> Histogram:
        """A histogram of the values that occur."""
        values = sorted((value for value, count in counted.items() if count), key=_sort_key)
        counts = tuple(counted[value] for value in values)
        return cls(columns=tuple(columns), values=tuple(values), counts=counts)

    @property
    def n_rows(self) -> int:
        """How many records were counted."""
        return sum(self.counts)

    def __len__(self) -> int:
        """How many different values there are."""
        return len(self.values)

    def frequency(self, code: int) -> Fraction:
        """The share of the records that has the value."""
        return Fraction(self.counts[code], self.n_rows)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoder:
    """Turns the sensitive columns of a batch into codes 0..m-1 of a histogram's values, and back."""

    columns: tuple[str, ...]
    value_sets: tuple[pa.Array, ...]
    """The different cells of each sensitive column."""
    cells: tuple[pa.Array, ...]
    """Per column, the cell of each value, by code."""
    known: Ints
    """Mixed-radix number of each value, ascending."""
    code_of_known: NDArray[np.int32]
    code_of_number: NDArray[np.int32] | None
    """By mixed-radix number, -1 where it is no value's and at the end; None if there are too many numbers."""

    @classmethod
    def of(cls, histogram: Histogram, schema: pa.Schema) -> Encoder:
        """The encoder for batches of that schema."""
        by_column = list(zip(*histogram.values, strict=True)) or [()] * len(histogram.columns)
        cells = tuple(
            pa.array(column, type=schema.field(name).type)
            for name, column in zip(histogram.columns, by_column, strict=True)
        )
        value_sets = tuple(column.unique() for column in cells)
        numbers = mixed_radix(cells, value_sets)
        order = np.argsort(numbers)
        n_numbers = math.prod(map(len, value_sets))
        code_of_number = None
        if n_numbers < _MOST_LISTED:
            code_of_number = np.full(n_numbers + 1, -1, dtype=np.int32)
            code_of_number[numbers] = np.arange(len(numbers))
        return cls(
            columns=histogram.columns,
            value_sets=value_sets,
            cells=cells,
            known=numbers[order],
            code_of_known=order.astype(np.int32),
            code_of_number=code_of_number,
        )

    @property
    def n_values(self) -> int:
        """How many different values there are."""
        return len(self.known)

    def encode(self, batch: pa.RecordBatch) -> NDArray[np.int32]:
        """The code of each row's sensitive value."""
        columns = [batch.column(name) for name in self.columns]
        numbers = mixed_radix(columns, self.value_sets)
        codes = self._codes(numbers)
        if (codes < 0).any():
            raise InternalError("the table changed between two passes over it: a value has no count")
        return codes

    def _codes(self, numbers: Ints) -> NDArray[np.int32]:
        """The code of each mixed-radix number, -1 where it is no value's."""
        if self.code_of_number is not None:
            return self.code_of_number[numbers]
        found = np.minimum(np.searchsorted(self.known, numbers), len(self.known) - 1)
        return np.where(self.known[found] == numbers, self.code_of_known[found], np.int32(-1))

    def decode(self, codes: NDArray[np.integer]) -> dict[str, pa.Array]:
        """The cells of the values with these codes, by column."""
        indices = pa.array(codes)
        return {name: cells_at(indices, cells) for name, cells in zip(self.columns, self.cells, strict=True)}


def positions(column: pa.Array, value_set: pa.Array) -> pa.Array:
    """Where each cell is in the set, NULL where it is not; of a coded column, its dictionary is sought."""
    if not pa.types.is_dictionary(column.type):
        found = _in_range(column, value_set)
        return pc.index_in(_one_zero(column), value_set=_one_zero(value_set)) if found is None else found
    found = pc.index_in(column.dictionary, value_set=value_set).take(column.indices)
    if not column.indices.null_count:
        return found
    of_null = pc.index_in(pa.nulls(1, value_set.type), value_set=value_set)[0]
    return pc.if_else(column.is_null(), of_null, found)


def _in_range(column: pa.Array, value_set: pa.Array) -> pa.Array | None:
    """Where whole numbers are among all those from one to another, without a look-up; None for others."""
    if not pa.types.is_integer(column.type) or column.null_count or len(value_set) > _MOST_COMPARED:
        return None
    ends = whole_range(value_set)
    if ends is None or not -_FAR <= ends[0] <= ends[1] <= _FAR:
        return None
    places = column.to_numpy().astype(np.int64) - ends[0]
    is_outside = (places < 0) | (places >= len(value_set))
    return pa.array(places, mask=is_outside if is_outside.any() else None)


def _one_zero(cells: pa.Array) -> pa.Array:
    """The cells with 0.0 for -0.0: DuckDB counts the two as one value, Arrow tells them apart."""
    return pc.add(cells, pa.scalar(0, cells.type)) if pa.types.is_floating(cells.type) else cells


def cells_at(codes: pa.Array, values: pa.Array) -> pa.Array:
    """The values with these codes; texts stay coded."""
    if pa.types.is_string(values.type):
        return pa.DictionaryArray.from_arrays(codes, values)
    return values.take(codes)


def label(value: Value) -> str:
    """How messages and policies write a value: `Flu`, `NULL`, `Flu / ward A`."""
    return " / ".join(label_cell(cell) for cell in value)


def label_cell(cell: Any) -> str:
    """How messages and policies write a cell.

    >>> label_cell(None), label_cell(True), label_cell(3)
    ('NULL', 'true', '3')
    """
    if cell is None:
        return "NULL"
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def write_cells(value: Iterable[Any]) -> tuple[str | None, ...]:
    """The cells of a value as manifests write them.

    >>> write_cells(("Flu", 3, None))
    ('Flu', '3', None)
    """
    return tuple(None if cell is None else label_cell(cell) for cell in value)


def show_value(cells: Iterable[str | None]) -> str:
    """The labels of a value's cells as a page shows them, not longer than a line.

    >>> show_value(["Flu", None])
    'Flu / NULL'
    """
    text = " / ".join("NULL" if cell is None else escape_controls(cell) for cell in cells) or "(empty)"
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def escape_controls(text: str) -> str:
    r"""A text whose control characters, which could turn the rest of a line around, are written out.

    >>> print(escape_controls("a" + chr(0x202E) + "b" + chr(10)))
    a\u202eb\u000a
    """
    return "".join(f"\\u{ord(c):04x}" if c in _TURNING or ord(c) < 32 else c for c in text)


def _sort_key(value: Value) -> tuple[tuple[int, Any], ...]:
    """NULL first and NaN, which no comparison puts anywhere, last."""
    return tuple((0, 0) if cell is None else (2, 0) if _is_nan(cell) else (1, cell) for cell in value)


def with_one_nan(value: Value) -> Value:
    """The same value with the one NaN that Python finds again among the keys of a dictionary.

    >>> len({with_one_nan((float("nan"),)), with_one_nan((float("nan"),))})
    1
    """
    return tuple(math.nan if _is_nan(cell) else cell for cell in value)


def _is_nan(cell: Any) -> bool:
    return isinstance(cell, float) and math.isnan(cell)


def mixed_radix(columns: Iterable[pa.Array], value_sets: Sequence[pa.Array]) -> Ints:
    """One number per row: which cell of each column it has; -1 where a cell is unknown."""
    total: Ints | None = None
    unknown: Bools | None = None
    for column, value_set in zip(columns, value_sets, strict=True):
        digits = positions(column, value_set).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        total = digits if total is None else total * len(value_set) + digits
        unknown = digits < 0 if unknown is None else unknown | (digits < 0)
    assert total is not None  # noqa: S101  (there is at least one sensitive column)
    assert unknown is not None  # noqa: S101
    return np.where(unknown, -1, total)
