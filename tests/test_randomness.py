"""Random streams: independent by name, secret by default, repeatable only by seed."""

from __future__ import annotations

import hashlib
import hmac
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dalenius.randomness import KEY_BITS, Randomness, random_keys, toss
from tests.chance import FALSE_ALARM
from tests.conftest import PROJECT


def test_streams_repeat_by_seed_and_name_only() -> None:
    draws = {
        (seed, name): Randomness.seeded(seed).stream(*name).integers(2**62, size=4).tobytes()
        for seed in (1, 2)
        for name in [("a",), ("b",), ("a", 1), ("a", "1"), ("a1",)]
    }
    assert len(set(draws.values())) == len(draws)
    again = Randomness.seeded(1).stream("a").integers(2**62, size=4).tobytes()
    assert again == draws[1, ("a",)]


def test_fresh_keys_come_from_the_operating_system() -> None:
    """Asked of a process of its own: in this one the keys of tests repeat."""
    ask = "from dalenius.randomness import Randomness as R; print(*(R.fresh().key.hex() for _ in range(3)))"
    command, environment = [sys.executable, "-c", ask], {**os.environ, "PYTHONPATH": str(PROJECT / "src")}
    runs = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(2)
    ]
    assert len({key for run in runs for key in run.stdout.split()}) == 6


def test_keys_are_never_shown() -> None:
    one, other = Randomness.fresh(), Randomness.fresh()
    assert one.key != other.key
    assert not one.is_seeded
    assert one.key.hex() not in repr(one)
    assert repr(one.key) not in repr(one)


@pytest.mark.parametrize("name", ["x", "y"])
def test_a_stream_is_uniform_and_streams_are_uncorrelated(name: str) -> None:
    a = Randomness.seeded(3).stream(name).random(200_000)
    b = Randomness.seeded(3).stream(name, 0).random(200_000)
    assert stats.kstest(a, "uniform").pvalue > FALSE_ALARM
    assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(len(a))
    assert stats.kstest(a**1.02, "uniform").pvalue < FALSE_ALARM


def test_random_keys_have_every_bit_but_the_sign() -> None:
    keys = random_keys(Randomness.seeded(4).stream("order"), 200_000)
    assert keys.dtype == np.int64
    ones = [(keys >> bit & 1).sum() for bit in range(64)]
    assert ones[KEY_BITS] == 0
    assert min(stats.binomtest(int(n), len(keys), 0.5).pvalue for n in ones[:KEY_BITS]) > FALSE_ALARM
    assert stats.kstest(keys / 2.0**KEY_BITS, "uniform").pvalue > FALSE_ALARM
    assert stats.kstest((keys >> 1) / 2.0**KEY_BITS, "uniform").pvalue < FALSE_ALARM


@pytest.mark.parametrize(
    "probability", [Fraction(1, 3), Fraction(10**30 + 1, 3 * 10**30), Fraction(0), Fraction(1)]
)
def test_coins_have_their_probability(probability: Fraction) -> None:
    heads = int(toss(probability, 200_000, Randomness.seeded(7).stream("coins")).sum())
    assert stats.binomtest(heads, 200_000, float(probability)).pvalue > FALSE_ALARM
    if 0 < probability < 1:
        assert stats.binomtest(heads, 200_000, float(probability) * 1.03).pvalue < FALSE_ALARM


def test_a_tied_coin_is_decided_by_its_further_digits() -> None:
    class Tied:
        """A stream whose first digits equal the threshold."""

        def __init__(self, digits: list[int]) -> None:
            self.digits = digits

        def integers(self, bound: int, size: int) -> np.ndarray:
            return np.full(size, self.digits.pop(0))

    third = Fraction(1, 3)
    first = int(third * 2**62)
    rest = int((third * 2**62 - first) * 2**62)
    for second, expected in [(rest - 1, True), (rest + 1, False)]:
        assert toss(third, 2, Tied([first, second])).tolist() == [expected] * 2  # type: ignore[arg-type]
    assert toss(Fraction(1, 2), 1, Tied([2**61])).tolist() == [False]  # type: ignore[arg-type]


def test_no_two_names_share_a_stream() -> None:
    """Names hold what users call their policies: a separator in one must not make it another."""
    names: list[tuple[str | int, ...]] = [
        ("a", "b"), ("a\x1fstr:b",), ("a", "b", ""), ("a\\x1fstr:b",),
        ("a", 1), ("a", "1"), ("a\\", "b"), ("a", "\\b"),
    ]  # fmt: skip
    keys = {Randomness.seeded(1).derived_key(*name) for name in names}
    assert len(keys) == len(names)


def test_usual_names_have_the_streams_that_they_always_had() -> None:
    """Seeded results of earlier versions can be made again."""
    expected = hmac.new(Randomness.seeded(1).key, b"str:x\x1fint:3", hashlib.sha256).digest()
    assert Randomness.seeded(1).derived_key("x", 3) == expected


def test_what_is_not_for_publication_says_so() -> None:
    for made in (Randomness.seeded(1), Randomness.rehearsing()):
        assert made.is_seeded
        assert made.child("x").is_seeded
        assert len(made.key) == 32
    assert Randomness.rehearsing().key != Randomness.rehearsing().key
    assert not Randomness.fresh().child("x").is_seeded
