"""How a table's sketch is made: few values by their codes, others cell by cell in DuckDB.

A column of few values, or of whole numbers near one another, comes as a byte or two a row. Each of its values
is hashed once; a combination of few columns is counted by their codes, and of a larger one the smallest sums
are found batch by batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod

import duckdb
import numpy as np
import pyarrow as pa

from dalenius.arrays import Codes, Ints
from dalenius.sql import identifier, one_row
from dalenius.tables.reading import read_batches
from dalenius.tables.sketch import Sketch
from dalenius.tables.sketching.digests import MANY_TEXTS, Words
from dalenius.tables.sketching.held import HeldRows, in_batches, with_null
from dalenius.tables.sketching.kept import (
    NEARLY_ALL,
    SketchedColumn,
    add_exactly,
    add_up,
    choose_combinations,
    digest_words,
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
_ROWS_ADDED = 2**14
"""So many sums of a combination stay in a processor's cache."""
_MOST_COUNTED = 2**16
"""Combinations of so few codes are counted, and their sums made afterwards."""


def _batches(rows: HeldRows, columns: Sequence[SketchedColumn], key: bytes) -> Iterator[list[Codes]]:
    """Per column its codes, or else its cells as keyed numbers."""
    names = [column.name for column in columns]
    if all(name in rows.held for name in names):
        yield from in_batches([rows.held[name] for name in names], rows.n_rows)
        return
    for batch in read_batches(rows.connection, _query(rows, columns, key)):
        yield [
            with_null(cells, len(rows.coded.listed[name])) if name in rows.coded.listed
            else high(cells.to_numpy()).view(np.int64)
            for name, cells in zip(names, batch.columns, strict=True)
        ]  # fmt: skip


def _query(rows: HeldRows, columns: Sequence[SketchedColumn], key: bytes) -> str:
    """Of a column that is no code but has few values for its rows, each of these is hashed once."""
    select, joins = f"({rows.coded.code(rows.select)})", ""
    listed = []
    for i, column in enumerate(columns):
        name = identifier(column.name)
        if column.name in rows.coded.listed:
            listed.append(f"records.{name}")
        elif column.n_different > rows.n_rows / 4:
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


def _find_numbers(rows: HeldRows, columns: Sequence[SketchedColumn], key: bytes) -> list[Words | None]:
    """Per column, by code the keyed number of each value, NULL last; None for a column of cells."""
    is_held = all(column.name in rows.held for column in columns)
    coded = rows.cells if is_held else rows.coded.listed
    found = _hash_values(rows, {one.name: one.kind for one in columns if one.name in coded}, key)
    return [found.get(column.name) if column.name in coded else None for column in columns]


def _hash_values(rows: HeldRows, kinds: Mapping[str, str], key: bytes) -> Mapping[str, Words]:
    """By counted column the keyed number of each of its values, NULL last; of a type together, and once."""
    found = rows.hashed.setdefault(key, {})
    wider = {"INTEGER": "BIGINT"}  # which are hashed alike, and so together
    kinds = {name: wider.get(kind, kind) for name, kind in kinds.items() if name not in found}
    for kind in set(kinds.values()):
        own = [name for name in kinds if kinds[name] == kind]
        lists = [rows.cells[name].cast(pa.int64()) if kind == "BIGINT" else rows.cells[name] for name in own]
        together = pa.concat_arrays([*lists, pa.nulls(1, lists[0].type)])
        numbers = _hash_all(rows.connection, together, kind, key)
        parts = np.split(numbers[:-1], np.cumsum([len(one) for one in lists])[:-1])
        found |= {name: np.append(part, numbers[-1]) for name, part in zip(own, parts, strict=True)}
    return found


def sum_counted(rows: HeldRows, names: Collection[str], key: bytes) -> dict[str, int]:
    """By column the sum of its cells as keyed numbers, as `column_sums` has it, of those that are counted."""
    described = rows.connection.execute(f"DESCRIBE {rows.select}").fetchall()
    kinds = {name: kind for name, kind, *_ in described if name in names and name in rows.counts}
    numbers = _hash_values(rows, kinds, key)
    return {name: add_exactly(numbers[name][:-1], rows.counts[name][:-1]) for name in kinds}


def column_sums(columns: Mapping[str, str], relation: str, key: bytes) -> str:
    """SQL for the sums of columns' cells as keyed numbers, each different cell hashed once; NULL has none.

    Args:
        columns: Their names and types.
        relation: Where they are selected from.
        key: The ledger's.
    """
    cells = ", ".join(f"{identifier(name)} AS c{i}" for i, name in enumerate(columns))
    sets = ", ".join(f"({identifier(name)})" for name in columns)
    summed = ", ".join(
        f"coalesce(sum(n::HUGEINT * {hash_cell(f'c{i}', kind, key)}) FILTER (c{i} IS NOT NULL), 0)"
        for i, kind in enumerate(columns.values())
    )
    counted = f"SELECT {cells}, count(*) AS n FROM {relation} GROUP BY GROUPING SETS ({sets})"
    return f"SELECT {summed} FROM ({counted})"


def _hash_all(connection: duckdb.DuckDBPyConnection, values: pa.Array, kind: str, key: bytes) -> Words:
    if kind == "VARCHAR" and len(values) >= MANY_TEXTS:
        numbers, is_done = digest_words(values, key)
        if not is_done.all():
            others = values.filter(pa.array(~is_done))
            numbers[~is_done] = _hash_by_duckdb(connection, others, kind, key)
        return numbers
    return _hash_by_duckdb(connection, values, kind, key)


def _hash_by_duckdb(connection: duckdb.DuckDBPyConnection, values: pa.Array, kind: str, key: bytes) -> Words:
    connection.register("sketched", pa.table({"v": values}))
    found = connection.sql(f"SELECT {hash_cell('v', kind, key)} FROM sketched").to_arrow_table()
    connection.unregister("sketched")
    return high(found.column(0).to_numpy())


def sketch_table(
    connection: duckdb.DuckDBPyConnection, relation: str, names: Sequence[str], key: bytes
) -> Sketch | None:
    """A sketch of some columns of a relation; None where none of them tells people apart."""
    return sketch_rows(HeldRows.read(connection, relation, names), key)


def sketch_rows(rows: HeldRows, key: bytes) -> Sketch | None:
    """A sketch of a table that was read; None where no column tells people apart."""
    columns, chosen = choose_combinations(_find_columns(rows))
    if not chosen:
        return None
    numbers = _find_numbers(rows, columns, key)
    found = [keep_smallest(places, len(columns)) for places in chosen]
    counted = {i: _joint_counts(one, numbers) for i, one in enumerate(chosen)}
    summed = [i for i, counts in counted.items() if counts is None]
    for batch in _batches(rows, columns, key):
        for i, places in enumerate(chosen):
            if (counts := counted[i]) is not None:
                counts += _count_joint(places, batch, counts.shape)
        for start in range(0, len(batch[0]) if summed else 0, _ROWS_ADDED):
            part = [codes[start : start + _ROWS_ADDED] for codes in batch]
            for i, sums in zip(summed, _add_up(part, numbers, [chosen[i] for i in summed]), strict=True):
                found[i].add(sums)
    for i, places in enumerate(chosen):
        if (counts := counted[i]) is not None:
            found[i].add_counted(*_sums_of(counts, [numbers[place] for place in places]))
    combined = [
        one.combination(len(places), is_whole=len(places) == len(columns))
        for one, places in zip(found, chosen, strict=True)
    ]
    return Sketch(n_rows=rows.n_rows, combinations=tuple(combined))


def _add_up(
    codes: Sequence[Codes], numbers: Sequence[Words | None], chosen: Sequence[Sequence[int]]
) -> Iterator[Words]:
    """The sums of some rows' cells, for each combination of columns."""
    every, n_rows = set(range(len(codes))), len(codes[0])
    # a combination is added up from its cells, or from what it leaves out
    kept = {i for places in chosen for i in min(set(places), every - set(places), key=len)}
    total, other = np.zeros(n_rows, dtype=np.uint64), np.empty(n_rows, dtype=np.uint64)
    cells: dict[int, Words] = {}
    for i, (own, column) in enumerate(zip(numbers, codes, strict=True)):
        if own is None:
            words: Words = column.view(np.uint64)
        else:  # no code is outside: this way of saying so is the fastest
            words = np.empty(n_rows, dtype=np.uint64) if i in kept else other
            np.take(own, column, out=words, mode="clip")
        if i in kept:
            cells[i] = words
        total += words
    for places in chosen:
        yield add_up(places, cells, total, len(codes))


def _joint_counts(places: Sequence[int], numbers: Sequence[Words | None]) -> Ints | None:
    """For how often each combination of codes occurs; None where there may be many, or cells are no codes."""
    sizes = [len(own) for place in places if (own := numbers[place]) is not None]
    is_few = len(sizes) == len(places) and prod(sizes) <= _MOST_COUNTED
    return np.zeros(sizes, dtype=np.int64) if is_few else None


def _count_joint(places: Sequence[int], codes: Sequence[Codes], shape: tuple[int, ...]) -> Ints:
    joint = codes[places[0]].astype(np.uint16)  # there are at most 2¹⁶ combinations
    for place, size in zip(places[1:], shape[1:], strict=True):
        joint *= np.uint16(size)
        joint += codes[place].astype(np.uint16, copy=False)
    return np.bincount(joint, minlength=prod(shape)).reshape(shape)


def _sums_of(counts: Ints, numbers: Sequence[Words | None]) -> tuple[Words, Ints]:
    """The sum of each combination that occurs, and how often it does."""
    occurs = np.nonzero(counts)
    cells = [own[codes] for own, codes in zip(numbers, occurs, strict=True) if own is not None]
    return np.add.reduce(cells), counts[occurs]


def _find_columns(rows: HeldRows) -> list[SketchedColumn]:
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
        if name in rows.counts:
            is_unique = different == rows.n_rows
        elif different > NEARLY_ALL * rows.n_rows:
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
