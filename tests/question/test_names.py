"""Every allowed function means what it means in DuckDB; questions of one shape are parsed alike."""

from __future__ import annotations

from itertools import permutations

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from dalenius.ask import ask
from dalenius.question import sql
from dalenius.question.names import FUNCTIONS, NAMED, OPERATORS
from dalenius.question.sql import parse, parse_shared
from dalenius.release.folder import StoredRelease
from tests.ask.test_files import questions, same

DAY = "CAST('2020-05-1' || severity AS DATE)"
MOMENT = "CAST('2020-05-1' || severity || ' 13:45:1' || severity AS TIMESTAMP)"
NUMBERS = [
    "abs(age - 45)", "ceil(weight)", "floor(weight)", "round(weight, 1)", "trunc(weight)", "sign(age - 45)",
    "sqrt(age)", "exp(age / 50)", "ln(age)", "log(age)", "pow(age, 2)", "age ** 2", "age ^ 2", "-age",
    "age % 7", "age // 7", "age / 7", "coalesce(weight, severity)", "greatest(age, weight)",
    "least(age, severity)", "nullif(age, 30)", "length(disease)", "len(disease)", "strlen(disease)",
    "strpos(disease, 'u')", f"day({DAY})", f"month({DAY})", f"year({DAY})", f"quarter({DAY})",
    f"week({DAY})", f"dayofweek({DAY})", f"dayofyear({DAY})", f"extract(day FROM {DAY})", f"hour({MOMENT})",
    f"minute({MOMENT})", f"second({MOMENT})", "CASE severity WHEN 1 THEN age WHEN 2 THEN 0 END",
    "if(sex = 'F', age, 1)", "TRY_CAST(disease AS INTEGER)", "CAST(weight AS DECIMAL(5, 1))",
    "weight::INTEGER", "age + severity - 2 * severity",
]  # fmt: skip
CONDITIONS = [
    "concat(sex, zip) = 'F10115'", "sex || disease = 'FFlu'", "contains(disease, 'l')",
    "lower(disease) = 'flu'", "upper(sex) = 'M'", "left(zip, 2) = '10'", "right(zip, 1) = '1'",
    "replace(zip, '1', '') = '05'", "regexp_replace(zip, '[01]', 'x') = 'x0115'",
    "starts_with(disease, 'G')", "ends_with(disease, 't')", "prefix(disease, 'Fl')", "suffix(disease, 'd')",
    "substring(zip, 2, 2) = '00'", "trim(disease) = 'Gout'",
    f"date_trunc('month', {DAY}) = DATE '2020-05-01'", f"date_trunc('hour', {MOMENT}) > {MOMENT}",
    "regexp_matches(disease, '^[CF]')", "disease ~ 'Flu'", "disease LIKE 'F%'", "disease ILIKE 'f%'",
    "disease LIKE 'F!%' ESCAPE '!'", "disease NOT LIKE '%o%'",
    "(sex, disease) IN (('F', 'Flu'), ('M', NULL))", "severity IS NOT DISTINCT FROM NULL",
    "severity IS DISTINCT FROM 2", "(age > 40) IS TRUE", "(severity > 1) IS NOT TRUE",
    "severity BETWEEN 2 AND 9", "age NOT BETWEEN 30 AND 60", "age IN (30, 31, 32)",
    "NOT disease IN ('Flu', 'Cold')", "age > 30 AND age >= 31 AND age < 60 AND age <= 59 AND age <> 45",
    "NULL", "sex = 'F' OR age = 31",
]  # fmt: skip


@pytest.fixture(scope="module")
def raw(table: pa.Table) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("t", table)
    return connection


@pytest.mark.parametrize("expression", NUMBERS)
def test_numbers(expression: str, clear_release: StoredRelease, raw: duckdb.DuckDBPyConnection) -> None:
    text = f"SELECT COUNT({expression}), SUM({expression}) FROM t"
    expected = raw.execute(text).fetchone()
    found = [row.estimate for row in ask(clear_release, text).rows]
    assert expected is not None
    assert same(found[0], float(expected[0]))
    assert same(found[1], None if expected[1] is None else float(expected[1]))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions(condition: str, clear_release: StoredRelease, raw: duckdb.DuckDBPyConnection) -> None:
    for text in (
        f"SELECT COUNT(*) FROM t WHERE {condition}",
        f"SELECT COUNT(*) FROM t WHERE NOT ({condition}) OR age < 25",
    ):
        expected = raw.execute(text).fetchone()
        assert expected is not None
        assert same(ask(clear_release, text).rows[0].estimate, float(expected[0])), text


def test_nothing_is_allowed_untested() -> None:
    seen: set[type] = set()
    names: set[str] = set()
    for expression in NUMBERS + CONDITIONS:
        tree = sqlglot.parse_one(expression, dialect="duckdb")
        seen |= {type(node) for node in tree.walk()}
        names |= {str(node.this).lower() for node in tree.find_all(sqlglot.exp.Anonymous)}
    assert not FUNCTIONS - seen
    assert not OPERATORS - seen
    assert not NAMED - names


@pytest.mark.parametrize(("meaning", "question"), questions("must_answer.sql"))
def test_shapes_are_parsed_like_the_text(meaning: str, question: str, table: pa.Table) -> None:
    if "regions" not in question:
        assert parse_shared(question, table.column_names) == parse(question, table.column_names), meaning


@pytest.mark.parametrize(
    "question",
    [
        """SELECT COUNT(*) FROM t WHERE sex in('F','M')AND zip NOT IN ( '1' , 'it''s' ) AND age IN (1,2,3)""",
        """SELECT sex IN ('F') AS f, COUNT(*) FROM t GROUP BY sex IN ('F') ORDER BY sex IN ('F')""",
        """SELECT SUM(CASE WHEN age IN (30, 31) THEN 1 END), COUNT(*) FILTER (WHERE age IN (7)) FROM t""",
        """SELECT COUNT(*) FROM t WHERE "sex" IN ('IN (1)') AND 'x IN (2)' = zip AND age IN (1.5, 2)""",
    ],
)
def test_lists_are_put_back(question: str, table: pa.Table) -> None:
    assert parse_shared(question, table.column_names) == parse(question, table.column_names)


@given(data=st.data())
def test_chains_of_lists_are_put_together_from_the_shape_of_each(data: st.DataObject) -> None:
    names = ["age", "sex", "Zip code", 'an "odd" one', "where"]
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    lists = ["('F')", "('F', 'it''s')", "(1)", "(1, 22,3)", "('IN (1)', 'WHERE')"]
    listed = st.sampled_from([*quoted, "age", "SEX"]), st.sampled_from([" IN ", " in", " NOT IN "])
    atom = st.tuples(*listed, st.sampled_from(lists)).map("".join)
    joined = data.draw(st.sampled_from([" AND ", "\nand ", " OR "]))
    chain = joined.join(data.draw(st.lists(atom, min_size=1, max_size=5)))
    head = data.draw(st.sampled_from(["COUNT(*) AS n", "AVG(age)", "COUNT(*) FILTER (WHERE age IN (1, 2))"]))
    tail = data.draw(st.sampled_from(["", " GROUP BY sex ORDER BY sex LIMIT 3", " AND age > 3", " ;"]))
    text = f"SELECT {head} FROM t WHERE {chain}{tail}"
    assert parse_shared(text, names) == parse(text, names)


def test_any_choice_of_columns_in_any_order_takes_a_shape_for_each() -> None:
    sql._parse_shape.cache_clear()
    for order in permutations("abcd"):
        for n in range(2, 5):
            listed = " AND ".join(f"{column} IN (1)" for column in order[:n])
            parse_shared(f"SELECT COUNT(*) FROM t WHERE {listed}", "abcd")
    assert sql._parse_shape.cache_info().misses == 4
