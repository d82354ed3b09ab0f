"""Row groups of whole numbers and few texts as Parquet pages, made of codes as they are.

Arrow's writer looks every number up in a hash table to find its code, which the columns of a release mostly
have: three times as long as writing the codes. A dictionary page lists the values that occur, in ascending
order; a data page has a code per row in whole bytes (a "bit width" of 8 or 16), which need no packing and
compress well. Numbers that ascend, as buckets do, are written plain. The format: parquet.apache.org/docs.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from dalenius import __version__
from dalenius.arrays import Bools, Codes, Ints
from dalenius.tables.codes import narrowest

Bytes = bytes | memoryview

_MAGIC = b"PAR1"
_PLAIN, _RLE, _RLE_DICTIONARY, _ZSTD = 0, 3, 8, 6
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_INT32, _INT64, _BYTE_ARRAY = 1, 2, 6
_OPTIONAL = 1
_MOST_LISTED = 2**16
_FIRST_LOOK = 2**12
"""So many rows tell what most columns are like."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Type:
    """How a column's values are written."""

    physical: int
    size: str
    """Of a number, as numpy knows it."""
    converted: int | None = None
    logical: dict[int, Any] | None = None
    """What the values mean, where the physical type does not say it."""


def _whole(bits: int, *, signed: bool, converted: int) -> _Type:
    meant = {10: {1: _I8(bits), 2: signed}}
    return _Type(physical=_INT32, size="<i4", converted=converted, logical=meant)


class _I8(int):
    """A number that Thrift writes in a byte."""


class _I16(int):
    """A number of 16 bits."""


class _I64(int):
    """A number of 64 bits."""


_TYPES: dict[pa.DataType, _Type] = {
    pa.int64(): _Type(physical=_INT64, size="<i8"),
    pa.int32(): _Type(physical=_INT32, size="<i4"),
    pa.int16(): _whole(16, signed=True, converted=16),
    pa.int8(): _whole(8, signed=True, converted=15),
    pa.uint16(): _whole(16, signed=False, converted=12),
    pa.uint8(): _whole(8, signed=False, converted=11),
    pa.date32(): _Type(physical=_INT32, size="<i4", converted=6, logical={6: {}}),
    pa.string(): _Type(physical=_BYTE_ARRAY, size="", converted=0, logical={1: {}}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedGroup:
    """A row group: its pages, and what the footer says of them, counted from the group's start."""

    pages: bytes
    n_rows: int
    columns: tuple[_Chunk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chunk:
    start: int
    data_start: int
    end: int
    n_unpacked: int
    n_rows: int
    n_null: int
    ends: tuple[bytes, bytes] | None
    """The least and the largest number."""


def can_be_paged(group: pa.RecordBatch) -> bool:
    """Whether a row group, and others like it, are written here; of many numbers Arrow writes fewer bytes."""
    return group.num_rows > 0 and all(map(_is_paged, group.columns))


def _is_paged(column: pa.Array) -> bool:
    kind = column.type
    if pa.types.is_dictionary(kind):
        is_known = kind.value_type in _TYPES and not column.dictionary.null_count
        return is_known and len(column.dictionary) <= _MOST_LISTED
    if kind not in _TYPES or pa.types.is_string(kind):
        return False
    numbers = _numbers(column.drop_null())
    return not len(numbers) or _ascends(numbers) or int(numbers.max()) - int(numbers.min()) < _MOST_LISTED


def encode_group(group: pa.RecordBatch) -> EncodedGroup:
    """The pages of all columns, one after the other."""
    pages: list[bytes] = []
    columns = []
    start = 0
    for column in group.columns:
        chunk, own = _encode_column(column, start)
        pages.extend(own)
        columns.append(chunk)
        start = chunk.end
    return EncodedGroup(pages=b"".join(pages), n_rows=group.num_rows, columns=tuple(columns))


def _encode_column(column: pa.Array, start: int) -> tuple[_Chunk, list[bytes]]:
    if pa.types.is_dictionary(column.type) and column.dictionary.null_count:
        column = column.dictionary_decode()
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_there = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
    levels = _levels(len(column), is_there)
    coded = _find_codes(column.drop_null() if column.null_count else column)
    ends = None
    if coded is None:
        numbers = _numbers(column.drop_null())
        stored = numbers.astype(_TYPES[kind].size, copy=False)
        pages = [_page([levels, stored.data], _data_header(len(column), _PLAIN))]
        ends = (numbers[0], numbers[-1]) if len(numbers) else None
    else:
        codes, values = coded
        listed = _plain_values(values)
        pages = [
            _page([listed], {7: {1: len(values), 2: _PLAIN}}, _DICTIONARY_PAGE),
            _page([levels, *_packed(codes, len(values))], _data_header(len(column), _RLE_DICTIONARY)),
        ]
        if len(values) and not pa.types.is_string(kind):
            numbers = _numbers(values)
            ends = (numbers[0], numbers[-1])
    n_bytes = [len(page) for page, _ in pages]
    chunk = _Chunk(
        start=start,
        data_start=start + sum(n_bytes[:-1]),
        end=start + sum(n_bytes),
        n_unpacked=sum(n for _, n in pages),
        n_rows=len(column),
        n_null=column.null_count,
        ends=None if ends is None else (_stored(ends[0], kind), _stored(ends[1], kind)),
    )
    return chunk, [page for page, _ in pages]


def _find_codes(column: pa.Array) -> tuple[Codes, pa.Array] | None:
    """Codes, and the values that occur, ascending; None for numbers that are written plain."""
    if pa.types.is_dictionary(column.type):
        codes, values = column.indices.to_numpy(), column.dictionary
        if not pa.types.is_string(values.type) and not _rises(_numbers(values)):
            numbers, places = np.unique(_numbers(values), return_inverse=True)
            codes, values = places[codes], _values(numbers, values.type)
    else:
        numbers = _numbers(column)
        if not len(numbers) or _ascends(numbers):
            return None
        least, most = int(numbers.min()), int(numbers.max())
        if most - least >= _MOST_LISTED:
            return None
        # in 64 bits: of a narrow type, or at the end of a wide one, differences and the next number wrap
        codes = numbers.astype(np.int64, copy=False) - least
        values = _values(least + np.arange(most - least + 1), column.type)
    return _keep_used(codes, values)


def _keep_used(codes: Codes, values: pa.Array) -> tuple[Codes, pa.Array]:
    """The same cells without the values that no row has: these would tell of records that are not here."""
    for some in (codes[:_FIRST_LOOK], codes):  # the first rows have all values of most columns
        is_used = np.bincount(some, minlength=len(values)) > 0
        if is_used.all():
            return codes, values
    return (np.cumsum(is_used) - 1).astype(narrowest(len(values)))[codes], values.filter(pa.array(is_used))


def _numbers(column: pa.Array) -> Ints:
    """Whole numbers, or days, as they are stored."""
    plain = column.cast(pa.int32()) if pa.types.is_date32(column.type) else column
    return np.asarray(plain.to_numpy())


def _values(numbers: Ints, kind: pa.DataType) -> pa.Array:
    if pa.types.is_date32(kind):
        return pa.array(numbers.astype(np.int32)).cast(kind)
    return pa.array(numbers).cast(kind)


def _ascends(numbers: Ints) -> bool:
    return all(bool((part[1:] >= part[:-1]).all()) for part in (numbers[:_FIRST_LOOK], numbers))


def _rises(numbers: Ints) -> bool:
    return bool((numbers[1:] > numbers[:-1]).all())


def _levels(n_rows: int, is_there: Bools | None) -> bytes:
    """Which cells are there (definition levels): one run of all rows, or a bit for each."""
    if is_there is None:
        runs = _varint(n_rows << 1) + b"\x01"
    else:
        runs = _varint((-(-n_rows // 8) << 1) | 1) + np.packbits(is_there, bitorder="little").tobytes()
    return struct.pack("<I", len(runs)) + runs


def _packed(codes: Codes, n_values: int) -> tuple[Bytes, ...]:
    """Codes in a byte, two or four each, as a run of eights whose last is filled up."""
    width = np.dtype(narrowest(n_values)).itemsize
    n_eights = -(-len(codes) // 8)
    stored = np.ascontiguousarray(codes, dtype=f"<u{width}")
    filling = bytes((8 * n_eights - len(codes)) * width)
    return bytes([8 * width]) + _varint((n_eights << 1) | 1), stored.data, filling


def _plain_values(values: pa.Array) -> bytes:
    if pa.types.is_string(values.type):
        texts = (text.encode() for text in values.to_pylist())
        return b"".join(struct.pack("<I", len(text)) + text for text in texts)
    return _numbers(values).astype(_TYPES[values.type].size).tobytes()


def _stored(number: np.integer[Any], kind: pa.DataType) -> bytes:
    return np.array(number).astype(_TYPES[kind].size).tobytes()


def _data_header(n_cells: int, encoding: int) -> dict[int, Any]:
    return {5: {1: n_cells, 2: encoding, 3: _RLE, 4: _RLE}}


def _page(parts: Sequence[Bytes], header: dict[int, Any], kind: int = _DATA_PAGE) -> tuple[bytes, int]:
    """A page with its header, and how long it would be unpacked."""
    content = b"".join(parts)
    packed = pa.Codec("zstd").compress(content, asbytes=True)
    head = _struct({1: kind, 2: len(content), 3: len(packed), **header})
    return head + packed, len(head) + len(content)


class PageWriter:
    """A Parquet file of row groups that were encoded."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        self._file: BinaryIO = path.open("wb")
        self._file.write(_MAGIC)
        self._n_rows, self._groups = 0, list[dict[int, Any]]()

    def write(self, group: EncodedGroup) -> None:
        """The next row group."""
        start = self._file.tell()
        self._file.write(group.pages)
        columns = [
            {2: _I64(start + one.start), 3: _describe(one, field, start)}
            for one, field in zip(group.columns, self._schema, strict=True)
        ]
        n_bytes = sum(one.n_unpacked for one in group.columns)
        self._groups.append(
            {
                1: columns,
                2: _I64(n_bytes),
                3: _I64(group.n_rows),
                5: _I64(start),
                6: _I64(len(group.pages)),
                7: _I16(len(self._groups)),
            }
        )
        self._n_rows += group.n_rows

    def __enter__(self) -> PageWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._file as file:
            if error is None:
                footer = _struct(self._footer())
                file.write(footer + struct.pack("<I", len(footer)) + _MAGIC)

    def _footer(self) -> dict[int, Any]:
        root = {4: "schema", 5: len(self._schema)}
        return {
            1: 2,
            2: [root, *map(_describe_field, self._schema)],
            3: _I64(self._n_rows),
            4: self._groups,
            6: f"dalenius version {__version__} (build 0)",
            7: [{1: {}} for _ in self._schema],
        }


def _value_type(field: pa.Field) -> pa.DataType:
    return field.type.value_type if pa.types.is_dictionary(field.type) else field.type


def _describe_field(field: pa.Field) -> dict[int, Any]:
    kind = _TYPES[_value_type(field)]
    said: dict[int, Any] = {1: kind.physical, 3: _OPTIONAL, 4: field.name}
    if kind.converted is not None:
        said |= {6: kind.converted, 10: kind.logical}
    return said


def _describe(one: _Chunk, field: pa.Field, group_start: int) -> dict[int, Any]:
    is_coded = one.data_start > one.start
    said: dict[int, Any] = {
        1: _TYPES[_value_type(field)].physical,
        2: [_PLAIN, _RLE, _RLE_DICTIONARY] if is_coded else [_PLAIN, _RLE],
        3: [field.name],
        4: _ZSTD,
        5: _I64(one.n_rows),
        6: _I64(one.n_unpacked),
        7: _I64(one.end - one.start),
        9: _I64(group_start + one.data_start),
    }
    if is_coded:
        said[11] = _I64(group_start + one.start)
    if one.ends is not None:
        said[12] = {3: _I64(one.n_null), 5: one.ends[1], 6: one.ends[0]}
    return said


# Thrift's compact protocol: a structure is its fields in order, each a step from the last one and a kind.
_TRUE, _FALSE, _BYTE, _SHORT, _WORD, _LONG, _TEXT, _LIST, _RECORD = 1, 2, 3, 4, 5, 6, 8, 9, 12
_KINDS = {
    _I8: _BYTE, _I16: _SHORT, _I64: _LONG, int: _WORD, str: _TEXT, bytes: _TEXT, list: _LIST, dict: _RECORD
}  # fmt: skip


def _struct(fields: dict[int, Any]) -> bytes:
    parts, last = [], 0
    for number, value in sorted(fields.items()):
        parts.append(bytes([(number - last) << 4 | _kind(value)]))
        parts.append(b"" if isinstance(value, bool) else _value(value))
        last = number
    return b"".join([*parts, b"\0"])


def _kind(value: Any) -> int:
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    return _KINDS[type(value)]


def _value(value: Any) -> bytes:
    if isinstance(value, _I8):
        return bytes([value])
    if isinstance(value, int):
        return _varint((value << 1) ^ (value >> 63))
    if isinstance(value, str | bytes):
        text = value.encode() if isinstance(value, str) else value
        return _varint(len(text)) + text
    if isinstance(value, list):
        few = len(value) < 15
        head = bytes([(len(value) if few else 15) << 4 | (_kind(value[0]) if value else _RECORD)])
        return head + (b"" if few else _varint(len(value))) + b"".join(map(_value, value))
    return _struct(value)


def _varint(number: int) -> bytes:
    if number < 0x80:  # most are
        return bytes((number,))
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])
