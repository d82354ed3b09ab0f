"""What regions gain and cost, as tables for docs/regions.md.

    python -m bench.regions [--data FOLDER] [--dataset adult kdd demo] [--releases 3] [--questions 200]

Every θ is published with and without regions, several times over (other random assignment, same plan), and
asked Anatomy's workload; questions whose true count is below 0.1 % of the rows are left out of the errors.
The deFinetti attacker is that of `dalenius audit`. `demo` is the table of `dalenius demo`, whose θ is 3.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.anatomy_workload import CountQuestion, Original, load, publish, questions
from dalenius.ask import ask_many
from dalenius.mechanisms.bucketize.attacks.association import attack_definetti
from dalenius.mechanisms.bucketize.attacks.case import BucketCase, RowPairs, draw_buckets
from dalenius.release.folder import StoredRelease
from dalenius.reproduce.microdata import data_folder

ESTIMATORS = ("anatomy", "shrinkage", "matching")
_HEAD = """| θ | regions | MSE | RE: Anatomy | shrinkage | matching | 95 %: Anatomy | shrinkage \
| matching | linking | deFinetti | seconds |
|---|---|---|---|---|---|---|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One release: its buckets, what answers miss by, and what attackers reach."""

    n_regions: int
    mse: float
    error: dict[str, float]
    covered: dict[str, float]
    linking: float
    definetti: float
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--dataset", nargs="+", default=["adult", "kdd"])
    parser.add_argument("--theta", nargs="+", type=int, default=[2, 4, 8, 16])
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--questions", type=int, default=200)
    options = parser.parse_args()
    for name in options.dataset:
        original = load(options.data, name)
        print(f"\n### {name}\n\n{_HEAD}")
        for theta in options.theta:
            for regions in (False, True):
                found = [
                    measure(original, theta, seed, options.questions, regions=regions)
                    for seed in range(options.releases)
                ]
                print(_row(theta, found), flush=True)


def measure(original: Original, theta: int, seed: int, n: int, *, regions: bool) -> Measured:
    """Publish, ask and attack once."""
    drawn = questions(original, n, np.random.default_rng([theta, seed]))
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        release = publish(original, theta, Path(folder), seed, regions=regions)
        seconds = time.perf_counter() - start
        asked = {name: _asked(release, original, drawn, name) for name in ESTIMATORS}
        case = BucketCase.load(release, original.table)
        stream = np.random.default_rng(seed)
        attack = attack_definetti(case, RowPairs.of(case, draw_buckets(case, stream)), stream)
    sizes = release.manifest.parameters["buckets"]
    return Measured(
        n_regions=len(release.manifest.parameters.get("regions", [0])),
        mse=sum(s["count"] * (s["size"] - 1) ** 2 for s in sizes) / (original.table.num_rows - 1),
        error={name: error for name, (error, _) in asked.items()},
        covered={name: share for name, (_, share) in asked.items()},
        linking=float(attack.detail["linking_by_profile"]),
        definetti=attack.success,
        seconds=seconds,
    )


def _asked(
    release: StoredRelease, original: Original, drawn: list[CountQuestion], estimator: str
) -> tuple[float, float]:
    """The mean relative error, and the share of 95 % intervals that hold the truth."""
    truths = np.array([original.count(question) for question in drawn])
    large = np.flatnonzero(truths >= 0.001 * original.table.num_rows)
    texts = [original.sql(drawn[i]) for i in large]
    rows = [answer.rows[0] for answer in ask_many(release, texts, estimator=estimator)]
    truth = truths[large]
    estimate = np.array([row.estimate for row in rows], dtype=float)
    low = np.array([-np.inf if row.low is None else row.low for row in rows])
    high = np.array([np.inf if row.high is None else row.high for row in rows])
    held = (low <= truth + 1e-6) & (truth - 1e-6 <= high)
    return float((np.abs(estimate - truth) / truth).mean()), float(held.mean())


def _row(theta: int, found: list[Measured]) -> str:
    cells = [
        str(theta),
        str(found[0].n_regions) if found[0].n_regions > 1 else "–",
        f"{found[0].mse:.2f}",
        *(_spread([one.error[name] for one in found]) for name in ESTIMATORS),
        *(f"{np.mean([one.covered[name] for one in found]):.3f}" for name in ESTIMATORS),
        _spread([one.linking for one in found]),
        _spread([one.definetti for one in found]),
        f"{np.median([one.seconds for one in found]):.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def _spread(values: list[float]) -> str:
    """The mean, and the standard deviation over releases."""
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1) if len(values) > 1 else 0:.3f}"


if __name__ == "__main__":
    main()
