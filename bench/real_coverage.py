"""Error and coverage of the estimators for bucketized releases of Adult and KDD workers.

A release is planned and published once; other releases of the same plan deal the records of each value anew
over its places, which is all that the publisher's coins decide. A question whose true count is below 0.1 % of
the rows counts as small.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.anatomy_workload import CountQuestion, Original, load, publish, questions
from dalenius.mechanisms.bucketize.estimate import make_estimator
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.possible import possible_range
from dalenius.question.targets import Estimates, Score, Targets

ESTIMATORS = ("anatomy", "regression", "shrinkage")
LEVELS = (0.9, 0.95, 0.99)
THETAS = (2, 4, 8, 16)
_HEAD = """| θ | estimator | mean RE | median RE | 90 % | 95 % | 99 % | small: 90 % | 95 % | 99 % |
|---|---|---|---|---|---|---|---|---|---|"""


def real_tables(data: Path, n_releases: int, n_questions: int, processes: int, only: str) -> None:
    """Print a table for each data set that is present and whose name has `only` in it."""
    for name, file in (("adult", "adult.csv"), ("kdd", "kdd_workers.csv.gz")):
        if only not in name:
            continue
        if not (data / file).exists():
            print(f"\n{name}: {data / file} is not there")
            continue
        print(f"\n### {name}: counts\n\n{_HEAD}", flush=True)
        tasks = [(data, name, theta, n_releases, n_questions) for theta in THETAS]
        with Pool(processes) as pool:
            for lines in pool.imap(_lines, tasks, chunksize=1):
                print("\n".join(lines), flush=True)


def _lines(task: tuple[Path, str, int, int, int]) -> list[str]:
    """The rows of a table for one θ."""
    data, name, theta, n_releases, n_questions = task
    original = load(data, name)
    places = Places.of(original, theta)
    found = [_one_release(original, places, theta, seed, n_questions) for seed in range(n_releases)]
    return [
        _row(theta, estimator, np.concatenate([one[estimator] for one in found], axis=1), original.n_rows)
        for estimator in ESTIMATORS
    ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """The sensitive table of a release: bucket and value codes, and counts."""

    bucket: np.ndarray
    value: np.ndarray
    count: np.ndarray

    @classmethod
    def of(cls, original: Original, theta: int, contents: str = "even", seed: int = 0) -> Places:
        """Of a published release."""
        with tempfile.TemporaryDirectory() as folder:
            release = publish(original, theta, Path(folder), seed, contents=contents)
            table = pa.concat_tables([pq.read_table(path) for path in release.files("st")])
        known = {value: code for code, value in enumerate(original.cells[original.sensitive[0]])}
        return cls(
            bucket=np.unique(table["bucket"].to_numpy(), return_inverse=True)[1].astype(np.int64),
            value=np.array([known[v] for v in table[original.sensitive[0]].to_pylist()], dtype=np.int64),
            count=table["count"].to_numpy().astype(np.int64),
        )

    def deal(self, codes: np.ndarray, rng: np.random.Generator) -> Buckets:
        """The records of each value, at random over its places."""
        slots, values = np.repeat(self.bucket, self.count), np.repeat(self.value, self.count)
        rows = np.empty(len(codes), dtype=np.int64)
        rows[np.lexsort((rng.random(len(codes)), codes))] = slots[np.argsort(values, kind="stable")]
        return Buckets.of(rows, self.bucket, self.value, self.count)


def _one_release(
    original: Original, places: Places, theta: int, seed: int, n_questions: int
) -> dict[str, np.ndarray]:
    """By estimator: truth, estimate, and whether the intervals of each level hold the truth."""
    rng = np.random.default_rng([theta, seed])
    asked, secret = questions(original, n_questions, rng), original.sensitive[0]
    codes = original.codes(secret)
    buckets = places.deal(codes, rng)
    rows = [
        original.rows(CountQuestion(conditions=tuple(part for part in one.conditions if part[0] != secret)))
        for one in asked
    ]
    weights = np.zeros((len(asked), len(original.cells[secret])))
    for k, one in enumerate(asked):
        weights[k, list(dict(one.conditions)[secret])] = 1.0
    truth = np.array([own[codes[members]].sum() for own, members in zip(weights, rows, strict=True)])
    sums = ScoreSums.of(buckets, [Score(rows=members) for members in rows])
    targets = Targets.of([[(k, own)] for k, own in enumerate(weights)])
    possible = possible_range(sums, targets)
    columns = [original.codes(name) for name in original.quasi]
    return {
        name: _held(make_estimator(name, buckets, columns).estimate(sums, targets), truth, possible)
        for name in ESTIMATORS
    }


def _held(found: Estimates, truth: np.ndarray, possible: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    lines = [truth, found.estimate]
    for level in LEVELS:
        low, high = found.intervals(level, possible)
        low, high = np.clip(low, *possible), np.clip(high, *possible)
        lines.append((np.floor(low + 1e-6) <= truth) & (truth <= np.ceil(high - 1e-6)))
    return np.stack(lines)


def _row(theta: int, estimator: str, found: np.ndarray, n_rows: int) -> str:
    truth, estimate = found[:2]
    large = truth >= 0.001 * n_rows
    error = np.abs(estimate - truth)[large] / truth[large]
    covered = [f"{found[2 + k, large].mean():.3f}" for k in range(3)]
    small = [f"{found[2 + k, ~large].mean():.3f}" for k in range(3)]
    cells = [str(theta), estimator, f"{error.mean():.3f}", f"{np.median(error):.3f}", *covered, *small]
    return f"| {' | '.join(cells)} |"
