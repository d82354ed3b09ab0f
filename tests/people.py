"""Tables of people with columns that many tables share."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from dalenius.tables.sketch import Sketch
from dalenius.tables.sketching.whole import sketch_table

KEY = b"k" * 32


def people(n_rows: int, seed: int) -> pa.Table:
    """People with an age, a sex, one of 30 cities, one of 12 jobs and one of 8 diseases."""
    rng = np.random.default_rng(seed)
    cities, jobs = 1 / np.arange(1, 31), 1 / np.arange(2, 14)
    return pa.table(
        {
            "age": rng.integers(18, 90, n_rows),
            "sex": pa.array(rng.choice(["F", "M"], n_rows)),
            "city": pa.array([f"city {i}" for i in rng.choice(30, n_rows, p=cities / cities.sum())]),
            "job": pa.array([f"job {i}" for i in rng.choice(12, n_rows, p=jobs / jobs.sum())]),
            "disease": pa.array(rng.choice(list("abcdefgh"), n_rows, p=np.arange(8, 0, -1) / 36)),
        }
    )


def sketch(table: pa.Table, key: bytes = KEY) -> Sketch:
    """Of all columns."""
    with duckdb.connect() as connection:
        connection.register("people", table)
        found = sketch_table(connection, "people", table.column_names, key)
    assert found is not None
    return found
