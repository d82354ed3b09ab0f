"""A synthetic hospital: people that never lived, with diseases that go with age and sex."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dalenius.arrays import Floats
from dalenius.randomness import Randomness
from dalenius.sql import connect, count, one_row
from dalenius.tables.frames import SparkFrameSource
from dalenius.tables.source import Source

# share in the population, mean age, share of women
_DISEASES = {
    "Flu": (0.20, 38, 0.52), "Hypertension": (0.18, 63, 0.48), "Diabetes": (0.13, 60, 0.46),
    "Asthma": (0.10, 29, 0.50), "Indigestion": (0.10, 45, 0.50), "Depression": (0.08, 41, 0.62),
    "Migraine": (0.07, 36, 0.72), "Heart failure": (0.05, 74, 0.44), "Breast cancer": (0.035, 61, 0.99),
    "Prostate cancer": (0.025, 69, 0.0), "Hepatitis C": (0.015, 47, 0.38), "Schizophrenia": (0.01, 37, 0.44),
    "HIV": (0.005, 40, 0.27),
}  # fmt: skip
_COLUMNS = ("patient_id", "name", "age", "sex", "district", "insurance", "disease")
_DISTRICTS = ("Northgate", "Harbour", "Old Town", "Riverside", "Hillside", "Mills", "Garden City", "Südstadt")


def hospital(n_rows: int = 20_000, seed: int = 1977) -> pa.Table:
    """A table of patients: id, name, age, sex, district, insurance, disease.

    >>> hospital(3).column_names
    ['patient_id', 'name', 'age', 'sex', 'district', 'insurance', 'disease']
    """
    stream = Randomness.seeded(seed).stream("hospital")
    shares, ages, women = (np.array(column) for column in zip(*_DISEASES.values(), strict=True))
    disease = stream.choice(len(_DISEASES), size=n_rows, p=shares / shares.sum())
    age = np.clip(np.rint(stream.normal(ages[disease], 14)), 0, 99).astype(np.int64)
    sex = np.where(stream.random(n_rows) < women[disease], "F", "M")
    district = stream.choice(len(_DISTRICTS), size=n_rows, p=_zipf(len(_DISTRICTS)))
    insurance = np.where(stream.random(n_rows) < 0.15 + 0.002 * age, "private", "public")
    ids = stream.permutation(n_rows) + 100_000
    return pa.table(
        {
            "patient_id": ids,
            "name": pa.array([f"Patient {number}" for number in ids.tolist()]),
            "age": age,
            "sex": pa.array(sex),
            "district": pa.array(np.array(_DISTRICTS)[district]),
            "insurance": pa.array(insurance),
            "disease": pa.array(np.array(list(_DISEASES))[disease]),
        }
    )


def is_hospital(source: Source) -> bool:
    """Whether a table is the bundled one, record by record: nobody needs protection in it."""
    if isinstance(source, SparkFrameSource) or set(source.column_names) != set(_COLUMNS):
        return False
    cells = ", ".join(f"{name}::VARCHAR" for name in _COLUMNS)
    with connect() as connection:
        connection.register("demo", hospital())
        found = f"SELECT {cells} FROM {source.scan(connection)}"
        known = f"SELECT {cells} FROM demo"
        sizes = one_row(connection, f"SELECT count(*), (SELECT count(*) FROM demo) FROM ({found})")
        return sizes[0] == sizes[1] and not count(
            connection, f"SELECT count(*) FROM ({found} EXCEPT ALL {known})"
        )


def _zipf(n: int) -> Floats:
    weights = 1 / np.arange(1, n + 1)
    return np.asarray(weights / weights.sum(), dtype=np.float64)
