"""The small tables that the papers work out by hand: what our planners make of them."""

from __future__ import annotations

from fractions import Fraction
from math import log, sqrt

import numpy as np

from dalenius.mechanisms.bucketize.plan.methods import plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.mechanisms.bucketize.plan.two_size import partition
from dalenius.mechanisms.perturb.plan.layout import DELTA
from dalenius.mechanisms.perturb.plan.methods import plan_as_in_paper
from dalenius.mechanisms.perturb.plan.starts import balancing_level, initial_groups
from dalenius.mechanisms.suppress.d_suppression import minimal_suppression, safe_d, unsafe_d
from dalenius.mechanisms.suppress.r_suppression import RSuppression
from dalenius.promises.rho_privacy import RhoPrivacy
from dalenius.reproduce.experiment import Experiment, Reproduction, Row


def _alice() -> Reproduction:
    problem = BucketProblem(counts=(1, 1, 1, 1), thresholds=(Fraction(1, 2),) * 4, max_bucket=4)
    plan = plan_buckets(problem)
    rows: list[Row] = [
        (size, n_buckets, f"{1 / size:.0%}", "50%")
        for size, n_buckets in zip(plan.sizes, plan.n_buckets, strict=True)
    ]
    return Reproduction(
        columns=("bucket size", "buckets", "Pr(disease | Alice)", "the paper"),
        rows=tuple(rows),
        stated="two buckets of two records; Alice has Cancer or HIV with 50 % each",
        differs="the same",
        data="the four records of table 1, four diseases, thresholds of 1/2",
    )


def _example3() -> Reproduction:
    counts = np.array([1] * 8 + [6] * 4 + [9] * 2)
    thresholds = tuple(2 * Fraction(int(o), 50) + Fraction(1, 20) for o in counts)
    problem = BucketProblem(counts=tuple(counts.tolist()), thresholds=thresholds, max_bucket=14)
    limits = problem.capacity_table([4, 14]) * np.array([9, 1])
    bounds, loads = np.minimum(limits, counts[:, None]), partition(counts, limits, 4 * 9)
    stated = {0: (0, 1), 8: (6, 4), 12: (9, 5)}
    rows: list[Row] = [
        (
            f"x{first + 1}-x{last}",
            int(counts[first]),
            *bounds[first].tolist(),
            f"{stated[first][0]}, {stated[first][1]}",
            *loads[first:last].sum(axis=0).tolist(),
        )
        for first, last in ((0, 8), (8, 12), (12, 14))
    ]
    best = plan_buckets(problem, "two-size")
    n_moved = int(bounds[:, 0].sum()) - 36
    return Reproduction(
        columns=("values", "o_i", "a_i1", "a_i2", "paper's a_i1, a_i2", "records in 9 x 4", "in 1 x 14"),
        rows=tuple(rows),
        stated="(4 x 9), (14 x 1) is valid; 6 records move from the first part to the second. The captions "
        "of the figure's two halves are swapped",
        differs=f"the same bounds, and {n_moved} records move; of which values is a free choice, the paper "
        f"takes one each of x9 to x14. The best two sizes have a loss of {best.loss} (this setting: "
        f"{9 * 9 + 13**2}): {_setting(best.sizes, best.n_buckets)}",
        data="example 3: 50 records, f' = 2f + 0.05",
    )


def _setting(sizes: tuple[int, ...], n_buckets: tuple[int, ...]) -> str:
    return ", ".join(f"{b} x {size}" for size, b in zip(sizes, n_buckets, strict=True))


def _minimum_suppression() -> Reproduction:
    table, ell = (10, 4, 2, 1, 1), 3
    fixed = {
        "minimum suppression": (minimal_suppression(table, ell), "6 of S1"),
        "Unsafe D": (unsafe_d(table, ell), "level 4, 6 withheld"),
        "Safe D": (safe_d(table, ell), "level 2, 10 withheld"),
    }
    rows: list[Row] = [
        (name, str(list(kept)), 18 - sum(kept), 1.0, said) for name, (kept, said) in fixed.items()
    ]
    law = RSuppression(table, ell).law()
    for kept, probability in sorted(law.items(), key=lambda item: -item[1]):
        said = "h = 2, F = 3" if kept == (3, 3, 2, 1, 1) else "-"
        rows.append(("R-suppression", str(list(kept)), 18 - sum(kept), float(probability), said))
    return Reproduction(
        columns=("method", "kept", "withheld", "probability", "the paper"),
        rows=tuple(rows),
        stated="minimum suppression withholds 6 records of S1, and tells that only the two commonest "
        "published values can have been S1; examples 2 to 4 run D- and R-suppression (figures 2 and 3) on it",
        differs="the same; R-suppression's outcomes come with their exact probabilities",
        data="T = {10, 4, 2, 1, 1}, l = 3",
    )


def _balancing() -> Reproduction:
    counts = (12, 8, 6, 5, 4, 3, 1, 1, 1, 1)
    promise = RhoPrivacy(rho1=None, rho2=Fraction(2, 3))
    groups, n_groups = initial_groups(np.array(counts), np.ones(10, dtype=bool))
    stated = ("x1, x2, x3: 6", "x1, x4, x5: 4", "x1, x2, x6: 2", "x4, x6, x7: 1", "x8, x9, x10: 1")
    rows: list[Row] = []
    for number, (group, said) in enumerate(zip(groups, stated, strict=True), start=1):
        names = ", ".join(f"x{code + 1}" for code in np.flatnonzero(group))
        rows.append((f"g{number}", f"{names}: {int(group.max())}", said))
    plan = plan_as_in_paper(counts, promise)
    parts = sorted(plan.parts, key=lambda part: part.gamma)
    rows += [
        (f"T{number}", f"{len(part.codes)} values, gamma {part.gamma}, p+q {part.diagonal}", said)
        for number, (part, said) in enumerate(
            zip(parts, ("gamma 4, p+q 4/9", "gamma 10, p+q 2/3"), strict=True), start=1
        )
    ]
    epsilon = plan.error_bound / (2 * sqrt(log(2 / DELTA)))
    return Reproduction(
        columns=("group", "ours: its values, and records of each", "the paper"),
        rows=tuple(rows),
        stated="β = 3 and five balanced groups; the best merge is {g1, g3, g2}, {g4, g5}",
        differs=f"the same: β = {balancing_level(np.array(counts))}, {n_groups} groups, ε(Part)/a = "
        f"{epsilon:.5f}",
        data="examples 1 and 2: T = {12, 8, 6, 5, 4, 3, 1, 1, 1, 1}, (1/3, 2/3)-privacy",
    )


ALICE = Experiment(name="bucketization-table2", title="Tables 1 and 2: Alice in a bucket", run=_alice)
RECORD_ASSIGNMENT = Experiment(
    name="bucketization-fig1", title="Figure 1: records in buckets of two sizes (example 3)", run=_example3
)
MINIMUM_SUPPRESSION = Experiment(
    name="suppression-fig1", title="Figures 1 to 3: what each suppression withholds", run=_minimum_suppression
)
BALANCING = Experiment(
    name="perturbation-fig1", title="Figure 1: the balancing phase on example 1", run=_balancing
)
