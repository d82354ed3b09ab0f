"""How a table comes about where its records are spread over partitions and no process sees them all.

Every *partition* scatters its records to *groups*, and every group puts what reaches it in order: one
shuffle, which an output order that says nothing about the source needs anyway. What a partition does depends
on its own rows, its number, a derived key and the census alone, and what a group does on the rows that reach
it, its number and a derived key: a task that runs twice does the same twice. The engine hands a group its
rows in one order, by partition and in each as it sent them, in whatever order they arrive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.errors import InternalError
from dalenius.mechanisms.dealing import draw_quota

Scattered = Iterator[tuple[Ints, pa.RecordBatch]]
"""The group of each row, and the rows as they travel."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Census:
    """How many records of each value every partition holds, and how many rows a group should have."""

    counts: Ints
    """Partitions × values; one column, of all records, where no value is counted."""
    group_rows: int

    @property
    def n_rows(self) -> int:
        """How many records there are."""
        return int(self.counts.sum())

    def n_groups(self, n_rows: int) -> int:
        """Into how many groups so many rows are cut."""
        return max(1, math.ceil(n_rows / self.group_rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What a group has made: its rows in the order in which they are written."""

    rows: pa.Table
    n_records: int
    """How many records of the source reached the group."""


Gather = Callable[[int, pa.Table], Piece]
Scatter = Callable[[int, Iterator[pa.RecordBatch]], Scattered]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shards:
    """A table in groups, each of which writes a piece of it."""

    n_groups: int
    gather: Gather
    """From a group's number and what reached it, by partition, then by inserter, its piece."""
    wire: pa.Schema = field(default_factory=lambda: pa.schema([]))
    """Columns of the rows that travel to the groups."""
    n_records: int = 0
    """How many records of the source must reach the groups."""
    scatter: Scatter | None = None
    """From a partition's number and its records, what it sends; None: the records are not needed."""
    n_inserters: int = 0
    insert: Callable[[int], Scattered] | None = None
    """From an inserter's number, what it sends beside the partitions."""


def quota_of_partition(
    total: Ints, counts: Ints, partition: int, stream: Callable[[int, int], np.random.Generator]
) -> Ints:
    """How many records of each value a partition sends to each destination.

    The partitions are halved again and again. How many of a half's records go where is multivariate
    hypergeometric given what both halves send, so that all partitions together are a uniformly random choice
    within each value, and each works out its own part in log₂ P draws: nobody holds partitions × values ×
    destinations.

    Args:
        total: values × destinations, of the whole table.
        counts: partitions × values.
        partition: which one.
        stream: the random stream of the halving of the partitions from a first one to before a last one.
    """
    if not 0 <= partition < len(counts) or not np.array_equal(total.sum(axis=1), counts.sum(axis=0)):
        raise InternalError("the table changed between two passes over it: a partition has no counts")
    first, last = 0, len(counts)
    while last - first > 1:
        middle = (first + last) // 2
        left = draw_quota(total, counts[first:middle].sum(axis=0), stream(first, last))
        if partition < middle:
            total, last = left, middle
        else:
            total, first = total - left, middle
    return total
