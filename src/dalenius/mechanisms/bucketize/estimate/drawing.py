"""Whole matchings drawn from the posterior: who has which of a bucket's values, in one possible world.

First effects are drawn, from what the release leaves open about them. Given effects a matching of a bucket is
as likely as the product of its people's p(value | columns). It is drawn by swaps: two people of a bucket
exchange their values with the Metropolis rule, which has that law exactly in the long run, from any start.
Fakes are people more, whom no copy has.

Where the secret is one of many numbers, `numbers.py` knows how the mean of a number's traits φ changes with
the columns: by x·B·Cov(φ). That is a linear law, and a matching needs a likelihood, p(z | x) ∝ exp(x·C·φ(z)).
Columns that explain a part ρ² of a number leave it only 1 − ρ² of its variance, and of numbers that vary less
a mean is moved less by the same exponent: so in each pair of directions (the canonical correlations ρ of
columns and traits) C is B divided by 1 − ρ². For normal laws this is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets
from dalenius.mechanisms.bucketize.estimate.effects import Everybody, Fit
from dalenius.mechanisms.bucketize.estimate.matching import Block, Places
from dalenius.mechanisms.bucketize.estimate.numbers import LARGER, Numbers
from dalenius.mechanisms.bucketize.estimate.posterior import Posterior
from dalenius.mechanisms.bucketize.fakes.law import symmetric_polynomials

_SWEEPS, _PER_PERSON = 20, 2
"""How often everybody is offered a swap: so often, and as often again for each person of the bucket."""
_LEAST_ODDS = 1e-12
_ROUNDS, _CLOSE, _MOST_EXPECTED = 200, 1e-9, 1 - 1e-6
_STRONGEST = 0.95
"""Canonical correlations above this are drawn as this: beyond, swaps would hardly ever be accepted."""
_NOTHING = 1e-8
_CELLS_AT_ONCE = 2_000_000


def draw_values(posterior: Posterior, buckets: Buckets, stream: np.random.Generator) -> Ints:
    """The code of a value for each row."""
    if posterior.others:
        shares, others = zip(*posterior.others, strict=True)
        posterior = (posterior, *others)[stream.choice(len(shares) + 1, p=[1 - sum(shares), *shares])]
    effects = draw_effects(posterior, stream)
    values = np.empty(buckets.n_rows, dtype=np.int64)
    parts = Everybody.of(posterior.features, posterior.contents, buckets).parts
    alike = None if buckets.fakes is None else log_shares(parts, effects)
    for fit in parts:
        values[fit.places.rows] = draw_matching(fit.places, fit.logs(effects), stream, alike)
    return values


def draw_alike(buckets: Buckets, stream: np.random.Generator) -> Ints:
    """The same where columns say nothing: only which values are fakes is not left to the columns."""
    places = Places.of(buckets)
    logs = ((block, np.zeros((*block.shape[1:], block.shape[0]))) for block in places.blocks)
    values = np.empty(buckets.n_rows, dtype=np.int64)
    values[places.rows] = draw_matching(places, logs, stream, np.zeros(places.n_values))
    return values


def draw_effects(posterior: Posterior, stream: np.random.Generator) -> Floats:
    """Features × values: the most likely effects, moved by as much as the release leaves them uncertain.

    Not by more, as intervals allow for: an error flattens what an effect does, and associations in copies
    come out weaker the larger it is.
    """
    basis = posterior.basis
    error = np.sqrt(basis.larger / basis.precision)
    return posterior.effects + basis.effects(error * stream.normal(size=error.shape))


def log_shares(parts: Sequence[Fit], effects: Floats) -> Floats:
    """Of each value: log of how likely people have it on average, given these effects.

    That is not its share in the release, which effects that are only drawn need not keep: were fakes compared
    with that, a value that the draw makes likelier for most people would hardly ever be a fake.
    """
    found = np.sum([fit.counts @ np.exp(fit.log_chances(effects)) for fit in parts], axis=0)
    return np.asarray(np.log(np.maximum(found / found.sum(), _LEAST_ODDS)))


def draw_matching(
    places: Places,
    logs: Iterable[tuple[Block, Floats]],
    stream: np.random.Generator,
    shares: Floats | None = None,
) -> Ints:
    """The code of a value for each row of the places, given log p of every entry, block by block.

    With fakes `shares` are what log p is of each value where nothing is known of a person.
    """
    found = np.empty(len(places.rows), dtype=np.int64)
    for block, own in logs:
        log, held = own.transpose(2, 0, 1), np.rint(places.held[block.slots]).astype(np.int64)
        if places.odds is not None and shares is not None:
            log = np.concatenate([log, _log_of_fakes(places, block, shares)], axis=1)
        slot = swap_values(log, held, stream)[:, : block.shape[1]]
        value = np.take_along_axis(block.by_slot(places.value).T, slot, axis=1)
        found[block.people] = value.ravel()
    return found


def _log_of_fakes(places: Places, block: Block, shares: Floats) -> Floats:
    """Buckets × fakes × values: such that fakes are as likely as the manifest says where people are alike."""
    odds = np.asarray(places.odds)[block.slots].reshape(block.shape[0], -1)
    expected = block.by_slot(places.held).T * (odds / (1 + odds))
    own = np.log(np.maximum(weights_of_sets(expected, places.n_fakes), _LEAST_ODDS))
    own += shares[block.by_slot(places.value).T]
    return np.repeat(own[:, None], places.n_fakes, axis=1)


def weights_of_sets(expected: Floats, n_chosen: int) -> Floats:
    """Weights of values with which sets, as likely as their product, hold each as often as is expected.

    >>> weights = weights_of_sets(np.array([[0.9, 0.6, 0.5]]), 2)
    >>> products = np.array([weights[0, [0, 1]].prod(), weights[0, [0, 2]].prod(), weights[0, [1, 2]].prod()])
    >>> (products / products.sum()).round(6).tolist()
    [0.5, 0.4, 0.1]
    """
    expected = np.clip(expected, 0.0, 1.0 if n_chosen == 1 else _MOST_EXPECTED)
    if n_chosen == 1:
        return expected
    weights = expected / (1 - expected)
    for _ in range(_ROUNDS):
        whole, without = symmetric_polynomials(weights, n_chosen), np.ones_like(weights)
        for k in range(1, n_chosen):
            without = whole[:, k, None] - weights * without
        found = weights * without / np.maximum(whole[:, -1:], 1e-300)
        weights = weights * np.divide(expected, found, out=np.zeros_like(found), where=found > 0)
        if np.abs(found - expected).max(initial=0.0) < _CLOSE:
            break
    return weights


def swap_values(log: NDArray[np.floating[Any]], held: Ints, stream: np.random.Generator) -> Ints:
    """Buckets × people: which of the bucket's values each has.

    Args:
        log: buckets × people × values: log p.
        held: how many people have each value, bucket by bucket.
        stream: of coins.
    """
    n_buckets, size, width = log.shape
    slots = np.repeat(np.tile(np.arange(width), n_buckets), held)
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


def draw_numbers(made: Numbers, buckets: Buckets, stream: np.random.Generator) -> Ints:
    """The code of a value for each row."""
    between = made.features.covariance()
    within = made.traits.covariance(buckets.counts)
    exponents = sharpen(_draw_linear(made, stream), between, within)
    n_bins = made.traits.root.shape[1]
    of_kind = _add_up(exponents, made.features.kinds.places)
    of_bin = (of_kind[:, :n_bins] @ made.traits.root.T).astype(np.float32)
    of_number = of_kind[:, n_bins].astype(np.float32)
    values = np.empty(buckets.n_rows, dtype=np.int64)
    for people, held in _of_one_size(buckets):
        kind = made.features.kind_of_row[people][:, :, None]
        log = of_bin[kind, made.traits.bin_of[held][:, None, :]]
        log += of_number[kind] * made.traits.number[held].astype(np.float32)[:, None, :]
        slot = swap_values(log, np.ones(held.size, dtype=np.int64), stream)
        values[people] = np.take_along_axis(held, slot, axis=1)
    return values


def _draw_linear(made: Numbers, stream: np.random.Generator) -> Floats:
    """B, moved by as much as the release leaves it uncertain; effects may be larger than was learned."""
    times, shares = zip(*LARGER, strict=True)
    larger = stream.choice(times, p=shares)
    error = np.sqrt(larger / (1 + larger * made.basis.told))
    return made.basis.effects(made.place + error * stream.normal(size=error.shape))


def sharpen(effects: Floats, between: Floats, within: Floats) -> Floats:
    """The exponents that have these linear effects, given the covariances of the columns and of the traits.

    >>> one = np.ones((1, 1))
    >>> sharpen(0.5 * one, one, one).round(6).tolist()  # 0.5 / (1 - 0.25)
    [[0.666667]]
    """
    (root, back), (own_root, own_back) = _roots(between), _roots(within)
    left, strength, right = np.linalg.svd(root.T @ effects @ own_root, full_matrices=False)
    strength = np.minimum(strength, _STRONGEST)
    return np.asarray(back @ (left * (strength / (1 - strength**2))) @ right @ own_back.T)


def _roots(covariance: Floats) -> tuple[Floats, Floats]:
    """A root, and what undoes it; directions in which nothing varies are left out."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > _NOTHING * values.max(initial=0.0)
    root = np.sqrt(values[kept])
    return vectors[:, kept] * root, vectors[:, kept] / root


def _add_up(exponents: Floats, places: Ints) -> Floats:
    """Kinds of people × traits: the exponents of their features together."""
    found = np.zeros((len(places), exponents.shape[1]))
    for column in places.T:
        found += exponents[column]
    return found


def _of_one_size(buckets: Buckets) -> Iterator[tuple[Ints, Ints]]:
    """Rows and values of some buckets with as many people, both buckets × people."""
    order = np.argsort(buckets.row_bucket, kind="stable")
    size = buckets.size.astype(np.int64)
    first = np.cumsum(size) - size
    for people in np.unique(size).tolist():
        chosen = np.flatnonzero(size == people)
        at_once = max(_CELLS_AT_ONCE // people**2, 1)
        for start in range(0, len(chosen), at_once):
            some = chosen[start : start + at_once]
            contents = buckets.composition.take(buckets.type_of[some])
            held = np.repeat(contents.columns, contents.data.astype(np.int64)).reshape(len(some), people)
            yield order[first[some][:, None] + np.arange(people)], held
