"""A bucket plan in groups of buckets, each a smaller plan that a task of its own carries out.

Of the b buckets of one size a group has every k-th, o, o+k, o+2k, …: of the round-robin deal, exactly the
places p with (p mod b) mod k = o. In order they are a round-robin deal over these buckets, so a group is a
bucket plan like any other and keeps every capacity, bucket by bucket. Neighbouring buckets hold the same rare
values; every k-th of them makes groups, and so files and ranges of bucket numbers, that hold the same of
every value, except for one.

Which record of a value takes which of the value's places is uniformly random over the whole table: how many
of a value's records a group gets is fixed by the plan; `quota_of_partition` and `deal` choose uniformly which
ones they are; and within the group they take its places in uniformly random order. Each bijection of the
value's N records and N places thus has the probability [Π_g N_g! / N!] · Π_g [1 / N_g!] = 1 / N!.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from dalenius.arrays import Int32s, Ints
from dalenius.mechanisms.bucketize.apply import Assigner, Layout, st_rows
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.table_plan import BucketizePlan
from dalenius.mechanisms.dealing import Dealer, fewest_bits
from dalenius.mechanisms.sharding import Census, Piece, Scattered, Shards, quota_of_partition
from dalenius.randomness import Randomness
from dalenius.sql import unused_name
from dalenius.tables.codes import Encoder
from dalenius.tables.histogram import Histogram


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BucketGroups:
    """The buckets of a plan in groups of about equal size; which group is where is random."""

    plan: BucketPlan
    order: Ints
    """The first bucket of each size that a group has."""
    randomness: Randomness

    @classmethod
    def cut(cls, plan: BucketPlan, n_groups: int, randomness: Randomness) -> BucketGroups:
        """Every group gets its share of the buckets of every size."""
        order = randomness.stream("bucketize", "groups").permutation(n_groups)
        return cls(plan=plan, order=order, randomness=randomness.child("bucketize"))

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return len(self.order)

    def loads(self) -> Ints:
        """Values × groups: how many records of each value a group holds."""
        by_size = [self._size_loads(j) for j in range(len(self.plan.sizes))]
        return np.asarray(np.sum(by_size, axis=0), dtype=np.int64)

    def layout(self, group: int) -> Layout:
        """The group's places; its bucket numbers follow those of the groups before it, in random order."""
        widths = self._buckets_below(np.array(self.plan.n_buckets, dtype=np.int64))
        used = np.flatnonzero(widths[:, group])
        loads = np.stack([self._size_loads(int(j))[:, group] for j in used], axis=1)
        plan = replace(
            self.plan,
            sizes=tuple(self.plan.sizes[j] for j in used),
            n_buckets=tuple(int(widths[j, group]) for j in used),
            loads=tuple(map(tuple, loads.tolist())),
            lower_bound=None,
        )
        first = 1 + int(widths[:, :group].sum())
        return Layout.shuffled(plan, self.randomness.child("group", group), first)

    def _buckets_below(self, limits: Ints) -> Ints:
        """Limits × groups: how many of the first buckets of a size a group has."""
        return np.asarray(np.maximum(-((self.order - limits[:, None]) // self.n_groups), 0), dtype=np.int64)

    def _size_loads(self, j: int) -> Ints:
        """Values × groups: how many places p of a value, end − load ≤ p < end, are in a group's buckets."""
        load = np.array([row[j] for row in self.plan.loads], dtype=np.int64)
        ends = np.cumsum(load)
        whole = self._buckets_below(np.array(self.plan.n_buckets[j : j + 1], dtype=np.int64))

        def places_below(ends: Ints) -> Ints:
            rounds, rest = np.divmod(ends, self.plan.n_buckets[j])
            return rounds[:, None] * whole + self._buckets_below(rest)

        return places_below(ends) - places_below(ends - load)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QitGroups:
    """The quasi-identifier table: partitions deal records to groups, groups to buckets."""

    groups: BucketGroups
    census: Census
    encoder: Encoder
    """Of all records, the withheld ones too."""
    code_of: Int32s
    """The plan's code of each code of the encoder; −1: wholly withheld."""
    quasi: tuple[str, ...]
    schema: pa.Schema

    def shards(self) -> Shards:
        """As an engine carries it out."""
        return Shards(
            n_groups=self.groups.n_groups,
            gather=self.gather,
            wire=self.wire,
            n_records=self.groups.plan.n_rows,
            scatter=self.scatter,
        )

    @property
    def wire(self) -> pa.Schema:
        """The quasi columns and the value's code."""
        return pa.schema([*(self.schema.field(name) for name in self.quasi), (self._code, pa.int32())])

    @property
    def _code(self) -> str:
        return unused_name("code", self.quasi)

    def total(self) -> Ints:
        """Values × (groups and, last, the withheld ones): where the records of each value go."""
        n_records = self.census.counts.sum(axis=0)
        total = np.zeros((len(n_records), self.groups.n_groups + 1), dtype=np.int64)
        kept = np.flatnonzero(self.code_of >= 0)
        total[kept, :-1] = self.groups.loads()[self.code_of[kept]]
        total[:, -1] = n_records - total.sum(axis=1)
        return total

    def scatter(self, partition: int, batches: Iterator[pa.RecordBatch]) -> Scattered:
        """Deal the records to the groups; those that are dealt to none are withheld."""
        random, n_groups = self.groups.randomness, self.groups.n_groups
        halving = partial(random.stream, "quota")
        dealer = Dealer(quota_of_partition(self.total(), self.census.counts, partition, halving))
        stream = random.stream("partition", partition)
        for batch in batches:
            codes = self.encoder.encode(batch)
            groups = dealer.deal(codes, stream, stream)
            quasi = [batch.column(name) for name in self.quasi]
            rows = pa.RecordBatch.from_arrays([*quasi, pa.array(self.code_of[codes])], schema=self.wire)
            kept = groups < n_groups
            yield groups[kept].astype(np.int64), rows if kept.all() else rows.filter(pa.array(kept))
        dealer.finish()

    def gather(self, group: int, rows: pa.Table) -> Piece:
        """Deal the records to the group's buckets; within a bucket they come in random order."""
        random = self.groups.randomness.child("group", group)
        assigner = Assigner(self.groups.layout(group), random)
        buckets = assigner.assign(rows.column(self._code).to_numpy())
        assigner.finish()
        order = _by_bucket(buckets, random.stream("bucketize", "order"))
        quasi = rows.select(list(self.quasi)).take(pa.array(order))
        return Piece(
            rows=quasi.append_column("bucket", pa.array(buckets[order])),
            n_records=len(rows),
        )


def _by_bucket(buckets: Ints, stream: np.random.Generator) -> Ints:
    """The records by bucket, those of one bucket in uniformly random order."""
    shuffled = stream.permutation(len(buckets))
    return np.asarray(shuffled[np.argsort(fewest_bits(buckets[shuffled]), kind="stable")])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StGroups:
    """The sensitive table, which the plan alone decides."""

    groups: BucketGroups
    encoder: Encoder
    """Of the published values."""

    def shards(self) -> Shards:
        """As an engine carries it out."""
        return Shards(n_groups=self.groups.n_groups, gather=self.gather)

    def gather(self, group: int, rows: pa.Table) -> Piece:  # noqa: ARG002  (there are none)
        """What the group's buckets hold."""
        table = pa.Table.from_batches(list(st_rows(self.groups.layout(group), self.encoder)))
        return Piece(rows=table, n_records=0)


def qit_shards(
    plan: BucketizePlan, whole: Histogram, quasi: tuple[str, ...], randomness: Randomness
) -> Callable[[Census], Shards]:
    """How partitions make the quasi-identifier table; what is not planned is withheld."""

    def shards(census: Census) -> Shards:
        planned = {value: code for code, value in enumerate(plan.histogram.values)}
        return QitGroups(
            groups=_groups(plan, census, randomness),
            census=census,
            encoder=whole.encoder(plan.schema),
            code_of=np.array([planned.get(value, -1) for value in whole.values], dtype=np.int32),
            quasi=quasi,
            schema=plan.schema,
        ).shards()

    return shards


def st_shards(plan: BucketizePlan, randomness: Randomness) -> Callable[[Census], Shards]:
    """How the sensitive table is made in pieces."""

    def shards(census: Census) -> Shards:
        encoder = plan.histogram.encoder(plan.schema)
        return StGroups(groups=_groups(plan, census, randomness), encoder=encoder).shards()

    return shards


def _groups(plan: BucketizePlan, census: Census, randomness: Randomness) -> BucketGroups:
    return BucketGroups.cut(plan.buckets, census.n_groups(plan.n_rows), randomness)
