"""Random streams: independent by name, secret by default, repeatable only by seed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dalenius.randomness import Randomness


def test_streams_repeat_by_seed_and_name_only() -> None:
    draws = {
        (seed, name): Randomness.seeded(seed).stream(*name).integers(2**62, size=4).tobytes()
        for seed in (1, 2)
        for name in [("a",), ("b",), ("a", 1), ("a", "1"), ("a1",)]
    }
    assert len(set(draws.values())) == len(draws)
    again = Randomness.seeded(1).stream("a").integers(2**62, size=4).tobytes()
    assert again == draws[1, ("a",)]


def test_fresh_keys_differ_and_are_never_shown() -> None:
    one, other = Randomness.fresh(), Randomness.fresh()
    assert one.key != other.key
    assert not one.is_seeded
    assert one.key.hex() not in repr(one)
    assert repr(one.key) not in repr(one)


@pytest.mark.parametrize("name", ["x", "y"])
def test_a_stream_is_uniform_and_streams_are_uncorrelated(name: str) -> None:
    a = Randomness.seeded(3).stream(name).random(200_000)
    b = Randomness.seeded(3).stream(name, 0).random(200_000)
    assert stats.kstest(a, "uniform").pvalue > 1e-6
    assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(len(a))
    assert stats.kstest(a**1.02, "uniform").pvalue < 1e-6
