"""A table's columns as codes, read once for its fingerprint and its sketch, and held as far as they fit.

A column of few values, or of whole numbers near one another, is read as codes, whose lists of values are
exact: a release can be made of them too. Other columns of texts, whole numbers and days are numbered here; of
texts by DuckDB's hash, in a third of the time that comparing them takes. Two texts of one hash, which come by
chance in one of ten million tables of a million texts, would count as one: nothing is published of these
numbers, but of the cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import duckdb
import numpy as np
import pyarrow as pa

from dalenius.arrays import Codes, Ints
from dalenius.errors import InternalError
from dalenius.sql import count, identifier, identifiers
from dalenius.tables.codes import in_one_piece, narrowest, number_words
from dalenius.tables.reading import BATCH_ROWS, DictionaryColumns, read_batches
from dalenius.tables.sketching.digests import Words

_MOST_HELD = 2**28
"""Bytes of columns that are read once and held; more are read twice."""
_CELL_BYTES = 16
"""Of a number, or of a short text and its hash, before it is numbered."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldRows:
    """A table whose columns of few values are read as codes, and counted."""

    connection: duckdb.DuckDBPyConnection
    select: str
    coded: DictionaryColumns
    n_rows: int
    cells: dict[str, pa.Array]
    """By column that is counted, the cell of each code; NULL has the code after them."""
    counts: dict[str, Ints]
    """How often each occurs, NULL last."""
    held: dict[str, Codes]
    """The codes of all rows, by column; of a large table none, or only of those that are read as codes."""
    plain: dict[str, pa.ChunkedArray]
    """The cells of the columns that were numbered, as they are, in the pieces that they came in."""
    hashed: dict[bytes, dict[str, Words]] = field(default_factory=dict)
    """By key and column, the keyed number of each cell and of NULL: fingerprint and sketch share them."""

    @classmethod
    def read(
        cls,
        connection: duckdb.DuckDBPyConnection,
        relation: str,
        names: Sequence[str],
        known: DictionaryColumns | None = None,
        n_rows: int | None = None,
    ) -> HeldRows:
        """Read these columns, of which some may be known, as far as they are held, and count those coded."""
        select = f"SELECT {identifiers(names)} FROM {relation}"
        if known is None or known.names != tuple(names):
            known = DictionaryColumns.of(connection, select, numbers=True, known=known)
        coded = known
        n_rows = count(connection, f"SELECT count(*) FROM ({select})") if n_rows is None else n_rows
        n_bytes = n_rows * sum(_width(cells).itemsize for cells in coded.listed.values())
        others = _can_be_numbered(connection, select, coded)
        room = _MOST_HELD - n_bytes
        if n_rows * len(others) * _CELL_BYTES > room:
            others = {}
        codes, counts, parts = _read_rows(connection, coded.code(select), coded, others, n_rows, room)
        numbered = _number_columns(others, parts)
        for name, (own, values, _) in numbered.items():
            codes[name] = own
            counts[name] = np.bincount(own, minlength=len(values) + 1)
        return cls(
            connection=connection,
            select=select,
            cells={**coded.listed, **{name: values for name, (_, values, _) in numbered.items()}},
            plain={name: as_they_are for name, (_, _, as_they_are) in numbered.items()},
            coded=coded,
            n_rows=n_rows,
            counts=counts,
            held=codes,
        )

    @property
    def counted(self) -> dict[str, tuple[pa.Array, Ints]]:
        """By column, its values and how often each occurs, NULL last."""
        return {
            name: (pa.concat_arrays([cells, pa.nulls(1, cells.type)]), self.counts[name])
            for name, cells in self.cells.items()
        }

    def batches(self, names: Sequence[str], size: int, *, last: bool = False) -> Iterator[pa.RecordBatch]:
        """Columns that are held, as a release is made of them, so many rows at a time: exact codes, or cells.

        For the last time nothing is left of the cells in the end, and of what was read nothing meanwhile.
        """
        coded = [name for name in names if name not in self.plain]
        plain = {name: self.plain[name] for name in names if name in self.plain}
        if last:
            self.plain.clear()
        for start in range(0, self.n_rows, size):
            codes = self.take(coded, slice(start, start + size))
            columns = dict(zip(coded, codes.columns, strict=True))
            columns |= {name: in_one_piece(cells.slice(0, size)) for name, cells in plain.items()}
            plain = {name: cells.slice(size) for name, cells in plain.items()}
            yield pa.RecordBatch.from_arrays([columns.pop(name) for name in names], names=list(names))

    def sample(self, names: Sequence[str], rows: Ints) -> pa.RecordBatch:
        """Some rows of columns that are held: those of few values as dictionary arrays, others as cells."""
        columns = [self._column(name, rows, coded=name not in self.plain) for name in names]
        return pa.RecordBatch.from_arrays(columns, names=list(names))

    def take(self, names: Sequence[str], rows: Ints | slice, *, coded: bool = True) -> pa.RecordBatch:
        """Some columns that are held, in some rows, as dictionary arrays or as their cells."""
        columns = [self._column(name, rows, coded=coded) for name in names]
        return pa.RecordBatch.from_arrays(columns, names=list(names))

    def _column(self, name: str, rows: Ints | slice, *, coded: bool) -> pa.Array:
        codes, cells = self.held[name][rows], self.cells[name]
        is_null = codes == len(cells) if self.counts[name][-1] else None
        indices = pa.array(codes.astype(_width(cells), copy=False), mask=is_null)
        return pa.DictionaryArray.from_arrays(indices, cells) if coded else cells.take(indices)


def _width(cells: pa.Array) -> np.dtype[np.unsignedinteger]:
    """Of the codes of these cells, NULL left out."""
    return np.dtype(narrowest(len(cells)))


def _read_rows(
    connection: duckdb.DuckDBPyConnection,
    rows: str,
    coded: DictionaryColumns,
    others: dict[str, bool],
    n_rows: int,
    room: int,
) -> tuple[dict[str, Codes], dict[str, Ints], list[pa.RecordBatch] | None]:
    """The codes of all rows, if there is room for them, how often each occurs, and the other columns' cells.

    All in one query: a view with a join has its rows in another order each time, and what is read in two
    would put cells of different people into one row. Where cells are more bytes than there is room, none.
    """
    own = [name for name in coded.names if name in coded.listed]
    sizes = {name: len(coded.listed[name]) + 1 for name in own}
    counts = {name: np.zeros(size, dtype=np.int64) for name, size in sizes.items()}
    held = {name: np.empty(n_rows if room >= 0 else 0, narrowest(size)) for name, size in sizes.items()}
    asked = [identifier(name) for name in (*own, *others)]
    asked += [f"hash({identifier(name)})" for name, is_text in others.items() if is_text]
    cells: list[pa.RecordBatch] | None = []
    done = n_bytes = 0
    for batch in read_batches(connection, f"SELECT {', '.join(asked)} FROM ({rows})") if asked else ():
        for name, column in zip(own, batch.columns, strict=False):
            codes = with_null(column, sizes[name] - 1)
            counts[name] += np.bincount(codes, minlength=sizes[name])
            if room >= 0 and done + len(codes) <= n_rows:
                held[name][done : done + len(codes)] = codes
        done += batch.num_rows
        rest = batch.select(range(len(own), len(asked)))
        n_bytes += rest.nbytes
        if cells is not None and n_bytes <= room:
            cells.append(rest)
        else:
            cells = None
    if asked and done != n_rows:
        raise InternalError("the table changed between two passes over it: it has more rows, or fewer")
    return held if room >= 0 else {}, counts, cells


def with_null(codes: pa.Array, n_values: int) -> Codes:
    """The codes, that of NULL after those of values."""
    whole = codes.cast(pa.uint16()).fill_null(n_values) if codes.null_count else codes
    found: Codes = whole.to_numpy()
    return found


def _can_be_numbered(
    connection: duckdb.DuckDBPyConnection, select: str, coded: DictionaryColumns
) -> dict[str, bool]:
    """The columns that are not read as codes and whose equal cells are written alike; whether of texts."""
    if set(coded.names) <= set(coded.listed):
        return {}
    schema = connection.sql(f"{select} LIMIT 0").to_arrow_table().schema
    return {
        field.name: pa.types.is_string(field.type)
        for field in schema
        if field.name not in coded.listed
        and (
            pa.types.is_string(field.type)
            or pa.types.is_integer(field.type)
            or pa.types.is_date32(field.type)
        )
    }


def _number_columns(
    columns: dict[str, bool], read: list[pa.RecordBatch] | None
) -> dict[str, tuple[Codes, pa.Array, pa.ChunkedArray]]:
    """By column its codes, values and cells, from the cells of all and then the hashes of texts."""
    if not columns or not read:
        return {}
    parts = [pa.chunked_array(list(chunks)) for chunks in zip(*read, strict=True)]
    hashes = iter(parts[len(columns) :])
    return {
        name: (*_number(cells, next(hashes) if is_text else cells), cells)
        for (name, is_text), cells in zip(columns.items(), parts[: len(columns)], strict=True)
    }


def _number(cells: pa.ChunkedArray, known_by: pa.ChunkedArray) -> tuple[Codes, pa.Array]:
    """Numbers from 0 of cells that are equal where they are known by the same, and each number's cell."""
    codes: Codes
    if known_by.null_count:
        codes = in_one_piece(known_by).dictionary_encode(null_encoding="encode").indices.to_numpy()
        first_row = np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.int64)
        first_row[codes[::-1]] = np.arange(len(codes))[::-1]
    else:
        keys = [part.to_numpy(zero_copy_only=False).astype(np.int64, copy=False) for part in known_by.chunks]
        codes, first_row = number_words(np.concatenate(keys).view(np.uint64))
    values = _take_ascending(cells, first_row)
    is_there = values.is_valid().to_numpy(zero_copy_only=False)
    if not is_there.all():
        new_code = np.where(is_there, np.cumsum(is_there) - 1, is_there.sum()).astype(np.int32)
        codes, values = new_code[codes], values.drop_null()
    return codes, values


def _take_ascending(cells: pa.ChunkedArray, rows: Ints) -> pa.Array:
    """The cells of rows that ascend, piece by piece: they need not be put together before."""
    starts = np.cumsum([0, *map(len, cells.chunks)])
    own = zip(cells.chunks, starts, np.split(rows, np.searchsorted(rows, starts[1:-1])), strict=False)
    return pa.concat_arrays([part.take(pa.array(some - start)) for part, start, some in own])


def in_batches(columns: Sequence[Codes], n_rows: int) -> Iterator[list[Codes]]:
    """The same columns, some rows at a time."""
    for start in range(0, n_rows, BATCH_ROWS):
        yield [column[start : start + BATCH_ROWS] for column in columns]
