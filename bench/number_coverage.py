"""How often intervals about a secret that is a number hold, over releases of synthetic salaries.

    python -m bench.number_coverage [--rows 6000] [--releases 40]

Each release has new people: a department of eight, age, sex and region; a salary with effects of the first
three of the strength given (the part of its variance that they explain), all numbers different. Buckets of 50
hold random numbers, as `publish` makes them. Asked: sums and averages of the salary, counts above its 30 %,
50 % and 90 % quantiles, by department, by age over 50 and by both.
"""

from __future__ import annotations

import argparse

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.numbers import Numbers
from dalenius.mechanisms.rows.effects import Quasi
from dalenius.question.targets import Score, Targets

_SIZE = 50
_SHARES = np.array([0.25, 0.2, 0.15, 0.05, 0.1, 0.12, 0.1, 0.03])
_EFFECTS = np.array([0.0, -0.15, 0.2, 0.35, -0.05, 0.15, -0.3, 0.8])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=6_000)
    parser.add_argument("--releases", type=int, default=40)
    options = parser.parse_args()
    print("| strength | explained | what | 90 % | 95 % | 99 % | width at 95 %, of ideal | Anatomy's error |")
    print("|---|---|---|---|---|---|---|---|")
    for strength in (0.0, 0.5, 1.0, 2.0):
        runs = [_run(options.rows, strength, seed) for seed in range(options.releases)]
        explained = float(np.mean([part for _, part in runs]))
        for kind in ("sum", "average", "count"):
            found = np.concatenate([rows[kind] for rows, _ in runs])
            _print(strength, explained, kind, found)


def _print(strength: float, explained: float, kind: str, found: Floats) -> None:
    truth, estimate, anatomy = found[:, 0], found[:, 1], found[:, 2]
    held = [((found[:, 3 + k] <= truth) & (truth <= found[:, 4 + k])).mean() for k in (0, 2, 4)]
    error = (estimate - truth) / found[:, 9]
    wide = ((found[:, 6] - found[:, 5]) / found[:, 9]).mean() / (2 * 1.96 * error.std())
    ratio = np.sqrt((((anatomy - truth) / found[:, 9]) ** 2).mean()) / np.sqrt((error**2).mean())
    shown = " | ".join(f"{share:.3f}" for share in held)
    print(f"| {strength:g} | {explained:.2f} | {kind} | {shown} | {wide:.2f} | × {ratio:.2f} |")


def people(n: int, strength: float, seed: int) -> tuple[Numbers, Buckets, tuple[Ints, Ints, Ints], Floats]:
    """A release, and its people's department, age and sex, and salary."""
    rng = np.random.default_rng(seed)
    n -= n % _SIZE
    dept, age = rng.choice(8, n, p=_SHARES), rng.integers(0, 46, n)
    sex, region = rng.integers(0, 2, n), rng.integers(0, 10, n)
    signal = strength * (_EFFECTS[dept] + 0.012 * (age - 23) + 0.1 * sex)
    salary = np.exp(10.6 + signal + 0.3 * rng.normal(size=n))
    home = rng.permutation(n) // _SIZE
    buckets = Buckets.of(home, home, np.arange(n), np.ones(n, dtype=np.int64))
    columns = [Quasi(codes=c, is_number=c is age) for c in (dept, age, sex, region)]
    return Numbers.of(buckets, columns, salary, None), buckets, (dept, age, sex), salary


def _run(n: int, strength: float, seed: int) -> tuple[dict[str, Floats], float]:
    """Of each kind: truth, estimate, Anatomy's, three intervals and a scale; and what columns explain."""
    made, buckets, (dept, age, _), salary = people(n, strength, seed)
    groups = [dept == d for d in range(8)] + [age > 30] + [(dept == d) & (age > 30) for d in range(3)]
    sums = ScoreSums.of(buckets, [Score(rows=np.flatnonzero(group)) for group in groups])
    levels = [(salary > np.quantile(salary, q)).astype(float) for q in (0.3, 0.5, 0.9)]
    kinds = {
        "sum": [(g, salary) for g in range(len(groups))],
        "average": [(g, (salary - salary[groups[g]].mean()) / groups[g].sum()) for g in range(len(groups))],
        "count": [(g, level) for g in range(len(groups)) for level in levels],
    }
    found = {}
    for kind, wanted in kinds.items():
        targets = Targets.of([[one] for one in wanted])
        truth = np.array([(weights[groups[g]]).sum() for g, weights in wanted])
        answer = made.estimate(sums, targets)
        ends = [end for level in (0.90, 0.95, 0.99) for end in answer.intervals(level)]
        anatomy = np.array([sums.by_value[:, g] @ weights for g, weights in wanted])
        scale = np.array([groups[g].sum() ** 0.5 * weights.std() for g, weights in wanted])
        found[kind] = np.column_stack([truth, answer.estimate, anatomy, *ends, scale])
    explained = 1 - 0.3**2 / np.var(np.log(salary))
    return found, float(explained)


if __name__ == "__main__":
    main()
