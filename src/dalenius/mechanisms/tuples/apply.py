"""The set that a view is made from: a table's different tuples, or its rows with the numbers of their copies.

Records come as packed words in ascending order, all copies of one together. So a set is made of them in
passing, and each of its tuples has one coin, drawn from the stream like any other, however often the tuple is
in the table. What is published comes back as sorted words and is decoded last.

In partitions tuples travel packed to the group of their tuple. All copies of a tuple meet in one group, which
so can tell different ones apart. Which group that is follows from the tuple alone, so what is published in
which file says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
import pyarrow as pa

from dalenius.arrays import Ints, rank_within
from dalenius.mechanisms.base import Batches, Coding
from dalenius.mechanisms.sharding import Census, Gather, Scatter, Shards
from dalenius.mechanisms.tuples.config import COPY
from dalenius.mechanisms.tuples.domain import Domain, TupleCodes, are_new, group_of, word_ids
from dalenius.prefetch import map_parallel

Reads = Literal["records", "distinct", "copies"]
"""What a view is made from: every record, every different one, or every one with the number of its copy."""
RECORD = -1
"""The copy number of a record, which is not numbered yet; an inserted tuple has one from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TupleSet:
    """From packed records to packed tuples of the view's domain."""

    domain: Domain
    records: Domain
    """The same without the number of a copy."""

    @classmethod
    def of(cls, domain: Domain) -> TupleSet:
        """For views of that domain."""
        columns = tuple(column for column in domain.columns if column.name != COPY)
        return cls(domain=domain, records=Domain(columns=columns))

    @property
    def has_copies(self) -> bool:
        """Whether copies of a record are tuples of their own."""
        return len(self.domain.columns) > len(self.records.columns)

    def coding(self) -> Coding:
        """Records as packed words."""
        return Coding(
            encode=lambda batch: as_batch(self.records.pack(self.records.encode(batch))),
            names=word_names(self.records),
            bits=self.records.first_word_bits,
        )

    def members(self, ascending: Ints) -> Ints:
        """The tuples of some records, of which no other copies come."""
        if not self.has_copies:
            return ascending[are_new(ascending)]
        return self.with_copies(ascending, number_copies(ascending))

    def with_copies(self, words: Ints, copies: Ints) -> Ints:
        """The tuples of records with the numbers, from 0, of their copies."""
        if not self.has_copies:
            return words
        numbers = self.domain.columns[-1].encode(pa.array(copies + 1))
        return self.domain.pack((*self.records.unpack(words), numbers))


def word_names(domain: Domain) -> tuple[str, ...]:
    """What the packed words are called while the rows are sorted."""
    return tuple(f"word{index}" for index in range(domain.n_words))


def as_batch(words: Ints) -> pa.RecordBatch:
    """Packed words as an engine carries them."""
    columns = [pa.array(np.ascontiguousarray(column)) for column in words.T]
    return pa.RecordBatch.from_arrays(columns, names=[f"word{index}" for index in range(len(columns))])


def as_words(batch: pa.RecordBatch) -> Ints:
    """The packed words of a batch."""
    columns = [column.to_numpy() for column in batch.columns]
    return columns[0][:, None] if len(columns) == 1 else np.stack(columns, axis=1)


def number_copies(words: Ints) -> Ints:
    """0, 1, … for the copies of each packed tuple: one more column that makes the rows a set."""
    return rank_within(word_ids(words))


def distinct_tables(batches: Batches, domain: Domain) -> Iterator[TupleCodes]:
    """The different tuples of the records' codes."""
    return (domain.unpack(TupleSet.of(domain).members(as_words(batch))) for batch in batches)


def decode_rows(rows: Batches, domain: Domain) -> Batches:
    """The tuples of sorted words, copies and all."""
    # a view may be empty, and still has columns
    none = as_batch(np.zeros((0, domain.n_words), dtype=np.int64))
    yield from map_parallel(lambda batch: domain.decode(domain.unpack(as_words(batch))), chain([none], rows))


def decode_distinct(rows: Batches, domain: Domain) -> Batches:
    """The tuples of sorted words, each once."""
    return decode_rows(_drop_repeats(rows), domain)


def _drop_repeats(rows: Batches) -> Batches:
    last = None
    for batch in rows:
        words = as_words(batch)
        is_new = are_new(words)
        if last is not None and len(words):
            is_new[0] = (words[0] != last).any()
        last = words[-1] if len(words) else last
        yield batch.filter(pa.array(is_new))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TupleGroups:
    """Where tuples go, and how they travel: as packed codes, with the number of the copy."""

    domain: Domain
    """Without the number of a copy."""
    n_groups: int
    """Among which they are shared out."""

    @classmethod
    def of(cls, domain: Domain, n_groups: int) -> TupleGroups:
        """Where the tuples of a domain go, whatever the number of their copy."""
        return cls(domain=TupleSet.of(domain).records, n_groups=n_groups)

    def send(self, words: Ints, copies: Ints) -> tuple[Ints, pa.RecordBatch]:
        """The group of each packed tuple, and the tuples as they travel."""
        arrays = [pa.array(words[:, i]) for i in range(words.shape[1])]
        return group_of(words, self.n_groups), pa.RecordBatch.from_arrays(
            [*arrays, pa.array(copies)], schema=self.wire
        )

    def receive(self, rows: pa.Table) -> tuple[Ints, Ints]:
        """The words and the copy numbers of what has travelled."""
        *words, copies = (column.to_numpy() for column in rows.columns)
        return np.stack(words, axis=1), copies

    def shards(self, census: Census, scatter: Scatter, gather: Gather) -> Shards:
        """As an engine carries it out: every record travels, and each group makes its piece."""
        n_records = census.n_rows
        return Shards(
            n_groups=self.n_groups, gather=gather, wire=self.wire, n_records=n_records, scatter=scatter
        )

    @property
    def wire(self) -> pa.Schema:
        """As many words as a tuple needs, and the copy."""
        words = [(f"w{i}", pa.int64()) for i in range(self.domain.n_words)]
        return pa.schema([*words, (COPY, pa.int64())])
