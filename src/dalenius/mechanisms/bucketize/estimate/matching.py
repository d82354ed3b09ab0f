"""The hidden matching inside the buckets: how likely each person has each of the bucket's values.

Given what was published and a model p(value | quasi-identifiers), a matching is as likely as the product of
its people's p: the publisher deals the records of a value uniformly over its places. How likely a single
person has a value is then a ratio of permanents. They are approximated by scaling p^(k/(k−1)) in a bucket of
k people until every person and every value adds up (Sinkhorn). That is exact for two people, and to first
order around a uniform matching for any number: the covariance of uniform matchings is that of independent
people, doubly centred, times k/(k−1), which scaling p itself would miss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from dalenius.arrays import Codes, Floats, Ints
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets
from dalenius.mechanisms.bucketize.estimate.by_type import sort_rows

_ENTRIES_AT_ONCE = 1 << 16
"""People × values that are scaled together: few enough to stay in the processor's cache."""
_LOOK_EVERY = 4
_FAR_OFF, _MORE_ROUNDS = 0.03, 200
"""Buckets with a value that adds up no better than that are gone on with for so many rounds more: what they
are said to add to the likelihood before is too much, and a search is led astray by it."""
Listed = TypeVar("Listed", Floats, Ints)
_MOST_AT_ONCE, _LEAST_FACTOR = 1e4, 1e-100
"""What a round multiplies by at most, and where the next scaling begins at least: no product overflows."""
_LEAST_LOG = -600.0
MOST_VALUES = 600
_MOST_TO_MATCH = 60_000_000
"""Rows × values: more would take minutes, and gigabytes."""


def is_feasible(buckets: Buckets) -> bool:
    """Whether the matching of such a release can be fitted within seconds."""
    n_values = buckets.composition.shape[1]
    return n_values <= MOST_VALUES and n_values * buckets.n_rows <= _MOST_TO_MATCH


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """Buckets of as many people and as many different values, one after the other: an array of three axes."""

    people: slice
    slots: slice
    shape: tuple[int, int, int]
    """Buckets, people of each, different values of each."""
    power: float
    """k/(k−1), fakes among the k."""

    def pieces(self) -> Iterator[Block]:
        """The same in pieces of few entries."""
        n_buckets, size, width = self.shape
        step = max(1, _ENTRIES_AT_ONCE // max(size * width, 1))
        for begin in range(0, n_buckets, step):
            yield self.part(begin, min(begin + step, n_buckets))

    def part(self, begin: int, end: int) -> Block:
        """Some of the buckets."""
        _, size, width = self.shape
        people, slots = self.people.start, self.slots.start
        return replace(
            self,
            people=slice(people + begin * size, people + end * size),
            slots=slice(slots + begin * width, slots + end * width),
            shape=(end - begin, size, width),
        )

    def moved(self, people: int, slots: int) -> Block:
        """The same elsewhere, by so many."""
        return replace(
            self,
            people=slice(self.people.start + people, self.people.stop + people),
            slots=slice(self.slots.start + slots, self.slots.stop + slots),
        )

    def by_person(self, of_people: Listed) -> Listed:
        """What is listed person by person: people × buckets."""
        return of_people[self.people].reshape(self.shape[:2]).T

    def by_slot(self, of_slots: Listed) -> Listed:
        """What is listed slot by slot: values × buckets."""
        return of_slots[self.slots].reshape(self.shape[0], self.shape[2]).T

    def scale(
        self, logs: Floats, held: Floats, factors: Floats, rounds: int, close: float
    ) -> tuple[Floats, float]:
        """How likely each entry is, and how likely the contents are, as a logarithm.

        Buckets come last in every array, so that every sum runs along many of them.

        Args:
            logs: people × values × buckets: log p, up to a number of each person; overwritten.
            held: values × buckets: how often each is held.
            factors: of the slots: where the scaling begins; overwritten by where it ends.
            rounds: how often at most people and values are made to add up, but for buckets that are far off.
            close: end earlier if every value adds up as closely as that.
        """
        if self.shape[1:] == (2, 2) and (held == 1).all():
            return _match_pairs(logs)
        logs *= self.power
        most = logs.max(axis=1)
        logs -= most[:, None]
        weight = np.exp(np.maximum(logs, _LEAST_LOG, out=logs), out=logs)
        factor = np.ascontiguousarray(self.by_slot(factors))
        _balance(weight, held, factor, rounds - 1, close)
        total = np.einsum("pvb,vb->pb", weight, factor)
        # the dual's value, whose gradient is `weight` even where values do not add up yet
        gain = float(np.log(total).sum() + most.sum())
        gain -= float((held * np.log(factor)).sum())
        weight *= factor
        weight /= total[:, None]
        factor /= factor.max(axis=0)  # people's own factors make up for it
        self.by_slot(factors)[:] = np.maximum(factor, _LEAST_FACTOR)
        return weight, gain / self.power


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """People bucket by bucket, buckets of one shape after the other; a slot for each value of a bucket."""

    rows: Ints
    """The rows in the order of their buckets."""
    value: Ints
    """Of each slot, a pair of a bucket and one of its values."""
    held: Floats
    """Of each slot: how often the bucket holds the value."""
    n_values: int
    blocks: tuple[Block, ...]
    odds: Floats | None = None
    """Of each slot: how likely it is a fake, of how many of it are somebody's; None: there are no fakes."""
    n_fakes: int = 0
    """Of each bucket."""

    @classmethod
    def of(cls, buckets: Buckets, chosen: Ints | None = None) -> Places:
        """Of all buckets, or of some."""
        held = buckets.composition
        n_rows = np.bincount(buckets.row_bucket, minlength=len(buckets.size))
        widths = np.diff(held.starts).astype(np.int64)[buckets.type_of]
        own = np.arange(len(buckets.size)) if chosen is None else chosen
        own = own[np.lexsort((own, widths[own], n_rows[own]))]
        place = np.full(len(buckets.size), -1)  # of each bucket among those, in their order
        place[own] = np.arange(len(own))
        slots = np.add(*_ranges(held.starts[buckets.type_of[own]], widths[own]))
        real, fakes = held.data[slots], None if buckets.fakes is None else buckets.fakes[slots]
        n_fakes = 0 if fakes is None else round(float(fakes.sum()) / max(len(own), 1))
        return cls(
            rows=sort_rows(place[buckets.row_bucket], len(own)),
            value=held.columns[slots].astype(np.int64),
            held=real if fakes is None else real + fakes,
            n_values=held.shape[1],
            blocks=_blocks(n_rows[own], widths[own], n_fakes),
            odds=None if fakes is None else fakes / np.maximum(real, _LEAST_FACTOR),
            n_fakes=n_fakes,
        )

    def split(self, most_people: int) -> list[Places]:
        """The same in parts of about so many people at most."""
        parts: list[list[Block]] = [[]]
        room = most_people
        for block in self.blocks:
            n_buckets, size, _ = block.shape
            begin = 0
            while begin < n_buckets:
                if room < size and parts[-1]:
                    parts.append([])
                    room = most_people
                end = min(n_buckets, begin + max(1, room // max(size, 1)))
                parts[-1].append(block.part(begin, end))
                room -= (end - begin) * size
                begin = end
        return [self._only(own) for own in parts]

    def _only(self, blocks: Sequence[Block]) -> Places:
        people, slots = blocks[0].people.start, blocks[0].slots.start
        own_people, own_slots = slice(people, blocks[-1].people.stop), slice(slots, blocks[-1].slots.stop)
        return Places(
            rows=self.rows[own_people],
            value=self.value[own_slots],
            held=self.held[own_slots],
            n_values=self.n_values,
            blocks=tuple(block.moved(-people, -slots) for block in blocks),
            odds=None if self.odds is None else self.odds[own_slots],
            n_fakes=self.n_fakes,
        )


def _match_pairs(logs: Floats) -> tuple[Floats, float]:
    """The same of two people and two values, where scaling ends at the permanent p₁₁p₂₂ + p₁₂p₂₁ itself."""
    straight, crossed = logs[0, 0] + logs[1, 1], logs[0, 1] + logs[1, 0]
    gain = np.logaddexp(straight, crossed)
    logs[0, 0] = logs[1, 1] = np.exp(straight - gain)
    logs[0, 1] = logs[1, 0] = np.exp(crossed - gain)
    return logs, float(gain.sum())


def _balance(weight: Floats, held: Floats, factor: Floats, rounds: int, close: float) -> None:
    """Find factors (values × buckets) with which people and values add up, bucket by bucket.

    Buckets whose values add up closely are left alone every few rounds: it is few that need many. Those that
    are far off after all rounds go on.
    """
    left, own, wanted = np.arange(held.shape[1]), factor, held
    least = wanted / _MOST_AT_ONCE
    last = rounds + _MORE_ROUNDS if rounds else 0
    for step in range(1, last + 1):
        found = np.einsum("pvb,pb->vb", weight, 1 / np.einsum("pvb,vb->pb", weight, own))
        found *= own
        ratio = wanted / np.maximum(found, least, out=found)
        own *= ratio
        if step % _LOOK_EVERY and step < rounds:
            continue
        is_far = np.abs(ratio - 1).max(axis=0) >= (close if step < rounds else max(close, _FAR_OFF))
        if not is_far.all() or step == last:
            factor[:, left] = own
            if not is_far.any():
                break
            left, weight = left[is_far], weight[..., is_far]
            own, wanted, least = own[:, is_far], wanted[:, is_far], least[:, is_far]


def _blocks(n_rows: Ints, width: Ints, n_fakes: int) -> tuple[Block, ...]:
    """Of buckets in ascending order of both."""
    found, person, slot = [], 0, 0
    pairs, n_buckets = np.unique(np.stack([n_rows, width]), axis=1, return_counts=True)
    for size, wide, n in zip(*pairs.tolist(), n_buckets.tolist(), strict=True):
        ends = person + n * size, slot + n * wide
        found.append(
            Block(
                people=slice(person, ends[0]),
                slots=slice(slot, ends[1]),
                shape=(n, size, wide),
                power=(size + n_fakes) / max(size + n_fakes - 1, 1),
            )
        )
        person, slot = ends
    return tuple(found)


def _ranges(first: Codes, width: Ints) -> tuple[Ints, Ints]:
    """Each `first` repeated `width` times, and beside it 0, 1, …, width − 1."""
    ends = np.cumsum(width)
    offset = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - width, width)
    return np.repeat(first.astype(np.int64), width), offset
