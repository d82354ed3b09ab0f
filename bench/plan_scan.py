"""Plans of random histograms: how long they take, and how near to the optimum they are proven to be.

    python -m bench.plan_scan [--instances 500] [--first 0] [--limit 60] [--json]

Rows from a thousand to a billion, 5 to 10,000 sensitive values (a million in every hundredth instance),
`max_bucket` from 50 to 5,000; counts that fall geometrically, by a power law, at random or not at all;
thresholds of one number, of times · f + plus, or mixed: another rule for every value. Every plan is checked
from its definition, in integers (`BucketPlan.check`), which `plan_buckets` does itself. Time is the
processor's; a plan that takes longer than the limit is given up and counted as that long.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from time import process_time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as commands do: threads that wait would be counted

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.errors import InternalError, PromiseNotMet
from dalenius.mechanisms.bucketize.plan.methods import plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One instance, and how it went."""

    number: int
    what: str
    seconds: float
    gap: float | None
    """None: no setting fits, or none was found in time."""
    outcome: str


def instance(number: int) -> tuple[str, BucketProblem]:
    """A random problem whose thresholds are not below the frequencies."""
    rng = np.random.default_rng([2026, number])
    n_rows = int(10 ** rng.uniform(3, 9))
    n_values = 10**6 if number % 100 == 99 else int(10 ** rng.uniform(np.log10(5), 4))
    n_rows = max(n_rows, 3 * n_values)
    counts = _counts(rng, n_rows, n_values)
    n_rows = int(counts.sum())
    kind = ("one number", "linear", "mixed")[int(rng.integers(3))]
    thresholds = _thresholds(rng, kind, counts)
    max_bucket = int(rng.choice([50, 200, 1_000, 5_000]))
    problem = BucketProblem(
        counts=tuple(counts.tolist()), thresholds=thresholds, max_bucket=min(max_bucket, n_rows)
    )
    return f"n={n_rows:.0e} m={n_values} max_bucket={max_bucket} {kind}", problem


def _counts(rng: np.random.Generator, n_rows: int, n_values: int) -> Ints:
    kinds: list[Floats] = [
        np.geomspace(1, 10 ** -rng.uniform(0.5, 3), n_values),
        np.arange(1.0, n_values + 1) ** -float(rng.uniform(0.3, 1.2)),
        rng.exponential(size=n_values) + 0.01,
        np.ones(n_values),
    ]
    weights = kinds[int(rng.integers(4))]
    return np.asarray(np.maximum((weights / weights.sum() * n_rows).astype(np.int64), 1))


def _thresholds(rng: np.random.Generator, kind: str, counts: Ints) -> tuple[Fraction, ...]:
    n_rows, cap = int(counts.sum()), Fraction(1, 2)
    frequencies = [Fraction(count, n_rows) for count in counts.tolist()]
    most = max(frequencies)
    if kind == "one number":
        one = min(most * Fraction(int(rng.integers(11, 60)), 10), Fraction(9, 10))
        return tuple(max(one, most) for _ in frequencies)
    if kind == "linear":
        times, plus = int(rng.integers(1, 12)), Fraction(int(rng.integers(1, 60)), 1_000)
        return tuple(max(f, min(cap, times * f + plus)) for f in frequencies)
    times_of = rng.choice([2, 3, 5, 8, 20], len(frequencies)).tolist()
    plus_of = rng.choice([0, 2, 5, 20, 100], len(frequencies)).tolist()
    both = zip(frequencies, times_of, plus_of, strict=True)
    return tuple(max(f, min(cap, t * f + Fraction(p, 1_000))) for f, t, p in both)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def plan(number: int, limit: float, budget: int) -> Planned:
    what, problem = instance(number)
    problem = replace(problem, seconds=budget)
    start, gap, outcome = process_time(), None, "planned"
    try:
        with limited(limit):
            gap = plan_buckets(problem).gap
    except PromiseNotMet as error:
        outcome = f"refused: {error.message}"
    except InternalError as error:
        outcome = f"failed: {error.message}"
    except TimeoutError:
        outcome = "given up"
    return Planned(number=number, what=what, seconds=process_time() - start, gap=gap, outcome=outcome)


def summarize(found: list[Planned]) -> dict[str, object]:
    seconds = np.array([one.seconds for one in found])
    gaps = np.array([one.gap for one in found if one.gap is not None] or [np.nan])
    return {
        "instances": len(found),
        "planned": sum(one.gap is not None for one in found),
        "refused": sum(one.outcome.startswith("refused") for one in found),
        "failed": sum(one.outcome.startswith("failed") for one in found),
        "given up": sum(one.outcome == "given up" for one in found),
        "seconds": {f"{q} %": round(float(np.percentile(seconds, q)), 3) for q in (50, 90, 99, 100)},
        "gap": {f"{q} %": float(f"{np.percentile(gaps, q):.2g}") for q in (50, 90, 99, 100)},
        "share with a gap of at most 1e-4": round(float((gaps <= 1e-4).mean()), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure plans of random histograms.")
    parser.add_argument("--instances", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--limit", type=float, default=60.0, help="processor seconds for one plan")
    parser.add_argument("--seconds", type=int, default=1, help="as `dalenius plan --seconds`")
    parser.add_argument("--slow", type=float, default=1.0, help="list the instances above so many seconds")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = []
    for number in range(options.first, options.first + options.instances):
        one = plan(number, options.limit, options.seconds)
        found.append(one)
        is_odd = one.seconds > options.slow or (one.gap or 0) > 1e-4 or one.outcome.startswith("failed")
        if not options.json and is_odd:
            gap = "–" if one.gap is None else f"{one.gap:.1e}"
            print(f"{one.number:>4} {one.seconds:7.2f} s  gap {gap}  {one.what}: {one.outcome}", flush=True)
    summary = summarize(found)
    print(json.dumps(summary, indent=2))


if __name__ == "__main__":
    main()
