"""must_answer.sql is answered as DuckDB answers it, must_refuse.sql is refused as it says."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from dalenius.ask import AnswerRow, ask
from dalenius.errors import QueryError
from dalenius.question.sql import parse
from dalenius.release.folder import StoredRelease

HERE = Path(__file__).parent


def questions(name: str) -> list[tuple[str, str]]:
    """(comment, question): a question ends with the file's next comment or its end."""
    text = (HERE / name).read_text(encoding="utf-8").split("\n\n", 1)[1]
    found = re.findall(r"^-- (.*)\n((?:(?!-- ).+\n?)+)", text, re.MULTILINE)
    return [(meaning, question.strip()) for meaning, question in found]


def pivot(answer_rows: tuple[AnswerRow, ...]) -> list[tuple[Any, ...]]:
    """One tuple per group, like DuckDB's rows: group values, then estimates."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for row in answer_rows:
        groups.setdefault(tuple(value for _, value in row.group), []).append(row.estimate)
    return [(*key, *estimates) for key, estimates in groups.items()]


def same(one: Any, two: Any) -> bool:
    if isinstance(one, float) or isinstance(two, float):
        return one is not None and two is not None and math.isclose(one, two, rel_tol=1e-6, abs_tol=1e-6)
    return bool(one == two)


@pytest.fixture(scope="module")
def raw(table: pa.Table, regions: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    """The table itself, as DuckDB sees it."""
    with duckdb.connect() as connection:
        connection.register("t", table)
        connection.register("my patients", table)
        connection.register("regions", regions)
        yield connection


@pytest.mark.parametrize(("meaning", "question"), questions("must_answer.sql"))
def test_equals_duckdb_where_nothing_is_hidden(
    meaning: str,
    question: str,
    clear_release: StoredRelease,
    raw: duckdb.DuckDBPyConnection,
    regions: pa.Table,
) -> None:
    truth = raw.execute(question).fetchall()
    for estimator in ("shrinkage", "anatomy", "regression"):
        answer = ask(clear_release, question, tables={"regions": regions}, estimator=estimator)
        expected, found = truth, pivot(answer.rows)
        # groups that the release's values make possible are shown even where nobody is in them
        known = {row[: len(answer.rows[0].group)] for row in expected}
        found = [row for row in found if row[: len(answer.rows[0].group)] in known or row[-1] != 0]
        if "ORDER BY" not in question:
            key = repr
            expected, found = sorted(expected, key=key), sorted(found, key=key)
        assert len(found) == len(expected), meaning
        for mine, theirs in zip(found, expected, strict=True):
            assert all(
                same(a, float(b) if isinstance(a, float) else b) for a, b in zip(mine, theirs, strict=True)
            )
        assert all(row.status == "exact" for row in answer.rows)
        assert answer.assumption is None


@pytest.mark.parametrize(("meaning", "question"), questions("must_answer.sql"))
def test_is_answered_where_much_is_hidden(
    meaning: str, question: str, release: StoredRelease, regions: pa.Table
) -> None:
    for estimator in ("shrinkage", "anatomy", "regression"):
        answer = ask(release, question, tables={"regions": regions}, estimator=estimator)
        for row in answer.rows:
            if row.estimate is not None and row.std_error is not None and row.status == "estimate":
                assert row.low is not None, meaning
                assert row.high is not None
                assert row.low <= row.high


@pytest.mark.parametrize(("reason", "question"), questions("must_refuse.sql"))
def test_is_refused(reason: str, question: str, clear_release: StoredRelease, regions: pa.Table) -> None:
    with pytest.raises(QueryError) as caught:
        ask(clear_release, question, tables={"regions": regions})
    assert reason.lower() in caught.value.message.lower()
    assert "\x01" not in caught.value.message
    if not reason.startswith(("DuckDB", "SUM and AVG", "MEDIAN")):
        assert re.match(r"line \d+, column \d+: ", caught.value.message)
        assert caught.value.hint


@pytest.mark.parametrize("rest", ["HAVING COUNT(*) > 100000", "ORDER BY n LIMIT 0"])
def test_nothing_may_be_left(rest: str, clear_release: StoredRelease) -> None:
    answer = ask(clear_release, f"SELECT sex, COUNT(*) AS n FROM t GROUP BY sex {rest}")
    assert answer.rows == ()


def test_a_sum_is_null_only_where_nobody_is_known_to_be(
    release: StoredRelease, clear_release: StoredRelease
) -> None:
    """Where the release cannot tell, a sum is estimated, with its interval."""
    text = "SELECT SUM(age) FROM t WHERE disease = 'Flu' AND age = 69 AND sex = 'M' AND zip = '10115'"
    (known,), (estimated,) = ask(clear_release, text).rows, ask(release, text).rows
    assert (known.estimate, known.low, known.status) == (None, None, "exact")
    assert estimated.status in {"estimate", "exact"}
    for one in (release, clear_release):
        (row,) = ask(one, "SELECT SUM(age) FROM t WHERE age > 500").rows
        assert (row.estimate, row.std_error, row.status) == (None, 0.0, "exact")


def test_the_place_is_that_of_the_text(clear_release: StoredRelease) -> None:
    with pytest.raises(QueryError, match=r"^line 2, column 26: column 'diseas' is not") as caught:
        ask(clear_release, "SELECT COUNT(*) FROM t\nWHERE age IN (1, 2) AND (diseas) = 'Flu'")
    assert caught.value.hint == "did you mean 'disease'?"


@pytest.mark.parametrize(
    ("question", "message", "hint"),
    [
        ("SELECT COUNT(*) FROM t WHERE alter > 60", "line 1, column 30: something is missing", '"Alter"'),
        ("SELECT AVG(Alter) FROM t", "line 1, column 12: something is missing", '"Alter"'),
        (
            "SELECT COUNT(*) FROM t WHERE Haupt Diagnose = 'HIV'",
            "column 36: .*'Diagnose'",
            '"Haupt Diagnose"',
        ),
        ("SELECT COUNT(*) FROM t WHERE age >", "column 34: something is missing", "possible: SELECT"),
    ],
)
def test_syntax_errors_are_in_plain_words(question: str, message: str, hint: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        parse(question, ["age", "Alter", "Haupt Diagnose"])
    assert "sqlglot" not in str(caught.value)
    assert hint in str(caught.value.hint)


def test_a_text_compared_with_a_number_gets_a_hint(clear_release: StoredRelease) -> None:
    with pytest.raises(QueryError, match="Conversion Error") as caught:
        ask(clear_release, "SELECT COUNT(*) FROM t WHERE sex = 1099")
    assert "single quotes" in str(caught.value.hint)
