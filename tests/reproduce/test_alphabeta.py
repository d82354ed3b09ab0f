"""The αβ paper's figures, made again."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from dalenius.reproduce.alphabeta import N_VIEWS, ratio
from dalenius.reproduce.catalogue import EXPERIMENTS
from dalenius.reproduce.experiment import draw


def test_views_as_printed_do_not_keep_the_promise(tmp_path: Path) -> None:
    experiment = EXPERIMENTS["alphabeta-views"]
    outcome = experiment.run()
    worst = {(kind, views): posterior for kind, views, posterior in outcome.rows}
    assert worst["as printed", 2] == pytest.approx(0.292, abs=1e-3)
    assert worst["as printed", 8] == pytest.approx(0.375, abs=1e-3)
    assert worst["as printed, changed data", 8] == pytest.approx(0.97, abs=1e-2)
    assert all(float(worst["ours", views]) <= 0.2 for views in range(1, 9))
    draw(experiment, outcome, tmp_path / "views.svg")
    assert (tmp_path / "views.svg").stat().st_size > 1_000


def test_figures_2_and_3_on_adult(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DALENIUS_DATA", str(real_data))
    found, digit = ratio(0), 0.05  # "about 4.5": the digit printed, and three standard errors over views
    assert found.mean == pytest.approx(4.5, abs=digit + 3 * found.standard_error)
    assert 3 * found.standard_error < 0.5  # 4.0 and 5.0 would be rejected
    assert EXPERIMENTS["alphabeta-fig3"].run().rows[0][4] == 304_364
    figure_2 = EXPERIMENTS["alphabeta-fig2"].run()
    bands: dict[str, list[float]] = {"alpha-beta": [], "FRAPP": []}
    for low, high in zip(figure_2.rows[::3], figure_2.rows[2::3], strict=True):
        bands[str(low[0])].append(float(high[3]) - float(low[3]))
    # "a much narrower band": at every true count, as the same queries are asked of both
    assert all(ours < theirs for ours, theirs in zip(bands["alpha-beta"], bands["FRAPP"], strict=True))


def test_six_scores_published_by_frapp_and_by_alpha_beta() -> None:
    rows = {row[0]: [float(cell) for cell in row[1:5]] for row in EXPERIMENTS["alphabeta-table1"].run().rows}
    (frapp_kept, frapp_new, frapp_share, frapp_error) = rows["FRAPP"]
    (kept, new, share, error) = rows["alpha-beta"]
    # means of N_VIEWS binomials: five standard errors; each also rejects the other method's parameter
    for mean, n, p in (
        (frapp_kept, 6, Fraction(1, 3)),
        (kept, 6, Fraction(2, 3) + Fraction(1, 150)),
        (new, 1194, Fraction(1, 150)),
    ):
        assert mean == pytest.approx(float(n * p), abs=5 * float(n * p * (1 - p)) ** 0.5 / N_VIEWS**0.5)
    assert frapp_kept + frapp_new == pytest.approx(6)
    assert frapp_share == pytest.approx(1 / 3, abs=0.02)
    assert share == pytest.approx(1 / 3, abs=0.02)
    assert error < frapp_error
