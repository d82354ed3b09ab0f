"""Matchings of people with numbers: the law that enumeration gives, and effects as large as the table's."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from dalenius.arrays import Ints
from dalenius.mechanisms.bucketize.estimate import drawing
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets
from dalenius.mechanisms.bucketize.estimate.drawing import draw_numbers, sharpen
from dalenius.mechanisms.bucketize.estimate.numbers import Numbers
from dalenius.mechanisms.rows.effects import Quasi
from dalenius.randomness import Randomness

N, SIZE = 20_000, 20
GROUPS = np.array([0.0, 1.0, -0.6, 0.3])
"""By how much the logarithm of a group's numbers is larger."""


def people(seed: int, n: int = N) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group, age, and a number that depends on both."""
    rng = np.random.default_rng(seed)
    group, age = rng.integers(0, 4, n), rng.integers(0, 40, n)
    return group, age, np.exp(10 + 0.5 * GROUPS[group] + 0.01 * age + 0.25 * rng.normal(size=n))


def fit(group: np.ndarray, age: np.ndarray, number: np.ndarray, home: np.ndarray) -> tuple[Buckets, Numbers]:
    """Of buckets that hold all numbers."""
    different, value = np.unique(number, return_inverse=True)
    buckets = Buckets.of(home, home, value, np.ones(len(value), dtype=np.int64))
    columns = [Quasi(codes=group), Quasi(codes=age, is_number=True)]
    return buckets, Numbers.of(buckets, columns, different, None)


def log_likelihoods(made: Numbers, exponents: np.ndarray, rows: list[int], values: Ints) -> np.ndarray:
    """People x values: x.C.phi(z), term by term."""
    phi = np.column_stack([made.traits.root[made.traits.bin_of[values]], made.traits.number[values]])
    features = made.features.indicators.toarray()[rows]
    return np.asarray(features @ exponents @ phi.T)


def test_a_matching_is_as_likely_as_its_exponents_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """By enumeration of the six matchings of each of some buckets, which are there thousands of times."""
    n_different, n_times = 12, 6_000
    group, age, number = (np.tile(column, n_times) for column in people(1, 3 * n_different))
    buckets, made = fit(group, age, number, np.arange(len(group)) // 3)
    effects = made.basis.effects(made.place) * 0.3  # so few people are taken to tell all too much
    monkeypatch.setattr(drawing, "_draw_linear", lambda *_: effects)
    exponents = sharpen(effects, made.features.covariance(), made.traits.covariance(buckets.counts))
    drawn = draw_numbers(made, buckets, Randomness.seeded(5).stream("complete")).reshape(n_times, -1)
    value = np.unique(number, return_inverse=True)[1]
    farthest = 0.0
    for bucket in range(n_different):
        rows = [3 * bucket, 3 * bucket + 1, 3 * bucket + 2]
        log = log_likelihoods(made, exponents, rows, value[rows].astype(np.int64))
        orders = list(permutations(range(3)))
        weights = np.exp([sum(log[person, order[person]] for person in range(3)) for order in orders])
        for order, share in zip(orders, weights / weights.sum(), strict=True):
            hits = (drawn[:, rows] == value[rows][list(order)]).all(axis=1).mean()
            assert abs(hits - share) <= 6 * np.sqrt(share * (1 - share) / n_times) + 1e-3
            farthest = max(farthest, abs(share - 1 / 6))
    assert farthest > 0.2  # uniform matchings would be noticed


def test_buckets_keep_their_numbers() -> None:
    rng = np.random.default_rng(2)
    group, age, number = people(2, 1_000)
    home = rng.permutation(np.repeat(np.arange(90), [11] * 80 + [12] * 10))  # of two sizes
    buckets, made = fit(group, age, number, home)
    drawn = draw_numbers(made, buckets, Randomness.seeded(1).stream("complete"))
    rank = np.unique(number, return_inverse=True)[1]
    assert sorted(drawn.tolist()) == list(range(1_000))
    assert np.array_equal(home[np.argsort(rank)][drawn], home)
    assert not np.array_equal(drawn, rank)


def test_effects_of_columns_are_as_large_as_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strong ones too, which exponents that are not sharpened lose a part of."""
    group, age, number = people(3)
    buckets, made = fit(group, age, number, np.random.default_rng(3).permutation(N) // SIZE)

    def slope(values: Ints) -> float:
        columns = np.column_stack([np.ones(N), GROUPS[group], age])
        return float(np.linalg.lstsq(columns, np.log(np.sort(number)[values]), rcond=None)[0][1])

    def mean_of_draws() -> float:
        stream = Randomness.seeded(4).stream("complete")
        return float(np.mean([slope(draw_numbers(made, buckets, stream)) for _ in range(6)]))

    truth = slope(np.unique(number, return_inverse=True)[1].astype(np.int64))
    assert mean_of_draws() == pytest.approx(truth, rel=0.1)
    monkeypatch.setattr(drawing, "sharpen", lambda effects, *_: effects)
    assert mean_of_draws() < 0.85 * truth


def test_exponents_of_normal_laws_give_their_correlation() -> None:
    """Of two standard normal numbers on a grid, coupled by exp(C.x.z)."""
    grid = np.linspace(-5, 5, 201)
    own = np.exp(-0.5 * grid**2)
    for correlation in (0.2, 0.6, 0.9):
        one = np.ones((1, 1))
        exponent = sharpen(correlation * one, one, one)[0, 0]
        # its margins are standard normal where the laws that it is made of are narrower
        narrow = np.exp(-0.5 * grid**2 / (1 - correlation**2))
        joint = narrow[:, None] * narrow * np.exp(exponent * np.outer(grid, grid))
        joint /= joint.sum()
        assert joint.sum(axis=1) == pytest.approx(own / own.sum(), abs=1e-6)
        assert grid @ joint @ grid == pytest.approx(correlation, abs=1e-4)
