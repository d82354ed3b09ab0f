"""How often intervals of 90, 95 and 99 % hold the truth, for every mechanism: tables for docs/coverage.md.

    python -m bench.coverage [--part mechanisms real] [--only perturb] [--releases 100] [--questions 100]

*mechanisms*: one synthetic table, every mechanism, many seeded releases, random questions; the truth is
counted on the table. *real*: the estimators of bucketized releases on Adult and KDD workers, where the data
are present (bench/real_coverage.py). Batches and suppression: bench/batch_coverage.py.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from bench.coverage_subjects import (
    Answered,
    Views,
    bucketized,
    from_rows,
    from_views,
    people,
    perturbed,
    questions,
)
from bench.real_coverage import real_tables

LEVELS = (0.9, 0.95, 0.99)
COLUMNS = ("COUNT(*)", "SUM(age)", "AVG(age)", "share")
CLASSES = ("< 5", "5 to 20", "> 20")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", nargs="+", default=["mechanisms", "real"])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("DALENIUS_DATA", "../shared/data")))
    parser.add_argument("--releases", type=int, default=100)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--only", default="", help="mechanisms whose name has this in it")
    options = parser.parse_args()
    if "mechanisms" in options.part:
        tables = dict.fromkeys(COLUMNS, "")
        for name, answered, truth in subjects(options.questions):
            if options.only not in name:
                continue
            held = coverage(answered, truth, options.releases)
            for k, column in enumerate(COLUMNS):
                line = row(name, held[..., k], truth[:, k], truth[:, 0])
                tables[column] += line + "\n"
                print(f"measured, {column}: {line}", flush=True)
        for column, text in tables.items():
            print(f"\n### {column}\n\n{HEAD}\n{text}", flush=True)
    if "real" in options.part:
        real_tables(
            options.data, n_releases=max(3, options.releases // 10), n_questions=2 * options.questions
        )


def subjects(n_questions: int) -> Iterator[tuple[str, Answered, np.ndarray]]:
    """Name, how it is asked, and the truth (questions × columns)."""
    table, texts = people(), questions(n_questions, seed=1)
    truth = truths(table, texts)
    for estimator in ("shrinkage", "regression", "anatomy"):
        yield f"bucketize, {estimator}", from_rows(bucketized(table), texts, estimator), truth
    yield "bucketize with fakes, shrinkage", from_rows(bucketized(table, fakes=1), texts, "shrinkage"), truth
    for method in ("small-domain", "least-variance", "uniform"):
        yield f"perturb, {method}", from_rows(perturbed(table, method), texts, "reconstruction"), truth
    for kind, name in (
        ("one", "alpha-beta view"),
        ("series", "alpha-beta views, 3"),
        ("frapp", "FRAPP view"),
    ):
        views = Views(table=table, kind=kind)
        yield name, from_views(views, texts), truths(views.distinct(), texts)


def truths(table: pa.Table, texts: list[str]) -> np.ndarray:
    """What DuckDB says about the table; NaN for NULL."""
    connection = duckdb.connect()
    connection.register("t", table)
    rows = [connection.execute(text).fetchall()[0] for text in texts]
    return np.array([[np.nan if cell is None else float(cell) for cell in row] for row in rows])


def coverage(answered: Answered, truth: np.ndarray, n_releases: int) -> np.ndarray:
    """Levels × releases × questions × columns: whether the interval holds the truth."""
    held = np.zeros((len(LEVELS), n_releases, *truth.shape), dtype=bool)
    for seed in range(n_releases):
        for k, level in enumerate(LEVELS):
            ends = np.array(
                [[_ends(entry.low, entry.high) for entry in answer.rows] for answer in answered(seed, level)]
            )
            held[k, seed] = (ends[..., 0] <= truth + 1e-6) & (truth - 1e-6 <= ends[..., 1])
    return held


def _ends(low: float | None, high: float | None) -> tuple[float, float]:
    return -np.inf if low is None else low, np.inf if high is None else high


HEAD = (
    "| mechanism | "
    + " | ".join(f"{size}: 90 % | 95 % | 99 %" for size in CLASSES)
    + " |\n"
    + "|---" * 10
    + "|"
)


def row(name: str, held: np.ndarray, truth: np.ndarray, counts: np.ndarray) -> str:
    """A line of a table: coverage by the true number of people, where there is a truth."""
    size = np.digitize(counts, [5, 20.5])
    cells = [
        f"{held[k][:, (size == group) & ~np.isnan(truth)].mean():.3f}"
        for group in range(len(CLASSES))
        for k in range(len(LEVELS))
    ]
    return f"| {' | '.join([name, *cells])} |"


if __name__ == "__main__":
    main()
