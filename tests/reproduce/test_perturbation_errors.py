"""Figures 2 to 6 of the perturbation paper: PP errs less than UP and Anatomy, KDD standing in for CENSUS."""

from __future__ import annotations

from pathlib import Path

import pytest

from dalenius.evaluate.metrics import Spread
from dalenius.reproduce.catalogue import EXPERIMENTS
from dalenius.reproduce.experiment import DIAGONAL
from dalenius.reproduce.perturbation_errors import (
    ANATOMY,
    CLEARLY,
    EDU,
    OCC,
    PAPER,
    Place,
    measure_errors,
    time_by_rows,
)

OURS = "best (the default)"


@pytest.fixture(autouse=True)
def data(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DALENIUS_DATA", str(real_data))


Found = dict[Place, Spread]


def is_clear(difference: Spread) -> bool:
    """Below 0 by three standard errors over the seeds, which have the queries in common."""
    return difference.mean < -CLEARLY * difference.standard_error


def settings(found: Found) -> list[tuple[str, int]]:
    return list(dict.fromkeys((panel, x) for panel, x, _ in found))


def relative_gain(found: Found, panel: str, low: int, high: int, method: str) -> Spread:
    """By how much the error at `low` is below that at `high`, as a share of it, seed by seed."""
    pairs = zip(found[panel, low, method].values, found[panel, high, method].values, strict=True)
    return Spread.of([(few - many) / many for few, many in pairs])


def test_parts_err_less_than_uniform_perturbation_and_anatomy() -> None:
    found = measure_errors(OCC, thousands=(), levels=[3, 5], base=100, n_seeds=3)
    assert len(settings(found)) == 6
    for panel, level in settings(found):
        paper, uniform, anatomy = (found[panel, level, name] for name in (PAPER, "UP", ANATOMY))
        assert is_clear(paper.minus(uniform)), (panel, level)
        assert is_clear(paper.minus(anatomy)), (panel, level)
        assert is_clear(found[panel, level, OURS].minus(uniform)), (panel, level)
        assert not is_clear(uniform.minus(paper))  # the wrong order is not found
    for share in ("0.1%", "0.5%", "1.0%"):  # PP gains from a weaker promise, and more than Anatomy
        gains = [relative_gain(found, f"by L, s = {share}", 3, 5, name) for name in (PAPER, ANATOMY)]
        assert is_clear(gains[0])
        assert is_clear(gains[0].minus(gains[1]))
    assert is_clear(found["by L, s = 1.0%", 5, PAPER].minus(found["by L, s = 0.1%", 5, PAPER]))


def test_more_rows_help_perturbation_and_not_anatomy() -> None:
    found = measure_errors(OCC, thousands=[40, 160], levels=[6], base=40, n_seeds=3)
    for share in ("0.1%", "0.5%", "1.0%"):
        panel = f"by thousands of rows, s = {share}"
        uniform, paper, anatomy = (
            relative_gain(found, panel, 160, 40, name) for name in ("UP", PAPER, ANATOMY)
        )
        assert is_clear(uniform.minus(anatomy)), share
        assert is_clear(paper.minus(anatomy)), share


def test_anatomy_on_skewed_data_errs_far_more_than_perturbation() -> None:
    found = measure_errors(EDU, thousands=(), levels=[4], base=60, n_seeds=3)
    for panel, level in settings(found):
        anatomy, uniform, paper, ours = (found[panel, level, name] for name in (ANATOMY, "UP", PAPER, OURS))
        assert all(is_clear(other.minus(anatomy)) for other in (uniform, paper, ours)), panel
        assert not is_clear(uniform.minus(paper)), panel  # PP is UP, or better


def test_figure_3_points_lie_closest_to_the_diagonal_with_parts() -> None:
    """Three standard errors over the queries drawn, which all methods have in common."""
    distance: dict[str, list[float]] = {}
    for method, points, act, est in EXPERIMENTS["perturbation-fig3"].run().rows:
        if points != DIAGONAL:
            distance.setdefault(str(method), []).append(abs(float(est) - float(act)))
    spread = {method: Spread.of(own) for method, own in distance.items()}
    assert is_clear(spread[PAPER].minus(spread[ANATOMY]))
    assert is_clear(spread[PAPER].minus(spread["UP"]))


def test_figure_5_times_every_method() -> None:
    outcome = time_by_rows(thousands=[10])
    assert len(outcome.rows) == 8
    for _, _, _, taken, planning in outcome.rows:
        assert 0 <= float(planning) <= float(taken)


def test_figure_6_occupations_are_balanced_and_educations_skewed() -> None:
    rows = EXPERIMENTS["perturbation-fig6"].run().rows
    shares = {table: [float(r[3]) for r in rows if r[:2] == (table, "KDD")] for table in ("OCC", "EDU")}
    assert max(shares["OCC"]) < 10
    assert max(shares["EDU"]) > 25
    assert all(sum(own) == pytest.approx(100) for own in shares.values())
