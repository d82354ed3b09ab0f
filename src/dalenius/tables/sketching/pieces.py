"""The same sketch of a table that is in pieces: of each what is smallest, which is merged.

A sum that is among the smallest of all is among the smallest of every piece that has it, and so is its count
known. Three passes: how many different values every column has, of which columns with no value twice are
looked at again (are they a numbering?), and the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.arrays import Ints
from dalenius.sql import connect, identifier
from dalenius.tables.sketch import SUM_MASK, Sketch
from dalenius.tables.sketching.digests import Words
from dalenius.tables.sketching.kept import (
    NEARLY_ALL,
    SketchedColumn,
    Smallest,
    add_up,
    hash_cell,
    high,
    is_numbering,
    keep_smallest,
    numeric,
)

_VALUES = 1024
"""Of a column so many values, those of the smallest hashes, tell how many there are; to within 3 %."""
PIECE = pa.schema([("i", pa.int32()), ("s", pa.int64()), ("n", pa.int64()), ("x", pa.float64())])
"""What a piece tells: of which column or combination, a hash or sum, how often, the number in the cell."""
_REMEMBERED = 4096
"""So many values of a column are remembered from batch to batch."""
_NULL = -1
"""In the place of a hash: how many cells are NULL."""
Columns = Sequence[SketchedColumn]
Pieces = Iterator[pa.RecordBatch]


def describe_columns(schema: pa.Schema) -> list[SketchedColumn]:
    """Columns of which only the types are known; those of the types that DuckDB gives them."""
    with connect(threads=1) as connection:
        connection.register("piece", schema.empty_table())
        described = connection.execute("DESCRIBE SELECT * FROM piece").fetchall()
    return [
        SketchedColumn(name=name, kind=kind, n_different=0, is_unique=False) for name, kind, *_ in described
    ]


def count_values(batches: Iterable[pa.RecordBatch], columns: Columns) -> Pieces:
    """Of each column the values with the smallest hashes."""
    found = [Smallest(_VALUES - 1) for _ in columns]
    n_null = np.zeros(len(columns), dtype=np.int64)
    for cells in _evaluate(batches, columns, _hash):
        for i, (place, hashes) in enumerate(cells):
            counts = np.bincount(place, minlength=len(hashes))
            is_null = hashes == _NULL
            n_null[i] += counts[is_null].sum()
            found[i].add_counted(high(hashes[~is_null]), counts[~is_null])
    for i, smallest in enumerate(found):
        yield _piece(i, np.array([_NULL]), n_null[i : i + 1])
        yield _piece(i, *smallest.counted)


def merge_values(pieces: pa.Table, columns: Columns, n_rows: int) -> tuple[list[SketchedColumn], Ints]:
    """How many values every column has, and up to which hash its values are known."""
    found, limits = [], np.full(len(columns), SUM_MASK, dtype=np.int64)
    for i, column in enumerate(columns):
        sums, counts = _of(pieces, i)
        n_null = int(counts[sums == _NULL].sum())
        smallest = Smallest(_VALUES - 1)
        smallest.add_counted(high(sums[sums != _NULL]), counts[sums != _NULL])
        hashes, times = smallest.counted
        n_different = len(hashes)
        if n_different == _VALUES:
            limits[i] = hashes[-1]
            n_different = round((_VALUES - 1) * (SUM_MASK + 1) / int(limits[i]))
        is_unique = not n_null and n_different > NEARLY_ALL * n_rows and bool((times == 1).all())
        most = n_rows if is_unique else n_rows - 1
        found.append(
            SketchedColumn(
                name=column.name,
                kind=column.kind,
                n_different=n_rows if is_unique else min(n_different, max(most, 1)),
                is_unique=is_unique,
            )
        )
    return found, limits


def find_numbers(batches: Iterable[pa.RecordBatch], columns: Columns, limits: Ints) -> Pieces:
    """The numbers in the cells whose hashes are within the limits, of columns that have no value twice."""
    with connect(threads=1) as connection:
        for batch in batches:
            connection.register("piece", pa.Table.from_batches([batch]))
            for i, (column, limit) in enumerate(zip(columns, limits.tolist(), strict=True)):
                name = identifier(column.name)
                asked = f"SELECT {numeric(name, column.kind)} AS x FROM piece"
                chosen = connection.sql(f"{asked} WHERE {_hash(column)} <= {limit}").to_arrow_table()["x"]
                ones = np.ones(len(chosen), dtype=np.int64)
                yield _piece(i, 0 * ones, ones, chosen)


def without_numberings(pieces: pa.Table, columns: Columns, n_rows: int) -> list[SketchedColumn]:
    """Those of the columns that number nothing."""
    with connect(threads=1) as connection:
        connection.register("pieces", pieces)
        return [
            column
            for i, column in enumerate(columns)
            if not is_numbering(connection, f"SELECT x FROM pieces WHERE i = {i}", n_rows)
        ]


def sum_cells(
    batches: Iterable[pa.RecordBatch], columns: Columns, chosen: Sequence[tuple[int, ...]], key: bytes
) -> Pieces:
    """Of each combination of columns the smallest keyed sums."""
    found = [keep_smallest(places, len(columns)) for places in chosen]
    for cells in _evaluate(batches, columns, lambda column: _hash_name(column, key)):
        numbers = [high(hashes)[place] for place, hashes in cells]
        total: Words = np.add.reduce(numbers)
        for places, smallest in zip(chosen, found, strict=True):
            smallest.add(add_up(places, dict(enumerate(numbers)), total, len(numbers)))
    for i, smallest in enumerate(found):
        yield _piece(i, *smallest.counted)


def merge_sums(pieces: pa.Table, n_columns: int, chosen: Sequence[tuple[int, ...]], n_rows: int) -> Sketch:
    """The sketch of all pieces together."""
    found = []
    for i, places in enumerate(chosen):
        sums, counts = _of(pieces, i)
        smallest = keep_smallest(places, n_columns)
        smallest.add_counted(high(sums), counts)
        found.append(smallest.combination(len(places), is_whole=len(places) == n_columns))
    return Sketch(n_rows=n_rows, combinations=tuple(found))


def _hash(column: SketchedColumn) -> str:
    """SQL for a number that only spreads values: nobody gets to see it."""
    name = identifier(column.name)
    return f"CASE WHEN {name} IS NULL THEN {_NULL} ELSE (hash({name}) & {SUM_MASK})::BIGINT END"


def _hash_name(column: SketchedColumn, key: bytes) -> str:
    return hash_cell(identifier(column.name), column.kind, key)


def _evaluate(
    batches: Iterable[pa.RecordBatch], columns: Columns, asked: Callable[[SketchedColumn], str]
) -> Iterator[list[tuple[Ints, Ints]]]:
    """Batch by batch and column by column: a number for every different cell, and which of them each row has.

    Values that came in an earlier batch are not asked for again, as long as they are few.
    """
    known = [(pa.array([], pa.null()), np.zeros(0, dtype=np.int64)) for _ in columns]
    with connect(threads=1) as connection:
        for batch in batches:
            found = []
            for i, column in enumerate(columns):
                coded = batch.column(column.name).dictionary_encode(null_encoding="encode")
                values, numbers = known[i] if len(known[i][0]) else (coded.dictionary[:0], known[i][1])
                place = pc.index_in(coded.dictionary, value_set=values)
                new = coded.dictionary.filter(place.is_null())
                if len(new):
                    connection.register("piece", pa.table({column.name: new}))
                    told = connection.sql(f"SELECT {asked(column)} AS h FROM piece").to_arrow_table()["h"]
                    values = pa.concat_arrays([values, new])
                    numbers = np.concatenate([numbers, _ints(told)])
                    place = pc.index_in(coded.dictionary, value_set=values)
                found.append((coded.indices.to_numpy(), numbers[place.to_numpy()]))
                known[i] = (values, numbers) if len(values) <= _REMEMBERED else (values[:0], numbers[:0])
            yield found


def _ints(cells: pa.ChunkedArray) -> Ints:
    return np.asarray(cells.to_numpy(), dtype=np.int64)


def _piece(i: int, sums: Ints, counts: Ints, numbers: pa.ChunkedArray | None = None) -> pa.RecordBatch:
    cells = pa.nulls(len(sums), pa.float64()) if numbers is None else numbers.combine_chunks()
    arrays = [pa.array(np.full(len(sums), i, dtype=np.int32)), pa.array(sums), pa.array(counts), cells]
    return pa.RecordBatch.from_arrays(arrays, schema=PIECE)


def _of(pieces: pa.Table, i: int) -> tuple[Ints, Ints]:
    own = pieces.filter(pc.equal(pieces["i"], i))
    return _ints(own["s"]), _ints(own["n"])
