"""Small tables for the tests, with NULLs, quotes and negative numbers among their values."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa

from dalenius.evaluate.original import Original


def awkward_table(n_rows: int = 400, seed: int = 3) -> pa.Table:
    """Five quasi columns of different types and a disease that goes with the age."""
    rng = np.random.default_rng(seed)
    age = rng.integers(-2, 6, n_rows)
    disease = (age + rng.integers(0, 5, n_rows)) % 6
    zips = np.array(["O'Hara", "a, b", "NULL", ""])
    return pa.table(
        {
            "age": age,
            "zip": pa.array([None if i % 9 == 0 else str(zips[i % 4]) for i in rng.permutation(n_rows)]),
            "smokes": pa.array(rng.random(n_rows) < 0.3),
            "born": pa.array([datetime.date(1990, 1, 1 + int(d)) for d in rng.integers(0, 3, n_rows)]),
            'w"t': pa.array(rng.integers(0, 4, n_rows) / 4),
            "disease": pa.array([f"d{code}" for code in disease]),
        }
    )


def awkward_original(n_rows: int = 400, seed: int = 3) -> Original:
    return Original.of(awkward_table(n_rows, seed), ["disease"])
