"""Columns that are read for fingerprint, sketch and release: cells of a row stay together."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dalenius.errors import InternalError
from dalenius.tables import reading
from dalenius.tables.sketching import held
from dalenius.tables.sketching.held import HeldRows

NAMES = ("few", "many", "number", "text")
SHUFFLED = "(SELECT * FROM t ORDER BY random())"
"""A view with a join has its rows in another order each time that it is read; this one surely has."""


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute(
        "CREATE TABLE t AS SELECT 'f' || i % 5 AS few, 'town ' || i AS many, i * 1000003 AS number, "
        "CASE WHEN i % 7 > 0 THEN repeat('x', i::INT % 3) || i END AS text FROM range(3000) AS r(i)"
    )
    return made


@pytest.mark.parametrize("piece", [2048, reading.BATCH_ROWS])
def test_cells_of_a_row_stay_together_where_rows_come_in_another_order_each_time(
    piece: int, connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BATCH_ROWS", piece)
    read = HeldRows.read(connection, SHUFFLED, NAMES)
    assert set(read.held) == set(NAMES)
    rows = read.take(NAMES, slice(0, 3000), coded=False)
    as_published = next(read.batches(NAMES, 3000))
    expected = set(connection.execute("SELECT * FROM t").fetchall())
    assert set(zip(*(column.to_pylist() for column in rows.columns), strict=True)) == expected
    assert set(zip(*(column.to_pylist() for column in as_published.columns), strict=True)) == expected


def test_cells_are_let_go_of_as_they_are_read_for_the_last_time(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    read = HeldRows.read(connection, "t", NAMES)
    once = [batch.to_pylist() for batch in read.batches(NAMES, 250)]
    before = pa.total_allocated_bytes()
    for name, cells in read.plain.items():  # in memory of Arrow's, which counts it, and in other pieces
        copied = [pc.take(cells, pa.array(range(start, start + 300))) for start in range(0, 3000, 300)]
        read.plain[name] = pa.chunked_array([part.combine_chunks() for part in copied])
    copied, cells, (n_bytes, left, again) = [], None, (pa.total_allocated_bytes() - before, [], [])
    for batch in read.batches(NAMES, 250, last=True):
        again.append(batch.to_pylist())
        del batch
        left.append(pa.total_allocated_bytes() - before)
    assert again == once
    assert len(again) == 12
    assert left[5] < 0.7 * n_bytes
    assert left[-1] < 0.2 * n_bytes
    assert read.plain == {}


@pytest.mark.parametrize(
    ("most", "kept"), [(0, set()), (3000, {"few"}), (60_000, {"few"}), (2**28, set(NAMES))]
)
def test_what_does_not_fit_is_not_held_and_counted_all_the_same(
    most: int, kept: set[str], connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "_MOST_HELD", most)
    read = HeldRows.read(connection, "t", NAMES)
    assert set(read.held) == kept
    cells, counts = read.counted["few"]
    assert cells.to_pylist() == ["f0", "f1", "f2", "f3", "f4", None]
    assert counts.tolist() == [600] * 5 + [0]


@pytest.mark.parametrize("n_rows", [2999, 3001])
def test_a_table_with_other_rows_than_were_counted_is_noticed(
    n_rows: int, connection: duckdb.DuckDBPyConnection
) -> None:
    with pytest.raises(InternalError, match="the table changed"):
        HeldRows.read(connection, "t", NAMES, n_rows=n_rows)


def test_a_sample_has_the_cells_of_its_rows_coded_where_they_are_few(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    read = HeldRows.read(connection, "t", NAMES)
    rows = np.array([5, 7, 2999])
    sample = read.sample(NAMES, rows)
    assert sample.to_pylist() == read.take(NAMES, rows, coded=False).to_pylist()
    assert {one.name for one in sample.schema if pa.types.is_dictionary(one.type)} == {"few"}
