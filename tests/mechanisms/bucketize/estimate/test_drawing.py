"""Matchings drawn by swaps have the law that enumeration gives."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from dalenius.mechanisms.bucketize.estimate.buckets import Buckets
from dalenius.mechanisms.bucketize.estimate.drawing import draw_matching, weights_of_sets
from dalenius.mechanisms.bucketize.estimate.matching import Places
from dalenius.randomness import Randomness

P = np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4], [0.05, 0.15, 0.8], [0.4, 0.4, 0.2]])
"""People × values."""
HELD = [0, 0, 1, 2]
"""The values of a bucket of four people: one twice."""


def exact() -> np.ndarray:
    """How likely each person has each value, over all matchings."""
    total, found = 0.0, np.zeros_like(P)
    for order in permutations(range(4)):
        values = [HELD[k] for k in order]
        weight = float(np.prod(P[np.arange(4), values]))
        total += weight
        found[np.arange(4), values] += weight
    return found / total


def test_swaps_have_the_law_of_all_matchings() -> None:
    n = 20_000
    home = np.repeat(np.arange(n), 4)
    buckets = Buckets.of(home, home, np.tile(HELD, n), np.ones(4 * n, dtype=np.int64))
    places = Places.of(buckets)
    assert places.rows.tolist() == list(range(4 * n))
    (block,) = places.blocks
    own = np.log(P)[block.by_person(places.rows)[:, None] % 4, block.by_slot(places.value)]
    values = draw_matching(places, [(block, own)], Randomness.seeded(3).stream("complete")).reshape(n, 4)
    assert (np.sort(values, axis=1) == HELD).all()
    shares = np.stack([(values == value).mean(axis=0) for value in range(3)], axis=1)
    assert shares == pytest.approx(exact(), abs=6 * 0.5 / np.sqrt(n))
    assert np.abs(exact() - np.array([0.5, 0.25, 0.25])).max() > 0.2  # uniform matchings would be noticed


FAKES = np.array([0.0, 0.7, 0.3])
"""How likely each of the values 0 (held twice), 1 and 2 is the fake of a bucket of three people."""


def exact_beside_a_fake() -> np.ndarray:
    """How likely each of three people has each value, one of the values being nobody's."""
    total, found = 0.0, np.zeros((3, 3))
    for order in permutations(range(4)):
        *values, fake = [HELD[k] for k in order]
        weight = float(np.prod(P[np.arange(3), values]) * FAKES[fake])
        total += weight
        found[np.arange(3), values] += weight
    return found / total


def test_fakes_are_people_more_whom_no_copy_has() -> None:
    n = 20_000
    people, listed = np.repeat(np.arange(n), 3), np.repeat(np.arange(n), 3)
    held = np.tile([2, 1, 1], n)
    buckets = Buckets.of(people, listed, np.tile([0, 1, 2], n), held - np.tile(FAKES, n), held)
    places = Places.of(buckets)
    (block,) = places.blocks
    own = np.log(P)[block.by_person(places.rows)[:, None] % 3, block.by_slot(places.value)]
    stream = Randomness.seeded(4).stream("complete")
    values = draw_matching(places, [(block, own)], stream, np.zeros(3)).reshape(n, 3)
    shares = np.stack([(values == value).mean(axis=0) for value in range(3)], axis=1)
    assert shares == pytest.approx(exact_beside_a_fake(), abs=6 * 0.5 / np.sqrt(n))
    assert ((values == 0).sum(axis=1) == 2).all(), "what is listed twice is nobody's fake"
    assert np.abs(exact_beside_a_fake() - exact()[:3]).max() > 0.05


def test_sets_of_fakes_hold_each_value_as_often_as_is_expected() -> None:
    expected = np.array([[0.9, 0.8, 0.8, 0.4, 0.1, 0.0], [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]])
    weights = weights_of_sets(expected, 3)
    for own, wanted in zip(weights, expected, strict=True):
        sets = [list(chosen) for chosen in combinations(range(6), 3)]
        chances = np.array([own[chosen].prod() for chosen in sets])
        found = np.zeros(6)
        for chosen, chance in zip(sets, chances / chances.sum(), strict=True):
            found[chosen] += chance
        assert found == pytest.approx(wanted, abs=1e-6)
