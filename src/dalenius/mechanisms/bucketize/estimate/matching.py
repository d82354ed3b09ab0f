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
class Block:
    """Buckets of as many people and as many different values, one after the other: an array of three axes."""

    entries: slice
    slots: slice
    shape: tuple[int, int, int]
    """Buckets, people of each, different values of each."""
    power: float
    """k/(k−1)."""

    def scale(self, logs: Floats, held: Floats, factors: Floats, rounds: int, close: float) -> Floats:
        """As `Places.scale`; buckets come last here, so that every sum runs along many of them."""
        n_buckets, _, width = self.shape
        logs = np.multiply(logs.reshape(self.shape).transpose(1, 2, 0), self.power, order="C")
        logs -= logs.max(axis=1, keepdims=True)
        factor = np.ascontiguousarray(factors.reshape(n_buckets, width).T)
        weight = np.exp(np.maximum(logs, _LEAST_LOG, out=logs), out=logs)
        weight *= factor
        wanted = held.reshape(n_buckets, width).T
        for step in range(rounds):
            weight /= np.maximum(weight.sum(axis=1, keepdims=True), _TINY)
            ratio = wanted / np.maximum(weight.sum(axis=0), _TINY)
            if step == rounds - 1 or np.abs(ratio - 1).max() < close:
                break
            factor *= ratio
            weight *= ratio
        factors[:] = factor.T.ravel()
        return np.asarray(weight.transpose(2, 0, 1).ravel())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """For each row, block by block and bucket by bucket, an entry for each different value of its bucket."""

    rows: Ints
    """The rows in the order of their buckets."""
    width: Ints
    """How many entries each of these rows has."""
    value: Ints
    """Of each entry."""
    slot: Ints
    """Of each entry: which pair of a bucket and a value."""
    held: Floats
    """Of each slot: how often the bucket holds the value."""
    power: Floats
    """Of each row, k/(k−1)."""
    n_values: int
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, buckets: Buckets, chosen: Ints | None = None) -> Places:
        """Of all buckets, or of some."""
        held = buckets.composition
        n_rows = np.bincount(buckets.row_bucket, minlength=len(buckets.size))
        widths = np.diff(held.starts).astype(np.int64)[buckets.type_of]
        own = np.arange(len(buckets.size)) if chosen is None else chosen
        own = own[np.lexsort((own, widths[own], n_rows[own]))]
        place = np.full(len(buckets.size), len(own))  # of each bucket among those, in their order
        place[own] = np.arange(len(own))
        rows = np.argsort(place[buckets.row_bucket], kind="stable")[: int(n_rows[own].sum())]
        home = buckets.row_bucket[rows]
        first, offset = _ranges(held.starts[buckets.type_of[home]], widths[home])
        bucket_first, bucket_offset = _ranges(held.starts[buckets.type_of[own]], widths[own])
        first_slot = np.concatenate([[0], np.cumsum(widths[own])])
        return cls(
            rows=rows,
            width=widths[home],
            value=held.columns[first + offset].astype(np.int64),
            slot=np.repeat(first_slot[place[home]], widths[home]) + offset,
            held=held.data[bucket_first + bucket_offset],
            power=(n_rows / np.maximum(n_rows - 1, 1))[home],
            n_values=held.shape[1],
            blocks=_blocks(n_rows[own], widths[own]),
        )

    def spread(self, by_row: Floats) -> Floats:
        """A number of each row at each of its entries."""
        return np.repeat(by_row, self.width)

    def scale(self, logs: Floats, factors: Floats, rounds: int, close: float = 0.0) -> Floats:
        """The weights of the entries, from log p of each.

        Args:
            logs: of the entries, up to a number of each row.
            factors: of the slots: where the scaling begins; overwritten by where it ends.
            rounds: how often at most people and values are made to add up.
            close: end earlier, in a block, if every value adds up as closely as that.
        """
        weight = np.empty_like(logs)
        for block in self.blocks:
            held, own = self.held[block.slots], factors[block.slots]
            weight[block.entries] = block.scale(logs[block.entries], held, own, rounds, close)
        return weight


def _blocks(n_rows: Ints, width: Ints) -> tuple[Block, ...]:
    """Of buckets in ascending order of both."""
    found, entry, slot = [], 0, 0
    pairs, n_buckets = np.unique(np.stack([n_rows, width]), axis=1, return_counts=True)
    for size, wide, n in zip(*pairs.tolist(), n_buckets.tolist(), strict=True):
        ends = entry + n * size * wide, slot + n * wide
        found.append(
            Block(
                entries=slice(entry, ends[0]),
                slots=slice(slot, ends[1]),
                shape=(n, size, wide),
                power=size / max(size - 1, 1),
            )
        )
        entry, slot = ends
    return tuple(found)


def _ranges(first: Codes, width: Ints) -> tuple[Ints, Ints]:
    """Each `first` repeated `width` times, and beside it 0, 1, …, width − 1."""
    ends = np.cumsum(width)
    offset = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - width, width)
    return np.repeat(first.astype(np.int64), width), offset
