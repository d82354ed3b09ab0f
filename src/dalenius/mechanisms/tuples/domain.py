"""The domain D = D_1×…×D_l of all tuples that a row could be, never written out.

A tuple is held as one code per column, its place in that column's list of values. To sort and compare
tuples the codes are packed into as few 64-bit words as they need: one when m < 2^63.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dalenius.arrays import Bools, Codes, Ints
from dalenius.errors import InputError
from dalenius.tables.codes import cells_at, find_codes, narrowest

TupleCodes = tuple[Codes, ...]
"""One array of codes per column, all of one length."""

_WORD_LIMIT = 2**63
_HALF_WORD_LIMIT = 2**32
_MOST_DIGITS = 300
_MOST_TUPLES = 10**_MOST_DIGITS
"""Floating point ends at 10³⁰⁸, and noise rows are counted by it."""
_CACHED_ROWS = 2**14  # some twenty operations on what fits the processor's cache
_SOUGHT_ROWS = 2**18
"""So many at once are looked for among others: numbering all of both takes ten times their memory."""
_ODD = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainColumn:
    """A column's name and every value it may take, in order; NULL may be one of them."""

    name: str
    values: pa.Array

    def __post_init__(self) -> None:
        if len(self.values) == 0:
            raise InputError(f"the domain of column {self.name!r} is empty")
        if len(self.values.unique()) != len(self.values):
            raise InputError(f"the domain of column {self.name!r} lists a value twice")

    def encode(self, column: Any) -> Codes:
        """The code of each cell; an Arrow array or chunked array."""
        codes = self.find(column)
        if codes.null_count:
            raise InputError(
                f"column {self.name!r}: {codes.null_count} rows hold a value outside its domain",
                hint="list every value under [domains], or recode the column",
            )
        result: Codes = codes.to_numpy(zero_copy_only=False)
        return result

    def find(self, column: Any) -> Any:
        """The code of each cell as an Arrow array, NULL where it is outside the domain."""
        kind = self.values.type
        if pa.types.is_dictionary(column.type):
            kind = pa.dictionary(column.type.index_type, kind)
        return find_codes(column if column.type == kind else column.cast(kind), self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """The product of the columns' domains.

    >>> domain = Domain.of({"age": range(20, 40), "nation": ["US", "UK", "IN"], "score": range(81, 101)})
    >>> domain.size
    1200
    """

    columns: tuple[DomainColumn, ...]

    def __post_init__(self) -> None:
        names = [column.name.lower() for column in self.columns]
        if not names:
            raise InputError("a domain needs at least one column")
        if len(set(names)) != len(names):
            raise InputError(f"two columns of the domain have the same name: {', '.join(names)}")
        if self.size > _MOST_TUPLES:
            raise InputError(
                f"the domain has more than 10^{_MOST_DIGITS} tuples, beyond what numbers can hold",
                hint="publish fewer columns, or fewer values of each ([recode])",
            )

    @classmethod
    def of(cls, values: Mapping[str, Iterable[object]]) -> Domain:
        """From each column's values: an Arrow array, or Python values of one type."""
        return cls(columns=tuple(DomainColumn(name=name, values=_to_arrow(v)) for name, v in values.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names in order."""
        return tuple(column.name for column in self.columns)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each column may take."""
        return tuple(len(column.values) for column in self.columns)

    @property
    def size(self) -> int:
        """m, the number of tuples."""
        return math.prod(self.sizes)

    @property
    def n_words(self) -> int:
        """How many words a packed tuple has."""
        return len(self._word_edges()) - 1

    @property
    def first_word_bits(self) -> int:
        """The first word of a packed tuple is below 2 to this power."""
        return (self.word_sizes[0] - 1).bit_length()

    def arrays(self) -> dict[str, Any]:
        """Each column's values as an Arrow array, by name."""
        return {column.name: column.values for column in self.columns}

    def encode(self, table: Any) -> TupleCodes:
        """The codes of an Arrow table's or batch's rows."""
        return tuple(column.encode(table.column(column.name)) for column in self.columns)

    def decode(self, codes: TupleCodes) -> Any:
        """The Arrow batch of tuples with these codes."""
        arrays = [cells_at(pa.array(c), column.values) for column, c in zip(self.columns, codes, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names=list(self.names))

    def pack(self, codes: TupleCodes) -> Ints:
        """Words by row, in the same order as the tuples; one word, the tuple's rank, when m < 2^63."""
        words = []
        for first, last in pairwise(self._word_edges()):
            word = np.zeros(len(codes[0]), dtype=np.int64)
            for size, column in zip(self.sizes[first:last], codes[first:last], strict=True):
                word *= size
                word += column
            words.append(word)
        return words[0][:, None] if len(words) == 1 else np.stack(words, axis=1)

    def unpack(self, words: Ints) -> TupleCodes:
        """The codes of packed tuples, each column's in as few bytes as will do."""
        codes = tuple(np.empty(len(words), dtype=narrowest(size)) for size in self.sizes)
        for start in range(0, len(words), _CACHED_ROWS):
            rows = slice(start, start + _CACHED_ROWS)
            for index, (first, last) in enumerate(pairwise(self._word_edges())):
                self._unpack_word(words[rows, index], first, [column[rows] for column in codes[first:last]])
        return codes

    def _unpack_word(self, rest: NDArray[Any], first: int, codes: Sequence[NDArray[Any]]) -> None:
        """Write the codes of the columns from the first one on, which one word holds."""
        sizes = self.sizes[first : first + len(codes)]
        for place in reversed(range(len(codes))):
            if math.prod(sizes[: place + 1]) < _HALF_WORD_LIMIT:
                rest = rest.astype(np.uint32, copy=False)
            quotient = (
                rest // sizes[place]
            )  # numpy divides by one number much faster than it takes remainders
            codes[place][:] = rest - quotient * sizes[place]
            rest = quotient

    @property
    def word_sizes(self) -> tuple[int, ...]:
        """How many values each word of a packed tuple may have."""
        return tuple(math.prod(self.sizes[first:last]) for first, last in pairwise(self._word_edges()))

    def _word_edges(self) -> list[int]:
        """Where the columns are cut so that each run's product fits a word."""
        edges, product = [0], 1
        for index, size in enumerate(self.sizes):
            if product * size >= _WORD_LIMIT:
                edges.append(index)
                product = 1
            product *= size
        return [*edges, len(self.sizes)]


def uniform_words(domain: Domain, n_tuples: int, stream: np.random.Generator) -> Ints:
    """Packed tuples drawn uniformly from D, independently: uniform words are the codes of uniform tuples."""
    return np.stack([stream.integers(size, size=n_tuples) for size in domain.word_sizes], axis=1)


def distinct_words(words: Ints) -> Ints:
    """The different packed tuples, in ascending order."""
    # Sorting is several times faster than np.unique, which hashes.
    ordered = np.sort(words, axis=0) if words.shape[1] == 1 else words[np.lexsort(words.T[::-1])]
    return ordered[are_new(ordered)]


def are_new(ordered: Ints) -> Bools:
    """Whether each packed tuple differs from the one before it."""
    result = np.zeros(len(ordered), dtype=np.bool_)
    result[:1] = True
    for word in ordered.T:  # a hundred times faster than `any` along short rows
        result[1:] |= word[1:] != word[:-1]
    return result


def count_descents(words: Ints) -> int:
    """How many packed tuples come before the one that they stand behind.

    >>> count_descents(np.array([[1, 2], [1, 1], [2, 0]]))
    1
    """
    falls = np.zeros(max(len(words) - 1, 0), dtype=np.bool_)
    for word in words.T[::-1]:
        falls = (word[1:] < word[:-1]) | ((word[1:] == word[:-1]) & falls)
    return int(falls.sum())


def group_of(words: Ints, n_groups: int) -> Ints:
    """Which of several files a packed tuple is published in: a public hash that spreads tuples evenly.

    >>> group_of(np.array([[5], [5], [6]]), 1).tolist()
    [0, 0, 0]
    """
    mixed = np.zeros(len(words), dtype=np.uint64)
    for i in range(words.shape[1]):
        mixed = (mixed ^ words[:, i].astype(np.uint64)) * np.uint64(_ODD)
        mixed ^= mixed >> np.uint64(29)
    return (mixed % np.uint64(n_groups)).astype(np.int64)


def word_ids(words: Ints) -> Ints:
    """The same small integer for the same packed tuple, ascending with the tuple."""
    if words.shape[1] == 1:
        return np.unique(words[:, 0], return_inverse=True)[1].astype(np.int64)
    order = np.lexsort(words.T[::-1])
    ordered = words[order]
    ids = np.empty(len(ordered), dtype=np.int64)
    ids[order] = np.cumsum(are_new(ordered)) - 1
    return ids


def are_among(words: Ints, others: Ints) -> Bools:
    """Whether each packed tuple is one of the others."""
    if words.shape[1] == 1 and len(others):
        ordered, found = np.sort(others[:, 0]), np.empty(len(words), dtype=np.bool_)
        for start in range(0, len(words), _SOUGHT_ROWS):
            part = words[start : start + _SOUGHT_ROWS, 0]
            place = np.minimum(np.searchsorted(ordered, part), len(ordered) - 1)
            found[start : start + _SOUGHT_ROWS] = ordered[place] == part
        return found
    ids = word_ids(np.concatenate([words, others]))
    return np.isin(ids[: len(words)], ids[len(words) :])


def _to_arrow(values: Iterable[object] | Sequence[object]) -> Any:
    return values if isinstance(values, pa.Array) else pa.array(list(values))
