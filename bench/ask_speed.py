"""How fast a release is asked, beside DuckDB on the raw table.

    python -m bench.ask_speed [--queries 5000] [--data FOLDER] [--demo]

Prints the milliseconds of a warm COUNT on a million rows, and of 5,000 questions of Anatomy's workload on
300,000 rows: `ask_many` on the release, and DuckDB answering them one by one on the raw table, with one
thread. With `--demo` the questions alone, about people that never lived: nothing has to be downloaded. All
times are processor time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb
import numpy as np

from bench.anatomy_workload import Original, enlarge, load, publish, questions
from dalenius.ask import ask, ask_many
from dalenius.demo_data import hospital
from dalenius.reproduce.microdata import data_folder


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=int, default=5000)
    parser.add_argument("--raw-queries", type=int, default=500, help="how many of them DuckDB is timed on")
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--demo", action="store_true", help="the demo's table, and only the questions")
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    if options.demo:
        table = hospital(300_000).drop(["patient_id", "name"])
        with tempfile.TemporaryDirectory() as folder:
            _workload(Original.of(table, ["disease"]), Path(folder), options, rng)
        return
    workers = load(options.data, "kdd")
    with tempfile.TemporaryDirectory() as folder:
        _warm_count(enlarge(workers, 1_000_000, rng), Path(folder))
        _workload(enlarge(workers, 300_000, rng), Path(folder), options, rng)


def _warm_count(original: Original, folder: Path) -> None:
    release = publish(original, 8, folder, seed=1)
    first = original.cells["education"][0]
    for text in (
        "SELECT COUNT(*) FROM t WHERE age BETWEEN 30 AND 50 AND occupation_code < 20",
        f"SELECT COUNT(*) FROM t WHERE sex = 'Male' AND education = '{first}' AND occupation_code IN (1, 2)",
    ):
        started = time.process_time()
        ask(release, text)
        cold = time.process_time() - started
        times = [_timed(partial(ask, release, text)) for _ in range(10)]
        print(f"1,000,000 rows: first {cold * 1e3:.0f} ms, warm {np.median(times) * 1e3:.1f} ms: {text}")


def _workload(
    original: Original, folder: Path, options: argparse.Namespace, rng: np.random.Generator
) -> None:
    release = publish(original, 8, folder, seed=2)
    texts = [original.sql(question) for question in questions(original, options.queries, rng)]
    cold = _timed(lambda: ask(release, texts[0]))
    print(f"300,000 rows: the first question {cold:.1f} s")
    batched = _timed(lambda: ask_many(release, texts)) / len(texts)
    raw = duckdb.connect(config={"threads": 1})
    raw.register("source", original.table)
    raw.execute("CREATE TABLE t AS FROM source")
    few = texts[: options.raw_queries]
    one_by_one = _timed(lambda: [raw.execute(text).fetchall() for text in few]) / len(few)
    print(
        f"300,000 rows, {len(texts)} questions: ask_many {batched * 1e3:.2f} ms each, "
        f"DuckDB on the raw table {one_by_one * 1e3:.2f} ms each: {one_by_one / batched:.1f} times faster"
    )


def _timed(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    main()
