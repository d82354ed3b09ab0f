"""Classifiers trained on complete tables beside those trained on the original, for docs/complete.md.

    python -m bench.complete_classifiers [--data FOLDER] [--dataset adult kdd] [--rows 10000] [--splits 3]

Some people are published, and others are held out. A logistic regression (one column for every value, age
and its square) learns occupation from the published columns, or income from occupation and the others, from
the original rows or from complete tables, where the probabilities that it learns on each copy are averaged.
It is tested on the people held out, as they are: how often its likeliest class is right, and the mean of
−log p(the right class). Values dealt at random within buckets are those of a release in which who is with
whom is not heeded, as an analyst of Anatomy's tables would draw them.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.sparse import csr_array, hstack
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import dalenius
from bench.anatomy_workload import TABLES, load
from dalenius.arrays import Floats, Ints
from dalenius.release.folder import StoredRelease
from dalenius.reproduce.microdata import data_folder

_NUMBER = "age"
_INCOME = {"adult": "salary", "kdd": "income"}
_TELLING = ["industry_code"]
"""Of KDD workers: some industries give the occupation away, so that `publish` wants it left out."""
_MOST_TESTED = 20_000
_STEPS = 100
_BUCKETS: dict[str, Any] = {"kind": "bucketize", "method": "optimal"}
_HEAD = """| trained on | accuracy | log loss |
|---|---|---|"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--dataset", nargs="+", default=["adult", "kdd"], choices=list(_INCOME))
    parser.add_argument("--rows", type=int, default=10_000, help="how many people are published")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--copies", type=int, default=5)
    parser.add_argument("--theta", type=float, default=4, help="thresholds of buckets are θ·f + 0.02")
    options = parser.parse_args()
    for name in options.dataset:
        table = read(options.data, name)
        found: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
        for seed in range(options.splits):
            order = np.random.default_rng(seed).permutation(len(table))[: options.rows + _MOST_TESTED]
            published, held_out = table.iloc[order[: options.rows]], table.iloc[order[options.rows :]]
            trained = list(sources(published, TABLES[name][1], options.copies, options.theta, seed))
            for target in (TABLES[name][1], _INCOME[name]):
                task = Task.of(table, target)
                found[target]["the commonest class"].append(task.floor(published, held_out))
                for source, tables in trained:
                    found[target][source].append(task.score(tables, held_out))
                if target == _INCOME[name]:
                    found[target]["original rows, without occupation"].append(
                        task.without(TABLES[name][1]).score([published], held_out)
                    )
        for target, by_source in found.items():
            print(f"\n### {name}: {target}\n\n{_HEAD}")
            for source, scores in by_source.items():
                print(
                    f"| {source} | {' | '.join(_spread(one) for one in zip(*scores, strict=True))} |",
                    flush=True,
                )


def read(data: Path, name: str) -> pd.DataFrame:
    """The table, codes of industries and occupations as the names that they stand for."""
    table = load(data, name).table.to_pandas().drop(columns=_TELLING, errors="ignore")
    return table.astype({column: str for column in table.columns if column != _NUMBER})


def sources(
    published: pd.DataFrame, sensitive: str, copies: int, theta: float, seed: int
) -> Iterator[tuple[str, list[pd.DataFrame]]]:
    """What classifiers may learn from."""
    promise = {"kind": "f-privacy", "default": {"times": theta, "plus": "0.02"}}
    chance = {"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"}
    yield "original rows", [published]
    for name, kept, mechanism in (
        ("buckets", promise, _BUCKETS),
        ("buckets with regions", promise, {**_BUCKETS, "regions": True}),
        ("perturbed records", chance, {"kind": "perturb"}),
    ):
        with tempfile.TemporaryDirectory() as folder:
            policy = {
                "source": pa.Table.from_pandas(published, preserve_index=False),
                "release": str(Path(folder) / "r"),
                "columns": {
                    "quasi": [column for column in published.columns if column != sensitive],
                    "sensitive": [sensitive],
                },
                "promise": kept,
                "mechanism": mechanism,
            }
            release = dalenius.publish(dalenius.Policy.from_dict(policy), seed=seed)
            tables = [pa.table(copy).to_pandas() for copy in release.complete(copies, seed=seed)]
            yield f"{name}: complete tables", tables
            if mechanism["kind"] == "bucketize":
                bucket = StoredRelease.open(release.path).read("qit", ("bucket",)).column("bucket").to_numpy()
                stream = np.random.default_rng(seed)
                yield (
                    f"{name}: values dealt at random",
                    [deal_again(table, bucket, sensitive, stream) for table in tables],
                )


def deal_again(
    table: pd.DataFrame, bucket: Ints, sensitive: str, stream: np.random.Generator
) -> pd.DataFrame:
    """The same where every bucket's values are dealt to its people at random."""
    places, dealt = np.argsort(bucket, kind="stable"), np.lexsort((stream.random(len(bucket)), bucket))
    values = table[sensitive].to_numpy(dtype=object)
    values[places] = values[dealt]
    return table.assign(**{sensitive: values})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Task:
    """Learn one column from others."""

    target: str
    classes: tuple[str, ...]
    categories: dict[str, tuple[str, ...]]
    """Of each column of texts: its values."""

    @classmethod
    def of(cls, table: pd.DataFrame, target: str) -> Task:
        """All columns but this."""
        values = {name: tuple(sorted(table[name].unique())) for name in table.columns if name != _NUMBER}
        classes = values.pop(target)
        return cls(target=target, classes=classes, categories=values)

    def without(self, column: str) -> Task:
        """The same from one column less."""
        kept = {name: values for name, values in self.categories.items() if name != column}
        return Task(target=self.target, classes=self.classes, categories=kept)

    def floor(self, published: pd.DataFrame, held_out: pd.DataFrame) -> tuple[float, float]:
        """Of who knows how common the classes are."""
        shares = np.bincount(self._labels(published), minlength=len(self.classes)) / len(published)
        return self._judge(np.tile(shares, (len(held_out), 1)), held_out, len(published))

    def score(self, tables: list[pd.DataFrame], held_out: pd.DataFrame) -> tuple[float, float]:
        """Accuracy and log loss of what is learned from these tables together."""
        tested = self._features(held_out)
        chances = np.mean([self._learn(table)(tested) for table in tables], axis=0)
        return self._judge(chances, held_out, len(tables[0]))

    def _learn(self, table: pd.DataFrame) -> Callable[[csr_array], Floats]:
        model = LogisticRegression(max_iter=_STEPS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(self._features(table), self._labels(table))

        def chances(features: csr_array) -> Floats:
            found = np.zeros((features.shape[0], len(self.classes)))
            found[:, model.classes_] = model.predict_proba(features)
            return found

        return chances

    def _judge(self, chances: Floats, held_out: pd.DataFrame, n_rows: int) -> tuple[float, float]:
        """A class that nobody published has is as likely as half a record."""
        labels, chances = self._labels(held_out), np.maximum(chances, 0.5 / n_rows)
        right = chances[np.arange(len(labels)), labels] / chances.sum(axis=1)
        return float((chances.argmax(axis=1) == labels).mean()), float(-np.log(right).mean())

    def _labels(self, table: pd.DataFrame) -> Ints:
        return np.asarray(pd.Categorical(table[self.target], self.classes).codes, dtype=np.int64)

    def _features(self, table: pd.DataFrame) -> csr_array:
        years = (table[_NUMBER].to_numpy(dtype=np.float64) - 40) / 13
        parts = [csr_array(np.stack([years, years**2], axis=1))]
        for name, values in self.categories.items():
            codes = np.asarray(pd.Categorical(table[name], values).codes)
            cells = (np.ones(len(codes)), (np.arange(len(codes)), codes))
            parts.append(csr_array(cells, shape=(len(codes), len(values))))
        return csr_array(hstack(parts, format="csr"))


def _spread(values: tuple[float, ...]) -> str:
    """The mean, and the standard deviation over splits."""
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1) if len(values) > 1 else 0:.3f}"


if __name__ == "__main__":
    main()
