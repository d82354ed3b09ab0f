"""What a manifest says about regions, as those who read a release need it.

Bucket numbers say nothing about regions; a bucket's region is the one whose conditions its people satisfy.

Are the people of every bucket of one region, as the manifest has it? From the published rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.arrays import Bools, Ints
from dalenius.errors import ReleaseCorrupt
from dalenius.mechanisms.base import Check
from dalenius.sql import one_row
from dalenius.tables.codes import encode
from dalenius.tables.histogram import write_cells
from dalenius.tables.reading import read_batches

_UNKNOWN = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Regions:
    """The regions that a manifest lists.

    >>> regions = Regions.of(
    ...     [
    ...         {"rows": 1, "buckets": 1, "where": [{"column": "sex", "in": ["F"]}]},
    ...         {"rows": 1, "buckets": 1, "where": [{"column": "sex", "in": ["M"]}]},
    ...     ]
    ... )
    >>> regions.of_rows(pa.table({"sex": ["M", "F", None]})).tolist()
    [1, 0, -1]
    """

    where: tuple[Sequence[Mapping[str, Any]], ...]
    """The conditions that the people of each region satisfy."""
    rows: tuple[int, ...]
    """How many people each has."""
    buckets: tuple[int, ...]

    @classmethod
    def of(cls, listed: Sequence[Mapping[str, Any]]) -> Regions:
        """From the manifest's list."""
        where, rows, buckets = (
            tuple(region[key] for region in listed) for key in ("where", "rows", "buckets")
        )
        return cls(where=where, rows=rows, buckets=buckets)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.where)

    def of_rows(self, rows: pa.Table) -> Ints:
        """The region whose conditions each row satisfies; −1: none."""
        found = np.full(rows.num_rows, _UNKNOWN, dtype=np.int64)
        names = {condition["column"] for conditions in self.where for condition in conditions}
        columns = {name: _conditions(rows.column(name)) for name in names}
        for number, conditions in enumerate(self.where):
            inside = np.ones(rows.num_rows, dtype=bool)
            for condition in conditions:
                inside &= columns[condition["column"]](condition)
            found[inside] = number
        return found

    def of_buckets(self, rows: pa.Table, row_bucket: Ints, n_buckets: int) -> Ints:
        """The region of each bucket, by one of its people."""
        one = np.zeros(n_buckets, dtype=np.int64)
        one[row_bucket] = np.arange(len(row_bucket))
        found = self.of_rows(rows.take(pa.array(one)))
        if not np.array_equal(np.unique(found), np.arange(len(self))):
            raise ReleaseCorrupt("the buckets are not in the regions that the manifest lists")
        return found


def _conditions(column: pa.ChunkedArray) -> Callable[[Mapping[str, Any]], Bools]:
    """Which rows satisfy a condition on the column."""
    codes, cells = encode(column)
    empty = cells.is_null().to_numpy(zero_copy_only=False)

    def satisfy(condition: Mapping[str, Any]) -> Bools:
        if "in" in condition:
            wanted = set(condition["in"])
            labels = write_cells(cells.to_pylist())
            return np.asarray(np.array([label in wanted for label in labels], dtype=bool)[codes])
        numbers = pc.cast(cells, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        inside = np.ones(len(numbers), dtype=bool)
        if "above" in condition:
            inside &= ~(numbers <= condition["above"])  # NaN is above every number
        if "at_most" in condition:
            inside &= numbers <= condition["at_most"]
        return np.asarray(np.where(empty, condition["null"], inside)[codes])

    return satisfy


def check_regions(connection: duckdb.DuckDBPyConnection, regions: Regions) -> Check:
    """Every record is in a region, every bucket in one region, and the regions have the stated sizes."""
    least, last, n_rows = one_row(connection, "SELECT min(bucket), max(bucket), count(*) FROM qit")
    if not n_rows or least < 1 or last > n_rows:  # there are no more buckets than people
        return Check(name="regions", ok=False, detail="the numbers of the buckets are not those of a release")
    region_of = np.full(int(last) + 1, -1, dtype=np.int64)
    rows = np.zeros(len(regions), dtype=np.int64)
    n_outside = n_strangers = 0
    for batch in read_batches(connection, "SELECT * FROM qit"):
        found = regions.of_rows(pa.Table.from_batches([batch]))
        bucket = batch.column("bucket").to_numpy()
        known = found >= 0
        n_outside += int((~known).sum())
        rows += np.bincount(found[known], minlength=len(regions))
        new = known & (region_of[bucket] < 0)
        region_of[bucket[new]] = found[new]
        n_strangers += int((region_of[bucket] != found)[known].sum())
    buckets = np.bincount(region_of[region_of >= 0], minlength=len(regions))
    sizes = regions.rows == tuple(rows.tolist()) and regions.buckets == tuple(buckets.tolist())
    ok = n_outside == n_strangers == 0 and sizes
    return Check(
        name="regions",
        ok=ok,
        detail=f"every bucket is in one of the {len(regions)} regions"
        if ok
        else f"{n_outside} records are in no region, {n_strangers} in a bucket of another, or sizes differ",
    )
