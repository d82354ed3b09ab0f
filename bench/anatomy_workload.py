"""The tables that Anatomy's workload is asked of, and their bucketized releases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from dalenius.demo_data import hospital
from dalenius.evaluate.original import CountQuestion, Original
from dalenius.evaluate.workload import AnatomyWorkload
from dalenius.policy import Policy
from dalenius.publishing import write_release
from dalenius.release.folder import StoredRelease

TABLES = {
    "adult": ("adult.csv", "occupation"),
    "kdd": ("kdd_workers.csv.gz", "occupation_code"),
    "education": ("kdd_education.csv.gz", "education"),
}
_DEMO, _NO_COLUMNS = "demo", ["patient_id", "name"]


def questions(original: Original, n: int, rng: np.random.Generator) -> list[CountQuestion]:
    """A random workload of an expected selectivity of 1 %."""
    return AnatomyWorkload(n_questions=n).draw(original, rng)


def load(data: Path, name: str) -> Original:
    """Adult with occupation, KDD workers with occupation_code, KDD adults with education, or the demo's."""
    if name == _DEMO:
        return Original.of(hospital().drop_columns(_NO_COLUMNS), ["disease"])
    file, sensitive = TABLES[name]
    return Original.of(csv.read_csv(data / file), [sensitive])


def publish(
    original: Original,
    theta: int,
    folder: Path,
    seed: int,
    *,
    regions: bool = False,
    contents: str = "even",
) -> StoredRelease:
    """A bucketized release with thresholds θ·f + 0.02 and the least loss."""
    policy = Policy.from_dict(
        {
            "source": original.table,
            "release": str(folder / f"theta{theta}-{seed}.release"),
            "columns": {"quasi": list(original.quasi), "sensitive": list(original.sensitive)},
            "promise": {"kind": "f-privacy", "default": {"times": theta, "plus": "0.02"}},
            "mechanism": {
                "kind": "bucketize",
                "method": "optimal",
                "max_bucket": 50,
                "regions": regions,
                "contents": contents,
            },
        }
    )
    return write_release(policy, seed=seed).release


def enlarge(original: Original, n: int, rng: np.random.Generator) -> Original:
    """`n` rows drawn from the table."""
    rows = pa.array(rng.integers(original.n_rows, size=n))
    return Original.of(original.table.take(rows).combine_chunks(), original.sensitive)


__all__ = ["CountQuestion", "Original", "enlarge", "load", "publish", "questions"]
