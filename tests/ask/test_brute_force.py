"""The fast path equals the lossy join of both tables, each pair weighted count/|bucket|."""

from __future__ import annotations

import re

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.ask import ask, ask_many
from dalenius.release.folder import StoredRelease

JOINED = """
    SELECT qit.* EXCLUDE (bucket), st.* EXCLUDE (bucket, "count"), st."count" / size AS w
    FROM qit JOIN st USING (bucket)
    JOIN (SELECT bucket, sum("count") AS size FROM st GROUP BY bucket) USING (bucket)
"""

ATOMS = st.sampled_from(
    [
        "age > 40", "age BETWEEN 25 AND 35", "sex = 'F'", "zip IN ('10115', '80331')", "weight > 70",
        "weight IS NULL", "age % 3 = 0 AND sex = 'M'", "disease = 'Flu'", "disease IN ('Cold', 'Gout')",
        "disease IS NULL", "severity >= 2", "severity <> 1", "disease = 'Flu' OR severity = 1",
        "age / 25 > severity", "weight > 60 + 5 * severity", "concat(sex, disease) = 'FFlu'",
        "CASE WHEN sex = 'F' THEN disease ELSE 'Flu' END = 'Flu'", "disease NOT IN ('Flu', NULL)", "NULL",
        "TRUE", "age < 0", "severity = age - 30", "disease IN ('nobody has this')",
    ]
)  # fmt: skip
CONDITIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        inner.map(lambda condition: f"NOT ({condition})"),
    ),
    max_leaves=6,
)
SUMMANDS = ["1", "age", "weight", "severity", "age * severity", "CASE WHEN disease = 'Flu' THEN weight END"]


@pytest.fixture(scope="module")
def joined(release: StoredRelease) -> duckdb.DuckDBPyConnection:
    connection = release.connect()
    connection.execute(f"CREATE TEMP TABLE joined AS {JOINED}")
    return connection


@settings(max_examples=150)
@given(condition=CONDITIONS, summand=st.sampled_from(SUMMANDS), filtered=CONDITIONS)
def test_any_condition_and_summand(
    release: StoredRelease, joined: duckdb.DuckDBPyConnection, condition: str, summand: str, filtered: str
) -> None:
    expected = joined.execute(
        f"""SELECT sum(w * ({summand})),
                   coalesce(sum(w) FILTER (WHERE ({summand}) IS NOT NULL), 0),
                   coalesce(sum(w) FILTER (WHERE {filtered}), 0) FROM joined WHERE {condition}"""
    ).fetchone()
    answer = ask(
        release,
        f"SELECT SUM({summand}), COUNT({summand}), COUNT(*) FILTER (WHERE {filtered}) "
        f"FROM t WHERE {condition}",
        estimator="anatomy",
    )
    assert expected is not None
    found = [row.estimate for row in answer.rows]
    assert found == pytest.approx(
        [None if number is None else float(number) for number in expected], abs=1e-6
    )


KEYS = ["sex", "disease", "age > 45", "zip", "severity", "age / 25 > severity", "coalesce(disease, sex)"]


@settings(max_examples=60)
@given(condition=CONDITIONS, keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True))
def test_any_grouping(
    release: StoredRelease, joined: duckdb.DuckDBPyConnection, condition: str, keys: list[str]
) -> None:
    listed = ", ".join(keys)
    expected = {
        row[:-2]: (float(row[-2]), float(row[-1]))
        for row in joined.execute(
            f"SELECT {listed}, sum(w), sum(w * age) FROM joined WHERE {condition} GROUP BY ALL"
        ).fetchall()
    }
    answer = ask(
        release,
        f"SELECT {listed}, COUNT(*), SUM(age) FROM t WHERE {condition} GROUP BY {listed}",
        estimator="anatomy",
    )
    found: dict[tuple[object, ...], list[float]] = {}
    for row in answer.rows:
        numbers = found.setdefault(tuple(value for _, value in row.group), [])
        assert row.estimate is not None or numbers == [0.0]  # a sum over nobody is NULL
        numbers.append(row.estimate or 0.0)
    assert set(expected) <= set(found)
    for key, (count, total) in found.items():
        assert (count, total) == pytest.approx(expected.get(key, (0.0, 0.0)), abs=1e-6)


def test_many_at_once_equal_one_by_one(release: StoredRelease) -> None:
    texts = [
        "SELECT COUNT(*), AVG(age) FROM t "
        f"WHERE age IN ({a}, {a + 1}, {a + 2}) AND disease IN ('{d}', 'it''s')"
        for a in range(30, 50)
        for d in ("Flu", "Cold")
    ]
    for together, text in zip(ask_many(release, texts), texts, strict=True):
        alone = ask(release, text)
        assert together.explain == alone.explain
        for one, two in zip(together.rows, alone.rows, strict=True):
            assert one.group == two.group
            assert [one.estimate, one.std_error, one.low, one.high] == pytest.approx(
                [two.estimate, two.std_error, two.low, two.high], rel=1e-9, abs=1e-9
            )


def test_a_wrong_weight_would_be_noticed(release: StoredRelease, joined: duckdb.DuckDBPyConnection) -> None:
    """The control: weights without 1/|bucket| give another number."""
    wrong = JOINED.replace('st."count" / size', 'st."count" / 5.0')
    assert re.search("/ 5.0", wrong)
    row = joined.execute(f"SELECT sum(w) FROM ({wrong}) WHERE age > 40 AND disease = 'Flu'").fetchone()
    answer = ask(release, "SELECT COUNT(*) FROM t WHERE age > 40 AND disease = 'Flu'", estimator="anatomy")
    assert row is not None
    assert answer.rows[0].estimate != pytest.approx(row[0], abs=1e-3)
