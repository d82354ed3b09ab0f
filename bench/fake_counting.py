"""What an attacker gains who counts the fakes of all buckets: the table of docs/attacks.md.

    python -m bench.fake_counting [--releases 12]

Counts of the values are as 1/rank^0.8, every bucket has one fake. He knows everybody in a bucket but one.
"""

from __future__ import annotations

import argparse
from fractions import Fraction

import numpy as np

from dalenius.mechanisms.bucketize.fakes.law import fit_to_counts, last_trials, likeliest_is_first
from dalenius.mechanisms.bucketize.fakes.plan import MixedLayout, count_values, plan_fakes
from dalenius.mechanisms.bucketize.plan.methods import plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.randomness import Randomness

TABLES = ((40, 4, 1_000), (200, 6, 900), (200, 6, 5_000), (200, 6, 30_000))
"""Values, ℓ, and about how many people."""
CERTAIN = 1 - 1e-9


def main() -> None:
    """One line a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=12)
    n_releases = parser.parse_args().releases
    print("| values, ℓ | people | right by one bucket | right by counting | certain of | stated |")
    print("|---|---|---|---|---|---|")
    for n_values, ell, people in TABLES:
        shares = np.arange(1, n_values + 1) ** -0.8
        counts = tuple(max(1, round(people * share / shares.sum())) for share in shares.tolist())
        alone, counting, certain, stated = _measure(counts, ell, n_releases)
        shares_of_people = f"{alone:.2f} | {counting:.2f} | {100 * certain:.0f} % | {stated:.2f}"
        print(f"| {n_values}, {ell} | {sum(counts):,} | {shares_of_people} |", flush=True)


def _measure(counts: tuple[int, ...], ell: int, n_releases: int) -> tuple[float, float, float, float]:
    """Shares of people, and what the manifest would state."""
    problem = BucketProblem(counts=counts, thresholds=(Fraction(1, ell),) * len(counts), max_bucket=50)
    plan = plan_buckets(problem, "optimal")
    planned = plan_fakes(plan, problem, 1)
    sums = np.zeros(4)
    for seed in range(n_releases):
        layout = MixedLayout(plan, problem, planned, Randomness.seeded(seed))
        drawn = zip(planned.laws, layout._contents, layout._fakes, strict=True)  # noqa: SLF001
        for law, codes, fakes in drawn:
            contents = count_values(codes, problem.n_values)
            known, left, weight = last_trials(contents, fakes)
            counted = fit_to_counts(law, contents, fakes).last_posterior(known, left)
            one_bucket = law.last_posterior(known, left)
            trials = (
                likeliest_is_first(one_bucket),
                likeliest_is_first(counted),
                counted[:, 0] >= CERTAIN,
                1.0,
            )
            sums += [float((trial * weight).sum()) for trial in trials]
    alone, counting, certain, _ = (sums / sums[-1]).tolist()
    return alone, counting, certain, planned.posterior


if __name__ == "__main__":
    main()
