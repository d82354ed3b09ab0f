"""Values that are alike are planned as one and share what they get."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dalenius.arrays import Ints
from dalenius.mechanisms.bucketize.plan.methods import plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem, ValueClasses
from tests.mechanisms.bucketize.problems import skewed


@given(
    groups=st.lists(
        st.tuples(st.integers(1, 5), st.integers(1, 9)), min_size=1, max_size=4, unique_by=lambda g: g[1]
    ),
    cuts=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=4, max_size=4),
)
def test_what_a_class_gets_is_shared_evenly(
    groups: list[tuple[int, int]], cuts: list[tuple[float, float]]
) -> None:
    counts = tuple(count for k, count in groups for _ in range(k))
    problem = BucketProblem(counts=counts, thresholds=(Fraction(1),) * len(counts), max_bucket=9)
    classes = ValueClasses.of(problem)
    edges = [
        [0, *sorted(int(c * t) for c in cut), t]
        for cut, t in zip(cuts, classes.totals.tolist(), strict=False)
    ]
    ends: Ints = np.array(edges, dtype=np.int64)
    loads = ends[:, 1:] - ends[:, :-1]
    shared: Ints = np.array(classes.to_loads(loads), dtype=np.int64)
    np.testing.assert_array_equal(shared.sum(axis=1), counts)
    for j, load in enumerate(loads):
        mine = shared[classes.class_of == j]
        np.testing.assert_array_equal(mine.sum(axis=0), load)
        assert (np.ptp(mine, axis=0) <= 1).all()  # so none passes ⌈load/k⌉ ≤ its own limit


def test_thousands_of_values_are_few_classes() -> None:
    problem = skewed(3_200, 500_000, 8)
    classes = ValueClasses.of(problem)
    assert len(classes.totals) < (2 * problem.n_rows) ** 0.5
    plan = plan_buckets(problem)
    assert plan.gap is not None
    assert plan.gap <= 1e-4
