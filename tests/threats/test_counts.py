"""P-values of counts are bounds: exact laws pass any level at most as often as the level says."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from dalenius.threats.chance import FALSE_ALARM, SHARE, SHARES
from dalenius.threats.counts import Counts, judge_laws, learnt, make_counts
from dalenius.threats.facets import Facet
from dalenius.threats.laws import Coins, Draws
from dalenius.threats.result import Threat

LEVELS = (1e-2, 1e-4, FALSE_ALARM, SHARE, SHARE / 1000)
THREAT = Threat(knows="", wants="", covered=True)


def false_alarms(counts: Counts, law: np.ndarray) -> list[float]:
    """How likely counts of this law are accused at each level."""
    p = counts.p_values()
    return [float(law[p <= level].sum()) for level in LEVELS]


@pytest.mark.parametrize("n", [1, 7, 60, 1_000])
@pytest.mark.parametrize("rate", [1e-3, 0.02, 0.3, 0.5, 0.975])
def test_coins_are_accused_at_most_as_often_as_the_level_says(n: int, rate: float) -> None:
    x = np.arange(n + 1)
    found = make_counts("x", x, n * rate, n * rate * (1 - rate), n)
    alarms = false_alarms(found, binom.pmf(x, n, rate))
    assert all(alarm <= level for alarm, level in zip(alarms, LEVELS, strict=True))
    if n == 1_000 and rate >= 0.3:  # and a rate that is off by far is accused
        assert false_alarms(found, binom.pmf(x, n, rate / 4))[3] > 0.99


@pytest.mark.parametrize(
    ("size", "chosen", "cell"), [(40, 20, 10), (500, 30, 200), (900, 450, 30), (60, 2, 30)]
)
def test_draws_are_accused_at_most_as_often_as_the_level_says(size: int, chosen: int, cell: int) -> None:
    x = np.arange(min(chosen, cell) + 1)
    mean = cell * chosen / size
    spread = mean * (1 - chosen / size) * (size - cell) / (size - 1)
    alarms = false_alarms(make_counts("x", x, mean, spread, cell), hypergeom.pmf(x, size, chosen, cell))
    assert all(alarm <= level for alarm, level in zip(alarms, LEVELS, strict=True))


def test_learnt_weights_are_accused_at_most_as_often_as_the_level_says() -> None:
    """All ways in which twelve coins of two cells and two halves can fall, at levels that they can reach."""
    rate, n, shape = 0.2, 3, (2, 2)
    falls = np.array(list(product(range(n + 1), repeat=4)), dtype=np.float64)
    law = binom.pmf(falls, n, rate).prod(axis=1)
    p = np.array([_learnt_p(fall.reshape(shape), n, rate) for fall in falls])
    for level in (0.3, 0.1, 0.05, 0.01):
        assert law @ (p <= level) <= 2 * level  # of each of two halves
    assert p.min() < 0.3


def _learnt_p(observed: np.ndarray, n: int, rate: float) -> float:
    every = np.full(observed.size, float(n))
    halves = Counts(
        name="x",
        observed=observed.ravel(),
        expected=every * rate,
        variance=every * rate * (1 - rate),
        trials=every,
        label=str,
    )
    return float(learnt(halves, halves.variance, 1.0).p_values().min())


def test_the_tests_of_an_attack_share_its_part_and_the_attacks_that_of_the_audit() -> None:
    """Bonferroni: whatever the number of groups and cells, p-values are multiplied by it."""
    cells = make_counts("x", [60.0, 50.0, 50.0, 50.0], 50.0, 25.0, 100.0)
    alone = judge_laws("law", THREAT, [cells.at(0)], n_things=1, n_failed=0, advice="")
    among = judge_laws("law", THREAT, [cells, cells.at(1), cells.at(2)], n_things=1, n_failed=0, advice="")
    assert alone.p_value is not None
    assert among.p_value == pytest.approx(min(1.0, alone.p_value * 4 * 3))
    assert pytest.approx(FALSE_ALARM) == SHARE * SHARES


@pytest.mark.parametrize("seed", range(3))
def test_many_facets_of_fair_coins_and_draws_have_no_small_p_value_too_often(seed: int) -> None:
    """Of 400 attacks on fair coins at most as many as the level says, and a few more by chance."""
    rng = np.random.default_rng(seed)
    place = np.arange(200)
    facet = Facet(name="f", codes=place % 5, n_cells=5, label=str)
    found = []
    for _ in range(200):
        coins = Coins(what="c", heads=rng.random(200) < 0.3, chance=np.full(200, 0.3))
        draws = Draws(
            what="d",
            stratum=place // 100,
            outcome=rng.permutation(np.repeat([0, 1], [120, 80])),
            outcomes=("a", "b"),
            stratum_label=str,
        )
        for groups in ([coins.total(), *coins.by(facet)], list(draws.by(facet))):
            judged = judge_laws("law", THREAT, groups, n_things=200, n_failed=0, advice="")
            found.append(judged.p_value or 0.0)
    for level in (0.2, 0.05):
        assert sum(p <= level for p in found) <= binom.isf(1e-7, len(found), level)
