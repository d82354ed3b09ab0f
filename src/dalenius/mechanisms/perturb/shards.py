"""Perturbation in partitions: each perturbs its own records and sends each to a group drawn at random.

A group puts its rows in random order. So every row's file and place are independent of everything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from dalenius.mechanisms.perturb.apply import Perturber
from dalenius.mechanisms.perturb.plan.layout import PerturbPlan
from dalenius.mechanisms.sharding import Census, Piece, Scattered, Shards, quota_of_partition
from dalenius.randomness import Randomness
from dalenius.tables.codes import Encoder


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DataGroups:
    """The published table, in groups of rows drawn at random."""

    plan: PerturbPlan
    census: Census
    encoder: Encoder
    quasi: tuple[str, ...]
    schema: pa.Schema
    randomness: Randomness

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
