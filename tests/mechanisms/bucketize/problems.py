"""Problems and brute force that the tests of bucket planning share."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
from hypothesis import strategies as st

from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem

EXAMPLE_3 = BucketProblem(
    counts=(1,) * 8 + (6,) * 4 + (9,) * 2,
    thresholds=tuple(2 * Fraction(o, 50) + Fraction("0.05") for o in (1,) * 8 + (6,) * 4 + (9,) * 2),
    max_bucket=14,
)


def skewed(n_values: int, n_rows: int, times: int, *, max_bucket: int = 50) -> BucketProblem:
    """A histogram that falls geometrically by 0.075/0.0018 in all, with thresholds times·f + 0.02."""
    weights = np.geomspace(0.075, 0.0018, n_values)
    counts = [max(int(w), 1) for w in weights / weights.sum() * n_rows]
    counts[0] += n_rows - sum(counts)
    thresholds = tuple(min(Fraction(1), times * Fraction(o, n_rows) + Fraction(1, 50)) for o in counts)
    return BucketProblem(counts=tuple(counts), thresholds=thresholds, max_bucket=max_bucket)


@st.composite
def problems(draw: st.DrawFn, max_rows: int = 14) -> BucketProblem:
    """Small problems with thresholds no lower than the frequencies, often exactly there."""
    counts = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5).filter(lambda c: sum(c) <= max_rows))
    n_rows = sum(counts)
    shares = [draw(st.sampled_from([0, 0, 1, 2, 3])) for _ in counts]
    spread = [Fraction(o, n_rows) for o in counts]
    thresholds = tuple(f + (1 - f) * Fraction(k, 6) for f, k in zip(spread, shares, strict=True))
    return BucketProblem(counts=tuple(counts), thresholds=thresholds, max_bucket=draw(st.integers(1, n_rows)))


def all_settings(n_rows: int, sizes: list[int]) -> Iterator[tuple[int, ...]]:
    """Every way to write n_rows as Σ S·b_S."""
    if not sizes:
        if n_rows == 0:
            yield ()
        return
    for b in range(n_rows // sizes[0] + 1):
        for rest in all_settings(n_rows - b * sizes[0], sizes[1:]):
            yield (b, *rest)


def violates_some_set(counts: np.ndarray, limits: np.ndarray, targets: np.ndarray) -> bool:
    """Whether Σ_i min(o_i, Σ_{S∈W} u_iS) < Σ_{S∈W} S·b_S for some set W of sizes: all of them tried."""
    columns = range(len(targets))
    subsets = chain.from_iterable(combinations(columns, k) for k in range(len(targets) + 1))
    return any(
        np.minimum(counts, limits[:, list(w)].sum(axis=1)).sum() < targets[list(w)].sum() for w in subsets
    )


def is_valid_setting(problem: BucketProblem, sizes: list[int], n_buckets: tuple[int, ...]) -> bool:
    """Validity by trying all sets of the sizes in use."""
    used = [j for j, b in enumerate(n_buckets) if b]
    b = np.array([n_buckets[j] for j in used], dtype=np.int64)
    s = np.array([sizes[j] for j in used], dtype=np.int64)
    return not violates_some_set(problem.count_array(), problem.capacity_table(s) * b, s * b)


def least_loss(problem: BucketProblem, n_sizes: int | None = None) -> int | None:
    """The least loss of any valid setting (of at most so many sizes), by trying every setting."""
    sizes = list(range(1, min(problem.max_bucket, problem.n_rows) + 1))
    losses = [
        sum(b * (s - 1) ** 2 for s, b in zip(sizes, setting, strict=True))
        for setting in all_settings(problem.n_rows, sizes)
        if (n_sizes is None or sum(b > 0 for b in setting) <= n_sizes)
        and is_valid_setting(problem, sizes, setting)
    ]
    return min(losses, default=None)


@st.composite
def bucket_plans(draw: st.DrawFn) -> BucketPlan:
    """Any loads that fill the buckets of one to three sizes, whatever they promise."""
    sizes = sorted(draw(st.sets(st.integers(1, 5), min_size=1, max_size=3)))
    n_buckets = [draw(st.integers(1, 4)) for _ in sizes]
    n_values = draw(st.integers(1, 4))
    columns = []
    for size, b in zip(sizes, n_buckets, strict=True):
        cuts = [draw(st.integers(0, size * b)) for _ in range(n_values - 1)]
        columns.append(np.diff([0, *sorted(cuts), size * b]).tolist())
    loads = tuple(zip(*columns, strict=True))
    return BucketPlan(
        method="by hand", sizes=tuple(sizes), n_buckets=tuple(n_buckets), loads=loads, lower_bound=None
    )


def deal_by_hand(plan: BucketPlan) -> list[list[int]]:
    """The value codes in each bucket, record after record: the sizes in order, round-robin within each."""
    dealt: list[list[int]] = []
    for j, b in enumerate(plan.n_buckets):
        buckets: list[list[int]] = [[] for _ in range(b)]
        records = [code for code, row in enumerate(plan.loads) for _ in range(row[j])]
        for place, code in enumerate(records):
            buckets[place % b].append(code)
        dealt += buckets
    return dealt
