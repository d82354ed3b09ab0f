"""The small made-up tables that `bench.unchanged` publishes: the same ones in every run.

All have `age`, `sex` and `disease`, so that the same questions can be asked of every release.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

DISEASES = ("Flu", "Cold", "Gout", "Asthma", "Ulcer", "Angina", "HIV")
REGIONS = ("north", "south", "east", "west", "centre")
COLUMNS: dict[str, dict[str, Any]] = {
    "people": {
        "unit": "uid",
        "identifiers": ["name"],
        "quasi": ["age", "sex", "zip", "kilos", "born", "smoker"],
        "sensitive": ["disease"],
        "dropped": ["notes"],
    },
    "wards": {"quasi": ["age", "sex"], "sensitive": ["disease", "ward"], "dropped": ["stay"]},
    "skewed": {"quasi": ["age", "sex", "region"], "sensitive": ["disease"]},
    "wide": {"quasi": ["age", "sex", "hours"], "sensitive": ["disease"]},
    "numbers": {"quasi": ["age", "sex", "disease"], "sensitive": ["income"]},
    "votes": {"quasi": ["age", "sex", "region"], "sensitive": ["disease"]},
    "copies": {"quasi": ["age", "sex", "region", "disease"], "sensitive": []},
}
"""What the columns of each table are."""
FILES = {name: f"{name}.csv" if name == "numbers" else f"{name}.parquet" for name in COLUMNS}


def write_tables(folder: Path) -> None:
    """All tables, and the files that policies and questions refer to."""
    for name, make in (
        ("people", _people),
        ("wards", _wards),
        ("skewed", _skewed),
        ("wide", _wide),
        ("numbers", _numbers),
        ("votes", _votes),
        ("copies", _copies),
    ):
        _write(make(np.random.default_rng(len(name) * 31 + ord(name[0]))), folder / FILES[name])
    _write(pq.read_table(folder / FILES["people"]), folder / "people.csv")
    _write_variants(pq.read_table(folder / FILES["skewed"]), folder)
    days = _people(np.random.default_rng(5), 1_400)
    for day, start, end in ((1, 0, 450), (2, 450, 1_000), (3, 1_000, 1_400)):
        _write(days.slice(start, end - start), folder / f"day-{day}.csv")
    texts = {
        "zips.csv": "zip,area\n" + "".join(f"0{z}00,{'AB'[z % 2]}\n" for z in range(10, 22)),
        "regions.csv": "region,rank\nnorth,1\nsouth,2\nwest,3\n,4\n",
        "sexes.csv": "sex\nF\nM\n",
        "noise.toml": "[disease]\n" + "".join(f"{name} = {40 - 5 * i}\n" for i, name in enumerate(DISEASES)),
        "latin.csv": "age,disease\n30,Flu\n31,Gr\xfcn\n",
        "ragged.csv": "age,disease\n30,Flu\n31\n",
        "twice.csv": "uid,age,disease\n1,30,Flu\n1,31,Cold\n2,32,Gout\n",
        "reserved.csv": "bucket,disease\n1,Flu\n2,Cold\n",
        "empty.csv": "age,disease\n",
        "workload.sql": "SELECT COUNT(*) FROM t WHERE age < 40;\nSELECT SUM(age) FROM t WHERE sex = 'F';\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="latin-1" if name == "latin.csv" else "utf-8")


def _write_variants(table: pa.Table, folder: Path) -> None:
    """One table in the ways in which a source can be kept."""
    with gzip.open(folder / "skewed.csv.gz", "wb") as packed:
        pcsv.write_csv(table, packed)
    pcsv.write_csv(table, folder / "skewed.tsv", pcsv.WriteOptions(delimiter="\t"))
    (folder / "skewed.parts").mkdir()
    for i in range(3):
        _write(table.slice(400 * i, 400), folder / "skewed.parts" / f"{i}.parquet")
    (folder / "nothing").mkdir()


def _write(table: pa.Table, path: Path) -> None:
    if path.suffix == ".csv":
        pcsv.write_csv(table, path)
    else:
        pq.write_table(table, path)


def _holes(rng: np.random.Generator, cells: list[Any], share: float) -> list[Any]:
    """The cells, some of them NULL."""
    return [None if hole else cell for cell, hole in zip(cells, rng.random(len(cells)) < share, strict=True)]


def _ages(rng: np.random.Generator, codes: np.ndarray, low: int = 18, high: int = 90) -> np.ndarray:
    """Ages that go with the disease."""
    return np.clip(np.rint(rng.normal(30 + 5 * (codes % 9), 10)), low, high).astype(np.int64)


def _sexes(rng: np.random.Generator, codes: np.ndarray) -> list[str]:
    women = rng.random(len(codes)) < 0.3 + 0.05 * (codes % 8)
    return ["F" if woman else "M" for woman in women]


def _named(codes: np.ndarray) -> list[str]:
    return [DISEASES[code] for code in codes.tolist()]


def _people(rng: np.random.Generator, n: int = 900) -> pa.Table:
    """Every type, with NULLs; each person has a row."""
    codes = rng.choice(7, n, p=[0.24, 0.22, 0.17, 0.13, 0.11, 0.08, 0.05])
    born = np.datetime64("1930-01-01") + rng.integers(0, 25_000, n)
    return pa.table(
        {
            "uid": rng.permutation(n) + 1_000,
            "name": [f"Person {i}" for i in range(n)],
            "age": _holes(rng, _ages(rng, codes).tolist(), 0.04),
            "sex": _sexes(rng, codes),
            "zip": [f"0{z}00" for z in rng.integers(10, 22, n).tolist()],
            "kilos": _holes(rng, np.round(rng.normal(72, 12, n), 1).tolist(), 0.1),
            "born": pa.array(born),
            "smoker": pa.array(_holes(rng, (rng.random(n) < 0.3).tolist(), 0.05)),
            "disease": _holes(rng, _named(codes), 0.06),
            "notes": ["-"] * n,
        }
    )


def _wards(rng: np.random.Generator, n: int = 1_500) -> pa.Table:
    """Two sensitive columns, one of them with NULLs; many rows repeat others."""
    codes = rng.choice(7, n)
    return pa.table(
        {
            "age": _ages(rng, codes, 30, 60),
            "sex": _sexes(rng, codes),
            "disease": _named(codes),
            "ward": _holes(rng, rng.choice([1, 2, 3], n).tolist(), 0.05),
            "stay": np.round(rng.exponential(5, n), 2),
        }
    )


def _skewed(rng: np.random.Generator, n: int = 1_000) -> pa.Table:
    """Nearly half of the people have one disease."""
    codes = rng.choice(7, n, p=[0.44, 0.12, 0.11, 0.1, 0.09, 0.08, 0.06])
    region = rng.choice(REGIONS, n).tolist()
    return pa.table(
        {"age": _ages(rng, codes), "sex": _sexes(rng, codes), "region": region, "disease": _named(codes)}
    )


def _wide(rng: np.random.Generator, n: int = 2_500) -> pa.Table:
    """Forty diseases, from common to rare."""
    shares = 1 / (np.arange(40) + 5.0)
    codes = rng.choice(40, n, p=shares / shares.sum())
    names = [*DISEASES, *(f"D{i:02}" for i in range(7, 40))]
    return pa.table(
        {
            "age": _ages(rng, codes),
            "sex": _sexes(rng, codes),
            "hours": np.round(rng.normal(38, 6, n) * 2) / 2,
            "disease": [names[code] for code in codes.tolist()],
        }
    )


def _numbers(rng: np.random.Generator, n: int = 2_000) -> pa.Table:
    """The sensitive column holds whole numbers, and NULL."""
    codes = rng.choice(7, n)
    income = 10 * np.clip(np.rint(rng.normal(4 + codes % 3, 2, n)), 0, 9).astype(np.int64)
    cells = {"age": _ages(rng, codes), "sex": _sexes(rng, codes), "disease": _named(codes)}
    return pa.table({**cells, "income": pa.array(_holes(rng, income.tolist(), 0.03), pa.int64())})


def _votes(rng: np.random.Generator, n: int = 500) -> pa.Table:
    """A small domain, each row of it at most once."""
    chosen = np.sort(rng.choice(30 * 2 * 5 * 7, n, replace=False))
    age, sex, region, codes = np.unravel_index(chosen, (30, 2, 5, 7))
    return pa.table(
        {
            "age": age.astype(np.int64) + 25,
            "sex": np.array(["F", "M"])[sex],
            "region": np.array(REGIONS)[region],
            "disease": _named(codes),
        }
    )


def _copies(rng: np.random.Generator, n: int = 600) -> pa.Table:
    """Many rows occur several times; some regions are NULL."""
    codes = rng.choice(7, n, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05])
    region = _holes(rng, rng.choice(REGIONS[:3], n).tolist(), 0.1)
    return pa.table(
        {
            "age": 5 * (_ages(rng, codes, 25, 54) // 5),
            "sex": _sexes(rng, codes),
            "region": region,
            "disease": _named(codes),
        }
    )
