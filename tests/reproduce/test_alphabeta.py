"""The αβ paper's figures, made again."""

from __future__ import annotations

from pathlib import Path

import pytest

from dalenius.reproduce.catalogue import EXPERIMENTS
from dalenius.reproduce.picture import draw


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
    figure_3 = EXPERIMENTS["alphabeta-fig3"].run()
    mean = {(method, least): error for method, least, error, _ in figure_3.rows}
    assert float(mean["FRAPP", 0]) / float(mean["alpha-beta", 0]) == pytest.approx(4.5, abs=0.4)
    assert figure_3.rows[0][3] == 304_364
    figure_2 = EXPERIMENTS["alphabeta-fig2"].run()
    bands: dict[str, list[float]] = {"alpha-beta": [], "FRAPP": []}
    for low, high in zip(figure_2.rows[::3], figure_2.rows[2::3], strict=True):
        bands[str(low[0])].append(float(high[3]) - float(low[3]))
    assert all(3 * ours < theirs for ours, theirs in zip(bands["alpha-beta"], bands["FRAPP"], strict=True))
