"""The texts of a file, collected column by column in one pass: as few bytes as keep every text as it is.

Whole numbers in their usual spelling are kept as numbers, from which the text comes back; columns of few
different texts as codes; others as they are. A column that turns out to be of another kind goes on as that.
What type a column has is then asked of its different texts, not of its cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from dalenius.arrays import Codes
from dalenius.tables.codes import narrowest
from dalenius.tables.files.bytes import FileBytes
from dalenius.tables.files.dialect import Dialect

_BLOCK = 1 << 20
"""Bytes of a file that are looked at together; a longer line is left to DuckDB."""
_MOST_LISTED = 2**16
"""So many different texts, or numbers so near one another, are kept as codes."""
_FEW, _SHARE = 256, 4
"""A column with more different texts in a block than either, or one in so many rows, is kept as it is."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BIT_WIDTHS = (8, 16, 32, 64)


class TooManyBytesError(Exception):
    """More than is held in memory."""


class NotPlainError(Exception):
    """A file that two readers of text could understand in two ways."""


class Column(Protocol):
    """The texts of a column so far."""

    @property
    def n_bytes(self) -> int:
        """What it takes."""

    def add(self, texts: pa.Array) -> Column:
        """The column with more texts: itself, or what it has become."""

    def parts(self) -> Iterable[pa.Array]:
        """The texts, some at a time."""


@dataclass(slots=True)
class WholeNumbers:
    """Texts that are all the usual spelling of a whole number of 64 bits."""

    numbers: list[pa.Array] = field(default_factory=list)
    """In as few bytes as those of a part need."""
    n_bytes: int = 0

    def add(self, texts: pa.Array) -> Column:
        """The column with more texts: itself, or what it has become."""
        numbers = read_whole(texts)
        if numbers is None:
            return _continue(ListedTexts(), self, texts)
        self.numbers.append(numbers)
        self.n_bytes += numbers.nbytes
        return self

    def parts(self) -> Iterator[pa.Array]:
        """The texts, some at a time."""
        for numbers in self.numbers:
            yield numbers.cast(pa.string())

    @property
    def has_some(self) -> bool:
        """Whether not all are NULL."""
        return any(len(numbers) > numbers.null_count for numbers in self.numbers)

    def cells(self) -> pa.ChunkedArray:
        """The numbers, as codes where they are near one another."""
        ends = [pc.min_max(numbers).as_py() for numbers in self.numbers]
        least = min(one["min"] for one in ends if one["min"] is not None)
        largest = max(one["max"] for one in ends if one["max"] is not None)
        if largest - least >= _MOST_LISTED:
            return pa.chunked_array([numbers.cast(pa.int64()) for numbers in self.numbers])
        codes = [_distance(numbers, least, narrowest(largest - least + 1)) for numbers in self.numbers]
        return _as_dictionaries(codes, pa.array(range(least, largest + 1), pa.int64()))


def _distance(numbers: pa.Array, least: int, kind: type[np.unsignedinteger[Any]]) -> pa.Array:
    """Of each number from the least, which fits into this kind."""
    mask = numbers.is_null().to_numpy(zero_copy_only=False) if numbers.null_count else None
    own = (numbers if mask is None else numbers.fill_null(0)).to_numpy()
    # modulo what the kind holds, in which no distance changes
    return pa.array(own.astype(kind) - kind(least % 2 ** (8 * np.dtype(kind).itemsize)), mask=mask)


@dataclass(slots=True)
class ListedTexts:
    """Few different texts."""

    listed: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    """In the order in which they first come, NULL among them."""
    codes: list[Codes] = field(default_factory=list)
    n_bytes: int = 0

    def add(self, texts: pa.Array) -> Column:
        """The column with more texts: itself, or what it has become."""
        encoded = texts.dictionary_encode(null_encoding="encode")
        own = encoded.dictionary
        if len(own) > max(_FEW, len(texts) // _SHARE):
            return _continue(PlainTexts(), self, texts)
        places = pc.index_in(own, value_set=self.listed)
        new = own.filter(places.is_null())
        if len(self.listed) + len(new) > _MOST_LISTED:
            return _continue(PlainTexts(), self, texts)
        code = np.array(places.fill_null(0))
        is_new = places.is_null().to_numpy(zero_copy_only=False)
        code[is_new] = len(self.listed) + np.arange(len(new))
        self.listed = pa.concat_arrays([self.listed, new])
        codes = code.astype(narrowest(len(self.listed)))[encoded.indices.to_numpy()]
        self.codes.append(codes)
        self.n_bytes += codes.nbytes
        return self

    def parts(self) -> Iterator[pa.Array]:
        """The texts, some at a time."""
        for codes in self.codes:
            yield self.listed.take(pa.array(codes))

    def cells(self, values: pa.Array) -> pa.ChunkedArray:
        """The values of all cells, from those of the listed texts."""
        kind = narrowest(len(self.listed))
        is_null = values.is_null().to_numpy(zero_copy_only=False)
        code = np.where(is_null, 0, np.cumsum(~is_null) - 1).astype(kind)
        masks = [is_null[codes] if is_null.any() else None for codes in self.codes]
        codes = [pa.array(code[own], mask=mask) for own, mask in zip(self.codes, masks, strict=True)]
        if is_null.all():
            return pa.chunked_array([pa.nulls(len(own), values.type) for own in codes], values.type)
        return _as_dictionaries(codes, values.drop_null())


@dataclass(slots=True)
class PlainTexts:
    """Texts of which hardly any come twice."""

    texts: list[pa.Array] = field(default_factory=list)
    n_bytes: int = 0

    def add(self, texts: pa.Array) -> Column:
        """The column with more texts."""
        self.texts.append(texts)
        self.n_bytes += texts.nbytes
        return self

    def parts(self) -> Iterable[pa.Array]:
        """The texts, some at a time."""
        return self.texts


def _continue(column: Column, before: Column, texts: pa.Array) -> Column:
    """Another kind of column with the texts of one, and more."""
    for part in (*before.parts(), texts):
        column = column.add(part)
    return column


def as_listed(column: Column) -> Column:
    """The same texts, as codes if there are few."""
    listed: Column = ListedTexts()
    for part in column.parts():
        listed = listed.add(part)
    return listed


def read_whole(texts: pa.Array) -> pa.Array | None:
    """The whole numbers that texts are the usual spelling of, NULL for NULL; None if a text is none.

    >>> read_whole(pa.array(["7", None, "-12"])).to_pylist(), read_whole(pa.array(["7", "007"]))
    ([7, None, -12], None)
    """
    try:
        numbers = texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    data = texts.buffers()[2]
    if data is not None and b"x" in data.to_pybytes().lower():  # Arrow reads 0xFF too
        return None
    present = numbers.drop_null() if numbers.null_count else numbers
    own = present.to_numpy()
    if not len(own):
        return pa.nulls(len(texts), pa.int8())
    least, largest = int(own.min()), int(own.max())
    bits = next(bits for bits in _BIT_WIDTHS if -(2 ** (bits - 1)) <= least and largest < 2 ** (bits - 1))
    narrow = own.astype(f"i{bits // 8}")
    # zeros before, signs that say nothing and blanks make a text longer than the number's usual spelling
    if _spelling_length(narrow, least, largest) != pc.sum(pc.binary_length(texts)).as_py():
        return None
    if numbers.null_count:
        return numbers.cast(pa.from_numpy_dtype(narrow.dtype), safe=False)
    return pa.array(narrow)


def _spelling_length(numbers: Codes, least: int, largest: int) -> int:
    """How many letters all of these take."""
    total = len(numbers) + (int(np.count_nonzero(numbers < 0)) if least < 0 else 0)
    power = 10
    while power <= max(largest, -least):
        total += int(np.count_nonzero(numbers >= power)) if largest >= power else 0
        total += int(np.count_nonzero(numbers <= -power)) if least <= -power else 0
        power *= 10
    return total


def _as_dictionaries(codes: Sequence[pa.Array], values: pa.Array) -> pa.ChunkedArray:
    """Cells by their codes; DuckDB looks at every value of a dictionary, so that none is listed in vain."""
    is_used = np.zeros(len(values), dtype=np.bool_)
    for own in codes:
        is_used[(own.drop_null() if own.null_count else own).to_numpy()] = True
    if not is_used.all():
        kind = narrowest(int(is_used.sum()))
        new_code = pa.array((np.cumsum(is_used) - 1).clip(0).astype(kind))
        codes, values = [new_code.take(own) for own in codes], values.filter(pa.array(is_used))
    return pa.chunked_array([pa.DictionaryArray.from_arrays(own, values) for own in codes])


def collect(batches: Iterable[pa.RecordBatch], columns: list[Column], most_bytes: int) -> list[Column]:
    """The columns of all batches; fails where they would take more."""
    for batch in batches:
        columns = [column.add(texts) for column, texts in zip(columns, batch.columns, strict=True)]
        if sum(column.n_bytes for column in columns) > most_bytes:
            raise TooManyBytesError
    return columns


def read_plain(file: FileBytes, dialect: Dialect, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The fields of a text file as they are written, an empty one as NULL.

    Only of a file that every reader of CSV reads alike: nothing is quoted, lines end in one way, and each has
    as many fields as there are columns. Arrow reads it in half of DuckDB's time; of others DuckDB says what
    is wrong.
    """
    with file.reading() as opened:
        watched = _Watched(opened, dialect, names)
        try:
            with csv.open_csv(
                watched,
                csv.ReadOptions(
                    block_size=_BLOCK, column_names=list(names), skip_rows=1 if dialect.header else 0
                ),
                csv.ParseOptions(delimiter=dialect.delimiter, quote_char=False),
                csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True
                ),
            ) as reader:
                yield from reader
        except pa.ArrowInvalid as error:  # its text quotes a line
            raise NotPlainError from error


def can_be_plain(dialect: Dialect, names: Sequence[str]) -> bool:
    """Whether a file that is written so can be one that every reader reads alike."""
    delimiter = dialect.delimiter
    is_usual = len(delimiter) == 1 and delimiter.isascii() and delimiter not in (dialect.quote, *"\r\n\0")
    return is_usual and len(names) > 1  # of one column an empty line could be a record


class _Watched:
    """A file that is read until something comes that another reader could take for something else."""

    closed = False

    def __init__(self, opened: Any, dialect: Dialect, names: Sequence[str]) -> None:
        self._opened = opened
        self._doubtful = [mark.encode() for mark in (dialect.quote, "\r", "\0") if mark]
        self._first_line = dialect.delimiter.join(names).encode() if dialect.header else None

    def read(self, n_bytes: int) -> bytes:
        """The next bytes."""
        found: bytes = self._opened.read(n_bytes)
        if self._first_line is not None:
            start = found.removeprefix(_BYTE_ORDER_MARK)
            if not start.startswith((self._first_line + b"\n",)):
                raise NotPlainError
            self._first_line = None
        if any(mark in found for mark in self._doubtful):
            raise NotPlainError
        return found

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """Nobody goes back."""
        return False

    def close(self) -> None:
        """Who opened it closes it."""
