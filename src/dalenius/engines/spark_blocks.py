"""Rows on their way from partitions to groups: in blocks of bytes, so that Spark moves few, large values.

Row by row, Spark's own conversions and its shuffle took most of the time. A block holds the rows of one
partition for one group as an Arrow message, whole numbers in the fewest bytes that hold them. It says where
it comes from, so that a group puts what reached it in one order, whatever order it came in.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.errors import InternalError
from dalenius.mechanisms.dealing import IntArray, fewest_bits
from dalenius.mechanisms.sharding import Scattered

Batches = Iterator[pa.RecordBatch]

GROUP = "g"
BLOCKS = f"{GROUP} int, source bigint, place int, block binary"
"""The group, which source's block it is, the how many-th of that source, and the rows."""
_MOST_ROWS = 2**20
_MOST_BYTES = 2**26
_NARROW = (pa.int8(), pa.int16(), pa.int32())
_LIMITS = tuple((np.iinfo(kind.to_pandas_dtype()), kind) for kind in _NARROW)


def to_blocks(scattered: Scattered, source: int, most_rows: int = _MOST_ROWS) -> Batches:
    """The rows of one source, a block for each group that they go to."""
    for place, (groups, rows) in enumerate(_collected(scattered, most_rows)):
        order = np.argsort(fewest_bits(groups), kind="stable")
        narrow = _narrowed(rows)
        # Numbers are moved in the fewest bytes: they stay in the processor's cache.
        moved = pa.RecordBatch.from_arrays(
            [column.take(pa.array(order)) for column in narrow.columns], schema=narrow.schema
        )
        present, starts = np.unique(groups[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        head = _head(narrow.schema)
        blocks = [
            b"".join((head, moved.slice(start, end - start).serialize()))
            for start, end in zip(starts.tolist(), ends, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(present.astype(np.int32)),
                pa.array(np.full(len(blocks), source, dtype=np.int64)),
                pa.array(np.full(len(blocks), place, dtype=np.int32)),
                pa.array(blocks, pa.binary()),
            ],
            names=[GROUP, "source", "place", "block"],
        )


def from_blocks(batches: Batches, group: int, wire: pa.Schema) -> pa.Table:
    """The rows that reached a group, by source and in the order in which it sent them."""
    found: list[tuple[int, int, pa.RecordBatch]] = []
    for batch in batches:
        groups, sources, places, blocks = batch.columns
        if pc.any(pc.not_equal(groups, group)).as_py():
            raise InternalError(f"rows of another group reached group {group}")
        rows = (_read(block.as_buffer(), wire) for block in blocks)
        found.extend(zip(sources.to_pylist(), places.to_pylist(), rows, strict=True))
    found.sort(key=lambda block: block[:2])
    return pa.Table.from_batches([rows for _, _, rows in found], wire).combine_chunks()


def _collected(scattered: Scattered, most_rows: int) -> Iterator[tuple[IntArray, pa.RecordBatch]]:
    """Several batches together: the more rows, the fewer blocks. What is together follows from the rows."""
    held: list[tuple[IntArray, pa.RecordBatch]] = []
    for groups, rows in scattered:
        if rows.num_rows:
            held.append((groups, rows))
        if sum(len(one) for one, _ in held) >= most_rows or sum(one.nbytes for _, one in held) >= _MOST_BYTES:
            yield _together(held)
            held = []
    if held:
        yield _together(held)


def _together(held: list[tuple[IntArray, pa.RecordBatch]]) -> tuple[IntArray, pa.RecordBatch]:
    groups, rows = zip(*held, strict=True)
    return np.concatenate(groups), pa.concat_batches(rows)


def _narrowed(rows: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        _narrow(column) if pa.types.is_signed_integer(column.type) else column for column in rows.columns
    ]
    fields = [field.with_type(column.type) for field, column in zip(rows.schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _narrow(column: pa.Array) -> pa.Array:
    ends = pc.min_max(column)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    for limits, kind in _LIMITS:
        if kind.bit_width < column.type.bit_width and (
            least is None or limits.min <= least <= most <= limits.max
        ):
            return column.cast(kind)
    return column


def _head(schema: pa.Schema) -> bytes:
    """A byte a column: 1, 2 or 3 for a number in 8, 16 or 32 bits, else 0; filled to words."""
    widths = bytes(_NARROW.index(field.type) + 1 if field.type in _NARROW else 0 for field in schema)
    return widths + bytes(-len(widths) % 8)


def _read(block: pa.Buffer, wire: pa.Schema) -> pa.RecordBatch:
    n_head = len(wire) + -len(wire) % 8
    widths = block.slice(0, len(wire)).to_pybytes()
    kinds = [_NARROW[width - 1] if width else field.type for width, field in zip(widths, wire, strict=True)]
    narrow = pa.schema([field.with_type(kind) for field, kind in zip(wire, kinds, strict=True)])
    return pa.ipc.read_record_batch(block.slice(n_head), narrow).cast(wire)
