"""Applying a bucket plan: which bucket each record goes to, and what the buckets hold.

Within the buckets of one size the records are dealt round-robin, value after value (section 4.1 of the
paper), so a bucket of size S holds at most ⌈x_iS / b_S⌉ ≤ ⌊f′_i·S⌋ records of value i. Which record of
a value takes which of the value's places is a uniformly random choice, and so are the bucket numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

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
from dalenius.tables.codes import Encoder, narrowest

_LISTED_AT_ONCE = 4_000
"""So many buckets have lists that stay in a processor's cache."""
_WORTH_THREADS = 50_000
"""Fewer records are given their places before threads are started."""
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
    numbers: Codes
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
    numbers: Codes
    ends: Ints
    """Per value and size, how many records of this and the earlier values go to buckets of that size."""
    _lists: list[_Lists] = field(default_factory=list, init=False)
    """What the buckets list, once it was asked for."""

    @classmethod
    def shuffled(cls, plan: BucketPlan, randomness: Randomness, first: int = 1) -> Layout:
        """With random bucket numbers, from the first one on."""
        numbers = randomness.stream("bucketize", "numbers").permutation(sum(plan.n_buckets))
        numbers += first
        return cls.numbered(plan, numbers)

    @classmethod
    def numbered(cls, plan: BucketPlan, numbers: Ints) -> Layout:
        """With these bucket numbers."""
        ends = np.cumsum(np.array(plan.loads, dtype=np.int64), axis=0)
        return cls(plan=plan, numbers=numbers.astype(row_numbers(int(numbers.max(initial=0)))), ends=ends)

    def places(self, value: int) -> Ints:
        """The bucket number of every place of a value, in the plan's order."""
        found, at, first = np.empty(sum(self.plan.loads[value]), dtype=np.int64), 0, 0
        for n_buckets, load, end in zip(
            self.plan.n_buckets, self.plan.loads[value], self.ends[value], strict=True
        ):
            left, start = load, int(end - load) % n_buckets if load else 0
            while left:  # round and round the buckets of this size
                n_next = min(left, n_buckets - start)
                found[at : at + n_next] = self.numbers[first + start : first + start + n_next]
                at, left, start = at + n_next, left - n_next, 0
            first += n_buckets
        return found

    def contents(self) -> Iterator[Entries]:
        """Batches of (bucket, value code, count), by bucket number and code."""
        in_plan = np.empty_like(self.numbers)  # numbers are consecutive
        in_plan[self.numbers - self.numbers.min()] = np.arange(len(in_plan), dtype=in_plan.dtype)
        for start in range(0, len(in_plan), _LISTED_AT_ONCE):
            yield self.entries(in_plan[start : start + _LISTED_AT_ONCE])

    def entries(self, chosen: Codes) -> Entries:
        """What is in the chosen buckets, numbered as in the plan, in their order and by code."""
        if not self._lists:
            self._lists.append(_Lists.of(self.plan))
        lists = self._lists[0]
        lengths = lists.lengths[chosen].astype(np.int64)
        rows = _joined(lists.ends[chosen] - lengths, lengths)
        return (
            np.repeat(self.numbers[chosen], lengths).astype(np.int64),
            lists.codes[rows].astype(np.int64),
            lists.counts[rows].astype(np.int64),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Lists:
    """The values that each bucket of a plan lists, ascending, one bucket after the other: few bytes a row."""

    codes: Codes
    counts: Codes
    lengths: Codes
    """How many values each bucket lists."""
    ends: Codes
    """Where its list ends; of 32 bits where they do."""

    @classmethod
    def of(cls, plan: BucketPlan) -> _Lists:
        n_buckets, n_rows = sum(plan.n_buckets), sum(map(sum, plan.loads))
        few = narrowest(max(plan.sizes) + 1)
        # as long as they can be, and not put together from parts: there may be a hundred million rows
        codes, counts = np.empty(n_rows, narrowest(len(plan.loads))), np.empty(n_rows, few)
        lengths, at, first = np.empty(n_buckets, few), 0, 0
        for places in deal_in_order(plan):
            for start in range(0, places.shape[1], _LISTED_AT_ONCE):
                own_codes, own_counts, own_lengths = _run_lengths(places[:, start : start + _LISTED_AT_ONCE])
                codes[at : at + len(own_codes)], counts[at : at + len(own_codes)] = own_codes, own_counts
                lengths[first : first + len(own_lengths)] = own_lengths
                at, first = at + len(own_codes), first + len(own_lengths)
        ends = np.cumsum(lengths, dtype=row_numbers(at))
        return cls(codes=codes[:at], counts=counts[:at], lengths=lengths, ends=ends)


def row_numbers(largest: int) -> type[np.signedinteger[Any]]:
    """What holds numbers of rows or buckets up to this one: there may be a hundred million of them."""
    return np.int32 if largest < 2**31 else np.int64


def deal_in_order(plan: BucketPlan) -> Iterator[Codes]:
    """Of each size, the value codes of its buckets, a column a bucket, ascending."""
    every = np.arange(len(plan.loads), dtype=narrowest(len(plan.loads)))
    loads = np.array(plan.loads, dtype=np.int64)
    for j, (size, n_buckets) in enumerate(zip(plan.sizes, plan.n_buckets, strict=True)):
        # bucket w holds the places w, w + b, w + 2b, … of the records in value order
        yield np.repeat(every, loads[:, j]).reshape(size, n_buckets)


def _run_lengths(codes: Codes) -> tuple[Codes, Codes, Codes]:
    """The different codes of columns that ascend, how often each occurs, and how many a column has."""
    is_first = np.ones(codes.shape, dtype=np.bool_)
    np.not_equal(codes[1:], codes[:-1], out=is_first[1:])
    starts = np.flatnonzero(is_first.T)
    few = narrowest(len(codes) + 1)
    counts = np.diff(starts, append=codes.size).astype(few)
    return codes.T.ravel()[starts], counts, np.sum(is_first, axis=0, dtype=few)


def _joined(starts: Ints, lengths: Ints) -> Ints:
    """The numbers of ranges that start there and are so long, one range after the other."""
    ends = np.cumsum(lengths)
    found: Ints = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
    return found


def by_bucket(parts: list[Entries]) -> Entries:
    """Entries together, by bucket number and code; each bucket is in one part, its rows in order."""
    buckets, codes, counts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    starts = np.flatnonzero(np.diff(buckets, prepend=-1))
    order = np.argsort(buckets[starts])
    rows = _joined(starts[order], np.diff(starts, append=len(buckets))[order])
    return buckets[rows], codes[rows], counts[rows]


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
        dealt, keeps = [codes.T.astype(np.int64) for codes in deal_in_order(plan)], keeps_windows
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
        self._places = np.empty(self._ends[-1], row_numbers(layout.n_buckets))

        def fill(value: int) -> None:
            places = layout.places(value)  # of 64 bits, which are shuffled twice as fast as others
            randomness.stream("bucketize", "assign", value).shuffle(places)
            self._places[self._next[value] : self._ends[value]] = places

        spread = map_parallel if len(self._places) >= _WORTH_THREADS else map
        for _ in spread(fill, range(len(self._ends))):
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
    """The quasi-identifier table: quasi columns, and the key by which rows are put in order."""
    for batch in batches:
        buckets = assigner.assign(encoder.encode(batch))
        columns = {name: batch.column(name) for name in quasi}
        yield pa.RecordBatch.from_pydict({**columns, key: random_within(buckets, assigner.n_buckets, order)})
    assigner.finish()


def with_buckets(rows: Iterator[pa.RecordBatch], n_buckets: int, key: str) -> Iterator[pa.RecordBatch]:
    """The rows, once they are in order, with their buckets, which their keys begin with."""
    shift = KEY_BITS - n_buckets.bit_length()
    for batch in rows:
        yield batch.append_column("bucket", pa.array(batch.column(key).to_numpy() >> shift))


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
