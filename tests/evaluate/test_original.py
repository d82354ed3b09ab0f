"""The encoded original beside DuckDB and plain lists; what policies share, and the words of `compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.engines.base import silent
from dalenius.errors import InputError, PolicyError
from dalenius.evaluate.compare import WORKLOADS, find_workload, read_policies
from dalenius.evaluate.original import (
    CountQuestion,
    Original,
    cell_literal,
    in_memory,
    read_shared,
    same_source,
)
from dalenius.evaluate.sql_workload import SqlWorkload
from dalenius.evaluate.workload import AnatomyWorkload, EqualityPool, Marginals
from dalenius.policy import Policy
from dalenius.tables.source import open_source
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


TABLE = pa.table(
    {
        "age": [30, 31, 30, 44, 45, 44],
        "sex": ["F", "M", "F", "M", "F", "M"],
        "ward": ["A", "A", "B", "B", "A", "B"],
        "disease": ["Flu", "Cold", "HIV", "Flu", "Cold", "Flu"],
    }
)
WHOLE_ROWS = {"kind": "d-gamma-privacy", "d": "1/10", "gamma": "1/2"}


def policy(quasi: list[str], sensitive: list[str], table: Any = TABLE, **sections: Any) -> Policy:
    named = {*quasi, *sensitive}
    columns = {
        "quasi": quasi,
        "sensitive": sensitive,
        "dropped": [name for name in TABLE.column_names if name not in named],
    }
    given = {"source": table, "columns": columns, "promise": {"kind": "l-diversity", "l": 2}, **sections}
    return Policy.from_dict(given)


def test_the_columns_that_all_policies_publish_are_compared() -> None:
    first = policy(["age", "sex"], ["disease"])
    second = policy(["ward", "sex"], ["disease"])
    shared = read_shared({"a": first, "b": second}, silent)
    assert shared.original.table.column_names == ["sex", "disease"]
    assert shared.original.sensitive == ("disease",)
    assert shared.histogram is not None
    assert dict(zip(shared.histogram.values, shared.histogram.counts, strict=True)) == {
        ("Cold",): 2,
        ("Flu",): 3,
        ("HIV",): 1,
    }
    assert {name: one.columns.quasi for name, one in shared.policies.items()} == {
        "a": ("age", "sex"),
        "b": ("ward", "sex"),
    }


def test_a_recoding_that_both_have_is_applied_first() -> None:
    recode = {"age": {"bins": [0, 40, 120]}}
    shared = read_shared({"a": policy(["age"], ["disease"], recode=recode)}, silent)
    assert len(shared.original.cells["age"]) == 2


def test_whole_rows_have_no_sensitive_column_to_share() -> None:
    whole = policy(["age", "disease"], [], promise=WHOLE_ROWS, mechanism={"domains": "active"})
    shared = read_shared({"whole": whole}, silent)
    assert (shared.original.sensitive, shared.histogram) == ((), None)
    both = read_shared({"whole": whole, "own": policy(["age"], ["disease"])}, silent)
    assert both.original.sensitive == ("disease",)
    assert both.histogram is not None


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (policy(["age"], ["disease"], recode={"age": {"top": 40}}), "recode 'age' differently"),
        (policy(["age", "disease"], ["ward"]), "about different columns"),
        (policy(["age"], ["disease"], table=TABLE.slice(1)), "only policies for one table"),
        (policy(["sex"], ["ward"]), "there is nothing to compare them by"),
        (
            policy(["age", "ward"], [], promise=WHOLE_ROWS, mechanism={"domains": "active"}),
            "not every policy publishes the sensitive column 'disease'",
        ),
    ],
    ids=["recoding", "secret", "table", "columns", "secret column"],
)
def test_what_has_too_little_in_common_is_refused(other: Policy, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_shared({"a": policy(["age"], ["disease"]), "b": other}, silent)


def test_sources_are_the_same_if_they_hold_the_same(tmp_path: Path) -> None:
    file, copy = tmp_path / "t.csv", tmp_path / "copy.csv"
    pyarrow.csv.write_csv(TABLE, file)
    pyarrow.csv.write_csv(TABLE, copy)
    by_path, again = open_source(file), open_source(tmp_path / "." / "t.csv")
    assert same_source(by_path, again)
    assert not same_source(by_path, open_source(copy))  # another file may be another table tomorrow
    assert same_source(open_source(TABLE), open_source(pa.concat_tables([TABLE.slice(0, 2), TABLE.slice(2)])))
    assert not same_source(open_source(TABLE), open_source(TABLE.slice(1)))
    assert not same_source(open_source(TABLE), by_path)


def test_a_source_is_read_once(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    pyarrow.csv.write_csv(TABLE, file)
    held = in_memory(open_source(file))
    file.unlink()
    assert held.table.to_pylist() == TABLE.to_pylist()
    assert held.name == str(file)
    assert in_memory(held) is held


def test_workloads_by_name_and_by_file(tmp_path: Path) -> None:
    assert find_workload("anatomy", 7) == AnatomyWorkload(n_questions=7)
    assert find_workload("equality", 7) == EqualityPool(n_conditions=7)
    assert find_workload("marginals", 7) == Marginals()
    assert find_workload("marginals:1") == Marginals(most_columns=1)
    assert set(WORKLOADS) == {"anatomy", "equality", "marginals"}
    own = tmp_path / "own.sql"
    own.write_text("SELECT COUNT(*) FROM t")
    assert find_workload(own) == SqlWorkload(name="own.sql", text="SELECT COUNT(*) FROM t")
    for wrong, words in (("anatomie", "did you mean 'anatomy'"), ("marginals:x", "did you mean 'marginals'")):
        with pytest.raises(InputError, match=words):
            find_workload(wrong)


def test_policies_are_called_what_their_files_are_called(tmp_path: Path) -> None:
    pyarrow.csv.write_csv(TABLE, tmp_path / "t.csv")
    text = (
        'source = "{up}t.csv"\n[columns]\nquasi = ["age"]\nsensitive = ["disease"]\n'
        'dropped = ["sex", "ward"]\n[promise]\nkind = "l-diversity"\nl = 2\n'
    )
    (tmp_path / "sub").mkdir()
    files = [tmp_path / "a.toml", tmp_path / "b.toml", tmp_path / "sub" / "a.toml"]
    for file in files:
        file.write_text(text.format(up="../" if file.parent.name == "sub" else ""))
    assert list(read_policies(files[:2])) == ["a", "b"]
    assert list(read_policies(files)) == [str(files[0]), "b", str(files[2])]
    with pytest.raises(InputError, match="given twice"):
        read_policies([files[0], files[0]])
    with pytest.raises(PolicyError, match="does not exist"):
        read_policies([tmp_path / "missing.toml"])
