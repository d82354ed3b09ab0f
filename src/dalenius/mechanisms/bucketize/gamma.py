"""Γ(S_1, S_2): every way to cut n rows into buckets of two sizes, addressed by position (section 5.1.1).

The i-th pair is (b_1⁰ − iΔ_1, b_2⁰ + iΔ_2), Δ_j = LCM/S_j, most small buckets first, so the loss rises
along Γ. The first pair comes from a modular inverse; nothing is searched or stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import gcd

import numpy as np

from dalenius.mechanisms.bucketize.problem import IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Gamma:
    """The lists Γ(S_1, S_2) of many pairs of sizes at once, one entry of each array per pair of sizes."""

    small: IntArray
    large: IntArray
    first_small: IntArray  # b_1⁰
    first_large: IntArray  # b_2⁰
    step_small: IntArray  # Δ_1
    step_large: IntArray  # Δ_2
    last: IntArray  # k, the last position; −1 where Γ is empty

    @property
    def first_loss(self) -> IntArray:
        """The loss at position 0."""
        return self.loss_at(np.zeros_like(self.last))

    @property
    def loss_step(self) -> IntArray:
        """What one position further costs, always positive (Lemma 5)."""
        return self.step_large * (self.large - 1) ** 2 - self.step_small * (self.small - 1) ** 2

    def buckets_at(self, position: IntArray) -> tuple[IntArray, IntArray]:
        """(b_1, b_2) at one position of each list."""
        return self.first_small - position * self.step_small, self.first_large + position * self.step_large

    def loss_at(self, position: IntArray) -> IntArray:
        """The loss at one position of each list."""
        b_small, b_large = self.buckets_at(position)
        return b_small * (self.small - 1) ** 2 + b_large * (self.large - 1) ** 2

    def select(self, chosen: IntArray | slice) -> Gamma:
        """The lists of some of the pairs of sizes."""
        return Gamma(
            small=self.small[chosen],
            large=self.large[chosen],
            first_small=self.first_small[chosen],
            first_large=self.first_large[chosen],
            step_small=self.step_small[chosen],
            step_large=self.step_large[chosen],
            last=self.last[chosen],
        )


def index_settings(n_rows: int, sizes: tuple[int, ...]) -> Gamma:
    """Γ of every pair S_1 < S_2 of the sizes, in lexicographic order.

    >>> lists = index_settings(28, (2, 4))  # Example 4
    >>> [tuple(int(b[0]) for b in lists.buckets_at(np.array([i]))) for i in (0, 1, int(lists.last[0]))]
    [(14, 0), (12, 1), (0, 7)]
    """
    small, large, divisor, inverse = _pairs(sizes)
    modulus = small // divisor
    # The smallest b_2 with S_2·b_2 ≡ n (mod S_1); it exists iff gcd(S_1, S_2) divides n.
    first_large = (n_rows // divisor % modulus) * inverse % modulus
    left = n_rows - large * first_large
    exists = (n_rows % divisor == 0) & (left >= 0)
    first_small = np.where(exists, left // small, 0)
    step_small = large // divisor
    return Gamma(
        small=small,
        large=large,
        first_small=first_small,
        first_large=first_large,
        step_small=step_small,
        step_large=modulus,
        last=np.where(exists, first_small // step_small, -1),
    )


@cache
def _pairs(sizes: tuple[int, ...]) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """S_1, S_2, their greatest common divisor g and (S_2/g)⁻¹ mod S_1/g, for every pair."""
    array = np.array(sizes, dtype=np.int64)
    upper = np.triu_indices(len(sizes), k=1)
    small, large = array[upper[0]], array[upper[1]]
    inverses = []
    for s, t in zip(small.tolist(), large.tolist(), strict=True):
        g = gcd(s, t)
        inverses.append(pow(t // g, -1, s // g))
    return small, large, np.gcd(small, large), np.array(inverses, dtype=np.int64)
