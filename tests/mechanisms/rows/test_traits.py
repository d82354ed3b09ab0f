"""Effects on near numbers are alike where a release says so; what is told around the likeliest effects."""

from __future__ import annotations

import numpy as np
import pytest

from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.posterior import Posterior
from dalenius.mechanisms.rows.effects import Features, Quasi, find_basis
from dalenius.mechanisms.rows.traits import OWN, choose_basis, neighbours, standard_units, traits_of
from dalenius.question.targets import Score, Targets

N, VALUES, SIZE = 2_400, 40, 4
GROUPS = 5


def table(seed: int, *, coded: bool) -> tuple[np.ndarray, np.ndarray]:
    """Groups of people, and a number that goes up with the group; or by a code without an order."""
    rng = np.random.default_rng(seed)
    group = rng.integers(GROUPS, size=N)
    number = np.clip(np.round(rng.normal(12 + 4 * group, 6)), 0, VALUES - 1).astype(np.int64)
    return group, np.random.default_rng(1).permutation(VALUES)[number] if coded else number


def dealt(value: np.ndarray, seed: int) -> Buckets:
    """Buckets of four different quarters of the values, as l-diversity makes them."""
    rng = np.random.default_rng(seed)
    order = np.argsort(value + 0.5 * rng.random(N), kind="stable")
    home = np.empty(N, dtype=np.int64)
    for part in np.array_split(order, SIZE):
        home[part] = rng.permutation(N // SIZE)
    pairs, count = np.unique(np.stack([home, value]), axis=1, return_counts=True)
    return Buckets.of(home, pairs[0], pairs[1], count)


def averages(seed: int, *, knows_order: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of the mean number of each group: errors of ours and Anatomy's, and whether 95 % intervals hold."""
    group, value = table(seed, coded=False)
    buckets, numbers = dealt(value, seed), np.arange(VALUES, dtype=float)
    made = Posterior.of(buckets, [Quasi(codes=group)], None, numbers if knows_order else None)
    members = [np.flatnonzero(group == g) for g in range(GROUPS)]
    sums = ScoreSums.of(buckets, [Score(rows=rows) for rows in members])
    found = made.estimate(sums, Targets.of([[(g, numbers)] for g in range(GROUPS)]))
    truth = np.array([numbers[value[rows]].sum() for rows in members])
    low, high = found.intervals(0.95)
    anatomy = np.array([sums.by_value[:, g] @ numbers for g in range(GROUPS)])
    return found.estimate - truth, anatomy - truth, (low <= truth) & (truth <= high)


def test_a_trend_over_few_numbers_is_found_and_its_intervals_hold() -> None:
    runs = [averages(seed, knows_order=True) for seed in range(20, 25)]
    ours, anatomys, held = (np.concatenate(part) for part in zip(*runs, strict=True))
    assert held.mean() > 0.9
    assert np.mean(ours**2) < 0.15 * np.mean(anatomys**2)


def test_the_twin_that_gives_each_number_an_effect_of_its_own_is_caught() -> None:
    runs = [averages(seed, knows_order=False) for seed in range(5)]
    ours, anatomys, held = (np.concatenate(part) for part in zip(*runs, strict=True))
    assert held.mean() < 0.8
    assert np.mean(ours**2) > 0.5 * np.mean(anatomys**2)


def told_of(*, coded: bool) -> tuple[Features, np.ndarray, np.ndarray, np.ndarray]:
    """What a table without buckets would tell: every value is seen."""
    group, value = table(3, coded=coded)
    features = Features.of([Quasi(codes=group)], np.zeros(N, dtype=np.int64))
    counts = np.bincount(value, minlength=VALUES).astype(float)
    seen = np.zeros((N, VALUES))
    seen[np.arange(N), value] = 1
    surprise = features.indicators.T @ seen - np.outer(features.means[0], counts)
    return features, np.diag(counts) - np.outer(counts, counts) / N, surprise, counts


def test_numbers_share_effects_and_codes_do_not() -> None:
    numbers = np.arange(VALUES, dtype=float)
    for coded in (False, True):
        features, told, surprise, counts = told_of(coded=coded)
        basis = choose_basis(features, told, surprise, numbers, counts)
        assert basis.is_smooth != coded
        assert choose_basis(features, told, surprise, None, counts).values.shape[1] == VALUES
        plain = find_basis(features, told, surprise)
        assert basis.evidence(surprise) >= plain.evidence(surprise)


def test_traits_have_the_covariance_that_they_are_for() -> None:
    numbers, counts = np.array([3.0, np.nan, 1.0, 2.0]), np.array([5.0, 5.0, 5.0, 5.0])
    traits = traits_of(numbers, counts, OWN[-1])
    alike = traits[:, :-1] @ traits[:, :-1].T
    assert np.diag(alike) == pytest.approx(1)
    assert alike[2, 3] > alike[2, 0] > alike[2, 1], "the nearer, the more alike; NULL is last"
    assert traits[:, -1] == pytest.approx(standard_units(numbers, counts))
    assert neighbours(counts, 1.0) @ neighbours(counts, 1.0).T == pytest.approx(np.eye(4))
    assert standard_units(np.array([np.nan]), np.array([3.0])).tolist() == [0.0]
