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
