"""What a manifest says about regions, as those who read a release need it.

Bucket numbers say nothing about regions; a bucket's region is the one whose conditions its people satisfy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dalenius.errors import ReleaseCorrupt
from dalenius.histogram import label_cell

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_UNKNOWN = -1


def regions_of_rows(regions: list[dict[str, Any]], rows: pa.Table) -> Ints:
    """The region whose conditions each row satisfies; −1: none.

    >>> regions = [{"where": [{"column": "sex", "in": ["F"]}]}, {"where": [{"column": "sex", "in": ["M"]}]}]
    >>> regions_of_rows(regions, pa.table({"sex": ["M", "F", None]})).tolist()
    [1, 0, -1]
    """
    found = np.full(rows.num_rows, _UNKNOWN, dtype=np.int64)
    names = {condition["column"] for region in regions for condition in region["where"]}
    columns = {name: _conditions(rows.column(name)) for name in names}
    for number, region in enumerate(regions):
        inside = np.ones(rows.num_rows, dtype=bool)
        for condition in region["where"]:
            inside &= columns[condition["column"]](condition)
        found[inside] = number
    return found


def regions_of_buckets(
    parameters: dict[str, Any], rows: pa.Table, row_bucket: NDArray[np.integer], n_buckets: int
) -> Ints | None:
    """The region of each bucket, by one of its people; None: there are no regions."""
    if "regions" not in parameters:
        return None
    one = np.zeros(n_buckets, dtype=np.int64)
    one[row_bucket] = np.arange(len(row_bucket))
    found = regions_of_rows(parameters["regions"], rows.take(pa.array(one)))
    if not np.array_equal(np.unique(found), np.arange(len(parameters["regions"]))):
        raise ReleaseCorrupt("the buckets are not in the regions that the manifest lists")
    return found


def _conditions(column: pa.ChunkedArray) -> Callable[[dict[str, Any]], Bools]:
    """Which rows satisfy a condition on the column."""
    coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    codes = coded.indices.to_numpy()
    cells = coded.dictionary
    empty = cells.is_null().to_numpy(zero_copy_only=False)

    def satisfy(condition: dict[str, Any]) -> Bools:
        if "in" in condition:
            wanted = set(condition["in"])
            labels = (None if cell is None else label_cell(cell) for cell in cells.to_pylist())
            return np.asarray(np.array([label in wanted for label in labels], dtype=bool)[codes])
        numbers = pc.cast(cells, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        inside = np.ones(len(numbers), dtype=bool)
        if "above" in condition:
            inside &= ~(numbers <= condition["above"])  # NaN is above every number
        if "at_most" in condition:
            inside &= numbers <= condition["at_most"]
        return np.asarray(np.where(empty, condition["null"], inside)[codes])

    return satisfy
