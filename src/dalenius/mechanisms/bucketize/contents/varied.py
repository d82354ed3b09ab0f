"""Buckets whose contents differ: dealt round-robin, then traded at random, across sizes too.

Round-robin fills buckets alike: of Adult's occupations below 2f + 0.02 two thirds of all buckets list the
same four. Who is with whom then tells what the four have together, and hardly what each has. So buckets
trade: two random buckets exchange two random records wherever both values stay within ⌊f′·S⌋ in the bucket
that they come to. How many buckets of each size there are stays as planned, and the loss with it; how many
records of a value go to each size does not.

What a bucket lists is still a function of the histogram and of coins that are tossed for it alone, and each
value's records go to the value's places by a uniformly random choice: given the release every matching inside
a bucket is as likely as any other, and nobody's value is likelier than c/S ≤ f′ (`docs/promises.md`).

No trade leaves a bucket with a single value: only those that were dealt so have one.

Trades are made in random blocks of buckets, so that their counts stay in a processor's cache. With more than
`_CLASSES` values those of a class are counted together: then a trade may be left out that could be made.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dalenius.arrays import Codes, Floats, Ints
from dalenius.errors import InternalError
from dalenius.mechanisms.bucketize.apply import Entries, NumberedBuckets, deal_in_order, row_numbers
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.prefetch import map_parallel
from dalenius.randomness import Randomness
from dalenius.tables.codes import narrowest

ROUNDS = 128
"""In how many rounds every bucket is offered a trade; after more, buckets tell no more."""
_CLASSES = 1_024
_CELLS = 2**21
"""So many counts, of buckets × classes of values, are traded in together."""
_SORTED_AT_ONCE = 2**22
_LISTED_AT_ONCE = 4_000


class VariedLayout(NumberedBuckets):
    """The places of a plan after buckets have traded."""

    __slots__ = ("_by_value", "_codes", "_ends", "_slots", "numbers", "plan")

    def __init__(
        self, plan: BucketPlan, problem: BucketProblem, randomness: Randomness, rounds: int = ROUNDS
    ) -> None:
        self.plan = plan
        n_buckets = sum(plan.n_buckets)
        self.numbers = randomness.stream("bucketize", "numbers").permutation(n_buckets) + 1
        self._slots = _Slots(plan)
        self._codes = vary(plan, problem, randomness, rounds)
        self._ends = np.cumsum(problem.count_array())
        self._by_value: Ints | None = None

    def places(self, value: int) -> Ints:
        """The bucket number of every place of a value."""
        if self._by_value is None:
            self._by_value = self._sort()
        start = self._ends[value - 1] if value else 0
        return self._by_value[start : self._ends[value]].astype(np.int64)

    def contents(self) -> Iterator[Entries]:
        """Batches of (bucket, value code, count), by bucket number and code."""
        in_plan = np.argsort(self.numbers)
        for start in range(0, len(in_plan), _LISTED_AT_ONCE):
            chosen = in_plan[start : start + _LISTED_AT_ONCE]
            bucket, codes, counts = _count(self._slots, self._codes, chosen, len(self.plan.loads))
            yield np.asarray(self.numbers[chosen][bucket], dtype=np.int64), codes, counts

    def _sort(self) -> Ints:
        """The bucket numbers of all places, value after value."""
        sizes, n_values = np.repeat(self.plan.sizes, self.plan.n_buckets), len(self.plan.loads)
        most = _SORTED_AT_ONCE // max(self.plan.sizes) + 1
        found: Ints = np.empty(len(self._codes), dtype=row_numbers(len(self.numbers)))
        free, first = np.concatenate([[0], self._ends[:-1]]), 0
        for start in range(0, len(sizes), most):
            bucket = np.repeat(self.numbers[start : start + most], sizes[start : start + most])
            codes = self._codes[first : first + len(bucket)]
            order, counts = np.argsort(codes, kind="stable"), np.bincount(codes, minlength=n_values)
            rank = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
            found[np.repeat(free, counts) + rank] = bucket[order]
            free, first = free + counts, first + len(bucket)
        return found


def count_near(plan: BucketPlan, problem: BucketProblem, numbers: Floats, share: float) -> int:
    """About how many people are in buckets whose numbers differ by no more than a share of the largest.

    It depends on the coins: this is of one draw, by coins that everybody may know.
    """
    n_near = 0
    for bucket, codes, counts in VariedLayout(plan, problem, Randomness.seeded(0)).contents():
        starts = np.flatnonzero(np.diff(bucket, prepend=-1))
        own = numbers[codes]
        least, most = np.minimum.reduceat(own, starts), np.maximum.reduceat(own, starts)
        is_near = most - least <= share * np.maximum(np.abs(least), np.abs(most))
        n_near += int(np.add.reduceat(counts, starts)[is_near].sum())
    return n_near


def vary(plan: BucketPlan, problem: BucketProblem, randomness: Randomness, rounds: int = ROUNDS) -> Codes:
    """The codes of all places after trading, bucket after bucket in the plan's order."""
    codes = np.concatenate([dealt.T.ravel() for dealt in deal_in_order(plan)])
    n_buckets, n_classes = sum(plan.n_buckets), min(problem.n_values, _CLASSES)
    slots, room = _Slots(plan), _Room(problem, plan.sizes)
    order = randomness.stream("bucketize", "blocks").permutation(n_buckets)
    blocks = np.array_split(order, -(-n_buckets * n_classes // _CELLS))

    def trade_block(block: int) -> None:
        chosen = blocks[block]
        stream = randomness.stream("bucketize", "varied", block)
        rows = slots.rows(chosen)
        codes[rows] = trade(codes[rows], slots.size_of(chosen), room, n_classes, stream, rounds)
        bucket, listed, counts = _count(slots, codes, chosen, problem.n_values)
        if (counts > room.most(listed, slots.size_of(chosen)[bucket])).any():
            raise InternalError("a bucket passes a threshold after it has traded")

    for _ in map_parallel(trade_block, range(len(blocks))):
        pass
    return codes


def trade(
    codes: Codes, size_of: Ints, room: _Room, n_classes: int, stream: np.random.Generator, rounds: int
) -> Codes:
    """The codes of some buckets, one after the other, after they have traded.

    Args:
        codes: of all their places.
        size_of: which of the plan's sizes each of the buckets has.
        room: how often a value may be in a bucket of each size.
        n_classes: values that are equal modulo this number are counted together.
        stream: the coins.
        rounds: in each of them every bucket is in a pair once.
    """
    traded, sizes = codes.copy(), room.sizes[size_of]
    begins, n_pairs = np.cumsum(sizes) - sizes, len(sizes) // 2
    cell = np.repeat(np.arange(len(sizes)), sizes) * n_classes + codes % n_classes
    held = np.bincount(cell, minlength=len(sizes) * n_classes).reshape(-1, n_classes)
    held = held.astype(narrowest(int(sizes.max()) + 1))
    for _ in range(rounds if n_pairs else 0):
        order = stream.permutation(len(sizes))
        one, two = order[:n_pairs], order[n_pairs : 2 * n_pairs]
        at_one = begins[one] + stream.integers(sizes[one])
        at_two = begins[two] + stream.integers(sizes[two])
        from_one, from_two = traded[at_one], traded[at_two]
        fits = from_one != from_two
        fits &= held[two, from_one % n_classes] < room.in_trade(from_one, size_of[two])
        fits &= held[one, from_two % n_classes] < room.in_trade(from_two, size_of[one])
        one, two, from_one, from_two = one[fits], two[fits], from_one[fits], from_two[fits]
        traded[at_one[fits]], traded[at_two[fits]] = from_two, from_one
        held[one, from_one % n_classes] -= 1
        held[one, from_two % n_classes] += 1
        held[two, from_two % n_classes] -= 1
        held[two, from_one % n_classes] += 1
    return traded


class _Slots:
    """Where the places of each bucket are: size after size, bucket after bucket."""

    def __init__(self, plan: BucketPlan) -> None:
        self.sizes = np.array(plan.sizes, dtype=np.int64)
        n_buckets = np.array(plan.n_buckets, dtype=np.int64)
        self._ends = np.cumsum(n_buckets)
        self._first = self._ends - n_buckets
        self._base = np.cumsum(n_buckets * self.sizes) - n_buckets * self.sizes

    def size_of(self, chosen: Ints) -> Ints:
        """Which of the sizes each bucket has."""
        return np.searchsorted(self._ends, chosen, side="right")

    def rows(self, chosen: Ints) -> Ints:
        """The places of these buckets, one bucket after the other."""
        size_of = self.size_of(chosen)
        sizes = self.sizes[size_of]
        begins = self._base[size_of] + (chosen - self._first[size_of]) * sizes
        found: Ints = np.arange(int(sizes.sum())) + np.repeat(begins - (np.cumsum(sizes) - sizes), sizes)
        return found


class _Room:
    """How often a value may be in a bucket of each size, exactly."""

    def __init__(self, problem: BucketProblem, sizes: tuple[int, ...]) -> None:
        ratios, self._place = problem.ratios()
        self.sizes = np.array(sizes, dtype=np.int64)
        most = [[top * size // bottom for size in sizes] for top, bottom in ratios]
        self._most = np.array(most, dtype=np.int64)
        self._in_trade = np.minimum(self._most, self.sizes - 1)

    def most(self, codes: Codes, size_of: Ints) -> Ints:
        """⌊f′·S⌋ of each of these values in a bucket of such a size."""
        return np.asarray(self._most[self._place[codes], size_of])

    def in_trade(self, codes: Codes, size_of: Ints) -> Ints:
        """The same, but no bucket is filled by a trade with one value."""
        return np.asarray(self._in_trade[self._place[codes], size_of])


def _count(slots: _Slots, codes: Codes, chosen: Ints, n_values: int) -> Entries:
    """What buckets hold: which of the chosen ones, value code, count; in their order and by code."""
    sizes = slots.sizes[slots.size_of(chosen)]
    keys = np.repeat(np.arange(len(chosen)), sizes) * n_values + codes[slots.rows(chosen)]
    keys.sort()
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    bucket, code = np.divmod(keys[starts], n_values)
    return bucket, code, np.diff(starts, append=len(keys))
