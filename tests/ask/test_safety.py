"""A question reaches nothing but the release: no file, no setting, no other table, no unlimited time."""

from __future__ import annotations

import threading
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from dalenius.ask import Limits, ask, ask_many
from dalenius.errors import InputError, QueryError
from dalenius.question.database import Database, Deadline
from dalenius.release.folder import StoredRelease

ROWS = pa.table({"__id": [0], "x": [1]})


@pytest.fixture
def database() -> Database:
    return Database({}, Limits())


@pytest.mark.parametrize(
    "expression",
    [
        "(SELECT count(*) FROM read_text('/etc/hostname'))",
        "(SELECT count(*) FROM read_csv('/etc/passwd'))",
        "(SELECT count(*) FROM '/etc/passwd')",
        "(SELECT count(*) FROM glob('/*'))",
        "(SELECT count(*) FROM ROWS)",
        "getenv('HOME')",
    ],
)
def test_the_database_itself_is_closed(database: Database, expression: str) -> None:
    """Behind the allow-list: what should never get here does not work here either."""
    with pytest.raises(QueryError):
        database.select([expression], ROWS, Deadline(Limits()))


@pytest.mark.parametrize(
    "statement",
    [
        "SET memory_limit = '9GB'",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "ATTACH '/tmp/dalenius-x.db'",
        "COPY (SELECT 1) TO '/tmp/dalenius-x.csv'",
        "LOAD httpfs",
        "INSTALL httpfs",
    ],
)
def test_settings_are_locked(database: Database, statement: str) -> None:
    with pytest.raises(Exception, match=r"(?i)disabled|locked|cannot|permission"):
        database._connection.execute(statement)
    assert not Path("/tmp/dalenius-x.csv").exists()  # noqa: S108  (the statement's own target)


@pytest.mark.parametrize(
    "attempt",
    [
        "SELECT COUNT(*) FROM t WHERE sex = 'F'); ATTACH 'x'; --",
        "SELECT COUNT(*) FROM t WHERE sex IN ('F'); DROP TABLE t; --')",
        "SELECT COUNT(*) FROM t WHERE sex IN ('\x010\x01') AND zip IN (SELECT a FROM b)",
        'SELECT COUNT(*) FROM t WHERE "sex" IN (\'F\') AND "__row"."age" = 1 AND __id = 3',
        "SELECT COUNT(*) FROM t GROUP BY __id",
        "SELECT COUNT(*) AS \"x FROM read_text('/etc/passwd')\" FROM t WHERE a0 > 1",
        "SELECT COUNT(*) FROM __result",
        "SELECT sex, COUNT(*) FROM t GROUP BY sex ORDER BY (SELECT 1)",
        "SELECT sex, COUNT(*) FROM t GROUP BY sex HAVING EXISTS (SELECT 1 FROM duckdb_settings())",
        "SELECT COUNT(*) FROM t WHERE sex = 'F' /* ; */ ; SELECT 1",
        "SELECT COUNT(*) FROM t WHERE (" * 600,
    ],
)
def test_escapes_are_refused(release: StoredRelease, attempt: str) -> None:
    if attempt.endswith("FROM __result"):
        assert ask(release, attempt).rows[0].status == "exact"  # any name is the release, also this one
        return
    with pytest.raises(QueryError):
        ask(release, attempt)


def test_strings_stay_strings(release: StoredRelease) -> None:
    """Quotes, markers and keywords inside a literal are data."""
    for text in ("it''s", "x'') OR TRUE --", "IN (1, 2)", "$$", "\\", ");"):
        question = f"SELECT COUNT(*) FROM t WHERE sex IN ('{text}') AND zip IN ('10115', '{text}')"
        assert ask(release, question).rows[0].estimate == 0.0


def test_what_would_take_hours_is_interrupted(database: Database) -> None:
    endless = "(SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = x)"
    with pytest.raises(QueryError, match=r"longer than 0\.5 seconds") as stopped:
        database.select([endless], ROWS, Deadline(Limits(seconds=0.5)))
    assert isinstance(stopped.value.__cause__, duckdb.InterruptException)


def test_time_is_limited(release: StoredRelease) -> None:
    tables = {"big": pa.table({"x": list(range(20_000))})}
    slow = "SELECT COUNT(*) FROM t WHERE age < (SELECT COUNT(*) FROM big WHERE sqrt(x * t.age) > t.severity)"
    with pytest.raises(QueryError, match=r"longer than 0\.001 seconds"):
        ask(release, slow, tables=tables, limits=Limits(seconds=0.001))
    with pytest.raises(QueryError, match="longer than"):
        ask_many(release, ["SELECT COUNT(*) FROM t WHERE age > 1"] * 500, limits=Limits(seconds=0.0001))


def test_a_running_evaluation_is_interrupted(database: Database) -> None:
    endless = "(SELECT sum(sqrt(a.i * b.i)) FROM range(1000000) AS a(i), range(1000000) AS b(i))"
    with pytest.raises(QueryError, match="longer than"):
        database.select([endless], ROWS, Deadline(Limits(seconds=0.3)))
    assert database.select(["x + 1"], ROWS, Deadline(Limits())).column(1).to_pylist() == [2]


def test_no_clock_runs_on_after_the_answer(database: Database) -> None:
    """DuckDB complains on standard error of threads that hold it when the process ends."""
    for _ in range(50):
        database.select(["x"], ROWS, Deadline(Limits()))
        assert not any(isinstance(thread, threading.Timer) for thread in threading.enumerate())


def test_memory_is_limited() -> None:
    small = Database({}, Limits(memory="30MB"))
    hungry = "(SELECT count(DISTINCT i || 'some longer text') FROM range(5000000) AS r(i))"
    with pytest.raises(QueryError, match="memory"):
        small.select([hungry], ROWS, Deadline(Limits()))


def test_bad_arguments(release: StoredRelease) -> None:
    with pytest.raises(InputError, match="confidence 95"):
        ask(release, "SELECT COUNT(*) FROM t", confidence=95)
    with pytest.raises(InputError, match="estimator 'anatomi' is unknown") as caught:
        ask(release, "SELECT COUNT(*) FROM t", estimator="anatomi")
    assert caught.value.hint == "did you mean 'anatomy'?"
    with pytest.raises(QueryError, match="auxiliary table cannot be called"):
        ask(release, "SELECT COUNT(*) FROM t", tables={"__row": ROWS})
    with pytest.raises(QueryError, match="is empty"):
        ask(release, "  ")


MANY = {
    "whole numbers": f"SELECT COUNT(*) FROM t WHERE age = {'9' * 5_000}",
    "listed numbers": f"SELECT COUNT(*) FROM t WHERE age IN (1, {'9' * 5_000})",
    "sums": f"SELECT {'-'.join(['COUNT(*)'] * 4_000)} FROM t",
    "conditions": f"SELECT age, COUNT(*) FROM t GROUP BY age HAVING {' AND '.join(['COUNT(*) > 1'] * 4_000)}",
    "brackets": f"SELECT COUNT(*) FROM t WHERE {'(' * 5_000}age = 1{')' * 5_000}",
}


@pytest.mark.parametrize("what", MANY)
def test_what_is_too_long_or_too_deep_is_refused(release: StoredRelease, what: str) -> None:
    with pytest.raises(QueryError, match="too large" if "numbers" in what else "nested too deeply"):
        ask(release, MANY[what])
