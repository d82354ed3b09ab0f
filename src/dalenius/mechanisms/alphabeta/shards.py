"""Views in partitions: tuples, real and inserted, travel packed to the group of their tuple.

All copies of a tuple meet in one group, which so can tell different ones apart, number them, toss their coins
and take the union with the insertions. Which group that is follows from the tuple and a random key, so what
is published in which file says nothing; nor does the number of groups, which the published noise decides and
not the table's size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dalenius.mechanism_configs import COPY
from dalenius.mechanisms.alphabeta.apply import (
    frapp_view,
    kept_rows,
    kept_shaped,
    number_copies,
    union,
)
from dalenius.mechanisms.alphabeta.domain import Codes, Domain, IntArray
from dalenius.mechanisms.alphabeta.law import ViewLaw
from dalenius.mechanisms.alphabeta.noise import NoiseLaw
from dalenius.mechanisms.alphabeta.sampling import shaped_hits, uniform_hits
from dalenius.mechanisms.sharding import Census, Piece, Scattered, Shards
from dalenius.randomness import Randomness

_RECORD = -1
"""The copy number of a record, which is not numbered yet; an inserted tuple has one from 0."""
_ODD = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TupleGroups:
    """Where tuples go, and how they travel: as packed codes, with the number of the copy."""

    domain: Domain
    """Without the number of a copy."""
    n_groups: int
    key: int

    def send(self, codes: Codes, copies: IntArray) -> tuple[IntArray, pa.RecordBatch]:
        """The group of each tuple, and the tuples as they travel."""
        words = self.domain.pack(codes)
        arrays = [pa.array(words[:, i]) for i in range(words.shape[1])]
        return self._group_of(words), pa.RecordBatch.from_arrays(
            [*arrays, pa.array(copies)], schema=self.wire
        )

    def receive(self, rows: pa.Table) -> tuple[Codes, IntArray]:
        """The codes and the copy numbers of what has travelled."""
        *words, copies = (column.to_numpy() for column in rows.columns)
        return self.domain.unpack(np.stack(words, axis=1)), copies

    @property
    def wire(self) -> pa.Schema:
        """As many words as a tuple needs, and the copy."""
        words = [(f"w{i}", pa.int64()) for i in range(self.domain.n_words)]
        return pa.schema([*words, (COPY, pa.int64())])

    def _group_of(self, words: IntArray) -> IntArray:
        """A keyed multiplicative hash: it need not be secret, only spread tuples evenly."""
        mixed = np.full(len(words), self.key, dtype=np.uint64)
        for i in range(words.shape[1]):
            mixed = (mixed ^ words[:, i].astype(np.uint64)) * np.uint64(_ODD)
            mixed ^= mixed >> np.uint64(29)
        return (mixed % np.uint64(self.n_groups)).astype(np.int64)


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
            tuples=tuple_groups(domain, n_groups, randomness),
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
            yield self.tuples.send(self.tuples.domain.encode(batch), np.full(batch.num_rows, _RECORD))

    def insert(self, source: int) -> Scattered:
        """A piece of the insertions."""
        stream, pieces = self.randomness.stream("insert", source), self.n_inserters
        hits = (
            uniform_hits(self.domain, self.law.beta, stream, pieces)
            if self.noise is None
            else shaped_hits(self.noise, self.law.beta, stream, pieces)
        )
        for codes in hits:
            yield self._send_inserted(codes)

    def _send_inserted(self, codes: Codes) -> tuple[IntArray, pa.RecordBatch]:
        if len(self.domain.columns) == len(self.tuples.domain.columns):
            return self.tuples.send(codes, np.zeros_like(codes[0]))
        return self.tuples.send(codes[:-1], codes[-1])

    def gather(self, group: int, rows: pa.Table) -> Piece:
        """The group's different tuples, each kept or not, and the insertions, in the domain's order."""
        codes, copies = self.tuples.receive(rows)
        is_record = copies == _RECORD
        table = self._numbered(_select(codes, is_record))
        stream = self.randomness.stream("keep", group)
        kept = (
            kept_rows(table, self.law, stream)
            if self.noise is None
            else kept_shaped(table, self.law, self.noise, stream)
        )
        inserted = _select((*codes, copies), ~is_record)[: len(self.domain.columns)]
        view = self.domain.decode(union(self.domain, [kept, inserted]))
        return Piece(rows=pa.Table.from_batches([view]), n_records=int(is_record.sum()))

    def _numbered(self, records: Codes) -> Codes:
        """The records as a set: different ones, or numbered copies."""
        base = self.tuples.domain
        if len(self.domain.columns) == len(base.columns):
            return union(base, [records])
        ordered = _ordered(base, records)
        numbers = pa.array(number_copies(base, ordered) + 1)
        return (*ordered, self.domain.columns[-1].encode(numbers))


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
            yield self.tuples.send(view, np.full(batch.num_rows, _RECORD))

    def gather(self, group: int, rows: pa.Table) -> Piece:  # noqa: ARG002
        """The tuples in the domain's order."""
        codes, _ = self.tuples.receive(rows)
        view = self.tuples.domain.decode(_ordered(self.tuples.domain, codes))
        return Piece(rows=pa.Table.from_batches([view]), n_records=len(rows))


def tuple_groups(domain: Domain, n_groups: int, randomness: Randomness) -> TupleGroups:
    """Where the tuples of a domain go, whatever the number of their copy."""
    base = Domain(columns=tuple(column for column in domain.columns if column.name != COPY))
    return TupleGroups(domain=base, n_groups=n_groups, key=int(randomness.stream("groups").integers(2**63)))


def _ordered(domain: Domain, codes: Codes) -> Codes:
    words = domain.pack(codes)
    return domain.unpack(words[np.lexsort(words.T[::-1])])


def _select(codes: Codes, chosen: NDArray[np.bool_]) -> Codes:
    return tuple(column[chosen] for column in codes)
