"""Perturb one batch of records: deal them to the parts, then publish each value under its part's law."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dalenius.mechanisms.dealing import IntArray, deal
from dalenius.mechanisms.perturb.matrix import Channel
from dalenius.mechanisms.perturb.plan import PerturbPlan

CodeArray = NDArray[np.int32]

_LARGEST_DENOMINATOR = 2**63 - 1
_ROUNDED_DENOMINATOR = 2**62


def perturb_batch(
    codes: NDArray[np.integer],
    quota: IntArray,
    plan: PerturbPlan,
    part_stream: np.random.Generator,
    value_stream: np.random.Generator,
) -> tuple[CodeArray, CodeArray]:
    """The part and the published code of each record.

    Args:
        codes: the true code of each record.
        quota: m × k, how many of the batch's records of each value go to each part (`draw_quota`).
        plan: the plan of the whole table.
        part_stream: decides which record of a value goes where.
        value_stream: tosses the coins and draws the new values.
    """
    parts = deal(codes, quota, part_stream)
    return parts, perturb_values(codes, parts, plan.channels, value_stream)


def perturb_values(
    codes: NDArray[np.integer], parts: CodeArray, channels: Sequence[Channel], stream: np.random.Generator
) -> CodeArray:
    """Keep each value with its part's probability p, else draw one uniformly from the part's domain."""
    coins = np.array([exact_coin(channel.retention) for channel in channels], dtype=np.int64)
    domain_sizes = np.array([channel.n_values for channel in channels], dtype=np.int64)
    starts = np.cumsum(domain_sizes) - domain_sizes
    domains = np.concatenate([np.array(channel.codes, dtype=np.int32) for channel in channels])
    is_kept = stream.integers(coins[parts, 1]) < coins[parts, 0]
    drawn = domains[starts[parts] + stream.integers(domain_sizes[parts])]
    return np.where(is_kept, codes, drawn).astype(np.int32)


def exact_coin(probability: Fraction) -> tuple[int, int]:
    """Integers (a, b) with a/b the probability: heads if a uniform integer below b is below a.

    A denominator beyond 63 bits is replaced by 2⁶², the numerator rounded down: less is kept than the
    promise allows, by less than 2⁻⁶².

    >>> exact_coin(Fraction(1, 3))
    (1, 3)
    """
    if probability.denominator <= _LARGEST_DENOMINATOR:
        return probability.numerator, probability.denominator
    return probability.numerator * _ROUNDED_DENOMINATOR // probability.denominator, _ROUNDED_DENOMINATOR
