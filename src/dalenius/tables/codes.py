"""The one way a column becomes whole numbers.

A code is the place of a cell in a list of cells: of those that a column has, in the order in which they first
come (`encode`), or of a list that is given (`find_codes`). NULL is a cell like any other, and so is NaN.
Columns of several tables have common codes if they are coded as one column; combinations of columns are coded
as they occur (`dalenius.tables.columns`), or against a list of them (`Encoder`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dalenius.arrays import Bools, Codes, Int32s, Ints
from dalenius.errors import InternalError
from dalenius.tables.domains import whole_range

_MOST_LISTED = 2**20
"""A table of so many numbers is looked up faster than a sorted list is searched."""
_MOST_COMPARED = 2**16
"""Whether more values are a whole range is not worth finding out for every batch."""
_FAR = 2**62
"""Differences of whole numbers up to this stay within 64 bits."""
_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
"""Odd: what keys of 64 bits are times these is spread over the highest bits, in another way by each."""


def encode(cells: pa.Array | pa.ChunkedArray) -> tuple[Codes, pa.Array]:
    """Which of its different cells each row of a column has, and these cells.

    They are in the order in which they first come; of a coded column, in that of its dictionary.

    >>> codes, cells = encode(pa.array(["b", None, "b", "a"]))
    >>> codes.tolist(), cells.to_pylist()
    ([0, 1, 0, 2], ['b', None, 'a'])
    """
    whole = in_one_piece(cells)
    if pa.types.is_dictionary(whole.type):
        return _encode_dictionary(whole)
    encoded = whole.dictionary_encode(null_encoding="encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return codes.astype(narrowest(len(encoded.dictionary))), encoded.dictionary


def _encode_dictionary(column: pa.DictionaryArray) -> tuple[Codes, pa.Array]:
    """The same of a column that is coded already, whose dictionary may list a cell twice, or in vain."""
    indices, listed = column.indices, column.dictionary
    if indices.null_count:
        indices = indices.cast(pa.int64()).fill_null(len(listed))
        listed = pa.concat_arrays([listed, pa.nulls(1, listed.type)])
    places = indices.to_numpy()
    own, cells = encode(listed)
    is_used = np.zeros(len(cells), dtype=np.bool_)
    is_used[own[np.bincount(places, minlength=len(own)) > 0]] = True
    kind = narrowest(int(is_used.sum()))
    if len(cells) == len(own) and is_used.all():
        return places.astype(kind, copy=False), cells
    new_code = (np.cumsum(is_used) - 1).astype(kind)
    return new_code[own][places], cells.filter(pa.array(is_used))


def number(keys: Ints) -> tuple[Ints, Ints]:
    """Numbers from 0, equal where keys are, in the order in which keys come first; and each number's key.

    >>> [found.tolist() for found in number(np.array([7, 3, 7]))]
    [[0, 1, 0], [7, 3]]
    """
    encoded = pa.array(keys).dictionary_encode()  # by hashing: several times faster than sorting
    numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers, encoded.dictionary.to_numpy(zero_copy_only=False)


def number_words(keys: NDArray[np.uint64]) -> tuple[Int32s, Ints]:
    """The same numbers of many keys of 64 bits; and where each number's key comes first.

    >>> [found.tolist() for found in number_words(np.array([7, 3, 7], dtype=np.uint64))]
    [[0, 1, 0], [0, 1]]
    """
    every = np.arange(len(keys), dtype=np.int32)
    first, left, own = every, every, keys
    for factor in _FACTORS:
        # the first row of every place of a table; keys that share a place with others wait for the next one
        n_bits = max(len(own).bit_length(), 1)
        places = ((own * np.uint64(factor)) >> np.uint64(64 - n_bits)).view(np.int64)
        table = np.empty(2**n_bits, dtype=np.int32)
        table[places[::-1]] = left[::-1]
        found = np.take(table, places, mode="clip")  # none is outside: this way of saying so is the fastest
        is_other = np.take(keys, found, mode="clip") != own
        first = found if left is every else _put(first, left, found)
        left = left[is_other]
        if not len(left):
            break
        own = keys[left]
    else:
        numbers, listed = number(own.view(np.int64))
        at = np.zeros(len(listed), dtype=np.int32)
        at[numbers[::-1]] = left[::-1]
        first = _put(first, left, at[numbers])
    is_first = first == every
    codes = np.cumsum(is_first, dtype=np.int32)
    codes -= 1
    return np.take(codes, first, mode="clip"), np.flatnonzero(is_first)


def _put(numbers: Int32s, places: Int32s, new: Int32s) -> Int32s:
    numbers[places] = new
    return numbers


def narrowest(n_values: int) -> type[np.unsignedinteger[Any]]:
    """The type with the fewest bytes that has so many codes.

    >>> narrowest(256).__name__, narrowest(257).__name__
    ('uint8', 'uint16')
    """
    return np.uint8 if n_values <= 2**8 else np.uint16 if n_values <= 2**16 else np.uint32


def in_one_piece(cells: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column's cells as one array, however it comes."""
    joined = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined


def ascending(values: pa.Array) -> pa.Array:
    """The same values from the least to the largest, NULL last.

    >>> ascending(pa.array([3, None, 1])).to_pylist()
    [1, 3, None]
    """
    return values.take(pc.array_sort_indices(values))


def find_codes(column: pa.Array | pa.ChunkedArray, values: pa.Array) -> pa.Array:
    """Where each cell is in a list of values of its type, NULL where it is not.

    Of a coded column its dictionary is sought.

    >>> find_codes(pa.array(["b", "c", None]), pa.array([None, "a", "b"])).to_pylist()
    [2, None, 0]
    """
    cells = in_one_piece(column)
    if not pa.types.is_dictionary(cells.type):
        found = _find_in_range(cells, values)
        return pc.index_in(_one_zero(cells), value_set=_one_zero(values)) if found is None else found
    if not cells.indices.null_count and cells.dictionary.equals(values):
        return cells.indices
    found = pc.index_in(cells.dictionary, value_set=values).take(cells.indices)
    if not cells.indices.null_count:
        return found
    of_null = pc.index_in(pa.nulls(1, values.type), value_set=values)[0]
    return pc.if_else(cells.is_null(), of_null, found)


def _find_in_range(cells: pa.Array, values: pa.Array) -> pa.Array | None:
    """Where whole numbers are among all those from one to another, without a look-up; None for others."""
    if not pa.types.is_integer(cells.type) or cells.null_count or len(values) > _MOST_COMPARED:
        return None
    ends = whole_range(values)
    if ends is None or not -_FAR <= ends[0] <= ends[1] <= _FAR:
        return None
    places = cells.to_numpy().astype(np.int64) - ends[0]
    is_outside = (places < 0) | (places >= len(values))
    return pa.array(places, mask=is_outside if is_outside.any() else None)


def _one_zero(cells: pa.Array) -> pa.Array:
    """The cells with 0.0 for -0.0: DuckDB counts the two as one value, Arrow tells them apart."""
    return pc.add(cells, pa.scalar(0, cells.type)) if pa.types.is_floating(cells.type) else cells


def cells_at(codes: pa.Array, values: pa.Array) -> pa.Array:
    """The values with these codes; texts stay coded."""
    if pa.types.is_string(values.type):
        return pa.DictionaryArray.from_arrays(codes, values)
    return values.take(codes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoder:
    """Codes of a list of values, each of them a combination of cells of some columns.

    >>> encoder = Encoder.of({"disease": pa.array(["Flu", "Flu", "HIV"]), "ward": pa.array(["A", "B", None])})
    >>> encoder.find(pa.table({"ward": ["B", "A", "B"], "disease": ["Flu", "Flu", "HIV"]})).tolist()
    [1, 0, -1]
    """

    cells: Mapping[str, pa.Array]
    """Per column, the cell of each value, by code."""
    steps: tuple[_CodingStep, ...]
    """One a column."""

    @classmethod
    def of(cls, cells: Mapping[str, pa.Array]) -> Encoder:
        """For values that are listed by their cells, column by column, each of them once."""
        steps: list[_CodingStep] = []
        numbers, n_numbers = np.zeros(1, dtype=np.int64), 1
        for column in cells.values():
            own, values = encode(column)
            keys = numbers * len(values) + own.astype(np.int64)
            is_last = len(steps) == len(cells) - 1
            numbers = np.arange(len(keys)) if is_last else number(keys)[0]
            steps.append(_CodingStep.of(values, keys, numbers, n_numbers * len(values)))
            n_numbers = int(numbers.max(initial=-1)) + 1
        return cls(cells=cells, steps=tuple(steps))

    @property
    def n_values(self) -> int:
        """How many values are listed."""
        return len(next(iter(self.cells.values())))

    def find(self, rows: pa.Table | pa.RecordBatch) -> Int32s:
        """The code of each row's value, -1 where it is not listed."""
        found: Int32s | None = None
        for name, step in zip(self.cells, self.steps, strict=True):
            found = step.find(found, rows.column(name))
        assert found is not None  # noqa: S101  (there is at least one column)
        return found

    def encode(self, batch: pa.RecordBatch) -> Int32s:
        """The same of a table that was counted before: its values are all listed."""
        codes = self.find(batch)
        if (codes < 0).any():
            raise InternalError("the table changed between two passes over it: a value has no count")
        return codes

    def decode(self, codes: Codes) -> dict[str, pa.Array]:
        """The cells of the values with these codes, by column."""
        indices = pa.array(codes)
        return {name: cells_at(indices, cells) for name, cells in self.cells.items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _CodingStep:
    """From the number of what the columns before say, and the next column's cell, to the number of both.

    A key is number · cells + cell. There are never more numbers than values: no key passes 64 bits.
    """

    values: pa.Array
    """The different cells of the column."""
    keys: Ints
    """Those that are listed, ascending."""
    numbers: Int32s
    """The number of each of them."""
    number_of: Int32s | None
    """By key, -1 where it is not listed and at the end; None if there could be too many keys."""

    @classmethod
    def of(cls, values: pa.Array, keys: Ints, numbers: Ints, n_keys: int) -> _CodingStep:
        """From the keys of listed values, their numbers, and how many keys there could be."""
        order, number_of = np.argsort(keys), None
        if n_keys < _MOST_LISTED:
            number_of = np.full(n_keys + 1, -1, dtype=np.int32)
            number_of[keys] = numbers
        return cls(
            values=values, keys=keys[order], numbers=numbers[order].astype(np.int32), number_of=number_of
        )

    def find(self, before: Int32s | None, column: pa.Array | pa.ChunkedArray) -> Int32s:
        """The number of each row, -1 where it is none of the listed ones'."""
        own = find_codes(column, self.values)
        known = own.fill_null(-1) if own.null_count else own
        keys: Ints = known.to_numpy(zero_copy_only=False).astype(np.int64)
        if before is not None:
            is_known: Bools = (before >= 0) & (keys >= 0)
            keys = np.where(is_known, before * np.int64(len(self.values)) + keys, -1)
        if self.number_of is not None:
            return self.number_of[keys]
        found = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[found] == keys, self.numbers[found], np.int32(-1))
