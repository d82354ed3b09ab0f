"""Twins of releases from which records were withheld: by another choice."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.auditing.releases import codes_of
from tests.auditing.twins.buckets import by_age, by_source
from tests.auditing.twins.making import Array, Made, Rng, has, publish, twin, write

ELL = 3
SKEWED = (2_800, 1_100, 950, 900, 650, 500, 300, 200)
First = Callable[[pa.Table, Array, Rng], Array]
"""From a table and its values: by what records are chosen to be withheld, the largest first."""


@lru_cache(maxsize=2)
def skewed(n_rows: int = sum(SKEWED)) -> pa.Table:
    """Counts in the proportion of SKEWED."""
    rng = np.random.default_rng(5)
    counts = np.diff(np.cumsum(SKEWED) * n_rows // sum(SKEWED), prepend=0)
    value = rng.permutation(np.repeat(np.arange(len(SKEWED)), counts))
    return pa.table(
        {
            "uid": rng.permutation(len(value)),
            "age": np.clip(np.rint(rng.normal(40 + 3 * value, 9)), 18, 90).astype(np.int64),
            "sex": rng.choice(["F", "M"], len(value)),
            "disease": [f"d{x}" for x in value],
        }
    )


def withheld(
    folder: Path, first: First, *, exchange: int = 0, n_rows: int = sum(SKEWED), seed: int = 6
) -> Made:
    """As many of each value withheld as the method says, chosen by another rule; then dealt as usual."""
    table, rng = skewed(n_rows), np.random.default_rng(seed)
    path = publish(folder, table, {"kind": "l-diversity", "l": ELL}, {"kind": "bucketize"}, suppress="safe")
    st = pq.read_table(path / "st.parquet")
    kept = np.zeros(len(SKEWED), dtype=np.int64)
    np.add.at(kept, codes_of(st), st["count"].to_numpy())
    kept[[6, 7]] += np.array([-exchange, exchange])
    value, by = codes_of(table), first(table, codes_of(table), rng) + 1e-6 * rng.random(len(table))
    order = np.lexsort((by, value))
    rank = np.empty(len(value), dtype=np.int64)
    rank[order] = np.arange(len(value)) - np.searchsorted(value[order], value[order])
    rows = np.sort(np.flatnonzero(rank < kept[value]))
    published = table.take(rows)
    bucket = _deal(published, rng)
    quasi = published.select(["uid", "age", "sex"]).append_column("bucket", pa.array(bucket + 1))
    write(path, "qit", quasi.take(np.lexsort((rng.random(len(rows)), bucket))))
    entries = published.select(["disease"]).append_column("bucket", pa.array(bucket + 1))
    entries = entries.group_by(["bucket", "disease"]).aggregate([([], "count_all")])
    entries = entries.rename_columns(["bucket", "disease", "count"])
    write(path, "st", entries.sort_by([("bucket", "ascending"), ("disease", "ascending")]))
    return path, table


def _deal(table: pa.Table, rng: Rng) -> Array:
    """Round-robin into buckets of at least ℓ people."""
    value = codes_of(table)
    order = rng.permutation(len(value))
    order = order[np.argsort(value[order], kind="stable")]
    bucket = np.empty(len(value), dtype=np.int64)
    bucket[order] = np.arange(len(value)) % (len(value) // ELL)
    return np.asarray(rng.permutation(len(value) // ELL)[bucket])


def at_random(table: pa.Table, value: Array, rng: Rng) -> Array:
    return rng.random(len(value))


def _uid(table: pa.Table, value: Array, rng: Rng) -> Array:
    return np.asarray(table["uid"].to_numpy() / len(value))


def _leaning(chosen: Callable[[pa.Table], Array], by: float) -> First:
    """Those chosen are withheld before others, more often than not."""
    return lambda table, value, rng: rng.random(len(value)) + by * chosen(table)


SUPPRESSION = [
    twin("men withheld first", "law of withholding", withheld, _leaning(lambda t: has(t, "sex", "M"), 9)),
    twin("men rather withheld", "law of withholding", withheld, _leaning(lambda t: has(t, "sex", "M"), 0.3)),
    twin("the last records withheld first", "law of withholding", withheld, by_source),
    twin("the old withheld first", "law of withholding", withheld, by_age),
    twin(
        "old men withheld",
        "law of withholding",
        withheld,
        _leaning(lambda t: has(t, "sex", "M") == (t["age"].to_numpy() > 45), 0.4),
    ),
    twin("high numbers withheld first", "law of withholding", withheld, _uid),
    twin(
        "every other record withheld",
        "law of withholding",
        withheld,
        _leaning(lambda t: np.arange(len(t)) % 2, 0.5),
    ),
    twin("other counts withheld", "law of withholding", withheld, at_random, exchange=12),
]
