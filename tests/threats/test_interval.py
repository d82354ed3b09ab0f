"""Intervals and limits of chance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.threats.interval import bernstein_limit, clopper_pearson, is_above, rank_correlation


@given(n=st.integers(1, 200), share=st.floats(0, 1))
def test_clopper_pearson_holds_the_rate_and_widens(n: int, share: float) -> None:
    k = round(share * n)
    low, high = clopper_pearson(k, n)
    wide_low, wide_high = clopper_pearson(k, n, 1 - 2e-6)
    assert 0 <= wide_low <= low <= k / n <= high <= wide_high <= 1
    assert not is_above(k, n, k / n)


def test_bernstein_covers_coins_and_ranks_find_order() -> None:
    sums = np.random.default_rng(1).binomial(400, 0.25, size=20_000) - 100
    assert sums.max() < bernstein_limit(75.0, 1.0)
    assert rank_correlation(np.arange(50), np.arange(50)) == pytest.approx(1.0)
    assert rank_correlation([3], [1]) == 0.0
