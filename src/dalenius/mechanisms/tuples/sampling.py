"""Coins of exact rational probability, and noise tuples in time that grows with their number, not with m.

Each tuple of D is to be inserted independently with probability β. Give every tuple an independent
Poisson number of hits with mean λ = −ln(1−β): it is hit at least once with probability β. The hits of all
tuples together are Poisson(mλ) in number and uniform over D, and may be drawn batch after batch, in any
number of processes; the tuples that were hit are the insertions. No m is too large, and no inserted
tuple need be looked up. (Binomial(m, β) distinct tuples have the same law, but numpy's binomial fails for
large m: at m = 2^62 a mean of 1000 comes out as 998.3.) Each batch's Poisson mean stays below 2^20, where
numpy's sampler compares logarithms below 10^8 and so errs by 1e-8 at most, and λ is a float: both are well
within the plan's `SAMPLING_MARGIN`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from dalenius.arrays import Bools, Ints
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.mechanisms.tuples.noise import NoiseLaw

_DIGIT = 2**62
_BATCH_HITS = 2**19


def toss(probability: Fraction, n_coins: int, stream: np.random.Generator) -> Bools:
    """Independent coins that are true with exactly this probability.

    A uniform number in [0,1) is compared with the probability digit by digit, in base 2^62; further
    digits are drawn only for the coins that are still tied.
    """
    threshold, rest = divmod(probability * _DIGIT, 1)
    digits = stream.integers(_DIGIT, size=n_coins)
    result: Bools = digits < threshold
    tied = np.flatnonzero(digits == threshold)
    if len(tied) and rest:
        result[tied] = toss(rest, len(tied), stream)
    return result


def uniform_words(domain: Domain, n_tuples: int, stream: np.random.Generator) -> Ints:
    """Packed tuples drawn uniformly from D, independently: uniform words are the codes of uniform tuples."""
    return np.stack([stream.integers(size, size=n_tuples) for size in domain.word_sizes], axis=1)


def uniform_hits(
    domain: Domain, beta: Fraction, stream: np.random.Generator, pieces: int = 1
) -> Iterator[Ints]:
    """Batches of packed tuples; those that occur are each tuple of D with probability β, independently.

    A tuple may come several times, in one batch or in two. Of several pieces, each with a stream of its own,
    this is one; all of them together have the law (Poisson numbers add up).
    """
    for n_hits in _poisson_batches(domain.size * -math.log1p(-float(beta)) / pieces, stream):
        yield uniform_words(domain, n_hits, stream)


def shaped_hits(
    domain: Domain,
    noise: NoiseLaw,
    largest_beta: Fraction,
    stream: np.random.Generator,
    pieces: int = 1,
) -> Iterator[Ints]:
    """The same with β(t) = `largest_beta`·P(t)/max P.

    −ln(1−β(t)) is not proportional to P(t), but at most c·β(t), c its ratio to β(t) at the largest. Hits
    drawn at the rate c·β(t), each kept with probability −ln(1−β(t))/(c·β(t)), have the right rate.
    """
    top = float(largest_beta)
    steepest = -math.log1p(-top) / top
    for n_hits in _poisson_batches(steepest * float(largest_beta / noise.largest_share) / pieces, stream):
        codes = noise.draw(n_hits, stream)
        beta = top * noise.relative(codes)
        kept = stream.random(n_hits) * (steepest * beta) < -np.log1p(-beta)
        yield domain.pack(tuple(column[kept] for column in codes))


def _poisson_batches(mean: float, stream: np.random.Generator) -> Iterator[int]:
    n_batches = max(1, math.ceil(mean / _BATCH_HITS))
    for _ in range(n_batches):
        yield int(stream.poisson(mean / n_batches))
