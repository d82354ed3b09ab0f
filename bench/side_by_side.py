"""The same counts asked of what each approach would publish: ours, Anatomy's, OpenDP's.

    python -m bench.side_by_side [--questions 200] [--theta 4] [--data FOLDER] [--synthetic FILE]

On Adult (`occupation`), Anatomy's workload. The error is |estimate − truth| / truth over questions with a
true count of at least 0.1 % of the rows. FILE is a synthetic table (`bench.synthesize`). Each approach
promises something else: docs/coverage.md.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow import csv

from bench.anatomy_workload import load, publish, questions
from dalenius.arrays import Floats
from dalenius.ask import ask_many
from dalenius.evaluate.contender import noisy_counts
from dalenius.reproduce.microdata import data_folder

_SEED = 11


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--theta", type=int, default=4)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--synthetic", type=Path, help="a CSV file with the columns of Adult")
    options = parser.parse_args()
    original = load(options.data, "adult")
    drawn = questions(original, options.questions, np.random.default_rng(_SEED))
    truth = np.array([original.count(question) for question in drawn])
    texts = [original.sql(question) for question in drawn]
    found: dict[str, Floats] = {}
    with tempfile.TemporaryDirectory() as folder:
        release = publish(original, options.theta, Path(folder), seed=1)
        for name in ("matching", "anatomy"):
            answers = ask_many(release, texts, estimator=name)
            estimates = [answer.rows[0].estimate for answer in answers]
            found[f"buckets, {options.theta}f + 0.02, {name}"] = np.array(estimates, dtype=float)
    found["OpenDP, ε = 1 for each question"] = noisy_counts(truth.tolist(), 1.0)
    found[f"OpenDP, ε = 1 for all {len(truth)}"] = noisy_counts(truth.tolist(), float(len(truth)))
    if options.synthetic:
        made = csv.read_csv(options.synthetic).select(original.table.column_names)
        found["MST, ε = 1 for any number of questions"] = _count(made, texts)
    large = truth >= 0.001 * original.n_rows
    print(f"Adult, {original.n_rows:,} rows; {large.sum()} of {len(truth)} questions are large")
    print(
        "| what is asked | mean error | median error | small ones: mean absolute error |\n|---|---|---|---|"
    )
    for name, estimate in found.items():
        error = np.abs(estimate - truth)
        relative = error[large] / truth[large]
        print(f"| {name} | {relative.mean():.3f} | {np.median(relative):.3f} | {error[~large].mean():.1f} |")


def _count(table: pa.Table, texts: list[str]) -> Floats:
    with duckdb.connect() as connection:
        connection.register("t", table)
        return np.array([(connection.execute(text).fetchone() or (0,))[0] for text in texts], dtype=float)


if __name__ == "__main__":
    main()
