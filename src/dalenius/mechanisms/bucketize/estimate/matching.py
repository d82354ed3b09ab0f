"""The hidden matching inside the buckets: how likely each person has each of the bucket's values.

Given what was published and a model p(value | quasi-identifiers), a matching is as likely as the product of
its people's p: the publisher deals the records of a value uniformly over its places. How likely a single
person has a value is then a ratio of permanents. They are approximated by scaling p^(k/(k−1)) in a bucket of
k people until every person and every value adds up (Sinkhorn). That is exact for two people, and to first
order around a uniform matching for any number: the covariance of uniform matchings is that of independent
people, doubly centred, times k/(k−1), which scaling p itself would miss.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Codes, Floats, Ints
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets

_TINY = 1e-290
_LEAST_LOG = -600.0
_MOST_VALUES = 600
_MOST_TO_MATCH = 60_000_000
"""Rows × values: more would take minutes, and gigabytes."""


def is_feasible(buckets: Buckets) -> bool:
    """Whether the matching of such a release can be fitted within seconds."""
    n_values = buckets.composition.shape[1]
    return n_values <= _MOST_VALUES and n_values * buckets.n_rows <= _MOST_TO_MATCH


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """For each row, bucket by bucket, an entry for each different value of its bucket."""

    rows: Ints
    """The rows in the order of their buckets."""
    row_start: Ints
    """Where the entries of each of these rows begin."""
    value: Ints
    """Of each entry."""
    slot: Ints
    """Of each entry: which pair of a bucket and a value."""
    held: Floats
    """Of each slot: how often the bucket holds the value."""
    power: Floats
    """Of each row, k/(k−1)."""
    n_values: int

    @classmethod
    def of(cls, buckets: Buckets, chosen: Ints | None = None) -> Places:
        """Of all buckets, or of some."""
        rows = np.argsort(buckets.row_bucket, kind="stable")
        if chosen is not None:
            wanted = np.zeros(len(buckets.size), dtype=bool)
            wanted[chosen] = True
            rows = rows[wanted[buckets.row_bucket[rows]]]
        held = buckets.composition
        width = np.diff(held.starts).astype(np.int64)
        home = buckets.row_bucket[rows]
        first_slot = np.concatenate([[0], np.cumsum(width[buckets.type_of])])
        first, offset = _ranges(held.starts[buckets.type_of[home]], width[buckets.type_of[home]])
        bucket_first, bucket_offset = _ranges(held.starts[buckets.type_of], width[buckets.type_of])
        people = np.bincount(buckets.row_bucket, minlength=len(buckets.size))[home].astype(np.float64)
        starts = np.concatenate([[0], np.cumsum(width[buckets.type_of[home]])])
        return cls(
            rows=rows,
            row_start=starts,
            value=held.columns[first + offset].astype(np.int64),
            slot=np.repeat(first_slot[home], np.diff(starts)) + offset,
            held=held.data[bucket_first + bucket_offset],
            power=people / np.maximum(people - 1, 1),
            n_values=held.shape[1],
        )

    @property
    def width(self) -> Ints:
        """How many entries each row has."""
        return np.diff(self.row_start)

    def spread(self, by_row: Floats) -> Floats:
        """A number of each row at each of its entries."""
        return np.repeat(by_row, self.width)

    def scale(self, logs: Floats, factors: Floats, rounds: int, close: float = 0.0) -> Floats:
        """The weights of the entries, from log p of each.

        Args:
            logs: of the entries, up to a number of each row.
            factors: of the slots: where the scaling begins; overwritten by where it ends.
            rounds: how often at most people and values are made to add up.
            close: end earlier if every value adds up as closely as that.
        """
        starts = self.row_start[:-1]
        logs = logs * self.spread(self.power)
        logs -= self.spread(np.maximum.reduceat(logs, starts))
        weight = np.exp(np.maximum(logs, _LEAST_LOG)) * factors[self.slot]
        for step in range(rounds):
            weight /= self.spread(np.maximum(np.add.reduceat(weight, starts), _TINY))
            sums = np.bincount(self.slot, weight, len(self.held))
            ratio = self.held / np.maximum(sums, _TINY)
            ratio[sums == 0] = 1.0  # a slot of a bucket that was not chosen
            if step == rounds - 1 or np.abs(ratio - 1).max() < close:
                break
            factors *= ratio
            weight *= ratio[self.slot]
        return np.asarray(weight)


def _ranges(first: Codes, width: Ints) -> tuple[Ints, Ints]:
    """Each `first` repeated `width` times, and beside it 0, 1, …, width − 1."""
    ends = np.cumsum(width)
    offset = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - width, width)
    return np.repeat(first.astype(np.int64), width), offset
