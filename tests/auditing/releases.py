"""Bucketized releases dealt by hand, right or deliberately wrong, to see what audits catch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dalenius.release.folder import StoredRelease, sha256

DIVERSE = {"kind": "l-diversity", "l": 5}


def people(n_rows: int = 4_000, *, unique: bool = True, seed: int = 1) -> pa.Table:
    """Ten values with shares from 15 % down; the row's age goes with its value."""
    rng = np.random.default_rng(seed)
    shares = np.array([15, 14, 13, 12, 11, 10, 9, 7, 5, 4]) / 100
    value = np.repeat(np.arange(10), np.round(shares * n_rows).astype(int))
    rng.shuffle(value)
    age = np.clip(np.rint(rng.normal(25 + 5 * value, 6)), 18, 90).astype(np.int64)
    columns = {"age": age, "sex": rng.choice(["F", "M"], len(value)), "disease": [f"d{v}" for v in value]}
    if unique:
        columns = {"uid": rng.permutation(len(value)), **columns}
    return pa.table(columns)


def codes_of(table: pa.Table) -> np.ndarray:
    return np.asarray([int(cell[1:]) for cell in table["disease"].to_pylist()])


def deal(table: pa.Table, size: int, rng: np.random.Generator | None) -> np.ndarray:
    """Round-robin into buckets of one size; with a generator shuffled within each value and renumbered."""
    codes = codes_of(table)
    order = np.arange(len(codes)) if rng is None else rng.permutation(len(codes))
    by_value = order[np.argsort(codes[order], kind="stable")]
    n_buckets = len(codes) // size
    bucket = np.empty(len(codes), dtype=np.int64)
    bucket[by_value] = np.arange(len(codes)) % n_buckets
    return bucket if rng is None else rng.permutation(n_buckets)[bucket]


def write_release(
    folder: Path,
    table: pa.Table,
    bucket: np.ndarray,
    *,
    rng: np.random.Generator | None,
    promise: dict[str, Any] = DIVERSE,
    name: str = "r",
    extra: pa.Table | None = None,
    parameters: dict[str, Any] | None = None,
    tie: np.ndarray | None = None,
) -> StoredRelease:
    """A release folder; without a generator rows come out in the source's order within their bucket.

    `tie` puts the rows of a bucket in another order.
    """
    path = folder / name
    path.mkdir()
    quasi = [column for column in table.column_names if column != "disease"]
    if tie is None:
        tie = np.arange(len(bucket)) if rng is None else rng.permutation(len(bucket))
    qit = table.select(quasi).append_column("bucket", pa.array(bucket + 1)).take(np.lexsort((tie, bucket)))
    st = table.select(["disease"]).append_column("bucket", pa.array(bucket + 1))
    if extra is not None:
        st = pa.concat_tables([st, extra.select(["disease", "bucket"])])
    st = st.group_by(["bucket", "disease"]).aggregate([([], "count_all")])
    st = st.rename_columns(["bucket", "disease", "count"]).sort_by(
        [("bucket", "ascending"), ("disease", "ascending")]
    )
    tables = []
    for label, content in (("qit", qit), ("st", st)):
        pq.write_table(content, path / f"{label}.parquet", store_schema=False)
        tables.append({"name": label, "rows": content.num_rows, "files": [_file(path / f"{label}.parquet")]})
    write_manifest(path, table, tables, promise=promise, parameters=parameters or {})
    return StoredRelease.open(path)


def write_manifest(
    path: Path,
    table: pa.Table,
    tables: list[dict[str, Any]],
    *,
    promise: dict[str, Any],
    parameters: dict[str, Any],
    kind: str = "bucketize",
) -> None:
    manifest = {
        "format": "dalenius-release",
        "format_version": 1,
        "id": "0" * 32,
        "created": "2026-01-01",
        "for_publication": True,
        "mechanism": {"kind": kind, "method": "by-hand"},
        "promise": promise,
        "assumes": [],
        "not_covered": [],
        "disclosed": [],
        "parameters": parameters,
        "columns": [
            {"name": c, "role": "sensitive" if c == "disease" else "quasi", "type": str(table[c].type)}
            for c in table.column_names
        ],
        "rows": {"published": len(table), "suppressed": 0},
        "tables": tables,
        "series": None,
    }
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def sign(release: Path) -> None:
    """Put the hashes and row counts of changed files into the manifest, as one who knows the format would."""
    manifest = json.loads((release / "manifest.json").read_text(encoding="utf-8"))
    for table in manifest["tables"]:
        table["files"] = [_file(release / entry["file"]) for entry in table["files"]]
        table["rows"] = sum(pq.read_metadata(release / entry["file"]).num_rows for entry in table["files"])
    (release / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def _file(path: Path) -> dict[str, str]:
    return {"file": path.name, "sha256": sha256(path)}


def restate_hashes(path: Path) -> None:
    """Let the manifest of a release state the files as they are now, so that only their contents can tell."""
    manifest = json.loads((path / "manifest.json").read_text())
    for listed in manifest["tables"]:
        for file in listed["files"]:
            file["sha256"] = sha256(path / file["file"])
    (path / "manifest.json").write_text(json.dumps(manifest))
