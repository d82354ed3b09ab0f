"""Whole matchings drawn from the posterior: who has which of a bucket's values, in one possible world.

First effects are drawn, from what the release leaves open about them. Given effects a matching of a bucket is
as likely as the product of its people's p(value | columns). It is drawn by swaps: two people of a bucket
exchange their values with the Metropolis rule, which has that law exactly in the long run, from any start.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets
from dalenius.mechanisms.bucketize.estimate.effects import Everybody
from dalenius.mechanisms.bucketize.estimate.matching import Block, Places
from dalenius.mechanisms.bucketize.estimate.posterior import Posterior

_SWEEPS, _PER_PERSON = 20, 2
"""How often everybody is offered a swap: so often, and as often again for each person of the bucket."""


def draw_values(posterior: Posterior, buckets: Buckets, stream: np.random.Generator) -> Ints:
    """The code of a value for each row."""
    if posterior.others:
        shares, others = zip(*posterior.others, strict=True)
        posterior = (posterior, *others)[stream.choice(len(shares) + 1, p=[1 - sum(shares), *shares])]
    effects = draw_effects(posterior, stream)
    values = np.empty(buckets.n_rows, dtype=np.int64)
    for fit in Everybody.of(posterior.features, posterior.contents, buckets).parts:
        values[fit.places.rows] = draw_matching(fit.places, fit.logs(effects), stream)
    return values


def draw_effects(posterior: Posterior, stream: np.random.Generator) -> Floats:
    """Features × values: the most likely effects, moved by as much as the release leaves them uncertain.

    Not by more, as intervals allow for: an error flattens what an effect does, and associations in copies
    come out weaker the larger it is.
    """
    basis = posterior.basis
    error = np.sqrt(basis.larger / basis.precision)
    return posterior.effects + basis.effects(error * stream.normal(size=error.shape))


def draw_matching(places: Places, logs: Iterable[tuple[Block, Floats]], stream: np.random.Generator) -> Ints:
    """The code of a value for each row of the places, given log p of every entry, block by block."""
    found = np.empty(len(places.rows), dtype=np.int64)
    for block, own in logs:
        slot = _draw_block(block, own.transpose(2, 0, 1), places.held[block.slots], stream)
        value = np.take_along_axis(block.by_slot(places.value).T, slot, axis=1)
        found[block.people] = value.ravel()
    return found


def _draw_block(block: Block, log: Floats, held: Floats, stream: np.random.Generator) -> Ints:
    """Buckets × people: which of the bucket's different values each has."""
    n_buckets, size, width = block.shape
    slots = np.repeat(np.tile(np.arange(width), n_buckets), held.astype(np.int64))
    slot: Ints = stream.permuted(slots.reshape(n_buckets, size), axis=1)
    if width == 1:
        return slot
    bucket = np.arange(n_buckets)[:, None]
    half = size // 2
    for _ in range(_SWEEPS + _PER_PERSON * size):
        order = stream.permutation(size)
        one, two = order[:half], order[half : 2 * half]
        mine, yours = slot[:, one], slot[:, two]
        gain = log[bucket, one, yours] + log[bucket, two, mine] - log[bucket, one, mine]
        gain -= log[bucket, two, yours]
        swapped = np.log(stream.random(gain.shape)) < gain
        slot[:, one], slot[:, two] = np.where(swapped, yours, mine), np.where(swapped, mine, yours)
    return slot
