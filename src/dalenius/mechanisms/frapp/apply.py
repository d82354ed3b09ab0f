"""A FRAPP view: each record kept or replaced, on codes, and its rows in batches.

In partitions records are replaced where they are, and travel packed to the group of their tuple.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from dalenius.errors import InputError
from dalenius.mechanisms.base import Batches
from dalenius.mechanisms.sharding import Census, Piece, Scattered, Shards
from dalenius.mechanisms.tuples.apply import RECORD, TupleGroups, as_batch
from dalenius.mechanisms.tuples.domain import Domain, TupleCodes, uniform_words
from dalenius.randomness import Randomness, toss


def frapp_view(
    domain: Domain, table: TupleCodes, gamma_f: Fraction, stream: np.random.Generator
) -> TupleCodes:
    """Each row kept with probability γ_f, else replaced by a uniform other tuple of D; a multiset."""
    if domain.size < 2:
        raise InputError("the domain has a single tuple; there is nothing to replace it with")
    result = tuple(column.copy() for column in table)
    replaced = np.flatnonzero(~toss(gamma_f, len(table[0]), stream))
    while len(replaced):
        drawn = domain.unpack(uniform_words(domain, len(replaced), stream))
        for column, codes in zip(result, drawn, strict=True):
            column[replaced] = codes
        # A draw that gives the row's own tuple is drawn again: uniform over the other tuples.
        pairs = zip(result, table, strict=True)
        is_own = np.all([column[replaced] == original[replaced] for column, original in pairs], axis=0)
        replaced = replaced[is_own]
    words = domain.pack(result)
    return domain.unpack(words[np.lexsort(words.T[::-1])])


def frapp_rows(
    tables: Iterator[TupleCodes], domain: Domain, gamma_f: Fraction, randomness: Randomness
) -> Batches:
    """Every row, kept or replaced."""
    stream = randomness.stream("alphabeta", "frapp")
    for table in tables:
        yield as_batch(domain.pack(frapp_view(domain, table, gamma_f, stream)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrappGroups:
    """A FRAPP view: each partition replaces its own records, which then travel by what they have become."""

    gamma_f: Fraction
    tuples: TupleGroups
    census: Census
    randomness: Randomness

    def shards(self) -> Shards:
        """As an engine carries it out."""
        return self.tuples.shards(self.census, self.scatter, self.gather)

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
