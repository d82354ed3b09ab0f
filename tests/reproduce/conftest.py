"""A folder of made-up microdata, small enough to count by hand, in the shape of the real files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from dalenius.reproduce import alphabeta, bucketization_errors, census, perturbation_errors
from dalenius.reproduce.microdata import FILES, using

OCCUPATIONS = (90, 70, 50, 40, 20, 15, 10, 5)
"""How many of the 300 made-up workers have each occupation, 1 to 8."""
EDUCATIONS = (150, 80, 40, 20, 10)
ADULT = (60, 50, 40, 30, 20)
"""How many of the 200 made-up adults have each occupation."""


_KEPT = (
    census.kdd,
    alphabeta.all_queries,
    bucketization_errors.measured_tables,
    perturbation_errors._table,
    perturbation_errors._pools,
)
"""What experiments read once; taken here, because tests put other functions in their places."""


def _forget() -> None:
    for kept in _KEPT:
        kept.cache_clear()


def _table(file: str, sensitive: str, values: np.ndarray) -> pa.Table:
    """Columns of two to five values, of which the first goes with the sensitive one."""
    (columns,) = (prepared.columns for prepared in FILES if prepared.name == file)
    rows = np.arange(len(values))
    made = {
        name: [f"{name}{(row * (k + 3)) % (2 + k % 4)}" for row in rows] for k, name in enumerate(columns)
    }
    made["age"] = [str(20 + int(v)) for v in values]
    made[sensitive] = [str(v) for v in values]
    return pa.table({name: made[name] for name in columns})


@pytest.fixture
def made_up(tmp_path: Path) -> Iterator[Path]:
    """Experiments read three small files that nobody collected."""
    rng = np.random.default_rng(1)
    for file, sensitive, counts in (
        ("adult.csv", "occupation", ADULT),
        ("kdd_workers.csv.gz", "occupation_code", OCCUPATIONS),
        ("kdd_education.csv.gz", "education", EDUCATIONS),
    ):
        values = rng.permutation(np.repeat(np.arange(1, len(counts) + 1), counts))
        with pa.output_stream(str(tmp_path / file), compression="detect") as sink:
            pyarrow.csv.write_csv(_table(file, sensitive, values), sink)
    _forget()
    with using(tmp_path):
        yield tmp_path
    _forget()
