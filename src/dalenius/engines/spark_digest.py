"""A keyed digest of rows in their order, the same however the rows are cut into batches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class Digest:
    """Takes rows in batches of a fixed size, so that the same rows are the same bytes."""

    def __init__(self, key: bytes, columns: tuple[str, ...]) -> None:
        self._hash = hashlib.blake2b(key=key, digest_size=16)
        self._columns = columns

    def update(self, batch: pa.RecordBatch) -> None:
        """The next rows."""
        for name in self._columns:
            for part in _content(batch.column(name)):
                self._hash.update(part)

    def value(self) -> bytes:
        """16 bytes."""
        return self._hash.digest()


def _content(column: pa.Array) -> Iterator[bytes | memoryview]:
    """Which cells are NULL, and the others: nothing that depends on how Arrow happens to hold them."""
    yield np.packbits(column.is_valid().to_numpy(zero_copy_only=False)).tobytes()
    cells = column.drop_null()
    yield len(cells).to_bytes(8, "little")
    kind = cells.type
    if pa.types.is_boolean(kind):
        yield np.packbits(cells.to_numpy(zero_copy_only=False)).tobytes()
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        yield pc.binary_length(cells).to_numpy(zero_copy_only=False).tobytes()
        _, offsets, data = cells.buffers()
        if len(cells) and data is not None:
            ends = np.frombuffer(offsets, dtype=np.int32)[cells.offset : cells.offset + len(cells) + 1]
            yield memoryview(data)[int(ends[0]) : int(ends[-1])]
    elif len(cells):
        width = kind.bit_width // 8
        yield memoryview(cells.buffers()[1])[cells.offset * width : (cells.offset + len(cells)) * width]
