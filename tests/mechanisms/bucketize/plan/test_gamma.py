"""Γ lists exactly the feasible settings of two sizes, in order of loss."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dalenius.mechanisms.bucketize.plan.two_size import index_settings


def listed(n_rows: int, small: int, large: int) -> list[tuple[int, int]]:
    lists = index_settings(n_rows, (small, large))
    positions = range(int(lists.last[0]) + 1)
    pairs = (lists.buckets_at(np.array([i])) for i in positions)
    return [(int(a[0]), int(b[0])) for a, b in pairs]


def test_example_4() -> None:
    assert listed(28, 2, 4) == [(14 - 2 * i, i) for i in range(8)]


@given(n_rows=st.integers(1, 200), small=st.integers(1, 20), more=st.integers(1, 20))
def test_the_list_is_every_feasible_pair_with_rising_loss(n_rows: int, small: int, more: int) -> None:
    large = small + more
    expected = [
        ((n_rows - large * b) // small, b)
        for b in range(n_rows // large + 1)
        if (n_rows - large * b) % small == 0
    ]
    assert listed(n_rows, small, large) == expected
    losses = [a * (small - 1) ** 2 + b * (large - 1) ** 2 for a, b in expected]
    assert losses == sorted(set(losses))


def test_the_settings_of_remark_2_are_counted() -> None:
    # Remark 2 prints 2,077,869 for S_1 < S_2 in 3..20 and a million rows; the exact number is another.
    lists = index_settings(1_000_000, tuple(range(3, 21)))
    assert int((lists.last + 1).sum()) == 2_653_977
    slow = sum(
        (1_000_000 - t * b) % s == 0
        for s in (3, 11, 20)
        for t in (4, 12)
        if s < t
        for b in range(1_000_000 // t + 1)
    )
    chosen = [(s, t) in {(3, 4), (3, 12), (11, 12)} for s, t in zip(lists.small, lists.large, strict=True)]
    assert int((lists.last + 1)[chosen].sum()) == slow
