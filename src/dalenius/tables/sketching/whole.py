"""How a table's sketch is made: few values by their codes, others cell by cell in DuckDB.

A column of few values, or of whole numbers near one another, comes as a byte or two a row. Each of its values
is hashed once; a combination of few columns is counted by their codes, and of a larger one the smallest sums
are found batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import duckdb
import numpy as np
import pyarrow as pa

from dalenius.arrays import Codes, Ints
from dalenius.sql import count, identifier, identifiers, one_row
from dalenius.tables.reading import DictionaryColumns, read_batches
from dalenius.tables.sketch import Sketch
from dalenius.tables.sketching.kept import (
    NEARLY_ALL,
    SketchedColumn,
    Words,
    add_up,
    choose_combinations,
    hash_cell,
    high,
    is_numbering,
    keep_smallest,
    numeric,
)

_LOOKED_AT = 20_000
"""So many cells tell whether a column is a numbering."""
_PART = 16
"""Of a large table this part of a column's values tells whether they are all different."""
_MOST_HELD = 2**26
"""Bytes of codes that are read once and held; more are read twice."""
_MOST_COUNTED = 2**16
"""Combinations of so few codes are counted, and their sums made afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodedRows:
    """A table whose columns of few values are read as codes, and counted."""

    connection: duckdb.DuckDBPyConnection
    select: str
    coded: DictionaryColumns
    n_rows: int
    held: tuple[pa.RecordBatch, ...] | None
    """The codes; None: there are too many to be held."""
    counts: dict[str, Ints]
    """Of the columns that are read as codes: how often each value occurs, NULL last; of the rows held."""

    @classmethod
    def read(cls, connection: duckdb.DuckDBPyConnection, relation: str, names: Sequence[str]) -> CodedRows:
        """Find these columns, and read their codes as far as they are held."""
        select = f"SELECT {identifiers(names)} FROM {relation}"
        coded = DictionaryColumns.of(connection, select, numbers=True)
        own = [name for name in coded.names if name in coded.listed]
        n_rows = count(connection, f"SELECT count(*) FROM ({select})")
        held, n_bytes = [], 0
        if own:
            for batch in read_batches(connection, f"SELECT {identifiers(own)} FROM ({coded.code(select)})"):
                held.append(batch)
                n_bytes += batch.nbytes
                if n_bytes > _MOST_HELD:
                    break
        return cls(
            connection=connection,
            select=select,
            coded=coded,
            n_rows=n_rows,
            held=tuple(held) if n_bytes <= _MOST_HELD else None,
            counts={name: _count(held, name, len(coded.listed[name])) for name in own},
        )

    @property
    def counted(self) -> dict[str, tuple[pa.Array, Ints]]:
        """By column, the values of all rows and how often each occurs, NULL last; where that is known."""
        if self.held is None:
            return {}
        nulls = {name: pa.nulls(1, cells.type) for name, cells in self.coded.listed.items()}
        return {
            name: (pa.concat_arrays([self.coded.listed[name], nulls[name]]), counts)
            for name, counts in self.counts.items()
        }

    def batches(self, columns: Sequence[SketchedColumn], key: bytes) -> Iterator[list[Codes]]:
        """Per column its codes, or else its cells as keyed numbers."""
        names = [column.name for column in columns]
        if self.held is not None and all(name in self.coded.listed for name in names):
            batches: Iterable[pa.RecordBatch] = (batch.select(names) for batch in self.held)
        else:
            batches = read_batches(self.connection, self._query(columns, key))
        for batch in batches:
            yield [
                _with_null(cells, len(self.coded.listed[name])) if name in self.coded.listed
                else high(cells.to_numpy())
                for name, cells in zip(names, batch.columns, strict=True)
            ]  # fmt: skip

    def _query(self, columns: Sequence[SketchedColumn], key: bytes) -> str:
        """Of a column that is no code but has few values for its rows, each of these is hashed once."""
        select, joins = f"({self.coded.code(self.select)})", ""
        listed = []
        for i, column in enumerate(columns):
            name = identifier(column.name)
            if column.name in self.coded.listed:
                listed.append(f"records.{name}")
            elif column.n_different > self.n_rows / 4:
                listed.append(hash_cell(f"records.{name}", column.kind, key))
            else:
                hashed = f"SELECT {name} AS v, {hash_cell(name, column.kind, key)} AS h"
                joins += (
                    f" JOIN ({hashed} FROM (SELECT DISTINCT {name} FROM {select})) AS of{i} "
                    f"ON records.{name} IS NOT DISTINCT FROM of{i}.v"
                )
                listed.append(f"of{i}.h")
        chosen = ", ".join(f"{cell} AS h{i}" for i, cell in enumerate(listed))
        return f"SELECT {chosen} FROM {select} AS records{joins}"

    def numbers(self, columns: Sequence[SketchedColumn], key: bytes) -> list[Words | None]:
        """Per column, by code the keyed number of each value, NULL last; None for a column of cells."""
        found: dict[str, Words] = {}
        for kind in {column.kind for column in columns}:
            own = [
                column.name for column in columns if column.kind == kind and column.name in self.coded.listed
            ]
            lists = [self.coded.listed[name] for name in own]
            if own:
                numbers = self._hash_all(pa.concat_arrays([*lists, pa.nulls(1, lists[0].type)]), kind, key)
                parts = np.split(numbers[:-1], np.cumsum([len(one) for one in lists])[:-1])
                found |= {name: np.append(part, numbers[-1]) for name, part in zip(own, parts, strict=True)}
        return [found.get(column.name) for column in columns]

    def _hash_all(self, values: pa.Array, kind: str, key: bytes) -> Words:
        self.connection.register("sketched", pa.table({"v": values}))
        found = self.connection.sql(f"SELECT {hash_cell('v', kind, key)} FROM sketched").to_arrow_table()
        self.connection.unregister("sketched")
        return high(found.column(0).to_numpy())


def _count(batches: Sequence[pa.RecordBatch], name: str, n_values: int) -> Ints:
    found = np.zeros(n_values + 1, dtype=np.int64)
    for batch in batches:
        found += np.bincount(_with_null(batch.column(name), n_values), minlength=n_values + 1)
    return found


def _with_null(codes: pa.Array, n_values: int) -> Codes:
    """The codes, that of NULL after those of values."""
    whole = codes.cast(pa.uint16()).fill_null(n_values) if codes.null_count else codes
    found: Codes = whole.to_numpy()
    return found


def sketch_table(
    connection: duckdb.DuckDBPyConnection, relation: str, names: Sequence[str], key: bytes
) -> Sketch | None:
    """A sketch of some columns of a relation; None where none of them tells people apart."""
    return sketch_rows(CodedRows.read(connection, relation, names), key)


def sketch_rows(rows: CodedRows, key: bytes) -> Sketch | None:
    """A sketch of a table that was read; None where no column tells people apart."""
    columns, chosen = choose_combinations(_find_columns(rows))
    if not chosen:
        return None
    numbers = rows.numbers(columns, key)
    found = [keep_smallest(places, len(columns)) for places in chosen]
    counted = {i: _joint_counts(one, numbers) for i, one in enumerate(chosen)}
    for batch in rows.batches(columns, key):
        both = zip(numbers, batch, strict=True)
        cells: list[Words] = [codes.view(np.uint64) if own is None else own[codes] for own, codes in both]
        total: Words = np.add.reduce(cells)
        for i, places in enumerate(chosen):
            if (counts := counted[i]) is not None:
                counts += _count_joint(places, batch, counts.shape)
            else:
                found[i].add(add_up(places, cells, total))
    for i, places in enumerate(chosen):
        if (counts := counted[i]) is not None:
            found[i].add_counted(*_sums_of(counts, [numbers[place] for place in places]))
    combined = [
        one.combination(len(places), is_whole=len(places) == len(columns))
        for one, places in zip(found, chosen, strict=True)
    ]
    return Sketch(n_rows=rows.n_rows, combinations=tuple(combined))


def _joint_counts(places: Sequence[int], numbers: Sequence[Words | None]) -> Ints | None:
    """For how often each combination of codes occurs; None where there may be many, or cells are no codes."""
    sizes = [len(own) for place in places if (own := numbers[place]) is not None]
    is_few = len(sizes) == len(places) and prod(sizes) <= _MOST_COUNTED
    return np.zeros(sizes, dtype=np.int64) if is_few else None


def _count_joint(places: Sequence[int], codes: Sequence[Codes], shape: tuple[int, ...]) -> Ints:
    joint = codes[places[0]].astype(np.int64)
    for place, size in zip(places[1:], shape[1:], strict=True):
        joint *= size
        joint += codes[place]
    return np.bincount(joint, minlength=prod(shape)).reshape(shape)


def _sums_of(counts: Ints, numbers: Sequence[Words | None]) -> tuple[Words, Ints]:
    """The sum of each combination that occurs, and how often it does."""
    occurs = np.nonzero(counts)
    cells = [own[codes] for own, codes in zip(numbers, occurs, strict=True) if own is not None]
    return np.add.reduce(cells), counts[occurs]


def _find_columns(rows: CodedRows) -> list[SketchedColumn]:
    """The columns that have several values and are no numbering."""
    connection, relation, names = rows.connection, f"({rows.select})", rows.coded.names
    n_different = {name: int(np.count_nonzero(counts[:-1])) for name, counts in rows.counts.items()}
    others = [name for name in names if name not in n_different]
    if others:
        counts = ", ".join(f"approx_count_distinct({identifier(name)})" for name in others)
        n_different |= zip(others, one_row(connection, f"SELECT {counts} FROM {relation}"), strict=True)
    described = connection.execute(f"DESCRIBE {rows.select}").fetchall()
    found = []
    for name, kind, *_ in described:
        different, is_unique = n_different[name], False
        if different > NEARLY_ALL * rows.n_rows:
            is_unique = _is_unique(connection, relation, identifier(name), rows.n_rows)
            different = rows.n_rows if is_unique else min(different, rows.n_rows - 1)
        if different < 2 or (is_unique and _numbers_rows(connection, relation, name, kind, rows.n_rows)):
            continue
        found.append(SketchedColumn(name=name, kind=kind, n_different=different, is_unique=is_unique))
    return found


def _is_unique(connection: duckdb.DuckDBPyConnection, relation: str, cell: str, n_rows: int) -> bool:
    """Whether no cell of a column occurs twice, nor is NULL; in a large table, of a part of its values."""
    # all copies of a value are in the part, or none
    part = f"WHERE {cell} IS NULL OR hash({cell}) % {_PART} = 0" if n_rows > _PART * _LOOKED_AT else ""
    n, different = one_row(connection, f"SELECT count(*), count(DISTINCT {cell}) FROM {relation} {part}")
    return bool(n == different)


def _numbers_rows(
    connection: duckdb.DuckDBPyConnection, relation: str, name: str, kind: str, n_rows: int
) -> bool:
    """Whether the different cells of a column are a numbering; of many a random choice is looked at."""
    chosen = f"SELECT {identifier(name)} AS c FROM {relation}"
    if n_rows > 2 * _LOOKED_AT:
        chosen = f"FROM ({chosen}) USING SAMPLE {100 * _LOOKED_AT / n_rows:f} PERCENT (bernoulli)"
    return is_numbering(connection, f"SELECT {numeric('c', kind)} AS x FROM ({chosen})", n_rows)
