"""A question is parsed once, whatever the release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot.dialects.dialect import Dialect

import dalenius
from dalenius.ask import ask
from dalenius.errors import QueryError
from dalenius.question import sql
from dalenius.release.folder import StoredRelease
from tests.mechanisms.alphabeta.releases import policy

QUESTION = """SELECT sex, COUNT(*) AS n, SUM(CASE WHEN {ill} = 'flu' THEN age END) AS years FROM t
WHERE (age > 30 OR NOT {ill} IN ('cold', 'flu'))
AND CASE WHEN sex = 'F' THEN age < 60 ELSE {ill} IS NOT NULL END
GROUP BY sex HAVING AVG(age) > 1 ORDER BY n"""


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were parsed."""
    texts: list[str] = []
    sql._parse_shape.cache_clear()  # a shape that was asked before would not be parsed at all
    sqlglot.parse_one("SELECT 1", dialect="duckdb").sql(
        "duckdb"
    )  # loading a dialect parses its own templates
    plain = Dialect.parse

    def counted(self: Dialect, text: str, **options: Any) -> Any:
        texts.append(text)
        return plain(self, text, **options)

    monkeypatch.setattr(Dialect, "parse", counted)
    return texts


def test_rows_are_asked_with_one_parse(release: StoredRelease, parsed: list[str]) -> None:
    ask(release, QUESTION.format(ill="disease"))
    assert len(parsed) == 1


@pytest.mark.parametrize("method", ["alpha-beta", "frapp"])
def test_views_are_asked_with_one_parse(tmp_path: Path, parsed: list[str], method: str) -> None:
    release = dalenius.publish(policy(tmp_path / "r", method=method), seed=1)
    parsed.clear()
    release.ask(QUESTION.format(ill="ill"))
    assert len(parsed) == 1


def test_a_parse_would_be_noticed(parsed: list[str]) -> None:
    """The control."""
    sqlglot.parse_one("SELECT 1", dialect="duckdb")
    sqlglot.parse("SELECT 2", dialect="duckdb")
    assert parsed == ["SELECT 1", "SELECT 2"]


@pytest.mark.parametrize(
    ("question", "hint"),
    [
        ("SELECT age, RANK() OVER (ORDER BY age) FROM t", "--differences"),
        (
            "SELECT sex, COUNT(*) FROM t GROUP BY sex QUALIFY RANK() OVER (ORDER BY COUNT(*)) = 1",
            "--differences",
        ),
        ("SELECT COUNT(*) FROM t WHERE RANK() OVER (ORDER BY age) < 4", "--differences"),
        ("SELECT MAX(age) - MIN(age) FROM t", "SELECT MAX(age), … FROM t"),
    ],
)
def test_a_refusal_says_what_would_do(release: StoredRelease, question: str, hint: str) -> None:
    with pytest.raises(QueryError) as refused:
        ask(release, question)
    assert hint in str(refused.value.hint)
