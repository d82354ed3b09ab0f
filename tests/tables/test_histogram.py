"""Histograms, and the codes of sensitive values."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from fractions import Fraction
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InternalError
from dalenius.sql import connect
from dalenius.tables.histogram import Histogram, count_values, label

cells = st.one_of(st.none(), st.integers(-3, 3))


@given(rows=st.lists(st.tuples(cells, cells), min_size=1), seed=st.integers(0, 100))
def test_encoding_then_decoding_gives_the_cells_back(
    rows: list[tuple[int | None, int | None]], seed: int
) -> None:
    histogram = Histogram.of(("a", "b"), {row: rows.count(row) for row in rows})
    batch = pa.RecordBatch.from_pydict(
        {
            "b": pa.array([row[1] for row in rows], pa.int64()),
            "a": pa.array([row[0] for row in rows], pa.int64()),
        }
    )
    encoder = histogram.encoder(batch.schema)
    codes = encoder.encode(batch)
    assert [histogram.values[code] for code in codes] == rows
    assert np.bincount(codes, minlength=len(histogram)).tolist() == list(histogram.counts)
    decoded = encoder.decode(codes)
    assert list(zip(decoded["a"].to_pylist(), decoded["b"].to_pylist(), strict=True)) == rows


def test_the_order_of_the_values_does_not_depend_on_the_order_of_counting_nan_included() -> None:
    """Codes are published in this order: that in which a table has its values would tell of its records."""
    values = [(1.0,), (math.nan,), (0.5,), (None,), (2.5,)]
    found = {str(Histogram.of(("a",), dict.fromkeys(order, 1)).values) for order in permutations(values)}
    assert found == {"((None,), (0.5,), (1.0,), (2.5,), (nan,))"}


def test_an_unknown_value_is_an_internal_error() -> None:
    histogram = Histogram.of(("a",), {("x",): 1})
    batch = pa.RecordBatch.from_pydict({"a": ["y"]})
    with pytest.raises(InternalError, match="changed between two passes"):
        histogram.encoder(batch.schema).encode(batch)


def test_labels_and_frequencies() -> None:
    assert label((None, True, datetime.date(2026, 1, 2))) == "NULL / true / 2026-01-02"
    assert Histogram.of(("a",), {("x",): 1, ("y",): 2}).frequency(0) == Fraction(1, 3)


@given(rows=st.lists(st.tuples(cells, cells), min_size=1))
def test_values_are_counted_in_a_table(rows: list[tuple[int | None, int | None]]) -> None:
    columns = {name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate(("a", "b"))}
    with connect() as connection:
        connection.register("t", pa.table({**columns, "n": range(len(rows))}))
        counted = count_values(connection, "t", ("a", "b"))
        largest = count_values(connection, "t", ("a", "b"), "max(n) + 1")
    assert counted == Histogram.of(("a", "b"), Counter(rows))
    assert dict(zip(largest.values, largest.counts, strict=True)) == {
        row: i + 1 for i, row in enumerate(rows)
    }
