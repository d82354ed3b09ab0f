"""Perturb records batch by batch: deal them to the parts, then publish each value under its part's law.

One pass over the source: a batch needs its own rows, what is left of the parts' quotas, and its own streams.

In partitions each one perturbs its own records and sends each to a group drawn at random. A group puts its
rows in random order. So every row's file and place are independent of everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa

from dalenius.arrays import Codes, Int32s, Ints
from dalenius.mechanisms.dealing import Dealer, deal, fewest_bits
from dalenius.mechanisms.perturb.channel import Channel
from dalenius.mechanisms.perturb.plan.layout import PerturbPlan
from dalenius.mechanisms.sharding import Census, Piece, Scattered, Shards, quota_of_partition
from dalenius.prefetch import map_parallel
from dalenius.randomness import Randomness, random_keys
from dalenius.tables.codes import Encoder

_Prepared = tuple[pa.RecordBatch, np.random.Generator, Callable[[], tuple[Int32s, Int32s]]]

_LARGEST_DENOMINATOR = 2**63 - 1
_ROUNDED_DENOMINATOR = 2**62


def perturb_values(
    codes: Codes, parts: Int32s, channels: Sequence[Channel], stream: np.random.Generator
) -> Int32s:
    """Keep each value with its part's probability p, else draw one from the part's domain by its weights."""
    by_part = np.argsort(fewest_bits(parts), kind="stable")
    together = codes[by_part].astype(np.int32)
    ends = np.cumsum(np.bincount(parts, minlength=len(channels)))
    # part by part: numbers below one bound are drawn five times faster than each below its own
    for channel, own in zip(channels, np.split(together, ends[:-1]), strict=True):
        heads, sides = exact_coin(channel.retention)
        replaced = np.flatnonzero(stream.integers(sides, size=len(own)) >= heads)
        drawn = _draw_places(channel, len(replaced), stream)
        own[replaced] = np.array(channel.codes, dtype=np.int32)[drawn]
    published = np.empty_like(together)
    published[by_part] = together
    return published


def _draw_places(channel: Channel, n: int, stream: np.random.Generator) -> Ints:
    """Places in the part's domain, exactly in proportion to the weights."""
    if channel.weights is None:
        return np.asarray(stream.integers(channel.n_values, size=n))
    ends = np.cumsum(channel.weights)
    return np.asarray(np.searchsorted(ends, stream.integers(ends[-1], size=n), side="right"))


def exact_coin(probability: Fraction) -> tuple[int, int]:
    """Integers (a, b) with a/b the probability: heads if a uniform integer below b is below a.

    A denominator beyond 63 bits is replaced by 2⁶², the numerator rounded down: less is kept than the
    promise allows, by less than 2⁻⁶².

    >>> exact_coin(Fraction(1, 3))
    (1, 3)
    """
    if probability.denominator <= _LARGEST_DENOMINATOR:
        return probability.numerator, probability.denominator
    return probability.numerator * _ROUNDED_DENOMINATOR // probability.denominator, _ROUNDED_DENOMINATOR


class Perturber:
    """Perturbs the records of a stream of batches. Every quota is used up exactly."""

    def __init__(self, plan: PerturbPlan, randomness: Randomness, quota: Ints | None = None) -> None:
        self._plan, self._randomness = plan, randomness
        self._dealer = Dealer(plan.quota() if quota is None else quota)
        self._n_batches = 0

    def perturb(self, codes: Int32s) -> tuple[Int32s, Int32s]:
        """The part (from 0) and the published code of each record of the next batch."""
        return self.prepare(codes)()

    def prepare(self, codes: Int32s) -> Callable[[], tuple[Int32s, Int32s]]:
        """The same, to be carried out later: what batches share, the quotas, is drawn now."""
        quota = self._dealer.quota(codes, self.stream("quota"))
        part_stream, value_stream = self.stream("part"), self.stream("value")
        self._n_batches += 1

        def perturb() -> tuple[Int32s, Int32s]:
            parts = deal(codes, quota, part_stream)
            return parts, perturb_values(codes, parts, self._plan.channels, value_stream)

        return perturb

    def stream(self, step: str) -> np.random.Generator:
        """The stream of a step of the next batch."""
        return self._randomness.stream("perturb", step, self._n_batches)

    def finish(self) -> None:
        """Check that every quota was used up."""
        self._dealer.finish()


def data_rows(
    batches: Iterator[pa.RecordBatch],
    quasi: tuple[str, ...],
    encoder: Encoder,
    perturber: Perturber,
    tag: str,
) -> Iterator[pa.RecordBatch]:
    """The published table: quasi columns, perturbed sensitive columns, part, and a random tag to sort by."""

    def prepare_batches() -> Iterator[_Prepared]:
        for batch in batches:
            order = perturber.stream("order")
            yield batch, order, perturber.prepare(encoder.encode(batch))

    def rows(step: _Prepared) -> pa.RecordBatch:
        batch, order, perturb = step
        parts, published = perturb()
        tags = random_keys(order, batch.num_rows)
        columns = {name: batch.column(name) for name in quasi}
        return pa.RecordBatch.from_pydict(
            {**columns, **encoder.decode(published), "part": parts + np.int32(1), tag: tags}
        )

    yield from map_parallel(rows, prepare_batches())
    perturber.finish()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DataGroups:
    """The published table, in groups of rows drawn at random."""

    randomness: Randomness
    plan: PerturbPlan
    census: Census
    encoder: Encoder
    quasi: tuple[str, ...]
    schema: pa.Schema

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return self.census.n_groups(self.census.n_rows)

    def shards(self) -> Shards:
        """As an engine carries it out."""
        return Shards(
            n_groups=self.n_groups,
            gather=self.gather,
            wire=self.wire,
            n_records=self.census.n_rows,
            scatter=self.scatter,
        )

    @property
    def wire(self) -> pa.Schema:
        """The published columns."""
        columns = [self.schema.field(name) for name in (*self.quasi, *self.encoder.cells)]
        return pa.schema([*columns, ("part", pa.int32())])

    def scatter(self, partition: int, batches: Iterator[pa.RecordBatch]) -> Scattered:
        """Deal the records to the parts, perturb them, and draw their groups."""
        halving = partial(self.randomness.stream, "quota")
        quota = quota_of_partition(self.plan.quota(), self.census.counts, partition, halving)
        perturber = Perturber(self.plan, self.randomness.child("partition", partition), quota)
        for batch in batches:
            groups = perturber.stream("group").integers(self.n_groups, size=batch.num_rows)
            parts, published = perturber.perturb(self.encoder.encode(batch))
            quasi = [batch.column(name) for name in self.quasi]
            cells = self.encoder.decode(published)
            sensitive = [cells[name].cast(self.schema.field(name).type) for name in self.encoder.cells]
            arrays = [*quasi, *sensitive, pa.array(parts + np.int32(1))]
            yield groups, pa.RecordBatch.from_arrays(arrays, schema=self.wire)
        perturber.finish()

    def gather(self, group: int, rows: pa.Table) -> Piece:
        """The rows in random order."""
        order = self.randomness.stream("order", group).permutation(len(rows))
        return Piece(rows=rows.take(pa.array(order)), n_records=len(rows))
