"""Joins of a release with tables that the asker brings."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

import dalenius
from dalenius.ask import ask
from dalenius.cli.main import run
from dalenius.errors import QueryError
from dalenius.release.folder import StoredRelease


def test_people_with_several_rows_would_count_twice(release: StoredRelease) -> None:
    twice = pa.table({"zip": ["10115", "10115"], "region": ["east", "north"]})
    with pytest.raises(QueryError, match="people would count twice"):
        ask(release, "SELECT region, COUNT(*) FROM t JOIN w USING (zip) GROUP BY region", tables={"w": twice})


def test_rows_without_a_key_match_nobody(release: StoredRelease) -> None:
    nobody = pa.table({"zip": pa.array([None, None], pa.string()), "region": ["a", "b"]})
    answer = ask(release, "SELECT COUNT(*) FROM t JOIN w USING (zip)", tables={"w": nobody})
    assert answer.rows[0].estimate == 0


def test_names_that_both_tables_have_want_a_qualifier(release: StoredRelease) -> None:
    other = pa.table({"zip": ["10115"], "age": [1]})
    with pytest.raises(QueryError, match="several tables"):
        ask(release, "SELECT SUM(age) FROM t JOIN w USING (zip)", tables={"w": other})
    mine = ask(release, "SELECT SUM(t.age), SUM(w.age) FROM t JOIN w USING (zip)", tables={"w": other})
    alone = ask(release, "SELECT SUM(age), COUNT(*) FROM t WHERE zip = '10115'")
    assert [row.estimate for row in mine.rows] == pytest.approx([row.estimate for row in alone.rows])


def test_a_joined_condition_is_that_on_the_published_column(release: StoredRelease) -> None:
    """Estimates and intervals of the join are those of the condition that it stands for."""
    regions = pa.table({"code": ["10115", "20095"], "region": ["east", "north"]})
    asked = (
        "SELECT disease, COUNT(*) FROM t JOIN r ON r.code = t.zip WHERE r.region = 'east' GROUP BY disease"
    )
    joined = ask(release, asked, tables={"r": regions})
    plain = ask(release, "SELECT disease, COUNT(*) FROM t WHERE zip = '10115' GROUP BY disease")
    assert [(row.group, row.estimate, row.low, row.high) for row in joined.rows] == [
        (row.group, row.estimate, row.low, row.high) for row in plain.rows
    ]


def test_the_command_takes_a_table_by_either_name(
    release: StoredRelease, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "regions.csv").write_text("zip,region\n10115,east\n20095,north\n", encoding="utf-8")
    asked = "SELECT region, COUNT(*) FROM t JOIN regions ON CAST(regions.zip AS INT) = t.zip GROUP BY region"
    assert run(["ask", str(release.path), asked, "--with", f"regions={tmp_path / 'regions.csv'}"]) == 2
    assert "a join is on equal columns" in capsys.readouterr().err
    counted = "SELECT COUNT(*) FROM t LEFT JOIN regions ON regions.region = t.disease"
    for option in ("--with", "--table"):
        assert run(["ask", str(release.path), counted, option, f"regions={tmp_path / 'regions.csv'}"]) == 0


def test_a_table_that_is_not_there_is_named_with_what_would_do(
    release: StoredRelease, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = "SELECT COUNT(*) FROM t JOIN wards USING (zip)"
    assert run(["ask", str(release.path), asked]) == 2
    shown = capsys.readouterr().err
    assert "joined only with tables that you give" in shown
    assert "--table wards=FILE" in shown
    assert run(["ask", str(release.path), asked, "--table", "wards=nowhere.csv"]) == 2
    shown = capsys.readouterr().err
    assert "there is no file nowhere.csv" in shown
    assert "relative to the folder you are in" in shown
    assert "policy" not in shown


def test_a_text_in_double_quotes_and_a_day_beside_a_number_are_told_what_would_do(tmp_path: Path) -> None:
    born = pa.array([date(1950, 1, 1 + n % 28) for n in range(40)])
    records = pa.table({"born": born, "disease": ["Flu", "HIV", "Gout", "Cold"] * 10})
    columns = {"quasi": ["born"], "sensitive": ["disease"]}
    promise = {"kind": "l-diversity", "l": 2}
    described = {"source": records, "release": str(tmp_path / "r"), "columns": columns, "promise": promise}
    release = dalenius.publish(dalenius.Policy.from_dict(described), seed=1)
    with pytest.raises(QueryError) as caught:
        release.ask('SELECT COUNT(*) FROM t WHERE disease = "HIV"')
    assert "in single quotes: 'HIV'" in str(caught.value.hint)
    with pytest.raises(QueryError) as caught:
        release.ask("SELECT COUNT(*) FROM t WHERE born < 1950")
    assert "year(born) < 1950" in str(caught.value.hint)
