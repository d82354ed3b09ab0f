"""Bucket contents at random: what is left when a plan's loads are all that anybody can know of them.

Round-robin gives buckets a handful of different contents, which follow from the histogram: an attacker who
knows it would recognise most fakes at once. So with fakes the contents are mixed first. Two buckets of one
size pool their places; what a capacity forces on both stays with both, the rest is dealt again at random.
Repeated over random pairs this is the curveball walk (Strona et al., 2014), whose limit is the uniform
distribution over all contents with the plan's loads where a bucket's values are distinct.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int32]

ROUNDS = 40
"""How often each bucket trades; twenty leave nothing that a χ² test over all tables would see."""


def mix_contents(contents: Codes, capacity: NDArray[np.int64], stream: np.random.Generator) -> Codes:
    """Mix buckets of one size.

    Args:
        contents: buckets × places, the code at each place.
        capacity: how often each value may be in a bucket of this size.
        stream: the coins.
    """
    mixed = np.sort(contents, axis=1)
    n_pairs = len(mixed) // 2
    if not n_pairs:
        return mixed
    for _ in range(ROUNDS):
        order = stream.permutation(len(mixed))
        first, second = order[:n_pairs], order[n_pairs : 2 * n_pairs]
        mixed[first], mixed[second] = _trade(mixed[first], mixed[second], capacity, stream)
    return np.sort(mixed, axis=1)


def _trade(
    one: Codes, two: Codes, capacity: NDArray[np.int64], stream: np.random.Generator
) -> tuple[Codes, Codes]:
    """Deal the pooled places of pairs of buckets again; a value above its capacity stays on both sides."""
    pooled = np.sort(np.concatenate([one, two], axis=1), axis=1)
    n, width = pooled.shape
    is_new = np.ones((n, width), dtype=bool)
    is_new[:, 1:] = pooled[:, 1:] != pooled[:, :-1]
    place = np.broadcast_to(np.arange(width), (n, width))
    start = np.maximum.accumulate(np.where(is_new, place, 0), axis=1)
    rank = place - start
    run = np.cumsum(is_new, axis=1) - 1 + np.arange(n)[:, None] * width
    length = np.bincount(run.ravel(), minlength=n * width)[run]
    forced = np.maximum(length - capacity[pooled], 0)
    key = stream.random((n, width))
    key = np.where(rank < forced, -1.0, np.where(rank >= length - forced, 2.0, key))
    dealt = np.take_along_axis(pooled, np.argsort(key, axis=1), axis=1)
    return dealt[:, : width // 2], dealt[:, width // 2 :]
