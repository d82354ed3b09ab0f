"""Measures beside their definitions, written as loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.evaluate import metrics
from dalenius.evaluate.workload import Cells, Questions, TrueAnswer
from dalenius.question.answer import Answer, AnswerRow

NUMBER = st.floats(0, 1000).map(lambda x: round(x, 3))
PAIRS = st.lists(st.tuples(NUMBER, st.floats(-500, 1500) | st.just(math.nan)), min_size=1, max_size=30)


def cells_of(pairs: list[tuple[float, float]], scale: float = 1000.0) -> Cells:
    truth, estimate = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    return Cells(truth=truth, estimate=estimate, scale=np.full(len(truth), scale))


@given(PAIRS, st.sampled_from([0.0, 0.001, 0.05]))
def test_errors_are_what_their_definitions_say(pairs: list[tuple[float, float]], share: float) -> None:
    cells = cells_of(pairs)
    squares, relative = [], []
    for truth, estimate in pairs:
        if math.isnan(estimate):
            continue
        squares.append((estimate - truth) ** 2)
        against = max(truth, share * 1000)
        if against > 0:
            relative.append(abs(estimate - truth) / against)
    assert cells.n_unanswered == len(pairs) - len(squares)
    assert metrics.relative_errors(cells, share).tolist() == pytest.approx(relative)
    for found, slow in (
        (metrics.mean_squared_error(cells), np.mean(squares) if squares else math.nan),
        (metrics.mean_relative_error(cells, share), np.mean(relative) if relative else math.nan),
        (metrics.median_relative_error(cells, share), np.median(relative) if relative else math.nan),
    ):
        assert found == pytest.approx(float(slow), nan_ok=True)


@given(PAIRS)
def test_bands_of_selectivity_hold_every_answered_cell_once(pairs: list[tuple[float, float]]) -> None:
    cells = cells_of(pairs)
    bands = metrics.errors_by_selectivity(cells)
    assert sum(band.n_cells for band in bands) == len(pairs) - cells.n_unanswered
    squares = sum(band.n_cells * band.rmse**2 for band in bands)
    if bands:
        assert squares / len(cells.answered.truth) == pytest.approx(metrics.mean_squared_error(cells))


@given(st.lists(st.floats(0, 100), min_size=2, max_size=8), st.data())
def test_distances_are_zero_for_what_is_alike_and_ordered(p: list[float], data: st.DataObject) -> None:
    q = np.array(data.draw(st.lists(st.floats(-5, 100), min_size=len(p), max_size=len(p))))
    truth = np.array(p)
    tv, h = metrics.total_variation(truth, q), metrics.hellinger(truth, q)
    assert metrics.total_variation(truth, 3 * truth) == pytest.approx(0, abs=1e-12)
    assert -1e-12 <= tv <= 1 + 1e-12
    # H² ≤ TV ≤ √2·H
    assert h**2 - 1e-9 <= tv <= math.sqrt(2) * h + 1e-9


def test_answers_are_matched_by_group_and_column_and_what_is_left_out_counts_as_zero() -> None:
    asked = Questions(
        sqls=("q0", "q1"),
        answers=(
            TrueAnswer(cells={(("a",), "n"): 4.0, (("b",), "n"): 6.0}, scale={"n": 10.0}),
            TrueAnswer(cells={((), "mean"): 2.5}, scale={"mean": 0.0}),
        ),
        most_changed=None,
    )
    rows = (("b", 5.5), ("z", 3.0))
    first = Answer(
        rows=tuple(_row((("g", group),), "n", estimate) for group, estimate in rows),
        confidence=0.95,
        assumption=None,
        explain="",
    )
    second = Answer(rows=(), confidence=0.95, assumption=None, explain="")
    cells = asked.compare([first, second])
    assert cells.truth.tolist() == [4.0, 6.0, 2.5]
    assert cells.estimate[:2].tolist() == [0.0, 5.5]
    assert cells.n_unanswered == 1
    assert cells.scale.tolist() == [10.0, 10.0, 0.0]


def _row(group: tuple[tuple[str, str], ...], column: str, estimate: float) -> AnswerRow:
    return AnswerRow(
        group=group, column=column, estimate=estimate, std_error=1.0, low=0.0, high=9.0, status="estimate"
    )


def test_a_spread_needs_two_seeds() -> None:
    assert metrics.Spread.of([0.5]).deviation is None
    assert metrics.Spread.of([1.0, 2.0, 3.0]) == metrics.Spread(
        mean=2.0, deviation=1.0, values=(1.0, 2.0, 3.0)
    )


def cells(truth: list[float], estimate: list[float], scale: float = 1_000.0) -> Cells:
    return Cells(truth=np.array(truth), estimate=np.array(estimate), scale=np.full(len(truth), scale))


def test_bands_over_draws_are_those_of_each_draw() -> None:
    """Two draws of 1,000 records: counts of 5 are in the band from 0.5 to 1 %, of 100 in the last."""
    draws = [cells([5.0, 100.0], [6.0, 90.0]), cells([5.0, 5.0], [5.0, 8.0])]
    low, high = metrics.bands_over_draws(draws)
    assert (low.low, low.high, low.n_cells) == (0.005, 0.01, 3)
    # relative errors 1/5 in the first draw, 0 and 3/5 in the second: means 0.2 and 0.3
    assert low.spreads["relative-error"].values == pytest.approx((0.2, 0.3))
    assert low.spreads["rmse"].values == pytest.approx((1.0, 4.5**0.5))
    assert (high.low, high.high, high.n_cells) == (0.05, 1.0, 1)
    assert high.spreads["relative-error"].deviation is None


def test_a_count_of_everybody_is_in_the_last_band() -> None:
    (band,) = metrics.errors_by_selectivity(cells([1_000.0], [900.0]))
    assert (band.low, band.high, band.mean_relative_error) == (0.05, 1.0, 0.1)
    assert metrics.errors_by_selectivity(cells([1.0], [2.0], scale=0.0)) == ()


def test_shares_are_of_the_whole_and_what_is_not_answered_is_left_out() -> None:
    asked = cells([10.0, 9.0, 0.0], [11.0, float("nan"), 1.0])
    assert asked.at_least(0.01).truth.tolist() == [10.0]
    assert asked.n_unanswered == 1
    assert asked.answered.truth.tolist() == [10.0, 0.0]
    assert metrics.mean_relative_error(asked, 0) == pytest.approx(0.1)  # a truth of 0 has none
    assert metrics.mean_relative_error(asked, 0.01) == pytest.approx((0.1 + 0.1) / 2)
    assert np.isnan(metrics.median_relative_error(cells([0.0], [1.0]), 0))


def test_rounding_is_no_spread_and_differences_are_seed_by_seed() -> None:
    same = metrics.Spread.of([0.1 + 0.2, 0.3, 0.3])
    assert (same.mean, same.deviation) == (0.1 + 0.2, 0.0)
    one, two = metrics.Spread.of([1.0, 5.0, 9.0]), metrics.Spread.of([0.0, 4.0, 8.0])
    assert one.minus(two).values == (1.0, 1.0, 1.0)
    assert one.minus(two).standard_error == 0.0
    assert one.standard_error == pytest.approx(4 / 3**0.5)
    assert np.isnan(metrics.Spread.of([1.0]).standard_error)
    with pytest.raises(ValueError, match="zip"):
        one.minus(metrics.Spread.of([1.0]))
