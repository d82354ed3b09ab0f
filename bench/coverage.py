"""How often intervals of 90, 95 and 99 % hold the truth, for every mechanism: tables for docs/coverage.md.

    python -m bench.coverage [--only perturb] [--releases 200] [--questions 200] [--keep folder]
    python -m bench.coverage --keep folder --into docs/coverage.md
    python -m bench.coverage --part real [--only adult]
    python -m bench.coverage --part buckets [--only kdd-industry] [--rows 10000] [--thetas 2,16]

*mechanisms*: one synthetic table, every mechanism, many seeded releases, random questions; the truth is
counted on the table. *real*: the estimators of bucketized releases on Adult and KDD workers, where the data
are present (bench.real_coverage). *buckets*: the same by kind and size of the question, with widths, on
tables for tuning and for judging (bench.bucket_coverage). With --keep what was measured is kept, and not
measured again.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Iterable
from multiprocessing import Pool
from pathlib import Path

import numpy as np

from bench.bucket_coverage import measure as measure_buckets
from bench.coverage_questions import COLUMNS
from bench.coverage_subjects import LEVELS, Held, subjects
from bench.real_coverage import real_tables
from dalenius.reproduce.microdata import data_folder

CLASSES = ("< 5", "5 to 20", "> 20")
BEGIN, END = "<!-- measured -->", "<!-- end -->"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", choices=("mechanisms", "real", "buckets"), default="mechanisms")
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--releases", type=int, help="by default 200, of real tables 8")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="mechanisms, or real tables, whose name has this in it")
    parser.add_argument("--rows", type=int, default=0, help="of a table for buckets: so many people")
    parser.add_argument("--thetas", default="2,4,8,16", help="of tables for buckets")
    parser.add_argument("--fakes", type=int, default=0, help="a bucket of tables for buckets, with ℓ = 4")
    parser.add_argument("--suppress", type=int, default=0, help="ℓ of tables for buckets, after suppression")
    parser.add_argument("--estimator", default="matching", help="of tables for buckets")
    parser.add_argument(
        "--contents", default="even", choices=("even", "varied"), help="of tables for buckets"
    )
    parser.add_argument("--first", type=int, default=0, help="the first seed, of tables for buckets")
    parser.add_argument("--keep", type=Path, help="a folder for what was measured")
    parser.add_argument("--into", type=Path, help="a page whose tables these replace")
    options = parser.parse_args()
    if options.part == "real":
        real_tables(options.data, options.releases or 8, options.questions, options.processes, options.only)
        return
    if options.part == "buckets":
        thetas = tuple(int(theta) for theta in options.thetas.split(","))
        n_releases = options.releases or 6
        asked = options.data, n_releases, options.questions, options.only, thetas, options.rows
        rest = options.estimator, options.first, options.contents, options.suppress
        measure_buckets(*asked, options.fakes, *rest)
        return
    options.releases = options.releases or 200
    measured = {}
    for name in subjects(options.questions):
        if options.only in name:
            measured[name] = measure(name, options)
            for column in range(len(COLUMNS)):
                print(f"{COLUMNS[column]}: {row(name, *measured[name], column)}", flush=True)
    text = "\n\n".join(table(measured, k) for k in range(len(COLUMNS)))
    print(f"\n{text}", flush=True)
    if options.into:
        page = options.into.read_text(encoding="utf-8")
        before, _, rest = page.partition(BEGIN)
        options.into.write_text(
            f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8"
        )


def table(measured: dict[str, tuple[np.ndarray, np.ndarray]], column: int) -> str:
    """One aggregate's table."""
    lines = [row(name, *found, column) for name, found in measured.items()]
    title = COLUMNS[column][0].upper() + COLUMNS[column][1:]
    return "\n".join([f"### {title}", "", HEAD, *lines, "", max_error(measured.values(), column)])


def measure(name: str, options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    """Ends (releases × levels × questions × columns × 2) and truth (releases × questions × columns)."""
    file = options.keep and options.keep / f"{name.replace(', ', '-').replace(' ', '-')}.npz"
    if file and file.exists():
        with np.load(file) as kept:
            return kept["ends"], kept["truth"]
    before = _cpu_seconds()
    seeds = np.array_split(np.arange(options.releases), options.processes)
    tasks = [(name, options.questions, part.tolist()) for part in seeds]
    with Pool(options.processes) as pool:
        parts = pool.map(_measure_some, tasks, chunksize=1)
    ends, truth = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    print(f"{name}: {_cpu_seconds() - before:.0f} s of CPU time", flush=True)
    if file:
        options.keep.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(file, ends=ends, truth=truth)
    return ends, truth


def _measure_some(task: tuple[str, int, list[int]]) -> tuple[np.ndarray, np.ndarray]:
    name, n_questions, seeds = task
    held: Held = subjects(n_questions)[name]()
    found = [held(seed) for seed in seeds]
    return np.stack([ends for ends, _ in found]), np.stack([truth for _, truth in found])


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


HEAD = (
    "| mechanism | "
    + " | ".join(f"{size}: 90 % | 95 % | 99 %" for size in CLASSES)
    + " | worst question | releases |\n"
    + "|---" * 12
    + "|"
)


def row(name: str, ends: np.ndarray, truth: np.ndarray, column: int) -> str:
    """A line of a table: coverage by the true number of people, and that of the worst question at 95 %."""
    cells = [
        "" if np.isnan(held).all() else f"{np.nanmean(held):.3f}" for held in _by_class(ends, truth, column)
    ]
    held = _held(ends, truth, column)[:, 1]
    by_question = np.nanmean(held[:, ~np.isnan(held).any(axis=0)], axis=0)
    return f"| {' | '.join([name, *cells, f'{by_question.min():.2f}', str(len(ends))])} |"


def max_error(measured: Iterable[tuple[np.ndarray, np.ndarray]], column: int) -> str:
    """The largest standard errors, from the scatter over releases: questions on one are not independent."""
    errors = np.array(
        [
            [np.nanstd(np.nanmean(held, axis=1)) / np.sqrt(len(held)) for held in _by_class(*found, column)]
            for found in measured
        ]
    )
    largest = np.nanmax(errors, axis=0).reshape(len(CLASSES), len(LEVELS)).max(axis=1)
    listed = ", ".join(f"{error:.3f} ({name})" for name, error in zip(CLASSES, largest, strict=True))
    return f"Largest standard errors: {listed}."


def _held(ends: np.ndarray, truth: np.ndarray, column: int) -> np.ndarray:
    """Releases × levels × questions: 1 where the interval holds the truth, NaN where there is none."""
    true = truth[:, None, :, column]
    slack = 1e-6 * np.maximum(1.0, np.abs(true))
    held = (ends[..., column, 0] <= true + slack) & (true - slack <= ends[..., column, 1])
    return np.where(np.isnan(true), np.nan, held)


def _by_class(ends: np.ndarray, truth: np.ndarray, column: int) -> list[np.ndarray]:
    """For each size and level, releases × questions of that size."""
    held, size = _held(ends, truth, column), np.digitize(truth[:, :, 0], [5, 20.5])
    return [
        np.where(size == group, held[:, level], np.nan)
        for group in range(len(CLASSES))
        for level in range(len(LEVELS))
    ]


if __name__ == "__main__":
    main()
