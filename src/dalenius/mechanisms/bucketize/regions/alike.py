"""People who are alike in some columns, as regions: nobody shares a bucket with somebody who differs in them.

Which columns these are the policy says, before anything is counted. A column can rule out values of a person:
who had one row has not two values. Among people with the same cells it rules out nothing that it does not
rule out of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.errors import PolicyError, PromiseNotMet
from dalenius.exact import show
from dalenius.mechanisms.base import Scan
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.promises.sets import Having
from dalenius.tables.codes import Encoder
from dalenius.tables.histogram import Histogram, with_one_nan, write_cells

_MOST_REGIONS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AlikePeople:
    """The different cells that the columns have together; each is a region."""

    cells: Histogram
    encoder: Encoder
    """Finds which of the cells a row has."""

    def regions(self, batch: pa.RecordBatch) -> Ints:
        """The region of each row."""
        return self.encoder.encode(batch).astype(np.int64)

    @property
    def n_regions(self) -> int:
        """How many there are."""
        return len(self.cells)

    def conditions(self) -> list[list[dict[str, Any]]]:
        """What the rows of each region have in common."""
        pairs = (zip(self.cells.columns, write_cells(value), strict=True) for value in self.cells.values)
        return [[{"column": name, "in": [cell]} for name, cell in pair] for pair in pairs]


def find_alike(scan: Scan, histogram: Histogram, columns: tuple[str, ...]) -> tuple[AlikePeople, Ints]:
    """The regions of a table, and how often each sensitive value occurs in each (regions × values)."""
    cells = scan.histogram(columns)
    if len(cells) > _MOST_REGIONS:
        raise PolicyError(
            f"[promise] alike: people differ in {len(cells)} ways in {', '.join(columns)}, and would hardly "
            "share buckets",
            hint="make the columns coarser with bins under [recode]",
        )
    both = scan.histogram((*columns, *histogram.columns))
    place = {with_one_nan(value): number for number, value in enumerate(cells.values)}
    code = {value: number for number, value in enumerate(histogram.values)}
    counts = np.zeros((len(cells), len(histogram)), dtype=np.int64)
    for value, n_rows in zip(both.values, both.counts, strict=True):
        counts[place[with_one_nan(value[: len(columns)])], code[value[len(columns) :]]] = n_rows
    return AlikePeople(cells=cells, encoder=cells.encoder(scan.schema)), counts


def largest_share(counts: Ints, codes: tuple[int, ...]) -> Fraction:
    """Of regions × values: the largest share of a region that has one of these values.

    >>> largest_share(np.array([[1, 2], [3, 1]]), (0,))
    Fraction(3, 4)
    """
    held, rows = counts[:, list(codes)].sum(axis=1).tolist(), counts.sum(axis=1).tolist()
    return max(Fraction(n, size) for n, size in zip(held, rows, strict=True))


def check_alike(
    counts: Ints, problem: BucketProblem, having: tuple[Having, ...], columns: tuple[str, ...]
) -> None:
    """No release can keep a value below its share among people who share buckets with nobody else."""
    for one, (codes, limit) in zip(having, problem.overlapping, strict=True):
        share = largest_share(counts, codes)
        if share > limit:
            raise PromiseNotMet(
                f"threshold of {one.name!r} ({show(limit)}) is below its share ({show(share)}) among some of "
                f"the people who are alike in {', '.join(columns)}",
                # a threshold of 1 would publish these people outright: no hint leads there
                hint="make the columns coarser with bins under [recode], or do not publish them"
                + ("" if share == 1 else "; or raise the threshold"),
            )
