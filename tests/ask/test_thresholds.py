"""Where a count passes a level is found among many numbers, whatever way it rises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.ask.thresholds import Level, between
from dalenius.question.model import Column


def tries(margins: np.ndarray, straight: int = 4) -> tuple[int, int]:
    """Where margins that rise begin not to be below 0, and after how many that were looked at."""
    begin, end, n_tried, rounds = 0, len(margins) - 1, 2, 0
    while end - begin > 1:
        some = between(begin, end, float(margins[begin]), float(margins[end]), is_astray=rounds >= straight)
        assert some == sorted(set(some))
        assert begin < some[0]
        assert some[-1] < end
        n_tried, rounds = n_tried + len(some), rounds + 1
        begin = max([k for k in some if margins[k] < 0], default=begin)
        end = min([k for k in some if margins[k] >= 0], default=end)
    return end, n_tried


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300), st.floats(0, 1))
def test_whatever_rises_is_found(steps: list[float], share: float) -> None:
    rising = np.cumsum([0.0, *steps])
    margins = rising - max(share * rising[-1], 1e-300)
    margins[-1] = max(margins[-1], 0.0)
    assert tries(margins)[0] == np.argmax(margins >= 0)


@pytest.mark.parametrize("where", [300, 50_000, 99_000])
def test_little_is_looked_at_of_what_rises_steadily_by_chance(where: int) -> None:
    rng = np.random.default_rng(where)
    margins = np.cumsum(rng.binomial(20, 0.125, 100_000) / 20) - where / 8
    found, n_tried = tries(margins)
    assert found == np.argmax(margins >= 0)
    assert n_tried < 25


def test_steep_rises_are_found_by_cutting() -> None:
    margins = np.where(np.arange(100_000) < 77_777, -0.5, 1e9)
    found, n_tried = tries(margins, straight=0)
    assert found == 77_777
    assert n_tried < 60


def test_where_nothing_is_told_there_are_parts() -> None:
    assert between(0, 100, -np.inf, np.inf) == between(0, 100, 1.0, 1.0) == [25, 50, 75]


def test_a_level_is_reached_or_passed() -> None:
    column = Column(estimate=np.array([1.0, np.nan]), std_error=np.ones(2), low=np.zeros(2), high=np.ones(2))
    assert Level(part="estimate", least=1.0).holds(column).tolist() == [True, False]
    assert Level(part="estimate", least=1.0, is_passed=True).holds(column).tolist() == [False, False]
