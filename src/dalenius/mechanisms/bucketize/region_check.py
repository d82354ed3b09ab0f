"""Are the people of every bucket of one region, as the manifest has it? From the published rows alone."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from dalenius.mechanisms.base import Check
from dalenius.mechanisms.bucketize.published_regions import regions_of_rows
from dalenius.sql import one_row

_ROWS = 131_072


def check_regions(connection: duckdb.DuckDBPyConnection, regions: list[dict[str, Any]]) -> Check:
    """Every record is in a region, every bucket in one region, and the regions have the stated sizes."""
    least, last, n_rows = one_row(connection, "SELECT min(bucket), max(bucket), count(*) FROM qit")
    if not n_rows or least < 1 or last > n_rows:  # there are no more buckets than people
        return Check(name="regions", ok=False, detail="the numbers of the buckets are not those of a release")
    region_of = np.full(int(last) + 1, -1, dtype=np.int64)
    rows = np.zeros(len(regions), dtype=np.int64)
    n_outside = n_strangers = 0
    for batch in connection.sql("SELECT * FROM qit").to_arrow_reader(_ROWS):
        found = regions_of_rows(regions, pa.Table.from_batches([batch]))
        bucket = batch.column("bucket").to_numpy()
        known = found >= 0
        n_outside += int((~known).sum())
        rows += np.bincount(found[known], minlength=len(regions))
        new = known & (region_of[bucket] < 0)
        region_of[bucket[new]] = found[new]
        n_strangers += int((region_of[bucket] != found)[known].sum())
    buckets = np.bincount(region_of[region_of >= 0], minlength=len(regions))
    stated = [(region["rows"], region["buckets"]) for region in regions]
    ok = n_outside == n_strangers == 0 and stated == list(zip(rows.tolist(), buckets.tolist(), strict=True))
    return Check(
        name="regions",
        ok=ok,
        detail=f"every bucket is in one of the {len(regions)} regions"
        if ok
        else f"{n_outside} records are in no region, {n_strangers} in a bucket of another, or sizes differ",
    )
