"""What attacks on published tuples share: the original's tuples and those of views, in common codes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.mechanisms.tuples.config import COPY
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.release.folder import StoredRelease
from dalenius.threats.original import CommonCodes


def code_tuples(original: pa.Table, views: list[StoredRelease], domain: Domain) -> tuple[Ints, ...]:
    """One number per row of the original and of each view: equal if and only if all columns are."""
    names = list(domain.names)
    if COPY in names:
        original = number_copies(original.select([name for name in names if name != COPY]))
    tables = (original, *(view.read("view", names) for view in views))
    return CommonCodes.of(names, tables).of_rows(names)


def number_copies(table: pa.Table) -> pa.Table:
    """With a column that numbers equal rows from 1.

    >>> number_copies(pa.table({"a": [7, 8, 7]}))["copy"].to_pylist()
    [1, 1, 2]
    """
    (code,) = CommonCodes.of(table.column_names, (table,)).of_rows(table.column_names)
    order = np.argsort(code, kind="stable")
    first = np.flatnonzero(np.diff(code[order], prepend=-1))
    rank = np.arange(len(code)) - np.repeat(first, np.diff(first, append=len(code)))
    copy = np.empty(len(code), dtype=np.int64)
    copy[order] = rank + 1
    return table.append_column(COPY, pa.array(copy))
