"""Matchings drawn by swaps have the law that enumeration gives."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from dalenius.mechanisms.bucketize.estimate.buckets import Buckets
from dalenius.mechanisms.bucketize.estimate.drawing import draw_matching
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
