"""The set that a view is made from: a table's different tuples, or its rows with the numbers of their copies.

Records come as packed words in ascending order, all copies of one together. So a set is made of them in
passing, and each of its tuples has one coin, drawn from the stream like any other, however often the tuple is
in the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from dalenius.arrays import Bools, Ints
from dalenius.mechanisms.alphabeta.apply import number_copies, shaped_coins
from dalenius.mechanisms.alphabeta.law import ViewLaw
from dalenius.mechanisms.base import Coding
from dalenius.mechanisms.tuples.config import COPY
from dalenius.mechanisms.tuples.domain import Domain, are_new
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.mechanisms.tuples.sampling import toss

Reads = Literal["records", "distinct", "copies"]
"""What a view is made from: every record, every different one, or every one with the number of its copy."""


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

    def kept(self, members: Ints, law: ViewLaw, noise: NoiseLaw | None, stream: np.random.Generator) -> Ints:
        """The tuples that stay, each with probability α/(1−β(t))."""
        coins: Bools
        if noise is None:
            coins = toss(law.alpha / (1 - law.beta), len(members), stream)
        else:
            coins = shaped_coins(self.domain.unpack(members), law, noise, stream)
        return members[coins]


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
