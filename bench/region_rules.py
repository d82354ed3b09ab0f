"""What telling nothing costs: regions cut where it is sure, and cut while both halves keep their thresholds.

    python -m bench.region_rules [--data FOLDER] [--releases 4] [--questions 250]

The second rule, the obvious one, tells what it should not (docs/regions.md) and is here for comparison only.
Both choose among the same cuts and are planned and dealt by the same functions, in memory, on Adult with
occupation. Printed is the mean relative error of Anatomy's estimator over questions with a true count of at
least 0.1 % of the rows, ± the standard deviation over releases.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.anatomy_workload import Original, load
from dalenius.arrays import Ints
from dalenius.evaluate.metrics import Spread, mean_relative_error
from dalenius.evaluate.workload import Cells
from dalenius.mechanisms.bucketize.plan.methods import plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.mechanisms.bucketize.regions.cut import Cut, CutRule, Grid, first_cells, least_rows, spreads
from dalenius.randomness import Randomness
from dalenius.reproduce.answers import Bucketized, QuestionPool, anatomy_pool
from dalenius.reproduce.census import sensitive_codes, value_counts
from dalenius.reproduce.microdata import data_folder

MAX_BUCKET = 50


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Region:
    """The people of a region."""

    rule: CutRule
    cells: Ints
    """Columns × people."""
    codes: Ints
    """Of their sensitive values."""

    def values(self, people: NDArray[np.bool_] | None = None) -> Ints:
        """How often each value occurs among some of them."""
        codes = self.codes if people is None else self.codes[people]
        return np.bincount(codes, minlength=len(self.rule.thresholds))

    def counts(self) -> Ints:
        """How many people each cell holds, column after column."""
        offsets = self.rule.offsets
        return np.bincount((self.cells + offsets[:-1, None]).ravel(), minlength=int(offsets[-1]))

    def side(self, cut: Cut) -> NDArray[np.bool_]:
        """Who is on the first side."""
        return np.asarray(self.cells[cut.column] <= cut.last)


Choose = Callable[[Region], Cut | None]


def never(_region: Region) -> Cut | None:
    """One region for all."""
    return None


def sure(region: Region) -> Cut | None:
    """The product's rule."""
    return region.rule.choose(region.counts(), region.values())


def obvious(region: Region) -> Cut | None:
    """The best cut after which both halves can be published as they are."""
    gains, columns, lasts, _ = region.rule.candidates(region.counts(), len(region.codes))
    for i in np.argsort(-gains, kind="stable"):
        cut = Cut(column=int(columns[i]), last=int(lasts[i]))
        side = region.side(cut)
        halves = (region.values(side), region.values(~side))
        if all(region.rule.is_sure(values, int(values.sum())) for values in halves):
            return cut
    return None


RULES: dict[str, Choose] = {"no regions": never, "sure cuts": sure, "obvious rule": obvious}


def cut_up(rule: CutRule, cells: Ints, codes: Ints, choose: Choose) -> list[Ints]:
    """The people of every region."""
    waiting, settled = [np.arange(len(codes))], []
    while waiting:
        people = waiting.pop()
        region = Region(rule=rule, cells=cells[:, people], codes=codes[people])
        if (cut := choose(region)) is None:
            settled.append(people)
        else:
            side = region.side(cut)
            waiting += [people[side], people[~side]]
    return settled


def rule_for(original: Original, theta: int) -> tuple[CutRule, Ints]:
    """The rule for thresholds θ·f + 0.02, and the cells of every record."""
    (batch,) = original.table.combine_chunks().to_batches()
    found = [first_cells(name, pa.array(sorted(original.cells[name]))) for name in original.quasi]
    grid = Grid(columns=tuple(cells for cells in found if cells is not None))
    for _ in range(2):  # counted, and then counted in the order that the counts gave
        cells = grid.encode(batch)
        counts = np.bincount((cells + grid.offsets[:-1, None]).ravel(), minlength=int(grid.offsets[-1]))
        last, grid = grid, grid.ordered(counts)
    n, values = original.n_rows, value_counts(original)
    thresholds = tuple(min(Fraction(1), theta * Fraction(o, n) + Fraction(1, 50)) for o in values)
    rule = CutRule(
        thresholds=thresholds,
        max_bucket=MAX_BUCKET,
        least_rows=least_rows(n, MAX_BUCKET),
        offsets=last.offsets,
        spread=spreads(counts, last.offsets),
    )
    return rule, cells


def answer(
    pool: QuestionPool, regions: list[Ints], thresholds: tuple[Fraction, ...], randomness: Randomness
) -> Cells:
    """Anatomy's estimates from buckets made region by region."""
    assert pool.is_counted is not None
    codes = sensitive_codes(pool.original)
    type_of, weights, n_types = np.zeros(len(codes), dtype=np.int64), [], 0
    for number, people in enumerate(regions):
        counts = np.bincount(codes[people], minlength=len(thresholds))
        present = np.flatnonzero(counts)
        problem = BucketProblem(
            counts=tuple(counts[present].tolist()),
            thresholds=tuple(thresholds[i] for i in present),
            max_bucket=MAX_BUCKET,
        )
        own = np.searchsorted(present, codes[people]).astype(np.int32)
        key = Randomness(key=randomness.derived_key("region", number), is_seeded=True)
        buckets = Bucketized.of(plan_buckets(problem), own, key).buckets
        type_of[people] = n_types + buckets.type_of[buckets.row_bucket]
        n_types += len(buckets.copies)
        counted = pool.is_counted[present].astype(np.float64)
        weights.append((buckets.composition @ counted) / buckets.type_size[:, None])
    shares = np.concatenate(weights)
    estimate = np.array([shares[type_of[rows], q].sum() for q, rows in enumerate(pool.conditions)])
    truth = np.array([pool.is_counted[codes[rows], q].sum() for q, rows in enumerate(pool.conditions)])
    return Cells(truth=truth.astype(float), estimate=estimate, scale=np.full(len(truth), float(len(codes))))


def main() -> None:
    """A row for each θ."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--theta", nargs="+", type=int, default=[2, 4, 8, 16])
    parser.add_argument("--releases", type=int, default=4)
    parser.add_argument("--questions", type=int, default=250)
    options = parser.parse_args()
    original = load(options.data, "adult")
    print(f"| θ | {' | '.join(RULES)} |\n|---|{'---|' * len(RULES)}")
    for theta in options.theta:
        rule, cells = rule_for(original, theta)
        codes = sensitive_codes(original).astype(np.int64)
        row = []
        for choose in RULES.values():
            regions = cut_up(rule, cells, codes, choose)
            errors = []
            for seed in range(options.releases):
                randomness = Randomness.seeded(seed)
                pool = anatomy_pool(original, options.questions, randomness.stream("queries"))
                found = answer(pool, regions, rule.thresholds, randomness)
                errors.append(mean_relative_error(found.at_least(0.001), 0))
            spread = Spread.of(errors)
            row.append(f"{spread.mean:.3f} ± {spread.deviation or 0:.3f} ({len(regions)})")
        print(f"| {theta} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
