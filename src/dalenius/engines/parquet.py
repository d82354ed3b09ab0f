"""Parquet files whose layout tells nothing but the rows in them.

Row groups are of one size, whatever batches the rows come in: uneven ones would show how many rows were
dropped where. A row group's dictionary lists the values that occur in it, in ascending order: the values of
the whole source, or the order in which it has them, would tell of records that are not published.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dalenius.mechanisms.base import Batches
from dalenius.prefetch import map_parallel
from dalenius.tables.codes import ascending, encode, find_codes
from dalenius.tables.reading import rebatch

ROW_GROUP_ROWS = 122_880
"""DuckDB's own number, 60 of its vectors: each of its threads reads a row group at a time."""
_CELLS_AT_A_TIME = 2**12


def write_parquet(path: Path, batches: Batches, columns: Sequence[str]) -> int:
    """Write these columns of the rows in their order, and return how many rows there are."""
    first = next(batches)
    groups = (group.select(columns) for group in rebatch(chain([first], batches), ROW_GROUP_ROWS))
    schema = _own_dictionaries(first.select(columns)).schema
    # the least and the largest text of a row group help no reader, and take a third of the writer's time
    numbers = [field.name for field in schema if not pa.types.is_dictionary(field.type)]
    n_rows = 0
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        store_schema=False,  # in which readers would see how the rows were held
        write_statistics=numbers,
        write_batch_size=_CELLS_AT_A_TIME,
    ) as writer:
        for group in map_parallel(_own_dictionaries, groups):
            writer.write_batch(group)
            n_rows += group.num_rows
    return n_rows


def _own_dictionaries(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [_own_dictionary(c) if pa.types.is_dictionary(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _own_dictionary(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same cells; the dictionary has each value that occurs once, ascending, and no NULL."""
    codes, cells = encode(column)
    values = ascending(cells.drop_null())
    if values.equals(column.dictionary):
        return column
    places = find_codes(cells, values).cast(column.type.index_type)  # of NULL: none
    return pa.DictionaryArray.from_arrays(places.take(pa.array(codes)), values)
