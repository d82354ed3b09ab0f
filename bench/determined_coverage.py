"""How often shrinkage's intervals hold where a condition nearly determines the sensitive value.

    python -m bench.determined_coverage [--assignments 10]

The table of `dalenius demo`, where two diseases occur in one sex only, and a synthetic one with a column that
equals the value for 90 % of the people. Each plan is published once; its records are then dealt anew.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dalenius
from bench.real_coverage import LEVELS, Places
from dalenius.demo_data import hospital
from dalenius.mechanisms.bucketize.estimate import make_estimator
from dalenius.mechanisms.bucketize.estimate.buckets import ScoreSums
from dalenius.mechanisms.bucketize.estimate.possible import possible_range
from dalenius.question.targets import Score, Targets

Question = tuple[np.ndarray, list[int]]
"""Rows, and values of the sensitive column."""
DEMO: dict[str, object] = {
    "default": {"times": 3, "plus": "0.02"},
    "values": {"HIV": "0.03", "Schizophrenia": "0.03", "Flu": "1"},
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """A table's codes, and the places of a release of it."""

    columns: dict[str, np.ndarray]
    codes: np.ndarray
    places: Places

    @classmethod
    def of(cls, table: pa.Table, promise: dict[str, object]) -> Subject:
        """Publish a table whose last column is sensitive."""
        *quasi, secret = table.column_names
        rules = {
            "columns": {"quasi": quasi, "sensitive": [secret]},
            "promise": {"kind": "f-privacy", **promise},
        }
        with tempfile.TemporaryDirectory() as folder:
            policy = dalenius.Policy.from_dict(
                {"source": table, "release": "r", **rules}, folder=Path(folder)
            )
            release = dalenius.publish(policy, seed=0).stored
            st = pa.concat_tables([pq.read_table(path) for path in release.files("st")])
        values, codes = np.unique(table[secret].to_pylist(), return_inverse=True)
        places = Places(
            bucket=np.unique(st["bucket"].to_numpy(), return_inverse=True)[1],
            value=np.searchsorted(values, st[secret].to_pylist()),
            count=st["count"].to_numpy().astype(np.int64),
        )
        columns = {name: np.unique(table[name].to_pylist(), return_inverse=True)[1] for name in quasi}
        return cls(columns=columns, codes=codes, places=places)

    def each(self, *names: str) -> list[Question]:
        """Every combination of these columns' values, with every sensitive value."""
        keys = np.stack([self.columns[name] for name in names], axis=1)
        rows = [np.flatnonzero((keys == key).all(axis=1)) for key in np.unique(keys, axis=0)]
        return [(own, [value]) for own in rows for value in range(self.codes.max() + 1)]

    def random(self, n: int = 150) -> list[Question]:
        """Random sets of values of one to three columns, and of the sensitive one."""
        rng = np.random.default_rng(3)
        found = []
        for _ in range(n):
            mask = np.ones(len(self.codes), dtype=bool)
            for name in rng.choice(list(self.columns), rng.integers(1, 4), replace=False):
                mask &= np.isin(
                    self.columns[name], _some(self.columns[name], rng.choice([0.15, 0.35, 0.7]), rng)
                )
            found.append((np.flatnonzero(mask), _some(self.codes, rng.choice([0.05, 0.2, 0.5]), rng)))
        return found

    def measure(self, asked: list[Question], n: int, counted: Callable[[np.ndarray], np.ndarray]) -> str:
        """Coverage at each level, and the mean width at 95 %, of the questions whose truth is `counted`."""
        truth = np.array([np.isin(self.codes[rows], values).sum() for rows, values in asked])
        weights = [np.isin(np.arange(self.codes.max() + 1), values).astype(float) for _, values in asked]
        targets = Targets.of([[(k, own)] for k, own in enumerate(weights)])
        ends = []
        for seed in range(n):
            buckets = self.places.deal(self.codes, np.random.default_rng(seed))
            sums = ScoreSums.of(buckets, [Score(rows=rows) for rows, _ in asked])
            possible = possible_range(sums, targets)
            made = make_estimator("shrinkage", buckets, list(self.columns.values())).estimate(sums, targets)
            ends.append([np.clip(made.intervals(level, possible), *possible) for level in LEVELS])
        low, high = np.moveaxis(np.array(ends)[..., counted(truth)], 2, 0)
        low, high = np.floor(low + 1e-6), np.ceil(high - 1e-6)
        held = ((low <= truth[counted(truth)]) & (truth[counted(truth)] <= high)).mean(axis=(0, 2))
        return " | ".join([*(f"{share:.3f}" for share in held), f"{(high - low)[:, 1].mean():.1f}"])


def _some(codes: np.ndarray, share: float, rng: np.random.Generator) -> list[int]:
    n = int(codes.max()) + 1
    return list(rng.choice(n, max(1, round(share * n)), replace=False).tolist())


def determined(n: int = 3_000) -> pa.Table:
    """Twelve values, and a column that equals the value for 90 % of the people."""
    rng = np.random.default_rng(5)
    value = rng.choice(12, n, p=np.linspace(2, 1, 12) / 18)
    return pa.table(
        {
            "clinic": np.where(rng.random(n) < 0.1, rng.integers(12, size=n), value),
            "age": rng.integers(20, 60, n),
            "sex": rng.integers(2, size=n),
            "region": rng.integers(1, 9, n),
            "disease": [f"d{k:02d}" for k in value],
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--assignments", type=int, default=10)
    n = parser.parse_args().assignments
    patients = hospital().select(["age", "sex", "district", "insurance", "disease"])
    looser: dict[str, object] = {"default": {"times": 6, "plus": "0.05"}}
    print("| what is asked | 90 % | 95 % | 99 % | width at 95 % |\n|---|---|---|---|---|")
    for name, promise in (("the demo's table", DEMO), ("the demo's table at 6f + 0.05", looser)):
        subject = Subject.of(patients, promise)
        for what, asked in (
            ("each disease in each sex", subject.each("sex")),
            ("random counts", subject.random()),
        ):
            print(f"| {name}, {what} | {subject.measure(asked, n, np.isfinite)} |", flush=True)
    subject = Subject.of(determined(), {"default": {"times": 3, "plus": "0.05"}})
    cells, name = subject.each("clinic", "region"), "a column determines the value"
    print(f"| {name}, counts of 5 to 20 | {subject.measure(cells, n, lambda t: (t >= 5) & (t <= 20))} |")
    print(f"| {name}, counts above 20 | {subject.measure(cells, n, lambda t: t > 20)} |")
    print(f"| {name}, random counts | {subject.measure(subject.random(), n, np.isfinite)} |")


if __name__ == "__main__":
    main()
