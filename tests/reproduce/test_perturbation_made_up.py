"""Figures 2 to 5 of the perturbation paper on made-up data: promises, orders and what is said of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dalenius.evaluate.metrics import Spread, mean_relative_error
from dalenius.evaluate.original import Original
from dalenius.promises.rho_privacy import RhoPrivacy
from dalenius.randomness import Randomness
from dalenius.reproduce import perturbation_errors as module
from dalenius.reproduce.answers import TrueCounts, equality_pool
from dalenius.reproduce.census import draw_rows, kdd, sensitive_codes, value_counts
from dalenius.reproduce.experiment import DIAGONAL
from dalenius.reproduce.perturbation_errors import (
    ANATOMY,
    EDU,
    OCC,
    PAPER,
    PLANNERS,
    SELECTIVITIES,
    Place,
    Setting,
    measure_errors,
    publish_times,
    publishers,
    time_by_rows,
)

pytestmark = pytest.mark.usefixtures("made_up")
LOOSE = Setting(source="OCC", rho1=None, levels=(3, 2), level=2)


def test_the_promise_of_a_level_is_one_of_so_many() -> None:
    assert OCC.promise(6).rho2 == Fraction(1, 6)
    assert OCC.promise(6).rho1 is None
    assert (EDU.promise(4).rho1, EDU.promise(4).rho2) == (Fraction(1, 30), Fraction(1, 4))
    assert EDU.levels == (10, 8, 6, 4)


def test_every_method_publishes_all_records_or_withholds_some() -> None:
    original = draw_rows(kdd("OCC"), 600, Randomness.seeded(1).stream("rows"))
    made = publishers(original, LOOSE.promise(2))
    assert list(made) == [ANATOMY, *PLANNERS]
    everybody = [np.arange(600)]
    counts = value_counts(original)
    for name, publish in made.items():
        found = publish(Randomness.seeded(1)).by_value(everybody)[:, 0]
        if name == ANATOMY:  # two of the commonest value for each other record, and the rest is withheld
            assert found.sum() <= 600
            assert found.max() <= found.sum() / 2 + 1e-9
        else:
            assert found.sum() == pytest.approx(600)
    truth = TrueCounts(sensitive=sensitive_codes(original), n_values=len(counts)).by_value(everybody)
    assert truth[:, 0].tolist() == list(counts)


def test_errors_are_measured_at_every_level_size_and_selectivity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "N_CONDITIONS", 8)
    found = measure_errors(LOOSE, thousands=(1,), levels=(3, 2), base=1, n_seeds=2)
    panels = {
        f"by {varied}, s = {share:.1%}" for varied in ("L", "thousands of rows") for share in SELECTIVITIES
    }
    assert {panel for panel, _, _ in found} == panels
    assert {(panel.split(",")[0], x) for panel, x, _ in found} == {
        ("by L", 3),
        ("by L", 2),
        ("by thousands of rows", 1),
    }
    assert all(len(spread.values) == 2 for spread in found.values())
    # the table of the base and the level of the sizes is one and the same
    for share in ("0.1%", "0.5%", "1.0%"):
        for name in (ANATOMY, *PLANNERS):
            assert (
                found[f"by L, s = {share}", 2, name] == found[f"by thousands of rows, s = {share}", 1, name]
            )
    # one of them by hand: uniform perturbation, the first seed, counts of 1 % or more
    original = module._table("OCC", 1)
    pool = equality_pool(original, 8, Randomness.seeded(1).stream("queries"))
    release = publishers(original, LOOSE.promise(3))["UP"](Randomness.seeded(1))
    error = 100 * mean_relative_error(pool.cells(release).at_least(0.01), 0)
    assert found["by L, s = 1.0%", 3, "UP"].values[0] == pytest.approx(error)


def wins(pp: list[float], up: list[float], anatomy: list[float], panels: int = 2) -> dict[Place, Spread]:
    """The same errors in each of some panels."""
    found: dict[Place, Spread] = {}
    for panel in range(panels):
        for name, values in ((ANATOMY, anatomy), ("UP", up), (PAPER, pp)):
            found[f"panel {panel}", 7, name] = Spread.of(values)
    return found


def test_clear_wins_are_those_of_three_standard_errors() -> None:
    """Below UP by 1 each time: clear. Below Anatomy by 0 and 4: 2 ± 2, on average and not clear."""
    said = module._wins(wins([10.0, 12.0], [11.0, 13.0], [10.0, 16.0]))
    assert "PP is below Anatomy in 2 of 2 settings on average over the seeds, in 0 of them" in said
    assert "PP is below UP in 2 of 2 settings on average over the seeds, in 2 of them" in said
    lost = module._wins(wins([10.0, 12.0], [9.0, 11.0], [11.0, 13.0]))
    assert "PP is below UP in 0 of 2 settings (not at 7 panel 0, 7 panel 1)" in lost


def test_ranges_are_of_the_means_of_each_method() -> None:
    found = wins([10.0, 12.0], [11.0, 13.0], [10.0, 16.0], panels=1)
    found["panel 1", 7, "UP"] = Spread.of([2.0, 4.0])
    assert module._ranges(found) == (f"Anatomy 13.0 to 13.0 %, UP 3.0 to 12.0 %, {PAPER} 11.0 to 11.0 %")


def test_rows_by_level_come_before_rows_by_size() -> None:
    found = {
        ("by thousands of rows, s = 1.0%", 100, "UP"): Spread.of([1.0, 3.0]),
        ("by L, s = 1.0%", 6, "UP"): Spread.of([4.0, 4.0]),
    }
    assert module._rows(found) == (
        ("by L, s = 1.0%", 6, "UP", 4.0, 0.0),
        ("by thousands of rows, s = 1.0%", 100, "UP", 2.0, 1.0),
    )


def test_figures_2_and_4_say_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "measure_errors", lambda _: wins([10.0, 12.0], [11.0, 13.0], [14.0, 15.0]))
    occ = module._figure2()
    assert occ.differs.startswith(
        f"over all settings: Anatomy 14.5 to 14.5 %, UP 12.0 to 12.0 %, {PAPER} 11.0"
    )
    assert len(occ.rows) == 6
    edu = module._figure4()
    # five made-up educations, of which the promise protects the rare ones
    assert "PP's procedure makes parts of them: " in edu.differs
    assert all(f"at L = {level}" in edu.differs for level in EDU.levels)
    assert "ρ1 = 1/30" in edu.data


def test_figure_3_draws_points_and_a_diagonal_for_each_method(monkeypatch: pytest.MonkeyPatch) -> None:
    small = draw_rows(kdd("OCC"), 900, Randomness.seeded(1).stream("rows"))
    pool = equality_pool(small, 6, Randomness.seeded(1).stream("queries"))
    monkeypatch.setattr(module, "_table", lambda *_: small)
    monkeypatch.setattr(module, "_pools", lambda *_: [pool])
    monkeypatch.setattr(module, "OCC", LOOSE)
    monkeypatch.setattr(module.Setting, "promise", lambda *_: RhoPrivacy(rho1=None, rho2=Fraction(1, 2)))
    outcome = module._figure3(n_drawn=5)
    for method in (ANATOMY, *PLANNERS):
        own = [row for row in outcome.rows if row[0] == method]
        assert [row[1] for row in own] == ["queries"] * 5 + [DIAGONAL] * 2
        acts = [float(row[2]) for row in own[:5]]
        assert acts == sorted(acts)
        assert min(acts) >= 0.001 * 900
        assert own[5][2:] == (0.0, 0.0)
        assert own[6][2] == own[6][3] == max(float(t) for t in pool.cells(truth_of(small)).truth)


def truth_of(original: Original) -> TrueCounts:
    return TrueCounts(sensitive=sensitive_codes(original), n_values=len(value_counts(original)))


def test_times_are_from_codes_to_codes_and_planning_is_a_part() -> None:
    original = draw_rows(kdd("OCC"), 500, Randomness.seeded(1).stream("rows"))
    times = publish_times(original, LOOSE)
    assert list(times) == [ANATOMY, *PLANNERS]
    assert times[ANATOMY][1] == 0.0
    assert all(0 <= planning <= taken for taken, planning in times.values())


def test_the_share_of_planning_is_of_the_methods_that_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 of 4 and 6 of 8 seconds: 8 of 12; Anatomy and UP are left out."""
    ours = next(name for name in PLANNERS if name not in ("UP", PAPER))
    taken = {ANATOMY: (100.0, 0.0), "UP": (50.0, 50.0), PAPER: (4.0, 2.0), ours: (8.0, 6.0)}
    monkeypatch.setattr(module, "publish_times", lambda *_: taken)
    outcome = time_by_rows(thousands=[1])
    assert len(outcome.rows) == 2 * 4
    assert "nothing takes more than 1e+02 s here. 67% of the time" in outcome.differs
