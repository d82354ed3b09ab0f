"""Error and coverage of the estimators for bucketized releases, as tables for docs/coverage.md.

    python -m bench.coverage [--data ../shared/data] [--dataset adult kdd] [--releases 3] [--questions 200]

Every release is published anew (other random assignment, same plan) and asked through `ask_many`; the truth
is counted on the raw table. A question whose true count is below 0.1 % of the rows counts as small.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
from bench.anatomy_workload import CountQuestion, Original, load, publish, questions

from dalenius.ask import ask_many
from dalenius.release.reader import StoredRelease

ESTIMATORS = ("anatomy", "regression", "shrinkage")
LEVELS = (0.9, 0.95, 0.99)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("DALENIUS_DATA", "../shared/data")))
    parser.add_argument("--dataset", nargs="+", default=["adult", "kdd"])
    parser.add_argument("--theta", nargs="+", type=int, default=[2, 4, 8, 16])
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--questions", type=int, default=200)
    options = parser.parse_args()
    for name in options.dataset:
        original = load(options.data, name)
        print(f"\n### {name}: counts\n\n{_HEAD}")
        sums: list[str] = []
        for theta in options.theta:
            found = [
                _one_release(original, theta, seed, options.questions) for seed in range(options.releases)
            ]
            for estimator in ESTIMATORS:
                counts = np.concatenate([part["counts"][estimator] for part in found], axis=1)
                print(_row(theta, estimator, counts, original.n_rows), flush=True)
                for column in ("SUM(age)", "AVG(age)"):
                    numbers = np.concatenate([part[column][estimator] for part in found], axis=1)
                    sums.append(_sum_row(theta, estimator, column, numbers))
        print(f"\n### {name}: sums and means of age\n\n{_SUM_HEAD}")
        print("\n".join(sums), flush=True)


_HEAD = """| θ | estimator | mean RE | median RE | 90 % | 95 % | 99 % | small: 90 % | 95 % | 99 % |
|---|---|---|---|---|---|---|---|---|---|"""
_SUM_HEAD = """| θ | estimator | column | median RE | 90 % | 95 % | 99 % |
|---|---|---|---|---|---|---|"""


def _one_release(original: Original, theta: int, seed: int, n: int) -> dict[str, dict[str, np.ndarray]]:
    rng = np.random.default_rng([theta, seed])
    asked = questions(original, n, rng)
    with tempfile.TemporaryDirectory() as folder:
        release = publish(original, theta, Path(folder), seed)
        counts = {e: _asked(release, original, asked, e) for e in ESTIMATORS}
        large = [q for q in asked if _truth(original, q)[0] >= 0.001 * original.n_rows][:60]
        result = {"counts": counts}
        for k, column in enumerate(("SUM(age)", "AVG(age)"), start=1):
            result[column] = {e: _asked(release, original, large, e, column, k) for e in ESTIMATORS}
    return result


def _asked(
    release: StoredRelease,
    original: Original,
    asked: list[CountQuestion],
    estimator: str,
    column: str = "COUNT(*)",
    index: int = 0,
) -> np.ndarray:
    """Truth, estimate, and whether the intervals of each level hold the truth: 5 × questions."""
    texts = [original.sql(q).replace("COUNT(*)", column, 1) for q in asked]
    truth = np.array([_truth(original, q)[index] for q in asked])
    lines = [truth]
    for level in LEVELS:
        rows = [a.rows[0] for a in ask_many(release, texts, estimator=estimator, confidence=level)]
        if level == LEVELS[0]:
            lines.append(np.array([np.nan if row.estimate is None else row.estimate for row in rows]))
        low = np.array([-np.inf if row.low is None else row.low for row in rows])
        high = np.array([np.inf if row.high is None else row.high for row in rows])
        lines.append((low <= truth + 1e-6) & (truth - 1e-6 <= high))
    return np.stack(lines)


def _truth(original: Original, question: CountQuestion) -> tuple[float, float, float]:
    ages = np.array(original.cells["age"])[original.codes("age")[original.rows(question)]]
    return float(len(ages)), float(ages.sum()), float(ages.mean()) if len(ages) else np.nan


def _row(theta: int, estimator: str, found: np.ndarray, n_rows: int) -> str:
    truth, estimate = found[:2]
    large = truth >= 0.001 * n_rows
    error = np.abs(estimate - truth)[large] / truth[large]
    covered = [f"{found[2 + k, large].mean():.3f}" for k in range(3)]
    small = [f"{found[2 + k, ~large].mean():.3f}" for k in range(3)]
    cells = [str(theta), estimator, f"{error.mean():.3f}", f"{np.median(error):.3f}", *covered, *small]
    return f"| {' | '.join(cells)} |"


def _sum_row(theta: int, estimator: str, column: str, found: np.ndarray) -> str:
    error = np.median(np.abs(found[1] - found[0]) / found[0])
    covered = [f"{found[2 + k].mean():.3f}" for k in range(3)]
    return f"| {' | '.join([str(theta), estimator, column, f'{error:.3f}', *covered])} |"


if __name__ == "__main__":
    main()
