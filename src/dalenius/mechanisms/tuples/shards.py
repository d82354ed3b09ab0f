"""Tuples in partitions: they travel packed to the group of their tuple.

All copies of a tuple meet in one group, which so can tell different ones apart. Which group that is follows
from the tuple alone, so what is published in which file says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.mechanisms.tuples.apply import TupleSet
from dalenius.mechanisms.tuples.config import COPY
from dalenius.mechanisms.tuples.domain import Domain, group_of

RECORD = -1
"""The copy number of a record, which is not numbered yet; an inserted tuple has one from 0."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TupleGroups:
    """Where tuples go, and how they travel: as packed codes, with the number of the copy."""

    domain: Domain
    """Without the number of a copy."""
    n_groups: int

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

    @property
    def wire(self) -> pa.Schema:
        """As many words as a tuple needs, and the copy."""
        words = [(f"w{i}", pa.int64()) for i in range(self.domain.n_words)]
        return pa.schema([*words, (COPY, pa.int64())])
