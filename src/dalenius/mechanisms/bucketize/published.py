"""The published sensitive table, read bucket by bucket in its own order, so that memory holds a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.sql import identifier
from dalenius.tables.columns import CodedTable
from dalenius.tables.histogram import write_cells
from dalenius.tables.reading import BATCH_ROWS, DictionaryColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """The rows of some whole buckets."""

    bucket: Ints
    count: Ints
    starts: Ints
    """Where each bucket's rows begin."""
    code: Ints
    """Which of `values` each row holds."""
    values: tuple[tuple[str | None, ...], ...]
    """The different values of these rows, as texts."""

    @property
    def places(self) -> Ints:
        """How many sensitive values the buckets hold, in the order of `starts`."""
        return np.add.reduceat(self.count, self.starts)

    def bucket_of_row(self) -> Ints:
        """Which bucket each row is of, from 0, in the order of `starts`."""
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.count)))


def read_entries(
    connection: duckdb.DuckDBPyConnection, sensitive: list[str], where: str
) -> Iterator[Entries]:
    """The rows of the table that a condition holds for; a bucket comes whole if its rows stand together."""
    cells = ", ".join(f"{identifier(name)} AS v{i}" for i, name in enumerate(sensitive))
    query = (
        f'SELECT coalesce(bucket::BIGINT, 0) AS bucket, coalesce("count"::BIGINT, 0) AS n, {cells} FROM st '
        f"WHERE {where}"
    )
    columns = DictionaryColumns.of(connection, query)
    held: list[pa.RecordBatch] = []
    for batch in connection.sql(columns.code(query)).to_arrow_reader(BATCH_ROWS):
        if not batch.num_rows:
            continue
        rows = pa.Table.from_batches([*held, columns.decode(batch)]).combine_chunks()
        bucket = rows.column("bucket").to_numpy()
        n_whole = int(np.flatnonzero(bucket != bucket[-1])[-1]) + 1 if (bucket != bucket[-1]).any() else 0
        if n_whole:
            yield _entries(rows.slice(0, n_whole))
        held = rows.slice(n_whole).to_batches()
    if held:
        yield _entries(pa.Table.from_batches(held))


def _entries(rows: pa.Table) -> Entries:
    bucket = rows.column("bucket").to_numpy()
    cells = CodedTable.of(rows.select(rows.column_names[2:]))
    values = cells.combined(list(cells.columns))
    # the manifest's thresholds name values by the same texts
    written = [write_cells(values.values[name].to_pylist()) for name in cells.columns]
    return Entries(
        bucket=bucket,
        count=rows.column("n").to_numpy(),
        starts=np.flatnonzero(np.diff(bucket, prepend=bucket[0] - 1)),
        code=values.codes.astype(np.int64),
        values=tuple(zip(*written, strict=True)),
    )
