"""The cost model of publishing on Spark, fitted to what `bench.spark_speed --json FILE` has measured.

    python -m bench.cluster_cost FILE [--into docs/cluster.md]

Seconds are a + b · rows / cores, by least squares of relative errors over the sizes that were measured; of
several runs of one size the last counts. Prints the measurements, the fit and what it predicts as Markdown,
or puts them between the marks of a page. A job that was run with one size only is not fitted. What limits a
table of 10⁹ or 10¹² rows is computed from the engine's own rules, and the bytes of small blocks are measured
by making them.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dalenius.engines.spark.engine import GROUP_ROWS
from dalenius.engines.spark.shuffle import COLLECTED_ROWS, to_blocks
from dalenius.engines.spark.source import MOST_BYTES, USUAL_PARTS

CORES = 2
_PUBLISH = ("count", "fingerprint", "scatter", "gather")
STEPS = {
    "copy": ("look", "count", "count", "look", "read and shuffle", "write"),
    "bucketize": (*_PUBLISH, "write st"),
    "suppress": (*_PUBLISH, "write st"),
    "perturb": _PUBLISH,
    "perturb-frame": ("look", *_PUBLISH),
    "alpha-beta": (
        *("count", "domains", "scatter all", "count different"),
        *("fingerprint", "count values", "scatter", "gather"),
    ),
}
"""What the stages of a job do, in their order."""
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
N_VALUES = 50
PREDICTED = (10**9, 10**12)
CLUSTER = USUAL_PARTS
"""Cores: no more than a table of 10⁹ rows has parts."""
LARGE_GROUPS = 2**24


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """seconds = start + per_row · rows / cores."""

    start: float
    per_row: float

    @classmethod
    def of(cls, rows: list[int], seconds: list[float]) -> Fit:
        """By least squares of relative errors, with no negative start."""
        taken = np.array(seconds)
        design = np.column_stack([np.ones(len(rows)), np.array(rows) / CORES]) / taken[:, None]
        start, per_row = np.linalg.lstsq(design, np.ones(len(rows)), rcond=None)[0]
        if start < 0:
            start, per_row = 0.0, float(1 / np.mean(design[:, 1]))
        return cls(start=float(start), per_row=float(per_row))

    def seconds(self, rows: int, cores: int) -> float:
        """How long it would take."""
        return self.start + self.per_row * rows / cores


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--into", type=Path, help="a page with marks, whose text between them is replaced")
    options = parser.parse_args()
    runs = read_runs(options.file)
    text = "\n\n".join(
        [table(runs) for table in (measured_table, memory_table, profile_table, fit_table, limits_table)]
    )
    if options.into is None:
        print(text)
        return
    before, _, rest = options.into.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    options.into.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def read_runs(path: Path) -> dict[str, dict[int, dict[str, Any]]]:
    """By job, and by rows of the source."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for line in path.read_text().splitlines():
        run = json.loads(line)
        found.setdefault(run["job"], {})[run["source_rows"]] = run
    return {job: dict(sorted(by_rows.items())) for job, by_rows in found.items()}


def measured_table(runs: dict[str, dict[int, dict[str, Any]]]) -> str:
    head = (
        "rows",
        "job",
        "seconds",
        "ratio",
        "CPU seconds",
        "read",
        "shuffled",
        "written",
        "driver",
        "JVM",
        "tasks",
    )
    lines = []
    for n_rows in sorted({n for by_rows in runs.values() for n in by_rows}):
        for job, by_rows in runs.items():
            if n_rows in by_rows:
                lines.append((f"{n_rows:,}", job, *_measured(by_rows[n_rows])))
    return _markdown(head, lines)


def _measured(run: dict[str, Any]) -> list[str]:
    per_row = [f"{run[what] / run['source_rows']:.1f}" for what in ("read", "shuffled", "written")]
    memory = [f"{run['peak_mb'][part]:,} MB" for part in ("driver", "jvm", "tasks")]
    return [
        f"{run['seconds']:.1f}",
        f"{run['ratio']:.2f}",
        f"{sum(run['cpu'].values()):.0f}",
        *per_row,
        *memory,
    ]


def memory_table(runs: dict[str, dict[int, dict[str, Any]]]) -> str:
    """The driver's peak at each size, and how much it grew over the last step."""
    sizes = sorted({n for by_rows in runs.values() for n in by_rows})
    lines = []
    for job, by_rows in runs.items():
        peaks = [by_rows[n]["peak_mb"]["driver"] if n in by_rows else None for n in sizes]
        known = [peak for peak in peaks if peak is not None]
        growth = f"{known[-1] / known[-2]:.2f} ×" if len(known) > 1 else ""
        lines.append((job, *("" if peak is None else f"{peak:,} MB" for peak in peaks), growth))
    return _markdown(("driver memory", *(f"{n:,} rows" for n in sizes), "last step"), lines)


def profile_table(runs: dict[str, dict[int, dict[str, Any]]]) -> str:
    """Of the largest run of each job: the stages' shares of its seconds."""
    lines = []
    for job, by_rows in runs.items():
        run = max(by_rows.values(), key=lambda one: one["source_rows"])
        steps: dict[str, float] = {}
        for name, stage in zip(_steps(job, len(run["stages"])), run["stages"], strict=True):
            steps[name] = steps.get(name, 0.0) + stage["last"] - stage["first"]
        steps["driver"] = run["seconds"] - sum(steps.values())
        shares = {name: seconds / run["seconds"] for name, seconds in steps.items()}
        told = ", ".join(f"{name} {share:.0%}" for name, share in shares.items() if share >= 0.01)
        lines.append((job, f"{run['source_rows']:,}", told))
    return _markdown(("job", "rows", "where the time goes"), lines)


def _steps(job: str, n_stages: int) -> tuple[str, ...]:
    known = STEPS.get(job, ())
    return known if len(known) == n_stages else tuple(f"stage {i + 1}" for i in range(n_stages))


def fit_table(runs: dict[str, dict[int, dict[str, Any]]]) -> str:
    head = (
        "job",
        "a, seconds",
        "b, µs a row and core",
        "worst error",
        "10⁹ rows, 2 cores",
        f"10⁹ rows, {CLUSTER:,} cores",
        f"10¹² rows, {CLUSTER:,} cores",
    )
    lines = []
    for job, by_rows in runs.items():
        rows, seconds = list(by_rows), [run["seconds"] for run in by_rows.values()]
        if len(rows) == 1:
            continue
        fit = Fit.of(rows, seconds)
        worst = max(abs(fit.seconds(n, CORES) / s - 1) for n, s in zip(rows, seconds, strict=True))
        times = [(PREDICTED[0], CORES), (PREDICTED[0], CLUSTER), (PREDICTED[1], CLUSTER)]
        predicted = [_duration(fit.seconds(n, cores)) for n, cores in times]
        lines.append((job, f"{fit.start:.1f}", f"{fit.per_row * 1e6:.2f}", f"{worst:.0%}", *predicted))
    return _markdown(head, lines)


def limits_table(runs: dict[str, dict[int, dict[str, Any]]]) -> str:
    largest = max(next(iter(runs.values())).values(), key=lambda run: run["source_rows"])
    bytes_a_row = largest["source_bytes"] / largest["source_rows"]
    cases = [(PREDICTED[0], GROUP_ROWS), (PREDICTED[1], GROUP_ROWS), (PREDICTED[1], LARGE_GROUPS)]
    columns = [_limits(n, group_rows, bytes_a_row) for n, group_rows in cases]
    head = ("", "10⁹ rows", "10¹² rows", "10¹² rows, groups of 2²⁴")
    return _markdown(head, [(name, *(column[name] for column in columns)) for name in columns[0]])


def _limits(n_rows: int, group_rows: int, bytes_a_row: float) -> dict[str, str]:
    parts = max(USUAL_PARTS, math.ceil(n_rows * bytes_a_row / MOST_BYTES))
    groups = math.ceil(n_rows / group_rows)
    rows_a_block = min(n_rows / parts, COLLECTED_ROWS) / groups
    return {
        "source": f"{_size(n_rows * bytes_a_row)} in {parts:,} parts",
        "groups, and files": f"{groups:,}",
        "counts at the driver, and in every task": _size(8 * N_VALUES * parts),
        "quotas in a scatter task (bucketize)": _size(8 * N_VALUES * groups),
        "rows in a block": f"{rows_a_block:,.1f}" if rows_a_block >= 1 else "1",
        "shuffled a row, bytes": f"{block_bytes(rows_a_block):.0f}",
        "rows that a gather task holds": f"{group_rows:,}",
    }


def block_bytes(rows_a_block: float) -> float:
    """Of a row of the benchmark's table in blocks of that many rows: made and weighed."""
    random = np.random.Generator(np.random.PCG64(1))
    n_rows = 2**16
    sizes = (100, 2, 1_000, 16, 200, 60, 80, N_VALUES)
    rows = pa.record_batch({f"c{i}": random.integers(size, size=n_rows) for i, size in enumerate(sizes)})
    groups = random.integers(max(1, round(n_rows / max(rows_a_block, 1))), size=n_rows)
    blocks = to_blocks(iter([(groups, rows)]), 0)
    return float(sum(batch.column(3).nbytes for batch in blocks) / n_rows)


def _markdown(head: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ("---",) * len(head), *lines))


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def _size(n_bytes: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes:.0f} bytes"


if __name__ == "__main__":
    main()
