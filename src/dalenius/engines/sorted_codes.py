"""The codes of a table's records in ascending order, kept in a file: counted first, and read later.

Eight bytes a number and record on the disk save another pass over the source and another sort.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from dalenius.mechanisms.base import Batches


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedCodes:
    """All copies of a record are in one batch."""

    path: Path
    n_different: int

    @classmethod
    def write(cls, batches: Batches, path: Path) -> SortedCodes:
        """Keep batches that together ascend, and of which no two have a record in common."""
        first = next(batches)
        n_different = 0
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, first.schema) as writer:
            for batch in chain([first], batches):
                writer.write_batch(batch)
                n_different += _count_different(batch)
        return cls(path=path, n_different=n_different)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The codes, copies and all."""
        with pa.OSFile(str(self.path), "rb") as file, pa.ipc.open_stream(file) as stream:
            yield from stream


def _count_different(ascending: pa.RecordBatch) -> int:
    is_new = np.zeros(max(ascending.num_rows - 1, 0), dtype=np.bool_)
    for column in ascending.columns:
        numbers = column.to_numpy()
        is_new |= numbers[1:] != numbers[:-1]
    return int(np.count_nonzero(is_new)) + min(1, int(ascending.num_rows))
