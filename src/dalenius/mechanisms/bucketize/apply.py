"""Applying a bucket plan: which bucket each record goes to, and what the buckets hold.

Within the buckets of one size the records are dealt round-robin, value after value (section 4.1 of the
paper), so a bucket of size S holds at most ⌈x_iS / b_S⌉ ≤ ⌊f′_i·S⌋ records of value i. Which record of
a value takes which of the value's places is a uniformly random choice, and so are the bucket numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from dalenius.arrays import Codes, Int32s, Ints
from dalenius.errors import InternalError
from dalenius.mechanisms.bucketize.plan.methods import BucketPlan
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.mechanisms.bucketize.plan.sets import deal_sets, keeps_sets
from dalenius.mechanisms.bucketize.plan.windows import keeps_windows, mix
from dalenius.mechanisms.dealing import fewest_bits
from dalenius.prefetch import map_parallel
from dalenius.randomness import KEY_BITS, Randomness, random_keys
from dalenius.tables.codes import Encoder

BUCKETS_PER_BATCH = 20_000
Entries = tuple[Ints, Ints, Ints]
"""Bucket, value code, count."""


def count_alike(
    contents: Iterable[tuple[Ints, Codes, Ints]], columns: Sequence[Ints], *, only_yes: bool, n_fakes: int
) -> int:
    """How many people are in buckets that tell their value for certain, or a column of it.

    A value that a bucket lists twice is nobody's fake. Where these values are as many as the people, all
    others are fakes; else anybody's value may be any of those listed.

    Args:
        contents: what all buckets list, fakes among them.
        columns: of each column of a compound value, which of its cells each value has.
        only_yes: cells are yes or no, and only a yes is told.
        n_fakes: how many values of a bucket are nobody's.

    >>> listed = (np.array([1, 1, 1, 2, 2, 2]), np.array([0, 1, 2, 0, 1, 2]), np.array([1, 1, 1, 2, 2, 1]))
    >>> cells = [np.array([0, 0, 1])]
    >>> [count_alike([listed], cells, only_yes=False, n_fakes=n) for n in (0, 1)]
    [0, 4]
    """
    n_certain = 0
    for bucket, code, count in contents:
        starts = np.flatnonzero(np.diff(bucket, prepend=-1))
        lengths = np.diff(starts, append=len(bucket))
        people = np.add.reduceat(count, starts) - n_fakes
        real = np.where(count > 1, count, 0)
        is_settled = np.add.reduceat(real, starts) == people
        may_be = np.full(len(code), True) if not n_fakes else (count > 1) | ~np.repeat(is_settled, lengths)
        alike = np.add.reduceat(may_be.astype(np.int64), starts) == 1
        for cells in columns:
            own = cells[code].astype(np.int64)
            least = np.minimum.reduceat(np.where(may_be, own, np.iinfo(np.int64).max), starts)
            most = np.maximum.reduceat(np.where(may_be, own, -1), starts)
            alike |= least == (1 if only_yes else most)
        n_certain += int(people[alike].sum())
    return n_certain


class NumberedBuckets:
    """The buckets of one plan under their published numbers."""

    __slots__ = ()
    plan: BucketPlan
    numbers: Ints
    """The published number of each bucket: buckets of the first size first, then of the second, …"""

    @property
    def n_places(self) -> list[int]:
        """How many records of each value there are."""
        return [sum(loads) for loads in self.plan.loads]

    @property
    def n_buckets(self) -> int:
        """How many buckets there are."""
        return len(self.numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout(NumberedBuckets):
    """The places of a plan: what is in which bucket, before any record is looked at."""

    plan: BucketPlan
    numbers: Ints
    ends: Ints
    """Per value and size, how many records of this and the earlier values go to buckets of that size."""

    @classmethod
    def shuffled(cls, plan: BucketPlan, randomness: Randomness, first: int = 1) -> Layout:
        """With random bucket numbers, from the first one on."""
        numbers = randomness.stream("bucketize", "numbers").permutation(sum(plan.n_buckets)) + first
        return cls.numbered(plan, numbers)

    @classmethod
    def numbered(cls, plan: BucketPlan, numbers: Ints) -> Layout:
        """With these bucket numbers."""
        return cls(plan=plan, numbers=numbers, ends=np.cumsum(np.array(plan.loads, dtype=np.int64), axis=0))

    def places(self, value: int) -> Ints:
        """The bucket number of every place of a value, in the plan's order."""
        parts, first_bucket = [], 0
        for j, n_buckets in enumerate(self.plan.n_buckets):
            end, load = self.ends[value, j], self.plan.loads[value][j]
            dealt = np.arange(end - load, end) % n_buckets
            parts.append(self.numbers[first_bucket + dealt])
            first_bucket += n_buckets
        return np.concatenate(parts)

    def contents(self) -> Iterator[Entries]:
        """Batches of (bucket, value code, count), by bucket number and code."""
        in_plan = np.argsort(self.numbers)
        for start in range(0, len(in_plan), BUCKETS_PER_BATCH):
            yield self.entries(in_plan[start : start + BUCKETS_PER_BATCH])

    def entries(self, chosen: Ints) -> Entries:
        """What is in the chosen buckets, numbered as in the plan; by bucket number and code."""
        return by_bucket([_run_lengths(self.numbers[w], codes) for w, codes in self.codes_of(chosen)])

    def codes_of(self, chosen: Ints) -> Iterator[tuple[Ints, Ints]]:
        """The chosen buckets of each size, and the value codes in each, a row a bucket, ascending."""
        first_bucket = 0
        for j, (size, n_buckets) in enumerate(zip(self.plan.sizes, self.plan.n_buckets, strict=True)):
            own = chosen[(first_bucket <= chosen) & (chosen < first_bucket + n_buckets)]
            # bucket w holds the places w, w + b, w + 2b, … of the records in value order; those of all w
            # come first, because they have few values: a search that goes the same way again is fast
            places = (own - first_bucket) + (np.arange(size) * n_buckets)[:, None]
            yield own, np.ascontiguousarray(np.searchsorted(self.ends[:, j], places, side="right").T)
            first_bucket += n_buckets


def by_bucket(parts: list[Entries]) -> Entries:
    """Entries together, by bucket number and code, as they are in each part."""
    buckets, codes, counts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    # a stable sort only merges what is in order
    in_order = np.argsort(buckets * (codes.max(initial=0) + 1) + codes, kind="stable")
    return buckets[in_order], codes[in_order], counts[in_order]


def _run_lengths(buckets: Ints, codes: Ints) -> Entries:
    """(bucket, code, count) of buckets whose codes, a row each, ascend."""
    is_first = np.ones(codes.shape, dtype=bool)
    is_first[:, 1:] = codes[:, 1:] != codes[:, :-1]
    starts = np.flatnonzero(is_first)
    counts = np.diff(starts, append=codes.size)
    return np.repeat(buckets, is_first.sum(axis=1)), codes.ravel()[starts], counts


class GivenLayout(NumberedBuckets):
    """The places of buckets whose contents are given one by one: buckets × places of each size."""

    def __init__(self, plan: BucketPlan, contents: Sequence[Ints], numbers: Ints) -> None:
        self.plan = plan
        self.numbers = numbers
        codes = np.concatenate([held.ravel() for held in contents])
        bucket = np.repeat(self.numbers, np.repeat(plan.sizes, plan.n_buckets))
        order = np.lexsort((bucket, codes))
        self._bucket = bucket[order]
        self._ends = np.cumsum(np.bincount(codes, minlength=len(plan.loads)))
        self._codes = codes[order]

    @classmethod
    def shuffled(cls, plan: BucketPlan, contents: Sequence[Ints], randomness: Randomness) -> GivenLayout:
        """With random bucket numbers, from 1."""
        numbers = randomness.stream("bucketize", "numbers").permutation(sum(plan.n_buckets)) + 1
        return cls(plan, contents, numbers)

    def places(self, value: int) -> Ints:
        """The bucket number of every place of a value."""
        start = self._ends[value - 1] if value else 0
        return self._bucket[start : self._ends[value]].copy()

    def contents(self) -> Iterator[Entries]:
        """All buckets, by bucket number and code."""
        yield self.entries(np.arange(len(self.numbers)))

    def entries(self, chosen: Ints) -> Entries:
        """What is in the chosen buckets, numbered as in the plan; by bucket number and code."""
        order = np.argsort(self._bucket, kind="stable")
        if len(chosen) < len(self.numbers):
            order = order[np.isin(self._bucket[order], self.numbers[chosen])]
        buckets, codes = self._bucket[order], self._codes[order]
        is_first = np.ones(len(codes), dtype=bool)
        is_first[1:] = (buckets[1:] != buckets[:-1]) | (codes[1:] != codes[:-1])
        starts = np.flatnonzero(is_first)
        return buckets[starts], codes[starts], np.diff(starts, append=len(codes))


def mix_contents(plan: BucketPlan, problem: BucketProblem, randomness: Randomness) -> list[Ints]:
    """Buckets × places of each size, dealt, then traded as far as windows of numbers, or sets, allow."""
    if problem.overlapping:
        dealt, keeps = deal_sets(problem, plan), keeps_sets
        if dealt is None:
            raise InternalError("a setting that was planned for sets could not be filled again")
    else:
        every = np.arange(sum(plan.n_buckets))
        dealt, keeps = [codes for _, codes in Layout.numbered(plan, every).codes_of(every)], keeps_windows
    streams = (randomness.stream("bucketize", "mix", j) for j in range(len(plan.sizes)))
    mixed = [
        mix(contents, keeps(problem, size), stream)
        for size, contents, stream in zip(plan.sizes, dealt, streams, strict=True)
    ]
    for size, contents in zip(plan.sizes, mixed, strict=True):
        if not keeps(problem, size)(contents).all():
            raise InternalError("a bucket passes a limit that its contents were mixed within")
    return mixed


class Places(Protocol):
    """What a bucket layout offers: where the records of a value go, and what is published of the buckets."""

    @property
    def n_places(self) -> list[int]:
        """How many records of each value there are; in regions, of each value in each region."""

    @property
    def n_buckets(self) -> int:
        """How many buckets there are."""

    def places(self, value: int) -> Ints:
        """The bucket number of every place of a value."""

    def contents(self) -> Iterator[tuple[Ints, Codes, Ints]]:
        """Batches of (bucket, value code, count), by bucket number and code."""


class Assigner:
    """Gives the records of a stream of batches their buckets. Every place is given exactly once."""

    def __init__(self, layout: Places, randomness: Randomness) -> None:
        self.n_buckets = layout.n_buckets
        self._ends = np.cumsum(layout.n_places)
        self._next = np.concatenate([[0], self._ends[:-1]])
        # one array, filled value by value: the only memory that grows with the records
        self._places = np.empty(self._ends[-1], np.int32 if layout.n_buckets < 2**31 else np.int64)

        def fill(value: int) -> None:
            places = layout.places(value)  # of 64 bits, which are shuffled twice as fast as others
            randomness.stream("bucketize", "assign", value).shuffle(places)
            self._places[self._next[value] : self._ends[value]] = places

        for _ in map_parallel(fill, range(len(self._ends))):
            pass

    def assign(self, codes: Int32s) -> Ints:
        """The bucket number of each record of the next batch."""
        counts = np.bincount(codes, minlength=len(self._next))
        if (self._next + counts > self._ends).any():
            raise InternalError("the table changed between two passes over it: a value has more records")
        by_value = np.argsort(fewest_bits(codes), kind="stable")
        firsts = np.cumsum(counts) - counts
        rank = np.empty(len(codes), dtype=np.int64)
        rank[by_value] = np.arange(len(codes)) - np.repeat(firsts, counts)
        buckets = self._places[self._next[codes] + rank].astype(np.int64)
        self._next = self._next + counts
        return buckets

    def finish(self) -> None:
        """Check that every place was taken."""
        if (self._next != self._ends).any():
            raise InternalError("the table changed between two passes over it: a value has fewer records")


class Coder(Protocol):
    """Knows the code of each row's sensitive value."""

    def encode(self, batch: pa.RecordBatch) -> Int32s:
        """The codes of a batch."""


def qit_rows(
    batches: Iterator[pa.RecordBatch],
    quasi: tuple[str, ...],
    encoder: Coder,
    assigner: Assigner,
    order: np.random.Generator,
    key: str,
) -> Iterator[pa.RecordBatch]:
    """The quasi-identifier table: quasi columns, bucket, and the key by which rows are put in order."""
    for batch in batches:
        buckets = assigner.assign(encoder.encode(batch))
        columns = {name: batch.column(name) for name in quasi}
        keys = random_within(buckets, assigner.n_buckets, order)
        yield pa.RecordBatch.from_pydict({**columns, "bucket": buckets, key: keys})
    assigner.finish()


def random_within(buckets: Ints, n_buckets: int, order: np.random.Generator) -> Ints:
    """Keys that put rows in the order of their buckets, and at random within one.

    With 20 million buckets 38 bits are random: two rows of a bucket have the same key in one of 10¹¹ cases.
    """
    bucket_bits = n_buckets.bit_length()
    return (buckets << (KEY_BITS - bucket_bits)) | (random_keys(order, len(buckets)) >> bucket_bits)


def st_rows(layout: Places, encoder: Encoder) -> Iterator[pa.RecordBatch]:
    """The sensitive table: bucket, the value's cells, count."""
    for buckets, codes, counts in layout.contents():
        yield pa.RecordBatch.from_pydict({"bucket": buckets, **encoder.decode(codes), "count": counts})
