"""Coverage of answers from a series of batches: how often a 95 % interval holds the truth.

    python -m bench.batch_coverage [--data FOLDER] [--series 8]

Every series is five batches of 600 Adult records (safe suppression, l = 5), drawn at random or, with drift,
each from another age group. Questions: each occupation with each of three conditions, where at least five
people satisfy both.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import dalenius
from dalenius.reproduce.microdata import data_folder

CONDITIONS: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "sex = 'Female'": lambda table: table.sex == "Female",
    "age >= 40": lambda table: table.age >= 40,
    "education = 'Bachelors'": lambda table: table.education == "Bachelors",
}
ESTIMATORS = ("anatomy", "shrinkage")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--series", type=int, default=8)
    options = parser.parse_args()
    adult = pd.read_csv(options.data / "adult.csv")[["age", "sex", "education", "occupation"]]
    print("| batches | estimator | questions | 95 % |\n|---|---|---|---|")
    for kind in ("alike", "drift"):
        held = [_held(adult, kind, seed) for seed in range(options.series)]
        for estimator in ESTIMATORS:
            every = [hit for one in held for hit in one[estimator]]
            print(f"| {kind} | {estimator} | {len(every)} | {np.mean(every):.3f} |", flush=True)


def _held(adult: pd.DataFrame, kind: str, seed: int) -> dict[str, list[bool]]:
    """For each estimator, whether each question's interval holds the truth about the published records."""
    with tempfile.TemporaryDirectory() as folder:
        kept = pd.concat([_publish(batch, folder, seed) for batch in _batches(adult, kind, seed)])
        series = dalenius.open_release(Path(folder) / "series")
        truth = {
            f"SELECT COUNT(*) FROM t WHERE {condition} AND occupation = '{occupation}'": int(
                ((kept.occupation == occupation) & holds(kept)).sum()
            )
            for occupation in sorted(adult.occupation.unique())
            for condition, holds in CONDITIONS.items()
        }
        asked = {question: number for question, number in truth.items() if number >= 5}
        return {
            estimator: [
                (row.low or 0) <= number <= (row.high or 0)
                for answer, number in zip(
                    series.ask_many(asked, estimator=estimator), asked.values(), strict=True
                )
                for row in answer.rows
            ]
            for estimator in ESTIMATORS
        }


def _batches(adult: pd.DataFrame, kind: str, seed: int) -> list[pd.DataFrame]:
    chosen = np.random.default_rng(seed).permutation(len(adult))[:3_000]
    sample = adult.iloc[chosen].assign(uid=np.arange(3_000))
    ordered = sample.sort_values("age") if kind == "drift" else sample
    return [ordered.iloc[start : start + 600] for start in range(0, 3_000, 600)]


def _publish(batch: pd.DataFrame, folder: str, seed: int) -> pd.DataFrame:
    policy = dalenius.Policy.from_dict(
        {
            "source": pa.Table.from_pandas(batch, preserve_index=False),
            "release": "series",
            "columns": {"quasi": ["age", "sex", "education", "uid"], "sensitive": ["occupation"]},
            "promise": {"kind": "l-diversity", "l": 5},
            "suppress": {"method": "safe"},
            "series": {"kind": "batches"},
            "ledger": {"path": "ledger"},
        },
        folder=folder,
    )
    release = dalenius.publish(policy, seed=seed)
    return batch[batch.uid.isin(pq.read_table(release.path / "qit.parquet")["uid"].to_pylist())]


if __name__ == "__main__":
    main()
