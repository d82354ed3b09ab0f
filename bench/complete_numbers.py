"""How often pooled intervals from complete tables hold where the secret is a number, over releases.

    python -m bench.complete_numbers [--rows 6000] [--releases 30] [--copies 10]

The people are those of `bench.number_coverage`: salaries, all different, of eight departments (one of 3 % of
the people earns far more), by age and sex; buckets of 50. Each release has new people. Pooled are the mean
salary of each department, the share of each above the 90 % quantile, and two coefficients of a linear
regression of the logarithm on age and sex; the truth is the table's own, of which copies leave only the
matching open, so that nothing is added for a sample of a larger population.
"""

from __future__ import annotations

import argparse

import numpy as np

import dalenius
from bench.number_coverage import people
from dalenius.arrays import Codes, Floats
from dalenius.mechanisms.bucketize.estimate.drawing import draw_numbers
from dalenius.randomness import Randomness

_KINDS = {
    "mean salary of a department": 8,
    "share above the 90 % quantile": 8,
    "slope on age": 1,
    "of sex": 1,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=6_000)
    parser.add_argument("--releases", type=int, default=30)
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    print(
        "| strength | what | 95 % intervals that hold | mean error, of the truth | width, of ideal | dealt |"
    )
    print("|---|---|---|---|---|---|")
    for strength in (0.0, 0.5, 1.0, 2.0):
        seeds = range(options.first, options.first + options.releases)
        runs = [_run(options.rows, strength, seed, options.copies) for seed in seeds]
        truth, mean, low, high, dealt = (np.array(part) for part in zip(*runs, strict=True))
        start = 0
        for name, n in _KINDS.items():
            own = slice(start, start + n)
            start += n
            _print(strength, name, truth[:, own], mean[:, own], low[:, own], high[:, own], dealt[:, own])


def _print(
    strength: float, name: str, truth: Floats, mean: Floats, low: Floats, high: Floats, dealt: Floats
) -> None:
    held = ((low <= truth) & (truth <= high)).mean()
    error = mean - truth
    wide = ((high - low).mean(axis=0) / (2 * 1.96 * error.std(axis=0))).mean()
    size = np.abs(truth).mean()
    print(
        f"| {strength:g} | {name} | {held:.3f} | {error.mean() / size:+.3f} | {wide:.2f} | "
        f"{(dealt - truth).mean() / size:+.3f} |"
    )


def _run(n: int, strength: float, seed: int, n_copies: int) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Of each question: the truth, the pooled estimate, its interval, and what dealing at random gives."""
    made, buckets, (dept, age, sex), salary = people(n, strength, seed)
    level = np.quantile(salary, 0.9)
    features = np.column_stack([np.ones(len(age)), age, sex])

    def ask(own: Floats) -> Floats:
        means = [own[dept == d].mean() for d in range(8)]
        shares = [(own[dept == d] > level).mean() for d in range(8)]
        return np.array([*means, *shares, *np.linalg.lstsq(features, np.log(own), rcond=None)[0][1:]])

    stream = Randomness.seeded(seed).stream("complete")
    copies = [ask(salary[draw_numbers(made, buckets, stream)]) for _ in range(n_copies)]
    pooled = dalenius.pool([list(copy) for copy in copies], [np.zeros((18, 18))] * n_copies)
    low, high = np.array(pooled.interval()).T
    return ask(salary), np.asarray(pooled.estimate), low, high, ask(_dealt(buckets.row_bucket, salary, seed))


def _dealt(home: Codes, salary: Floats, seed: int) -> Floats:
    """The salaries of each bucket, dealt to its people at random."""
    found = np.empty_like(salary)
    mixed = np.lexsort((np.random.default_rng(seed).random(len(salary)), home))
    found[np.argsort(home, kind="stable")] = salary[mixed]
    return found


if __name__ == "__main__":
    main()
