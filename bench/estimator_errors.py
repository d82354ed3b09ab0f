"""The error of both estimators of buckets on Anatomy's workload: the table of docs/coverage.md.

    python -m bench.estimator_errors [--releases 6] [--questions 200] [--thetas 2,4,8,16] [--only adult]
    python -m bench.estimator_errors --contents varied

The mean of |estimate − truth| / truth over questions with a true count of at least 0.1 % of the rows; every
release has other coins and other questions.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from pyarrow import csv

from bench.anatomy_workload import Original, publish, questions
from dalenius.arrays import Floats
from dalenius.ask import ask_many
from dalenius.reproduce.microdata import data_folder

_TABLES = (
    ("adult.csv", "occupation"),
    ("adult.csv", "education"),
    ("kdd_workers.csv.gz", "occupation_code"),
    ("kdd_education.csv.gz", "education"),
)
_ESTIMATORS = ("shrinkage", "matching")
_FIRST_SEED = 9_000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--releases", type=int, default=6)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--thetas", default="2,4,8,16")
    parser.add_argument("--only", default="", help="tables whose name has this in it")
    parser.add_argument("--contents", default="even", choices=("even", "varied"))
    parser.add_argument("--data", type=Path, default=data_folder())
    options = parser.parse_args()
    print(f"| table | θ | n | {' | '.join(_ESTIMATORS)} |\n|---|---|---|{'---|' * len(_ESTIMATORS)}")
    for file, sensitive in _TABLES:
        if options.only in f"{file} {sensitive}":
            original = Original.of(csv.read_csv(options.data / file), [sensitive])
            for theta in map(int, options.thetas.split(",")):
                seeds = range(_FIRST_SEED + 100 * theta, _FIRST_SEED + 100 * theta + options.releases)
                found = [
                    _errors(original, theta, seed, options.questions, options.contents) for seed in seeds
                ]
                errors = np.concatenate(found, axis=1)
                shown = " | ".join(f"{error:.3f}" for error in errors.mean(axis=1))
                print(f"| {file}, {sensitive} | {theta} | {errors.shape[1]} | {shown} |", flush=True)


def _errors(original: Original, theta: int, seed: int, n_questions: int, contents: str) -> Floats:
    """Of each estimator, the relative errors of one release's questions."""
    drawn = questions(original, n_questions, np.random.default_rng(seed))
    truth = np.array([original.count(question) for question in drawn], dtype=float)
    texts = [original.sql(question) for question in drawn]
    large = truth >= 0.001 * original.n_rows
    with tempfile.TemporaryDirectory() as folder:
        release = publish(original, theta, Path(folder), seed, contents=contents)
        estimates = [
            [answer.rows[0].estimate for answer in ask_many(release, texts, estimator=estimator)]
            for estimator in _ESTIMATORS
        ]
    errors: Floats = np.abs(np.array(estimates, dtype=float) - truth)[:, large] / truth[large]
    return errors


if __name__ == "__main__":
    main()
