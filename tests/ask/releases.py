"""Bucketized releases for tests, dealt here and not by the mechanism: round-robin over buckets."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dalenius.release.folder import StoredRelease, sha256


def deal(codes: np.ndarray, sizes: dict[int, int], rng: np.random.Generator) -> np.ndarray:
    """A bucket for each record: `sizes` is how many buckets of each size; random within each value."""
    shuffled = rng.permutation(len(codes))
    by_value = shuffled[np.argsort(codes[shuffled], kind="stable")]
    bucket = np.empty(len(codes), dtype=np.int64)
    n_small = 0
    first_bucket = 0
    # the records of each value are spread evenly over the sizes, then dealt round-robin within each size
    size_of = _spread(sizes, len(codes))
    for j, (size, n_buckets) in enumerate(sizes.items()):
        mine = by_value[size_of == j]
        bucket[mine] = first_bucket + np.arange(size * n_buckets) % n_buckets
        first_bucket += n_buckets
        n_small += len(mine)
    assert n_small == len(codes), "the sizes do not add up to the records"
    return bucket


def _spread(sizes: dict[int, int], n: int) -> np.ndarray:
    shares = np.array([size * count for size, count in sizes.items()])
    ideal = np.cumsum(shares) / n
    size_of = np.searchsorted(ideal, (np.arange(n) * 0.6180339887) % 1.0, side="right")
    for j, share in enumerate(shares):  # repair rounding: move surplus records to a size that lacks some
        while (extra := np.count_nonzero(size_of == j) - share) > 0:
            lacking = next(k for k in range(len(shares)) if np.count_nonzero(size_of == k) < shares[k])
            size_of[np.flatnonzero(size_of == j)[:1]] = lacking
            del extra
    return size_of


def write_release(
    folder: Path, table: pa.Table, sensitive: list[str], bucket: np.ndarray, name: str = "r"
) -> StoredRelease:
    """A release folder of a table whose records have these buckets."""
    path = folder / name
    path.mkdir()
    quasi = [c for c in table.column_names if c not in sensitive]
    numbers = pa.array(bucket + 1)
    order = np.argsort(bucket, kind="stable")
    qit = table.select(quasi).append_column("bucket", numbers).take(pa.array(order))
    st = (
        table.select(sensitive)
        .append_column("bucket", numbers)
        .group_by(["bucket", *sensitive])
        .aggregate([([], "count_all")])
        .rename_columns(["bucket", *sensitive, "count"])
    )
    tables = []
    for label, content in (("qit", qit), ("st", st.select(["bucket", *sensitive, "count"]))):
        pq.write_table(content, path / f"{label}.parquet")
        entry = {"file": f"{label}.parquet", "sha256": sha256(path / f"{label}.parquet")}
        tables.append({"name": label, "files": [entry], "rows": content.num_rows})
    manifest = {
        "format": "dalenius-release",
        "format_version": 1,
        "id": np.random.default_rng(len(name)).bytes(16).hex() if name != "r" else "0" * 32,
        "created": "2026-01-01",
        "for_publication": False,
        "mechanism": {"kind": "bucketize", "method": "optimal"},
        "promise": {"kind": "l-diversity", "l": 2},
        "assumes": [],
        "not_covered": [],
        "disclosed": [],
        "parameters": {},
        "columns": [
            {
                "name": c,
                "role": "sensitive" if c in sensitive else "quasi",
                "type": str(table.schema.field(c).type),
            }
            for c in table.column_names
        ],
        "rows": {"published": table.num_rows, "suppressed": 0},
        "tables": tables,
        "series": None,
    }
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return StoredRelease.open(path)
