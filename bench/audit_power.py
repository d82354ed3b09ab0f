"""How small a deviation from its law an audit finds: what is caught in 99 of 100 releases.

    python -m bench.audit_power [--rows 10000] [--mechanisms bucketize …]

Every law's counts are taken from an audit of an honest release of the benchmark's table. For a count of all
people, of about half of them and of about a tenth (a cell of some facet), counts are drawn that are off by a
part of the things that they are of, and judged as the audit judges them, with their share of the false alarm
of 1e-6 that a whole audit has. Printed is the smallest such part that is caught with 99 %.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import dalenius
from bench.publish_jobs import generate, options_parser, policy_of
from dalenius.auditing import audit_release
from dalenius.release.folder import StoredRelease
from dalenius.threats import counts
from dalenius.threats.chance import SHARE
from dalenius.threats.counts import Counts

_DRAWS = 4_000
_CAUGHT = 0.99


class Recorder:
    """Stands in for the audit's judge, and keeps the counts of every law."""

    def __init__(self) -> None:
        self.laws: dict[str, tuple[int, list[Counts]]] = {}
        self._judge = counts.judge_laws

    def __call__(self, name: str, threat: Any, groups: Iterable[Counts], **more: Any) -> Any:
        """Judge as the audit does."""
        kept = [group for group in groups if len(group.tested)]
        self.laws[name] = (more["n_things"], kept)
        return self._judge(name, threat, iter(kept), **more)

    def install(self) -> None:
        """In every module that judges laws."""
        for module in [m for n, m in sys.modules.items() if n.startswith("dalenius.mechanisms")]:
            if hasattr(module, "judge_laws"):
                vars(module)["judge_laws"] = self


def things_of(cell: Counts, n_things: int) -> float:
    """Of how many people, rows or tuples a count is: noise is of the rows that are expected of it."""
    trials = float(cell.trials[0])
    return trials if trials <= 1.05 * n_things else float(cell.expected[0])


def caught(cell: Counts, off: float, level: float) -> float:
    """How often a count that is off by so much is called a deviation."""
    trials, spread = float(cell.trials[0]), float(cell.variance[0]) ** 0.5
    drawn = np.random.default_rng(1).normal(float(cell.expected[0]) + off, spread, _DRAWS)
    cells = [np.full(_DRAWS, getattr(cell, name)[0]) for name in ("expected", "variance", "trials")]
    expected, variance, of = cells
    seen = np.clip(drawn.round(), 0, trials)
    many = replace(cell, observed=seen, expected=expected, variance=variance, trials=of)
    return float((many.p_values() <= level).mean())


def smallest(cell: Counts, level: float) -> float | None:
    """The smallest number by which a count is off that is caught often enough; None: no such number is."""
    expected, trials = float(cell.expected[0]), float(cell.trials[0])
    side = 1.0 if expected <= trials / 2 else -1.0
    low, high = 0.0, min(max(expected, trials - expected), 100 * max(expected, 100.0))
    if caught(cell, side * high, level) < _CAUGHT:
        return None
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (low, middle) if caught(cell, side * middle, level) >= _CAUGHT else (middle, high)
    return high


def cells_near(groups: list[Counts], n_things: int, share: float) -> Iterator[tuple[Counts, int]]:
    """Of every group the cell whose number of things is nearest to a share of all."""
    for group in groups:
        if group.name.endswith("learnt"):
            continue
        tested = group.tested
        of = group.trials if group.trials[tested].max() <= 1.05 * n_things else group.expected
        cell = int(tested[np.abs(of[tested] - share * n_things).argmin()])
        yield group.at(cell), len(tested)


def measure(n_things: int, groups: list[Counts]) -> Iterator[tuple[str, float, float]]:
    """For the largest count, and one of about half and a tenth: what, its part of all things, what is caught.

    What is caught is a part of the things that the count is of, the median over the facets that have one.
    """
    for what, share in (("largest", 1.0), ("half", 0.5), ("tenth", 0.1)):
        near = list(cells_near(groups, n_things, share))
        largest = max((things_of(cell, n_things) for cell, _ in near), default=0.0)
        low, high = (
            (0.99 * largest, largest)
            if what == "largest"
            else (0.7 * share * n_things, 1.4 * share * n_things)
        )
        chosen = [(c, n) for c, n in near if low <= things_of(c, n_things) <= high][:40]
        found = [(things_of(cell, n_things), smallest(cell, SHARE / (len(groups) * n))) for cell, n in chosen]
        known = [(things / n_things, off / things) for things, off in found if off is not None]
        if known:
            yield what, float(np.median([k[0] for k in known])), float(np.median([k[1] for k in known]))


def main() -> None:
    """Print a line for every law of every mechanism."""
    parser = options_parser()
    parser.add_argument("--rows", type=int, default=10_000)
    options = parser.parse_args()
    print(f"caught in 99 of 100, at {options.rows:,} rows, as a part of the things that a count is of")
    for mechanism in options.mechanisms:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            table = Path(folder) / "table.parquet"
            generate(options.rows, table)
            release = dalenius.publish(policy_of(mechanism, table), seed=1)
            stored, recorder = StoredRelease.open(release.path), Recorder()
            audit_release(stored, str(table), seed=1)  # loads the modules
            recorder.install()
            audit_release(stored, str(table), seed=1)
        for law, (n_things, groups) in recorder.laws.items():
            told = [
                f"{what} ({of:.1%} of {n_things:,}) {off:.2%}" for what, of, off in measure(n_things, groups)
            ]
            print(f"{mechanism}: {law}: {'; '.join(told) or 'nothing is left to chance'}", flush=True)


if __name__ == "__main__":
    main()
