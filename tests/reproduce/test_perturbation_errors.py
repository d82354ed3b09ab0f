"""Figures 2 to 6 of the perturbation paper: PP errs less than UP and Anatomy, KDD standing in for CENSUS."""

from __future__ import annotations

from pathlib import Path

import pytest

from dalenius.reproduce.catalogue import EXPERIMENTS
from dalenius.reproduce.experiment import DIAGONAL, Row
from dalenius.reproduce.perturbation_errors import ANATOMY, EDU, OCC, compare_errors
from dalenius.reproduce.perturbation_runtime import time_by_rows

PP, OURS = "PP (the paper's procedure)", "least-variance (ours)"


@pytest.fixture(autouse=True)
def data(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DALENIUS_DATA", str(real_data))


def errors(rows: list[Row]) -> dict[tuple[str, int], dict[str, float]]:
    found: dict[tuple[str, int], dict[str, float]] = {}
    for panel, x, method, error, _ in rows:
        found.setdefault((str(panel), int(x)), {})[str(method)] = float(error)
    return found


def test_parts_err_less_than_uniform_perturbation_and_anatomy() -> None:
    """KDD at full size gives a third of UP's error and half of Anatomy's; here is less data."""
    found = errors(compare_errors(OCC, thousands=(), levels=[3, 5], base=150))
    assert len(found) == 6
    for (panel, level), of in found.items():
        assert of[PP] < 0.67 * of["UP"], (panel, level)
        assert of[PP] < 0.75 * of[ANATOMY], (panel, level)
        assert of[OURS] < 0.67 * of["UP"], (panel, level)
    for share in ("0.1%", "0.5%", "1.0%"):
        weak, strong = (found[f"by L, s = {share}", level] for level in (3, 5))
        assert weak[PP] < 0.75 * strong[PP]  # PP gains from a weaker promise, Anatomy hardly
        assert weak[ANATOMY] > 0.7 * strong[ANATOMY]
    assert found["by L, s = 1.0%", 5][PP] < found["by L, s = 0.1%", 5][PP]


def test_more_rows_help_perturbation_and_not_anatomy() -> None:
    found = errors(compare_errors(OCC, thousands=[40, 160], levels=[6], base=40))
    for share in ("0.1%", "0.5%", "1.0%"):
        few, many = (found[f"by thousands of rows, s = {share}", k] for k in (40, 160))
        assert many["UP"] < 0.75 * few["UP"]  # half, but for chance
        assert many[PP] < 0.75 * few[PP]
        assert many[ANATOMY] > 0.75 * few[ANATOMY]


def test_anatomy_on_skewed_data_errs_far_more_than_perturbation() -> None:
    found = errors(compare_errors(EDU, thousands=[60], levels=[4], base=120))
    for (panel, _), of in found.items():
        if panel.startswith("by L"):
            assert of[ANATOMY] > 1.8 * max(of["UP"], of[PP], of[OURS]), panel
        assert of[PP] < 1.1 * of["UP"], panel


def test_figure_3_points_lie_closest_to_the_diagonal_with_parts() -> None:
    distance: dict[str, list[float]] = {}
    for method, points, act, est in EXPERIMENTS["perturbation-fig3"].run().rows:
        if points != DIAGONAL:
            distance.setdefault(str(method), []).append(abs(float(est) - float(act)))
    mean = {method: sum(own) / len(own) for method, own in distance.items()}
    assert mean[PP] < 0.75 * mean[ANATOMY]
    assert mean[PP] < 0.5 * mean["UP"]


def test_figure_5_times_every_method() -> None:
    outcome = time_by_rows(thousands=[10])
    assert len(outcome.rows) == 8
    for _, _, _, taken, planning in outcome.rows:
        assert 0 <= float(planning) <= float(taken) < 30  # the paper's bound for PP, at ten times the rows


def test_figure_6_occupations_are_balanced_and_educations_skewed() -> None:
    rows = EXPERIMENTS["perturbation-fig6"].run().rows
    shares = {table: [float(r[3]) for r in rows if r[:2] == (table, "KDD")] for table in ("OCC", "EDU")}
    assert max(shares["OCC"]) < 10
    assert max(shares["EDU"]) > 25
    assert all(sum(own) == pytest.approx(100) for own in shares.values())
