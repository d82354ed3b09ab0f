from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dalenius.release.folder import StoredRelease
from tests.ask.releases import deal, write_release

N = 240


def patients(n: int = N, seed: int = 3) -> pa.Table:
    """A small table with NULLs in a quasi and in a sensitive column, whose disease depends on age and sex."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 70, n)
    sex = rng.choice(["F", "M"], n)
    lean = (age > 45) * 1.5 + (sex == "M") * 0.7
    draw = rng.random((n, 4)) * np.array([1.0, 1.0, 0.8, 0.5]) + np.stack(
        [lean * 0.2, -lean * 0.2, np.zeros(n), np.zeros(n)], axis=1
    )
    disease = np.array(["Cold", "Flu", "Gout", None], dtype=object)[draw.argmax(axis=1)]
    return pa.table(
        {
            "age": age,
            "sex": sex,
            "weight": pa.array(
                np.where(rng.random(n) < 0.15, np.nan, rng.normal(70, 9, n)), from_pandas=True
            ),
            "zip": rng.choice(["10115", "20095", "80331"], n),
            "disease": pa.array(disease, pa.string()),
            "severity": pa.array(
                [None if d is None else int(s) for d, s in zip(disease, rng.integers(1, 4, n), strict=True)],
                pa.int64(),
            ),
        }
    )


SENSITIVE = ["disease", "severity"]


def coded(table: pa.Table, columns: list[str]) -> np.ndarray:
    text = [
        "|".join(str(cell) for cell in row)
        for row in zip(*(table[c].to_pylist() for c in columns), strict=True)
    ]
    return np.unique(text, return_inverse=True)[1]


@pytest.fixture(scope="session")
def table() -> pa.Table:
    return patients()


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory, table: pa.Table) -> StoredRelease:
    bucket = deal(coded(table, SENSITIVE), {4: 30, 6: 20}, np.random.default_rng(5))
    return write_release(tmp_path_factory.mktemp("releases"), table, SENSITIVE, bucket, "patients")


@pytest.fixture(scope="session")
def clear_release(tmp_path_factory: pytest.TempPathFactory, table: pa.Table) -> StoredRelease:
    """Buckets of one person: every answer is exact, so answers must equal DuckDB's on the table."""
    return write_release(
        tmp_path_factory.mktemp("releases"), table, SENSITIVE, np.arange(table.num_rows), "clear"
    )


@pytest.fixture(scope="session")
def regions() -> pa.Table:
    return pa.table({"zip": ["10115", "20095", None], "region": ["east", "north", "none"], "rank": [1, 2, 3]})


@pytest.fixture(scope="session")
def here() -> Path:
    return Path(__file__).parent
