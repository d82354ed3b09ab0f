"""FRAPP in partitions: records are replaced where they are, and travel packed to the group of their tuple."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from dalenius.mechanisms.frapp.apply import frapp_view
from dalenius.mechanisms.sharding import Census, Piece, Scattered, Shards
from dalenius.mechanisms.tuples.apply import RECORD, TupleGroups
from dalenius.randomness import Randomness


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrappGroups:
    """A FRAPP view: each partition replaces its own records, which then travel by what they have become."""

    gamma_f: Fraction
    tuples: TupleGroups
    census: Census
    randomness: Randomness

    def shards(self) -> Shards:
        """As an engine carries it out."""
        return Shards(
            n_groups=self.tuples.n_groups,
            gather=self.gather,
            wire=self.tuples.wire,
            n_records=self.census.n_rows,
            scatter=self.scatter,
        )

    def scatter(self, partition: int, batches: Iterator[pa.RecordBatch]) -> Scattered:
        """Every record, kept or replaced."""
        domain, stream = self.tuples.domain, self.randomness.stream("partition", partition)
        for batch in batches:
            view = frapp_view(domain, domain.encode(batch), self.gamma_f, stream)
            yield self.tuples.send(domain.pack(view), np.full(batch.num_rows, RECORD))

    def gather(self, group: int, rows: pa.Table) -> Piece:  # noqa: ARG002
        """The tuples in the domain's order."""
        words, _ = self.tuples.receive(rows)
        ordered = words[np.lexsort(words.T[::-1])]
        view = self.tuples.domain.decode(self.tuples.domain.unpack(ordered))
        return Piece(rows=pa.Table.from_batches([view]), n_records=len(rows))
