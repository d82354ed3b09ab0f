"""Dealing is a uniformly random choice of records within each value."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dalenius.mechanisms import dealing
from dalenius.mechanisms.dealing import deal, distinct_integers, draw_quota
from dalenius.randomness import Randomness
from tests.chance import FALSE_ALARM, Z


def deal_in_batches(
    codes: np.ndarray, quota: np.ndarray, batch_sizes: list[int], stream: np.random.Generator
) -> np.ndarray:
    remaining, start, parts = quota.copy(), 0, []
    for size in batch_sizes:
        batch = codes[start : start + size]
        drawn = draw_quota(remaining, np.bincount(batch, minlength=len(quota)), stream)
        parts.append(deal(batch, drawn, stream))
        remaining -= drawn
        start += size
    assert not remaining.any()
    return np.concatenate(parts)


@given(
    quota=st.lists(st.lists(st.integers(0, 6), min_size=3, max_size=3), min_size=1, max_size=4),
    cuts=st.lists(st.integers(0, 72), max_size=4),
    seed=st.integers(0, 10**6),
)
@settings(deadline=None)
def test_every_quota_is_used_up_exactly(quota: list[list[int]], cuts: list[int], seed: int) -> None:
    wanted = np.array(quota, dtype=np.int64)
    stream = Randomness.seeded(seed).stream("test")
    codes = stream.permutation(np.repeat(np.arange(len(wanted)), wanted.sum(axis=1)))
    edges = [0, *sorted(min(cut, len(codes)) for cut in cuts), len(codes)]
    dealt = deal_in_batches(codes, wanted, list(np.diff(edges)), stream)
    got = np.zeros_like(wanted)
    np.add.at(got, (codes, dealt), 1)
    np.testing.assert_array_equal(got, wanted)


def frequencies_of_choices(batch_sizes: list[int], n_runs: int, *, broken: bool = False) -> np.ndarray:
    """How often each 2-subset of six records of one value was sent to destination 1."""
    quota = np.array([[4, 2]], dtype=np.int64)
    codes = np.zeros(6, dtype=np.int64)
    index: dict[tuple[int, ...], int] = {pair: i for i, pair in enumerate(combinations(range(6), 2))}
    seen = np.zeros(len(index))
    for run in range(n_runs):
        stream = Randomness.seeded(run).stream("deal")
        dealt = deal_in_batches(codes, quota, batch_sizes, stream)
        if broken and dealt[0] == 1 and run % 8 == 0:  # the control: file order leaks a little
            dealt = np.array([1, 1, 0, 0, 0, 0])
        seen[index[tuple(np.flatnonzero(dealt == 1).tolist())]] += 1
    return seen


@pytest.mark.parametrize("batch_sizes", [[6], [1, 1, 1, 1, 1, 1], [2, 4], [3, 0, 3]])
def test_any_batching_is_a_uniform_choice(batch_sizes: list[int]) -> None:
    seen = frequencies_of_choices(batch_sizes, 6_000)
    assert stats.chisquare(seen).pvalue > FALSE_ALARM


def test_a_dealer_that_favours_file_order_is_caught() -> None:
    assert stats.chisquare(frequencies_of_choices([6], 6_000, broken=True)).pvalue < FALSE_ALARM


class _ShufflesOnce:
    """A broken stream: of all values, only the records of the first are shuffled."""

    def __init__(self, stream: np.random.Generator) -> None:
        self._stream, self._is_used = stream, False

    def shuffle(self, places: np.ndarray) -> None:
        if not self._is_used:
            self._stream.shuffle(places)
        self._is_used = True


def p_value_of_joint_choices(*, broken: bool) -> float:
    """Two values are divided and one is not: every pair of choices should be equally likely."""
    codes = np.array([2, 0, 1, 2, 0, 1, 0, 2, 1, 0, 2])
    quota = np.array([[2, 2], [3, 0], [2, 2]], dtype=np.int64)
    index: dict[tuple[int, ...], int] = {pair: i for i, pair in enumerate(combinations(range(4), 2))}
    seen = np.zeros((len(index), len(index)))
    stream = Randomness.seeded(9).stream("deal")
    for _ in range(12_000):
        dealt = deal(codes, quota, _ShufflesOnce(stream) if broken else stream)  # type: ignore[arg-type]
        one, other = (tuple(np.flatnonzero(dealt[codes == value]).tolist()) for value in (0, 2))
        seen[index[one], index[other]] += 1
    return float(stats.chisquare(seen.ravel()).pvalue)


def test_the_choices_of_all_values_are_uniform_and_independent() -> None:
    assert p_value_of_joint_choices(broken=False) > FALSE_ALARM
    assert p_value_of_joint_choices(broken=True) < FALSE_ALARM


def test_populations_beyond_numpys_limit_are_drawn_from_the_same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    remaining = np.array([[30, 50, 20]], dtype=np.int64)
    monkeypatch.setattr(dealing, "_NUMPY_POPULATION_LIMIT", 1)
    stream = Randomness.seeded(5).stream("large")
    drawn = np.array([draw_quota(remaining, np.array([12]), stream)[0, 1] for _ in range(4_000)])
    law = stats.hypergeom(100, 50, 12)
    seen = np.bincount(drawn, minlength=13)[2:11]
    expected = law.pmf(np.arange(2, 11))
    assert stats.chisquare(seen, expected / expected.sum() * seen.sum()).pvalue > FALSE_ALARM
    most = draw_quota(remaining, np.array([95]), stream)  # more than half: drawn by its complement
    assert most.sum() == 95
    assert (most <= remaining).all()


def test_ten_billion_records_are_dealt() -> None:
    remaining = np.array([[6 * 10**9, 4 * 10**9]], dtype=np.int64)
    drawn = draw_quota(remaining, np.array([100_000]), Randomness.seeded(1).stream("big"))[0]
    assert drawn.sum() == 100_000
    assert abs(drawn[0] - 60_000) < Z * np.sqrt(100_000 * 0.24)


def test_distinct_integers_are_distinct_and_cover_a_full_set() -> None:
    stream = Randomness.seeded(2).stream("distinct")
    assert distinct_integers(10, 10, stream).tolist() == list(range(10))
    assert len(set(distinct_integers(10**15, 1_000, stream).tolist())) == 1_000
