"""Parquet files whose layout tells nothing but the rows in them.

Row groups are of one size, whatever batches the rows come in: uneven ones would show how many rows were
dropped where. A row group's dictionary lists the values that occur in it, in ascending order: the values of
the whole source, or the order in which it has them, would tell of records that are not published.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dalenius.mechanisms.base import Batches
from dalenius.prefetch import map_parallel
from dalenius.tables.codes import ascending
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
    is_null = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    codes = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
    used = np.flatnonzero(np.bincount(codes if is_null is None else codes[~is_null]))
    if len(used) == len(column.dictionary) and _ascend(column.dictionary):
        return column
    cells = column.dictionary.take(pa.array(used))
    values = ascending(cells.drop_null().unique())
    new_code = np.zeros(len(column.dictionary), dtype=codes.dtype)
    new_code[used] = pc.index_in(cells, value_set=values).fill_null(0).to_numpy()
    if cells.null_count:
        of_null = column.dictionary.is_null().to_numpy(zero_copy_only=False)[codes]
        is_null = of_null if is_null is None else is_null | of_null
    return pa.DictionaryArray.from_arrays(pa.array(new_code[codes], mask=is_null), values)


def _ascend(values: pa.Array) -> bool:
    is_set = not values.null_count and len(values.unique()) == len(values)
    return is_set and bool(values.equals(ascending(values)))
