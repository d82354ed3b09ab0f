"""A setting is valid iff no set of sizes is short; the loads found are loads, the sets found are short."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dalenius.mechanisms.bucketize.plan.bucket_plan import assign
from tests.mechanisms.bucketize.problems import violates_some_set


def check(counts: np.ndarray, limits: np.ndarray, targets: np.ndarray) -> bool:
    """Verify whichever answer `assign` gives; whether the setting is valid."""
    outcome = assign(counts, limits, targets)
    if outcome.loads is not None:
        assert (outcome.loads >= 0).all()
        assert (outcome.loads <= limits).all()
        np.testing.assert_array_equal(outcome.loads.sum(axis=1), counts)
        np.testing.assert_array_equal(outcome.loads.sum(axis=0), targets)
        return True
    assert outcome.violated is not None
    inside = limits[:, outcome.violated].sum(axis=1)
    assert np.minimum(counts, inside).sum() < targets[outcome.violated].sum()
    return False


@st.composite
def transports(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    scale = draw(st.sampled_from([1, 10**10]))
    n_sizes = draw(st.integers(1, 5))
    rows = draw(
        st.lists(st.lists(st.integers(0, 4), min_size=n_sizes, max_size=n_sizes), min_size=1, max_size=5)
    )
    shortage = draw(
        st.lists(st.lists(st.integers(0, 1), min_size=n_sizes, max_size=n_sizes), min_size=1, max_size=1)
    )
    loads = np.array(rows, dtype=np.int64) * scale
    limits = loads + np.array(
        draw(st.lists(st.integers(0, 2), min_size=n_sizes, max_size=n_sizes)), dtype=np.int64
    )
    limits = np.maximum(limits - np.array(shortage, dtype=np.int64), 0)
    return loads.sum(axis=1), limits, loads.sum(axis=0)


@given(transports())
def test_the_flow_agrees_with_trying_every_set(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    assert check(*case) == (not violates_some_set(*case))


def test_example_5_is_valid_size_by_size_and_yet_has_no_assignment() -> None:
    counts = np.array([5] * 10 + [20], dtype=np.int64)
    limits = np.array([[0, 0, 5]] * 10 + [[20, 20, 20]], dtype=np.int64)
    targets = np.array([20, 20, 30], dtype=np.int64)
    most = np.minimum(limits, counts[:, None])
    assert (most.sum(axis=1) >= counts).all()  # the printed PC
    assert (most.sum(axis=0) >= targets).all()  # the printed FC
    outcome = assign(counts, limits, targets)
    assert outcome.violated is not None
    assert outcome.violated.tolist() == [True, True, False]  # 40 slots that only 20 records may take


def test_records_move_along_several_sizes() -> None:
    # Value 0 must give way to value 1, which must give way to value 2: one path of three sizes.
    counts = np.array([4, 4, 4], dtype=np.int64)
    limits = np.array([[4, 4, 0], [4, 4, 4], [4, 0, 4]], dtype=np.int64)
    assert check(counts, limits, np.array([0, 4, 8], dtype=np.int64))
    assert not check(counts, limits, np.array([0, 12, 0], dtype=np.int64))
