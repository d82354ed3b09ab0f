"""The error of both estimators of buckets on Anatomy's workload: the table of docs/coverage.md.

    python -m bench.estimator_errors [--releases 6] [--questions 200] [--thetas 2,4,8,16] [--only adult]
    python -m bench.estimator_errors --contents varied
    python -m bench.estimator_errors --oracle

The mean of |estimate − truth| / truth over questions with a true count of at least 0.1 % of the rows; every
release has other coins and other questions. With --oracle a third column is of the same matching with the
main effects of the table itself (bench.true_effects), which no release tells: what it errs by, no estimator
that sees main effects can be expected to spare.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from pyarrow import csv

from bench.anatomy_workload import Original, publish, questions
from bench.true_effects import ORACLE, ask_oracle
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
    parser.add_argument("--oracle", action="store_true", help="beside them the true effects")
    parser.add_argument("--data", type=Path, default=data_folder())
    options = parser.parse_args()
    names = (*_ESTIMATORS, *((ORACLE,) if options.oracle else ()))
    print(f"| table | θ | n | {' | '.join(names)} |\n|---|---|---|{'---|' * len(names)}")
    for file, sensitive in _TABLES:
        if options.only in f"{file} {sensitive}":
            original = Original.of(csv.read_csv(options.data / file), [sensitive])
            for theta in map(int, options.thetas.split(",")):
                seeds = range(_FIRST_SEED + 100 * theta, _FIRST_SEED + 100 * theta + options.releases)
                n, contents = options.questions, options.contents
                found = [_errors(original, theta, seed, n, contents, names) for seed in seeds]
                errors = np.concatenate(found, axis=1)
                shown = " | ".join(f"{error:.3f}" for error in errors.mean(axis=1))
                print(f"| {file}, {sensitive} | {theta} | {errors.shape[1]} | {shown} |", flush=True)


def _errors(
    original: Original, theta: int, seed: int, n_questions: int, contents: str, names: tuple[str, ...]
) -> Floats:
    """Of each estimator, the relative errors of one release's questions."""
    drawn = questions(original, n_questions, np.random.default_rng(seed))
    truth = np.array([original.count(question) for question in drawn], dtype=float)
    texts = [original.sql(question) for question in drawn]
    large = truth >= 0.001 * original.n_rows
    with tempfile.TemporaryDirectory() as folder:
        release = publish(original, theta, Path(folder), seed, contents=contents)
        answers = [
            ask_many(release, texts, estimator=name)
            if name != ORACLE
            else ask_oracle(release, original.table, original.sensitive[0], texts)
            for name in names
        ]
        estimates = [[answer.rows[0].estimate for answer in own] for own in answers]
    errors: Floats = np.abs(np.array(estimates, dtype=float) - truth)[:, large] / truth[large]
    return errors


if __name__ == "__main__":
    main()
