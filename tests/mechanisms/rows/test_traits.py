"""Effects on near numbers are alike where a release says so; what is told around the likeliest effects."""

from __future__ import annotations

import numpy as np
import pytest

from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.posterior import Posterior
from dalenius.mechanisms.rows.effects import Basis, Features, Quasi, find_basis
from dalenius.mechanisms.rows.traits import (
    MOST_RELATED,
    OWN,
    choose_basis,
    neighbours,
    relate,
    standard_units,
    traits_of,
)
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


def alike_values(seed: int, *, together: bool) -> tuple[Features, np.ndarray, np.ndarray, np.ndarray]:
    """Effects of many columns on six values, of which the first three go together; and what a table tells."""
    rng, n_values = np.random.default_rng(seed), 6
    columns = rng.integers(3, size=(12, N))
    effects = rng.normal(size=(12, 3, n_values))
    if together:
        effects[..., :3] = effects[..., :1] + 0.2 * effects[..., :3]
    lean = sum(own[codes] for own, codes in zip(0.5 * effects, columns, strict=True))
    value = (lean + rng.gumbel(size=(N, n_values))).argmax(axis=1)
    features = Features.of([Quasi(codes=codes) for codes in columns], np.zeros(N, dtype=np.int64))
    counts, seen = np.bincount(value, minlength=n_values).astype(float), np.eye(n_values)[value]
    surprise = features.indicators.T @ seen - np.outer(features.means[0], counts)
    return features, np.diag(counts) - np.outer(counts, counts) / N, surprise, counts


def correlations(basis: Basis) -> np.ndarray:
    """Values × values: of effects, before anything is told."""
    together = basis.values @ basis.values.T
    size = np.sqrt(np.diag(together))
    return np.asarray(together / np.outer(size, size))


@pytest.mark.parametrize("together", [True, False])
def test_which_values_go_together_is_learned_from_the_release(together: bool) -> None:
    features, told, surprise, _ = alike_values(4, together=together)
    plain = find_basis(features, told, surprise)
    found = relate(features, told, surprise, plain)
    assert correlations(plain) == pytest.approx(np.eye(6), abs=1e-9)
    # what all values have in common is no effect: three that go together are told from the other three
    learned = correlations(found)
    inside, across = learned[np.triu_indices(3, 1)].mean(), learned[:3, 3:].mean()
    assert (inside - across > 0.6) == together
    assert together or np.abs(learned - np.eye(6)).max() < 0.5
    assert found.evidence(surprise) > plain.evidence(surprise)
    assert np.trace(found.values @ found.values.T) == pytest.approx(6), "sizes of effects are the columns'"


def test_values_that_are_smooth_few_or_too_many_are_left_alone() -> None:
    features, told, surprise, counts = told_of(coded=False)
    smooth = choose_basis(features, told, surprise, np.arange(VALUES, dtype=float), counts)
    assert relate(features, told, surprise, smooth) is smooth
    for n in (2, MOST_RELATED + 1):
        plain = find_basis(features, np.eye(n), np.zeros((features.kinds.n_features, n)))
        assert relate(features, np.eye(n), np.zeros((features.kinds.n_features, n)), plain) is plain
