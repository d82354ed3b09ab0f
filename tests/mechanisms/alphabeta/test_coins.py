"""Coins by tuple: the published test vectors, a plain twin, and the probability."""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.mechanisms.alphabeta.coins import TupleCoins

KEY = bytes(range(16))
N = 200_000


@pytest.mark.parametrize(("n_words", "digest"), [(1, 0x93F5F5799A932462), (2, 0x3F2ACC7F57C29BDB)])
def test_the_vectors_of_the_reference_implementation(n_words: int, digest: int) -> None:
    message = np.frombuffer(bytes(range(8 * n_words)), dtype="<i8").reshape(1, n_words)
    assert int(TupleCoins(key=KEY).digests(message)[0]) == digest


def siphash(key: bytes, message: bytes) -> Any:
    """SipHash-2-4 in plain integers, for messages of whole words."""
    mask = 2**64 - 1
    k = struct.unpack("<QQ", key)
    v = [
        0x736F6D6570736575 ^ k[0],
        0x646F72616E646F6D ^ k[1],
        0x6C7967656E657261 ^ k[0],
        0x7465646279746573 ^ k[1],
    ]

    def turn(x: int, by: int) -> int:
        return (x << by | x >> (64 - by)) & mask

    def rounds(n: int) -> None:
        for _ in range(n):
            for i, j, by in ((0, 1, 13), (2, 3, 16)):
                v[i] = (v[i] + v[j]) & mask
                v[j] = turn(v[j], by) ^ v[i]
            v[0] = turn(v[0], 32)
            for i, j, by in ((2, 1, 17), (0, 3, 21)):
                v[i] = (v[i] + v[j]) & mask
                v[j] = turn(v[j], by) ^ v[i]
            v[2] = turn(v[2], 32)

    words = [*struct.unpack(f"<{len(message) // 8}Q", message), (len(message) % 256) << 56]
    for word in words:
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


@given(
    key=st.binary(min_size=16, max_size=16),
    words=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=4),
)
def test_a_plain_twin_gives_the_same(key: bytes, words: list[int]) -> None:
    rows = np.array([words, words[::-1]], dtype=np.int64)
    expected = [siphash(key, struct.pack(f"<{len(words)}Q", *row)) for row in (words, words[::-1])]
    assert TupleCoins(key=key).digests(rows).tolist() == expected


@pytest.mark.parametrize(
    ("probability", "wrong"),
    [(Fraction(1, 3), 0.32), (Fraction(1, 1000), 0.002), (Fraction(999, 1000), 0.998)],
)
def test_heads_come_up_as_often_as_they_should(probability: Fraction, wrong: float) -> None:
    heads = TupleCoins(key=KEY).toss(probability, np.arange(N).reshape(-1, 1)).sum()

    def deviations(p: float) -> Any:
        return abs(float(heads) - N * p) / (N * p * (1 - p)) ** 0.5

    assert deviations(float(probability)) < 4.9  # 1e-6, two-sided
    assert deviations(wrong) > 4.9


def test_certain_coins_and_uniform_numbers() -> None:
    coins, words = TupleCoins(key=KEY), np.arange(N).reshape(-1, 1)
    assert coins.toss(Fraction(1), words).all()
    assert not coins.toss(Fraction(0), words).any()
    uniforms = coins.uniforms(words)
    assert uniforms.min() >= 0
    assert uniforms.max() < 1
    assert np.array_equal(uniforms < 0.25, coins.toss(Fraction(1, 4), words))


def test_the_key_decides_and_is_not_shown() -> None:
    words = np.arange(1000).reshape(-1, 1)
    one, other = TupleCoins(key=KEY), TupleCoins(key=KEY[::-1])
    assert not np.array_equal(one.toss(Fraction(1, 2), words), other.toss(Fraction(1, 2), words))
    assert repr(KEY) not in repr(one)
