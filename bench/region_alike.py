"""How far the intervals of shrinkage in regions depend on how alike the regions' errors are taken to be.

    python -m bench.region_alike [--data FOLDER] [--dataset adult education] [--theta 8 16]

The number (`ALIKE`) was 0.15, chosen on Adult and KDD workers, until KDD adults with education showed that it
is too small. Printed is how often 95 % intervals hold the truth, and how wide they are as a multiple of those
at 0.15.
Estimates do not depend on it.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from unittest.mock import patch

import numpy as np

from bench.anatomy_workload import TABLES, Original, load, publish, questions
from dalenius.ask import ask_many
from dalenius.mechanisms.bucketize.estimate import regions as estimate_regions
from dalenius.release.folder import StoredRelease
from dalenius.reproduce.microdata import data_folder

TRIED = (0.05, 0.1, 0.15, 0.2, 0.3)


def intervals(release: StoredRelease, texts: list[str], alike: float) -> np.ndarray:
    """Both ends of every interval."""
    with patch.object(estimate_regions, "ALIKE", alike):
        rows = [answer.rows[0] for answer in ask_many(release, texts, estimator="shrinkage")]
    return np.array([(row.low, row.high) for row in rows], dtype=float)


def measure(original: Original, theta: int, seed: int, n: int) -> list[tuple[float, float]]:
    """For each number tried: the share of intervals that hold the truth, and their mean width in records."""
    drawn = questions(original, n, np.random.default_rng([theta, seed]))
    truth = np.array([original.count(question) for question in drawn])
    large = np.flatnonzero(truth >= 0.001 * original.n_rows)
    texts, found = [original.sql(drawn[i]) for i in large], []
    with tempfile.TemporaryDirectory() as folder:
        release = publish(original, theta, Path(folder), seed, regions=True)
        for alike in TRIED:
            low, high = intervals(release, texts, alike).T
            held = (low <= truth[large] + 1e-6) & (truth[large] - 1e-6 <= high)
            found.append((float(held.mean()), float((high - low).mean())))
    return found


def main() -> None:
    """A row for each table and θ."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--dataset", nargs="+", choices=list(TABLES), default=["adult", "education"])
    parser.add_argument("--theta", nargs="+", type=int, default=[8, 16])
    parser.add_argument("--releases", type=int, default=2)
    parser.add_argument("--questions", type=int, default=150)
    options = parser.parse_args()
    print(f"| table | θ | {' | '.join(str(alike) for alike in TRIED)} |\n|---|---|{'---|' * len(TRIED)}")
    for name in options.dataset:
        original = load(options.data, name)
        for theta in options.theta:
            of_seeds = [measure(original, theta, seed, options.questions) for seed in range(options.releases)]
            held, width = np.mean(of_seeds, axis=0).T
            usual = width[TRIED.index(0.15)]
            cells = [f"{share:.3f} ({wide / usual:.2f})" for share, wide in zip(held, width, strict=True)]
            print(f"| {name} | {theta} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
