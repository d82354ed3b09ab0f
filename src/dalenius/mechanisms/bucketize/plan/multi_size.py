"""Many bucket sizes, by splitting in two again and again while the loss falls (Algorithm 2)."""

from __future__ import annotations

import numpy as np

from dalenius.arrays import Ints
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.plan.problem import (
    BucketProblem,
    NoSettingFits,
    ValueClasses,
    record_bound,
)
from dalenius.mechanisms.bucketize.plan.sizes import candidate_sizes
from dalenius.mechanisms.bucketize.plan.two_size import NO_LIMIT, partition, search_two_size


def plan_multi_size(problem: BucketProblem) -> BucketPlan:
    """The heuristic setting of many sizes; never worse than the best of two sizes.

    >>> from fractions import Fraction
    >>> limits = (Fraction(1, 2), Fraction(1, 2), Fraction(1, 3), Fraction(1, 4))
    >>> plan = plan_multi_size(BucketProblem(counts=(8, 8, 5, 1), thresholds=limits, max_bucket=10))
    >>> plan.sizes, plan.n_buckets  # the best of two sizes are 3 and 4
    ((2, 3, 4), (2, 2, 3))
    """
    sizes, classes = candidate_sizes(problem), ValueClasses.of(problem)
    loads = split_repeatedly(classes.totals, classes.capacity_table(sizes), sizes)
    if loads is None:
        raise NoSettingFits(
            f"no setting of two bucket sizes up to {problem.max_bucket} keeps the thresholds to start from",
            hint="use method 'optimal', or a larger max_bucket",
        )
    used = np.flatnonzero(loads.any(axis=0))
    chosen = tuple(sizes[j] for j in used)
    rows = loads[:, used].sum(axis=0).tolist()
    return BucketPlan(
        method="multi-size",
        sizes=chosen,
        n_buckets=tuple(r // size for r, size in zip(rows, chosen, strict=True)),
        loads=classes.to_loads(loads[:, used]),
        lower_bound=record_bound(problem),
    )


def split_repeatedly(counts: Ints, capacity: Ints, sizes: tuple[int, ...]) -> Ints | None:
    """The loads (m × sizes) of Algorithm 2's setting, or None if no two sizes will do."""
    loads = np.zeros_like(capacity)
    # Work still to be split: the counts of the part, and the loss of the one size it is in now.
    pending: list[tuple[Ints, int, int]] = [(counts, NO_LIMIT, -1)]
    while pending:
        part, loss, column = pending.pop()
        present = np.flatnonzero(part)
        found = search_two_size(part[present], capacity[present], sizes, below=loss)
        if found is None and column < 0:
            return None
        if found is None:
            loads[:, column] += part
            continue
        columns = list(found.columns)
        limits = capacity[:, columns] * np.array(found.n_buckets, dtype=np.int64)
        halves = partition(part, limits, sizes[columns[0]] * found.n_buckets[0])
        for half, size_column, b in zip(halves.T, columns, found.n_buckets, strict=True):
            if b:
                pending.append((half.copy(), b * (sizes[size_column] - 1) ** 2, size_column))
    return loads
