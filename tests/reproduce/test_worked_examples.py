"""The tables that the papers work out by hand come out to the last digit."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dalenius.reproduce.alphabeta_example import N_VIEWS
from dalenius.reproduce.catalogue import EXPERIMENTS


def test_alice_has_one_of_two_diseases() -> None:
    assert EXPERIMENTS["bucketization-table2"].run().rows == ((2, 2, "50%", "50%"),)


def test_example_3_has_the_papers_bounds_and_moves_six_records() -> None:
    outcome = EXPERIMENTS["bucketization-fig1"].run()
    for _, _, first, second, stated, *_ in outcome.rows:
        assert f"{first}, {second}" == stated
    assert [sum(int(row[i]) for row in outcome.rows) for i in (5, 6)] == [9 * 4, 14]
    assert "6 records move" in outcome.differs


def test_suppression_of_the_example() -> None:
    rows = EXPERIMENTS["suppression-fig1"].run().rows
    assert [(row[0], row[2]) for row in rows[:3]] == [
        ("minimum suppression", 6),
        ("Unsafe D", 6),
        ("Safe D", 10),
    ]
    law = {row[1]: float(row[3]) for row in rows[3:]}
    assert law == {
        "[4, 4, 2, 1, 1]": pytest.approx(4 / 9),
        "[2, 3, 2, 1, 1]": pytest.approx(5 / 18),
        "[3, 3, 2, 1, 1]": pytest.approx(1 / 9),
        "[1, 2, 2, 1, 1]": pytest.approx(1 / 6),
    }


def test_balancing_and_merging_of_the_example() -> None:
    outcome = EXPERIMENTS["perturbation-fig1"].run()
    assert all(ours == stated for _, ours, stated in outcome.rows[:5])
    assert [row[1] for row in outcome.rows[5:]] == [
        "6 values, gamma 4, p+q 4/9",
        "6 values, gamma 10, p+q 2/3",
    ]
    assert "β = 3" in outcome.differs
    assert "0.52577" in outcome.differs


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
