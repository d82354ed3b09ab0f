"""The experiments about attackers: what the paper states, and where it is not so."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from dalenius.reproduce.bucketization import SHARE, theorem
from dalenius.reproduce.catalogue import EXPERIMENTS
from dalenius.reproduce.experiment import column_counts


def test_the_theorem_has_the_papers_factors() -> None:
    assert theorem(100, 80, 0.1)[0] == pytest.approx(1.02 * 0.8)
    assert theorem(1_000, 800, 0.1)[0] == pytest.approx(1.0002 * 0.8)


def test_noisy_counts_give_the_share_away_and_buckets_do_not() -> None:
    outcome = EXPERIMENTS["differential-inference"].run()
    rows = {(row[0], row[1]): row[2:] for row in outcome.rows}
    for x in (1_000, 5_000):
        middle, low, high, mean, deviation = map(float, rows["Laplace noise, epsilon 0.1", x])
        # a median of 4,000 draws: 1.25·sd/√4000 is its error, and six of those are never seen
        assert middle == pytest.approx(SHARE, abs=6 * 1.25 * deviation / 4_000**0.5 + 1e-3)
        assert mean == pytest.approx(SHARE, rel=1e-3)
        assert 2 * deviation < high - low < 5 * deviation
    assert float(rows["buckets, l = 5", 1_000][0]) == 0.2


def test_fakes_on_adult(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DALENIUS_DATA", str(real_data))
    rows = {
        (row[0], row[1]): tuple(map(float, row[2:])) for row in EXPERIMENTS["corruption-fakes"].run().rows
    }
    stated = {  # who takes the commonest remaining value
        ("uniform", 1): 0.90,
        ("uniform", 2): 0.83,
        ("uniform", 4): 0.73,
        ("proportional", 1): 0.78,
        ("proportional", 2): 0.69,
        ("proportional", 4): 0.64,
    }
    # five standard errors of a share of the buckets, and half a digit where a number is printed
    n_buckets = sum(column_counts("adult.csv", "occupation")) / 7
    chance, digit = 5 * math.sqrt(0.25 / n_buckets), 0.005
    for (law, sigma), success in stated.items():
        naive, naive_exact, measured, exact, floor = rows[sigma, law]
        assert measured == pytest.approx(success, abs=chance + digit)
        assert exact == pytest.approx(measured, abs=chance)
        assert naive == pytest.approx(naive_exact, abs=chance)
        ours = rows[sigma, "against him"]
        assert floor - chance < ours[3] < exact + chance
    assert rows[1, "against him"][3] < rows[1, "proportional"][3] - chance


def test_the_corruption_curve_ends_where_it_should(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DALENIUS_DATA", str(real_data))
    rows = EXPERIMENTS["corruption-curve"].run().rows
    for row in rows:  # of 2,000 buckets: 5 standard deviations of a coin
        assert float(row[2]) == pytest.approx(float(row[3]), abs=5 * math.sqrt(0.25 / 2_000)), row
    curve = {(row[0], row[1]): float(row[3]) for row in rows}
    assert curve["no fakes", 6] == 1.0
    for sigma in (1, 2, 4):
        assert curve[f"{sigma} fakes, naive", 6] == pytest.approx(1 / (1 + sigma))
        knows = [curve[f"{sigma} fakes, knows the histogram", q] for q in range(7)]
        assert 1 > knows[6] > knows[3] > knows[0]
        assert knows[6] > curve[f"{sigma} fakes, naive", 6] + 5 * math.sqrt(0.25 / 2_000)
