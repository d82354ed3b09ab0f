"""Deal the records of each value to destinations, uniformly at random, batch by batch.

A plan fixes how many records of value i go to destination j (a part of a perturbation, the kept or
the withheld side of a suppression). Which records those are must be a uniformly random choice within
the value. For a batch that holds c_i records of value i, the numbers that go to each destination are
multivariate hypergeometric in what is left of the quotas; within the batch any arrangement is as
likely as any other. Dealing batch after batch this way is exactly a uniform choice over the table.
"""

from __future__ import annotations

import numpy as np

from dalenius.arrays import Codes, Int32s, Ints, different
from dalenius.errors import InternalError

_NUMPY_POPULATION_LIMIT = 10**9  # Generator.hypergeometric refuses larger populations


def draw_quota(remaining: Ints, batch_counts: Ints, stream: np.random.Generator) -> Ints:
    """How many of a batch's records of each value go to each destination.

    Args:
        remaining: m × k, what is left of the quota of value i at destination j.
        batch_counts: how many records of each value the batch holds (at most what is left).
        stream: the random stream of this step.

    Returns:
        m × k, with row sums `batch_counts` and no entry above `remaining`.
    """
    quota = np.zeros_like(remaining)
    n_open = np.count_nonzero(remaining, axis=1)
    certain = np.flatnonzero(n_open == 1)  # with thousands of values, nearly all: nothing to draw
    quota[certain, remaining[certain].argmax(axis=1)] = batch_counts[certain]
    for value in np.flatnonzero((batch_counts > 0) & (n_open > 1)):
        quota[value] = _draw_row(remaining[value], int(batch_counts[value]), stream)
    return quota


def deal(codes: Codes, quota: Ints, stream: np.random.Generator) -> Int32s:
    """A destination for each record of the batch, uniformly random among the records of its value.

    Args:
        codes: the value of each record, 0..m-1.
        quota: m × k, how many records of each value go to each destination.
        stream: the random stream of this step.
    """
    n_values, n_destinations = quota.shape
    by_value = np.argsort(fewest_bits(codes), kind="stable")
    ends = np.cumsum(quota.sum(axis=1))
    for value in np.flatnonzero(np.count_nonzero(quota, axis=1) > 1):  # else all go to the same
        stream.shuffle(by_value[ends[value] - quota[value].sum() : ends[value]])
    destinations = np.empty(len(codes), dtype=np.int32)
    labels = np.tile(np.arange(n_destinations, dtype=np.int32), n_values)
    destinations[by_value] = np.repeat(labels, quota.ravel())
    return destinations


def fewest_bits(numbers: Codes) -> Codes:
    """The numbers less the smallest, in 16 bits if that will do: these numpy sorts in linear time.

    >>> fewest_bits(np.array([7_000_001, 7_000_000])).tolist()
    [1, 0]
    """
    if not len(numbers):
        return numbers
    least = numbers.min()
    return (numbers - least).astype(np.uint16) if numbers.max() - least < 2**16 else numbers


class Dealer:
    """Deals the records of a stream of batches. Every quota is used up exactly."""

    def __init__(self, quota: Ints) -> None:
        self._remaining = quota

    def deal(
        self,
        codes: Codes,
        quota_stream: np.random.Generator,
        record_stream: np.random.Generator,
    ) -> Int32s:
        """A destination for each record of the next batch."""
        return deal(codes, self.quota(codes, quota_stream), record_stream)

    def quota(self, codes: Codes, stream: np.random.Generator) -> Ints:
        """How many records of the next batch go where, for `deal`."""
        counts = np.bincount(codes, minlength=len(self._remaining)).astype(np.int64)
        if (counts > self._remaining.sum(axis=1)).any():
            raise InternalError("the table changed between two passes over it: a value has more records")
        quota = draw_quota(self._remaining, counts, stream)
        self._remaining = self._remaining - quota
        return quota

    def finish(self) -> None:
        """Check that every quota was used up."""
        if self._remaining.any():
            raise InternalError("the table changed between two passes over it: a value has fewer records")


def _draw_row(remaining: Ints, n_drawn: int, stream: np.random.Generator) -> Ints:
    population = int(remaining.sum())
    if population < _NUMPY_POPULATION_LIMIT:
        return stream.multivariate_hypergeometric(remaining, n_drawn, method="marginals").astype(np.int64)
    if 2 * n_drawn > population:
        return remaining - _draw_row(remaining, population - n_drawn, stream)
    # Too large for numpy: draw distinct ranks of the value's records and see whose they are.
    ranks = distinct_integers(population, n_drawn, stream)
    owners = np.searchsorted(np.cumsum(remaining), ranks, side="right")
    return np.bincount(owners, minlength=len(remaining)).astype(np.int64)


def distinct_integers(bound: int, n_drawn: int, stream: np.random.Generator) -> Ints:
    """A uniformly random set of `n_drawn` different integers below `bound`, in ascending order."""
    chosen = different(stream.integers(bound, size=n_drawn))
    while len(chosen) < n_drawn:
        # Adding uniform draws until the set is full is uniform over sets. Each round draws no more than
        # are missing, so it cannot overshoot.
        more = stream.integers(bound, size=n_drawn - len(chosen))
        chosen = different(np.append(chosen, more))
    return chosen
