"""Perturbation in partitions: each perturbs its own records, and random tags say where they come to stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from dalenius.histogram import Encoder
from dalenius.mechanisms.perturb.apply import Perturber, data_rows
from dalenius.mechanisms.perturb.layout import PerturbPlan
from dalenius.mechanisms.sharding import Census, Piece, Scattered, Shards, quota_of_partition
from dalenius.randomness import Randomness

_TAG_BITS = 63


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DataGroups:
    """The published table: a group holds the rows whose tags are in its share of all tags."""

    plan: PerturbPlan
    census: Census
    encoder: Encoder
    quasi: tuple[str, ...]
    schema: pa.Schema
    tag: str
    randomness: Randomness

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return self.census.n_groups(self.census.n_rows)

    def shards(self) -> Shards:
        """As an engine carries it out."""
        columns = [self.schema.field(name) for name in (*self.quasi, *self.encoder.columns)]
        return Shards(
            n_groups=self.n_groups,
            gather=self.gather,
            wire=pa.schema([*columns, ("part", pa.int32()), (self.tag, pa.int64())]),
            n_records=self.census.n_rows,
            scatter=self.scatter,
        )

    def scatter(self, partition: int, batches: Iterator[pa.RecordBatch]) -> Scattered:
        """Deal the records to the parts and perturb them."""
        halving = partial(self.randomness.stream, "quota")
        quota = quota_of_partition(self.plan.quota(), self.census.counts, partition, halving)
        perturber = Perturber(self.plan, self.randomness.child("partition", partition), quota)
        for rows in data_rows(batches, self.quasi, self.encoder, perturber, self.tag):
            tags = rows.column(self.tag).to_numpy()
            # The tag's first 31 bits, scaled: exact, and no product passes 63 bits.
            yield (tags >> (_TAG_BITS - 31)) * np.int64(self.n_groups) >> 31, rows

    def gather(self, group: int, rows: pa.Table) -> Piece:  # noqa: ARG002  (the rows have their tags)
        """The rows in the order of their tags."""
        return Piece(rows=rows.sort_by(self.tag).drop_columns([self.tag]), n_records=len(rows))
