"""Intervals and limits of chance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.threats.chance import FALSE_ALARM, Chance, binomial_tail, clopper_pearson, rank_correlation


@given(n=st.integers(1, 200), share=st.floats(0, 1))
def test_clopper_pearson_holds_the_rate_and_widens(n: int, share: float) -> None:
    k = round(share * n)
    low, high = clopper_pearson(k, n)
    wide_low, wide_high = clopper_pearson(k, n, 1 - 2e-6)
    assert 0 <= wide_low <= low <= k / n <= high <= wide_high <= 1
    assert binomial_tail(k, n, k / n) == pytest.approx(1.0)


def test_bernstein_covers_coins_and_ranks_find_order() -> None:
    sums = np.random.default_rng(1).binomial(400, 0.25, size=20_000) - 100
    assert sums.max() < Chance(expected=0.0, variance=75.0).limit(FALSE_ALARM)
    assert rank_correlation(np.arange(50), np.arange(50)) == pytest.approx(1.0)
    assert rank_correlation([3], [1]) == 0.0
