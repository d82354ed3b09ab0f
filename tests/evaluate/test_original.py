"""The encoded original beside DuckDB and beside plain lists."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.evaluate.original import CountQuestion, Original, cell_literal
from tests.evaluate.tables import awkward_original

ORIGINAL = awkward_original(150)


@st.composite
def questions(draw: st.DrawFn) -> CountQuestion:
    """Some values, perhaps none, of some columns."""
    columns = draw(st.lists(st.sampled_from(list(ORIGINAL.cells)), unique=True))
    conditions = []
    for column in columns:
        codes = range(len(ORIGINAL.cells[column]))
        conditions.append((column, tuple(draw(st.lists(st.sampled_from(codes), unique=True, min_size=1)))))
    return CountQuestion(conditions=tuple(conditions))


@given(questions())
def test_a_question_counts_what_its_sql_counts(question: CountQuestion) -> None:
    with duckdb.connect() as connection:
        connection.register("t", ORIGINAL.table)
        (counted,) = connection.execute(ORIGINAL.sql(question)).fetchone() or (None,)
    records = ORIGINAL.table.to_pylist()
    slow = [
        number
        for number, record in enumerate(records)
        if all(
            record[column] in [ORIGINAL.cells[column][code] for code in codes]
            for column, codes in question.conditions
        )
    ]
    assert ORIGINAL.count(question) == counted == len(slow)
    assert ORIGINAL.rows(question).tolist() == slow


def test_records_that_are_taken_keep_their_codes() -> None:
    rows = np.array([5, 0, 5, 149])
    taken = ORIGINAL.take(rows)
    assert taken.n_rows == 4
    assert taken.table.to_pylist() == [ORIGINAL.table.to_pylist()[i] for i in rows]
    for column in ORIGINAL.cells:
        assert taken.codes(column).tolist() == ORIGINAL.codes(column)[rows].tolist()
        assert taken.cells[column] == ORIGINAL.cells[column]
    assert taken.sensitive == ("disease",)


def test_a_column_with_other_cells_has_codes_of_its_own() -> None:
    ages = pa.array([77] * 75 + [None] * 75, pa.int64())
    changed = ORIGINAL.with_column("age", ages)
    assert changed.cells["age"] == [77, None]
    assert changed.table["age"].to_pylist() == ages.to_pylist()
    assert changed.table.column_names == ORIGINAL.table.column_names
    assert changed.codes("zip").tolist() == ORIGINAL.codes("zip").tolist()
    old = CountQuestion(conditions=(("age", (1,)),))
    assert (changed.count(old), changed.sql(old)) == (75, 'SELECT COUNT(*) AS n FROM t WHERE "age" IS NULL')


def test_quasi_columns_are_those_that_are_not_sensitive() -> None:
    table = pa.table({"a": [1], "b": [2], "c": [3]})
    assert Original.of(table, ["b"]).quasi == ("a", "c")
    assert Original.of(table, []).quasi == ("a", "b", "c")


@pytest.mark.parametrize("cell", [3, -2, 0.25, True, "O'Hara", "", "NULL", "a\nb"])
def test_a_cell_means_itself_in_sql(cell: Any) -> None:
    (found,) = duckdb.execute(f"SELECT {cell_literal(cell)}").fetchone() or (None,)
    assert found == cell
