"""A table in memory as a mechanism sees it while planning."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.mechanisms.base import Counting
from dalenius.mechanisms.bucketize.regions.cut import RegionTree, grow
from dalenius.tables.histogram import Histogram


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MemoryScan:
    table: pa.Table

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def histogram(self, columns: tuple[str, ...]) -> Histogram:
        cells = zip(*(self.table[name].to_pylist() for name in columns), strict=True)
        return Histogram.of(columns, Counter(cells))

    def active_values(self, column: str) -> pa.Array:
        values = self.table[column].combine_chunks().unique()
        return values.take(pa.compute.sort_indices(values))

    def tally(self, counting: Counting) -> pa.Table:
        total: Counter[int] = Counter()
        for batch in self.table.to_batches(max_chunksize=7):
            counted = counting(batch).to_pydict()
            total.update(dict(zip(counted["key"], counted["n"], strict=True)))
        return pa.table({"key": list(total), "n": list(total.values())})


def grown(
    table: pa.Table, thresholds: dict[str, Fraction], *, least: int, max_bucket: int = 8
) -> tuple[RegionTree, Ints]:
    """The regions of a table whose sensitive column is called `value`."""
    scan = MemoryScan(table=table)
    histogram = scan.histogram(("value",))
    limits = tuple(thresholds[value] for (value,) in histogram.values)
    quasi = tuple(name for name in table.column_names if name != "value")
    encoder = histogram.encoder(table.schema)
    return grow(scan, encoder, limits, quasi, max_bucket=max_bucket, least=least)  # type: ignore[arg-type]
