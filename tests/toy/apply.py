"""Spin the wheel record by record, in one process or in partitions that send records to random groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dalenius.mechanisms.sharding import Census, Piece, Scattered, Shards
from dalenius.randomness import Randomness, random_keys
from dalenius.tables.codes import Encoder
from tests.toy.published import Wheel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spinner:
    """Replaces the sensitive cells of batches of records."""

    wheel: Wheel
    encoder: Encoder
    quasi: tuple[str, ...]
    schema: pa.Schema
    randomness: Randomness

    def rows(self, batches: Iterator[pa.RecordBatch], tag: str) -> Iterator[pa.RecordBatch]:
        """The published rows, and a random number to sort them by."""
        for number, batch in enumerate(batches):
            order = random_keys(self.randomness.stream("order", number), batch.num_rows)
            yield self._published(batch, "value", number).append_column(tag, pa.array(order))

    def shards(self, census: Census) -> Shards:
        """The same in partitions and groups."""
        n_groups = census.n_groups(census.n_rows)

        def scatter(partition: int, batches: Iterator[pa.RecordBatch]) -> Scattered:
            for number, batch in enumerate(batches):
                stream = self.randomness.stream("group", partition, number)
                groups = stream.integers(n_groups, size=batch.num_rows)
                yield groups, self._published(batch, "partition", partition, number)

        def gather(group: int, rows: pa.Table) -> Piece:
            order = self.randomness.stream("order of group", group).permutation(len(rows))
            return Piece(rows=rows.take(pa.array(order)), n_records=len(rows))

        return Shards(
            n_groups=n_groups, gather=gather, wire=self.wire, n_records=census.n_rows, scatter=scatter
        )

    @property
    def wire(self) -> pa.Schema:
        """The published columns."""
        return pa.schema([self.schema.field(name) for name in (*self.quasi, *self.encoder.cells)])

    def _published(self, batch: pa.RecordBatch, *name: str | int) -> pa.RecordBatch:
        stream = self.randomness.stream(*name)
        spin, codes = self.wheel.spin, self.encoder.encode(batch).copy()
        spun = np.flatnonzero(stream.integers(spin.denominator, size=len(codes)) < spin.numerator)
        codes[spun] = stream.integers(self.wheel.n_values, size=len(spun))
        cells = self.encoder.decode(codes)
        columns = [*(batch.column(name) for name in self.quasi), *cells.values()]
        arrays = [column.cast(field.type) for column, field in zip(columns, self.wire, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.wire)
