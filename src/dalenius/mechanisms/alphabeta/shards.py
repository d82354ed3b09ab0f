"""Views in partitions: tuples, real and inserted, travel packed to the group of their tuple.

All copies of a tuple meet in one group, which so can tell different ones apart, number them, toss their coins
and take the union with the insertions. Which group that is follows from the tuple alone, so what is published
in which file says nothing, and whoever reads the view sees that no tuple is in two files; nor does the number
of groups say anything, which the published noise decides and not the table's size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.mechanisms.alphabeta.apply import draw_insertions, keep_tuples
from dalenius.mechanisms.alphabeta.law import ViewLaw
from dalenius.mechanisms.sharding import Census, Piece, Scattered, Shards
from dalenius.mechanisms.tuples.apply import RECORD, TupleGroups, TupleSet
from dalenius.mechanisms.tuples.domain import Domain, distinct_words
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.randomness import Randomness


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ViewGroups:
    """The first view of a table: each group keeps its own tuples and adds the insertions that reach it."""

    domain: Domain
    law: ViewLaw
    noise: NoiseLaw | None
    tuples: TupleGroups
    n_inserters: int
    census: Census
    randomness: Randomness

    @classmethod
    def cut(
        cls,
        domain: Domain,
        law: ViewLaw,
        noise: NoiseLaw | None,
        noise_rows: float,
        census: Census,
        randomness: Randomness,
    ) -> ViewGroups:
        """In as many groups as the noise, which is public, needs."""
        n_groups = census.n_groups(int(noise_rows))
        return cls(
            domain=domain,
            law=law,
            noise=noise,
            tuples=TupleGroups.of(domain, n_groups),
            n_inserters=n_groups,
            census=census,
            randomness=randomness,
        )

    def shards(self) -> Shards:
        """As an engine carries it out."""
        return Shards(
            n_groups=self.tuples.n_groups,
            gather=self.gather,
            wire=self.tuples.wire,
            n_records=self.census.n_rows,
            scatter=self.scatter,
            n_inserters=self.n_inserters,
            insert=self.insert,
        )

    def scatter(self, partition: int, batches: Iterator[pa.RecordBatch]) -> Scattered:  # noqa: ARG002
        """Every record goes to its tuple's group."""
        for batch in batches:
            words = self.tuples.domain.pack(self.tuples.domain.encode(batch))
            yield self.tuples.send(words, np.full(batch.num_rows, RECORD))

    def insert(self, source: int) -> Scattered:
        """A piece of the insertions."""
        stream, pieces = self.randomness.stream("insert", source), self.n_inserters
        hits = draw_insertions(self.domain, self.noise, self.law.beta, stream, pieces)
        yield from map(self._send_inserted, hits)

    def _send_inserted(self, words: Ints) -> tuple[Ints, pa.RecordBatch]:
        if not self.members.has_copies:
            return self.tuples.send(words, np.zeros(len(words), dtype=np.int64))
        *codes, copies = self.domain.unpack(words)
        return self.tuples.send(self.tuples.domain.pack(tuple(codes)), copies.astype(np.int64))

    def gather(self, group: int, rows: pa.Table) -> Piece:
        """The group's different tuples, each kept or not, and the insertions, in the domain's order."""
        words, copies = self.tuples.receive(rows)
        is_record = copies == RECORD
        records = words[is_record]
        table = self.members.members(records[np.lexsort(records.T[::-1])])
        stream = self.randomness.stream("keep", group)
        kept = keep_tuples(self.domain, table, self.law, self.noise, stream)
        inserted = self.members.with_copies(words[~is_record], copies[~is_record])
        view = self.domain.unpack(distinct_words(np.concatenate([kept, inserted])))
        return Piece(
            rows=pa.Table.from_batches([self.domain.decode(view)]),
            n_records=int(np.count_nonzero(is_record)),
        )

    @property
    def members(self) -> TupleSet:
        """What the view is made from."""
        return TupleSet.of(self.domain)
