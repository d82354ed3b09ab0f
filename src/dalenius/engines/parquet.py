"""Parquet files whose layout tells nothing but the rows in them.

Row groups are of one size, whatever batches the rows come in: uneven ones would show how many rows were
dropped where. A row group's dictionary lists the values that occur in it, in ascending order: the values of
the whole source, or the order in which it has them, would tell of records that are not published. Whether a
text column has a dictionary at all is decided by the published rows too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import pyarrow as pa

from dalenius.engines.pages import EncodedGroup, PageWriter, can_be_paged, encode_group
from dalenius.mechanisms.base import Batches
from dalenius.prefetch import map_parallel
from dalenius.tables.codes import ascending, encode, find_codes
from dalenius.tables.reading import rebatch

ROW_GROUP_ROWS = 122_880
"""DuckDB's own number, 60 of its vectors: each of its threads reads a row group at a time."""
_CELLS_AT_A_TIME = 2**12
FEW_TEXTS = 64
"""A text column with at most so many different texts in its first row group is written as codes."""
_FIRST_LOOK = 2_000
"""So many rows tell of most columns of names and notes that they have more."""
_SECOND_LOOK = 2**14
_NEARLY_ALL = 0.75
"""Texts that differ so much among so many rows are written one by one."""


def write_parquet(path: Path, batches: Batches, columns: Sequence[str]) -> int:
    """Write these columns of the rows in their order, and return how many rows there are."""
    begin = next(batches)
    groups = (group.select(columns) for group in rebatch(chain([begin], batches), ROW_GROUP_ROWS))
    first = next(groups, begin.select(columns))  # without rows there is no group, but a schema
    coded = frozenset(name for name in columns if _has_few_texts(first.column(name)))
    laid = chain([first] if first.num_rows else [], groups)
    if can_be_paged(_lay_out(first, coded, decode=False)):
        return _write_pages(path, laid, coded)
    return _write_by_arrow(path, laid, coded, _lay_out(first, coded))


def _write_pages(path: Path, groups: Batches, coded: Collection[str]) -> int:
    """The codes as they are."""

    def encode_next(group: pa.RecordBatch) -> tuple[pa.Schema, EncodedGroup]:
        laid = _lay_out(group, coded, decode=False)
        return laid.schema, encode_group(laid)

    n_rows = 0
    encoded = map_parallel(encode_next, groups)
    schema, first = next(encoded)
    with PageWriter(path, schema) as writer:
        for _, group in chain([(schema, first)], encoded):
            writer.write(group)
            n_rows += group.n_rows
    return n_rows


def _write_by_arrow(path: Path, groups: Batches, coded: Collection[str], first: pa.RecordBatch) -> int:
    """Many texts, or numbers far apart, whose codes Arrow finds, or does without."""
    import pyarrow.parquet as pq  # most releases are written without

    schema = first.schema
    # the least and the largest text of a row group help no reader, and take a third of the writer's time
    numbers = [field.name for field in schema if not (field.name in coded or _is_text(field.type))]
    n_rows = 0
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        store_schema=False,  # in which readers would see how the rows were held
        write_statistics=numbers,
        use_dictionary=[name for name in schema.names if not _hardly_repeats(first.column(name))],
        write_batch_size=_CELLS_AT_A_TIME,
    ) as writer:
        for group in map_parallel(partial(_lay_out, coded=coded), groups):
            writer.write_batch(group)
            n_rows += group.num_rows
    return n_rows


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _has_few_texts(column: pa.Array) -> bool:
    """Whether a column's texts are listed in the file, told by its first rows and not by the source's."""
    if pa.types.is_dictionary(column.type):
        return _is_text(column.type.value_type) and _count_different(column) <= FEW_TEXTS
    if not _is_text(column.type):
        return False
    return all(_count_different(part) <= FEW_TEXTS for part in (column[:_FIRST_LOOK], column))


def _hardly_repeats(column: pa.Array) -> bool:
    """Whether texts are written one by one: listing them, as Arrow would first, takes time and more bytes."""
    start = column[:_SECOND_LOOK]
    return _is_text(column.type) and _count_different(start) > _NEARLY_ALL * len(start)


def _count_different(column: pa.Array) -> int:
    return len(encode(column)[1].drop_null())


def _lay_out(batch: pa.RecordBatch, coded: Collection[str], *, decode: bool = True) -> pa.RecordBatch:
    """A row group as it is written: columns of few texts coded, other coded ones as their cells, if asked."""
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name in coded:
            columns.append(_own_dictionary(column))
        else:
            is_coded = pa.types.is_dictionary(column.type) and (decode or _is_text(column.type.value_type))
            columns.append(column.dictionary_decode() if is_coded else column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _own_dictionary(column: pa.Array) -> pa.DictionaryArray:
    """The same cells; the dictionary has each value that occurs once, ascending, and no NULL."""
    codes, cells = encode(column)
    values = ascending(cells.drop_null())
    if pa.types.is_dictionary(column.type) and values.equals(column.dictionary):
        return pa.DictionaryArray.from_arrays(column.indices.cast(pa.int32()), values)
    places = find_codes(cells, values).cast(pa.int32())  # of NULL: none
    return pa.DictionaryArray.from_arrays(places.take(pa.array(codes)), values)
