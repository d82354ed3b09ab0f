"""A file of questions: true answers beside DuckDB's, and refusals with their place in the file."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from dalenius.errors import DaleniusError
from dalenius.evaluate.sql_workload import SqlWorkload
from dalenius.evaluate.workload import Questions
from dalenius.randomness import Randomness
from tests.evaluate.tables import awkward_original

FILE = """\
-- how many; of whom
SELECT COUNT(*) AS people, AVG(age) AS mean FROM people WHERE zip = 'O''Hara' OR zip IS NULL;
SELECT disease, zip, COUNT(*) FROM t GROUP BY ALL ORDER BY 3 DESC;

SELECT "w""t" AS w, SUM(age) AS years, SUM(age) / COUNT(*) AS ratio, COUNT(zip) FILTER (WHERE NOT smokes) AS k
FROM t WHERE born >= '1990-01-02' AND age IN (-1, 2, 3) GROUP BY w;
"""


def asked_of(text: str) -> Questions:
    workload = SqlWorkload(name="own.sql", text=text)
    return workload.questions(awkward_original(), Randomness.seeded(1).stream("q"))


def test_true_answers_are_those_of_a_database() -> None:
    asked = asked_of(FILE)
    connection = duckdb.connect()
    table = awkward_original().table
    n_keys = (0, 2, 1)
    for sql, answer, k in zip(asked.sqls, asked.answers, n_keys, strict=True):
        for name in ("people", "t"):
            connection.register(name, table)
        names = [column[0] for column in connection.execute(sql).description]
        slow = {
            (row[:k], name): float(cell)
            for row in connection.execute(sql).fetchall()
            for name, cell in zip(names[k:], row[k:], strict=True)
            if cell is not None
        }
        assert {(key, name.lower().replace("_star", "")): n for (key, name), n in answer.cells.items()} == {
            (key, name.replace("count_star()", "count(*)")): n for (key, name), n in slow.items()
        }
    assert asked.most_changed is None
    scales = asked.answers[2].scale
    assert scales["years"] == sum(abs(age) for age in table["age"].to_pylist())
    assert (scales["k"], scales["ratio"]) == (400, 0)


def test_counts_change_by_one_or_by_two_where_they_are_grouped() -> None:
    assert (
        asked_of("SELECT COUNT(*) FROM t; SELECT zip, COUNT(*), COUNT(age) FROM t GROUP BY 1").most_changed
        == 5
    )


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("SELECT COUNT(*) FROM t;\n  SELECT MODE(age) FROM t", "own.sql, line 2, column 10", "mode()"),
        ("SELECT COUNT(*) FROM t;\nSELECT COUNT(*) FROM t JOIN u", "own.sql, line 2", "join"),
        ("SELECT COUNT(*) FROM t WHERE agee = 3", "line 1, column 30", "age"),
        ("\nSELECT zip, COUNT(*) FROM t GROUP BY zip\nLIMIT 3", "own.sql, line 3, column 1", "LIMIT"),
        ("SELECT COUNT(* FROM t", "own.sql, line 1", ""),
        ("DROP TABLE t", "own.sql", "DROP"),
        ("SELECT 'a", "own.sql", "not SQL"),
        ("SELECT COUNT(*) AS n, COUNT(age) AS n FROM t", "line 1, column 1", "same name"),
        (";SELECT COUNT(*) FROM t WHERE CAST(disease AS INT) = 1", "own.sql, line 1, column 2", "(Conv"),
        ("SELECT SUM(zip) FROM t", "own.sql, line 1, column 1", "cannot answer"),
        (" ; -- nothing", "own.sql", "no question"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_its_place(text: str, place: str, reason: str) -> None:
    with pytest.raises(DaleniusError) as refused:
        asked_of(text)
    assert refused.value.exit_code == 2
    assert place in refused.value.message
    assert reason in refused.value.message
    assert "d1" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DaleniusError, match=r"missing\.sql cannot be read"):
        SqlWorkload.from_file(tmp_path / "missing.sql")
    (tmp_path / "own.sql").write_text("SELECT COUNT(*) FROM t", encoding="utf-8")
    assert len(SqlWorkload.from_file(tmp_path / "own.sql").statements()) == 1
