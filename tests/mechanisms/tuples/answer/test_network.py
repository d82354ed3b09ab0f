"""n_D by contraction equals n_D by writing the whole domain out, for any predicate."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.errors import QueryError
from dalenius.mechanisms.tuples.answer import network as domain_network
from dalenius.mechanisms.tuples.answer import selection as domain_formula
from dalenius.mechanisms.tuples.answer.network import integer_weights
from tests.mechanisms.tuples.answer.counting import domain_count, domain_counts_by

SMALL = {
    "a": pa.array([None, 0, 1, 2]),
    "b": pa.array([0, 1, 3, None]),
    "c": pa.array(["x", "xy", None]),
    "d": pa.array([True, False, None]),
    "e": pa.array([-1.5, 0.0, 2.0]),
}
TABLES = {"regions": pa.table({"id": [0, 1, 7], "b": [1, None, 3], "name": ["x", "q", None]})}


@cache
def written_out() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    for name, values in SMALL.items():
        connection.register(f"domain_{name}", pa.table({name: values}))
    source = " CROSS JOIN ".join(f"domain_{name}" for name in SMALL)
    connection.execute(f"CREATE TABLE t AS SELECT * FROM {source}")
    connection.register("regions", TABLES["regions"])
    return connection


def brute_force(predicate: str, weight: str = "1") -> Any:
    """The domain written out by DuckDB, and the predicate asked of every tuple."""
    row = written_out().execute(f"SELECT sum({weight}) FROM t WHERE {predicate}").fetchone()
    assert row is not None
    return row[0] or 0


ATOMS = st.sampled_from([
    "a < b", "a = 1", "b IS NULL", "a + b > 1", "c LIKE 'x%'", "d", "e * 2 < a", "TRUE", "NULL", "c > 'x'",
    "a IN (0, 2, NULL)", "b NOT IN (1, NULL)", "e BETWEEN a AND b", "length(c) = a", "coalesce(a, b) = 1",
    "a IS NOT DISTINCT FROM b", "CASE a WHEN 1 THEN d ELSE b > e END",
    "a IN (SELECT id FROM regions)", "c NOT IN (SELECT name FROM regions)",
    "EXISTS (SELECT 1 FROM regions AS r WHERE r.id = t.a)", "b IN (SELECT b FROM regions WHERE id < a)",
])  # fmt: skip


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds(lambda x: f"(NOT {x})", inner),
        st.builds(lambda xs: "(" + " AND ".join(xs) + ")", st.lists(inner, min_size=2, max_size=4)),
        st.builds(lambda xs: "(" + " OR ".join(xs) + ")", st.lists(inner, min_size=2, max_size=4)),
        st.builds(lambda x, y, z: f"(CASE WHEN {x} THEN {y} ELSE {z} END)", inner, inner, inner),
        st.builds(lambda x, y: f"(CASE WHEN {x} THEN {y} END)", inner, inner),
        st.builds(
            lambda x, y: f"({x} IS {y})", inner, st.sampled_from(["TRUE", "NOT TRUE", "FALSE", "NULL"])
        ),
    )


PREDICATES = st.recursive(ATOMS, compound, max_leaves=9)


@given(predicate=PREDICATES, merged=st.sampled_from([0, 12, 10_000]))
@settings(deadline=None, max_examples=80)
def test_the_contraction_equals_the_domain_written_out(predicate: str, merged: int) -> None:
    with pytest.MonkeyPatch.context() as patch:  # without merging, every gate of the network is used
        patch.setattr(domain_formula, "_MERGED_ENTRIES", merged)
        assert domain_count(SMALL, predicate, tables=TABLES) == brute_force(predicate)


@given(predicate=PREDICATES)
@settings(deadline=None, max_examples=15)
def test_weights_and_groups_equal_the_domain_written_out(predicate: str) -> None:
    weights: dict[str, list[Fraction | int]] = {
        "e": [-3, 0, 4],
        "c": [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)],
    }
    weight = "(e * 2)::INT * (CASE c WHEN 'x' THEN 3 WHEN 'xy' THEN 2 ELSE 1 END)"
    total = domain_count(SMALL, predicate, tables=TABLES, weights=weights)
    assert total * 6 == brute_force(predicate, weight)
    groups = domain_counts_by(SMALL, predicate, ["d", "a"], tables=TABLES)
    assert groups.shape == (3, 4)
    assert groups.sum() == brute_force(predicate)
    assert groups[0, 2] == brute_force(f"({predicate}) AND d AND a = 1")


def test_a_count_that_ignores_null_is_caught() -> None:
    """The control: NOT as two-valued negation counts NULL as selected, and differs."""
    wrong = math.prod(len(v) for v in SMALL.values()) - domain_count(SMALL, "a < b")
    assert wrong != brute_force("NOT a < b")
    assert domain_count(SMALL, "NOT a < b") == brute_force("NOT a < b")


def test_example_4_1_has_549_tuples_not_190() -> None:
    columns = {
        "age": pa.array(range(20, 40)),
        "nationality": pa.array(["American", "British", "Indian"]),
        "score": pa.array(range(81, 101)),
    }
    by_hand = 3 * sum(score < 3 * age for age in range(20, 40) for score in range(81, 101))
    assert domain_count(columns, "score < 3*age") == by_hand == 549


HUNDRED = {name: pa.array(range(100)) for name in "abcdefgh"}


@pytest.mark.parametrize(
    ("predicate", "count"),
    [
        ("a<b AND b<c AND c<d AND d<e AND e<f AND f<g AND g<h", math.comb(100, 8)),
        ("a<b OR b<c OR c<d OR d<e OR e<f OR f<g OR g<h", 100**8 - math.comb(107, 8)),
        ("NOT (a<=b AND b<=c AND c<=d AND d<=e AND e<=f AND f<=g AND g<=h)", 100**8 - math.comb(107, 8)),
        ("(a<b AND c<d) OR (e<f AND g<h)", 2 * (4950 * 10**2) ** 2 * 10**4 - 4950**4),
    ],
)
def test_ten_to_the_sixteen_tuples_are_counted_without_listing_them(predicate: str, count: int) -> None:
    assert domain_count(HUNDRED, predicate) == count


def test_a_long_disjunction_over_ten_to_the_twenty_is_not_exponential() -> None:
    columns = {f"c{i}": pa.array(range(10)) for i in range(20)}
    rising = " OR ".join(f"c{i} < c{i + 1}" for i in range(19))
    assert domain_count(columns, rising) == 10**20 - math.comb(29, 20)
    many = " OR ".join(f"(c{i % 20} = {i % 7} AND c{(i * 3 + 1) % 20} = {i % 5})" for i in range(40))
    assert 0 < domain_count(columns, many) < 10**20


def test_weights_of_many_digits_are_summed_exactly() -> None:
    columns = {f"c{i}": pa.array(range(5)) for i in range(9)}
    shares = [Fraction(123456789, 10**9), Fraction(1, 3), Fraction(1, 7), Fraction(1, 11)]
    shares.append(1 - sum(shares, Fraction(0)))
    total = domain_count(columns, "c0 < c1 AND c2 = c3", weights=dict.fromkeys(columns, shares))
    less = sum(shares[i] * shares[j] for j in range(5) for i in range(j))
    assert total == less * sum(share**2 for share in shares)


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        ("a + b + c + d > 30", "100,000,000 combinations"),
        ("NOT a + b + c + d > 30", r"^NOT .* compares columns"),
        ("a IN (SELECT 1 FROM __dalenius_domain_0)", "cannot read the table"),
        ("a = 'word'", "^__row.\"a\" = 'word': Conversion Error"),
        ("NOT a < 'word'", "^NOT __row.\"a\" < 'word': Conversion Error"),
    ],
)
def test_what_cannot_be_counted_is_refused_and_named(predicate: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        domain_count(HUNDRED, predicate)


def test_columns_tied_too_closely_are_refused_with_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain_network, "LARGEST_INTERMEDIATE", 1_000)
    with pytest.raises(QueryError, match="table of 1,000,000 entries"):
        domain_count(HUNDRED, "a<b AND b<c AND c<d AND a<d AND a<>c AND b<>d")


def test_python_variables_are_not_tables() -> None:
    frame = pa.table({"x": [1]})
    with pytest.raises(QueryError, match="cannot read the table"):
        domain_count(HUNDRED, "a IN (SELECT x FROM frame)")
    assert frame.num_rows == 1


def test_names_are_found_in_any_case_quoted_and_qualified() -> None:
    columns = {"Marital-Status": pa.array(["m", "s"]), "Age": pa.array([1, 2, 3])}
    assert domain_count(columns, """t."marital-status" = 'm' AND t.AGE > 1""") == 2
    assert domain_counts_by(columns, "age > 1", ["Age"]).tolist() == [0, 2, 2]
    assert domain_count(columns, "1 = 1") == 6
    assert domain_count(columns, "1 = 0") == 0


def test_wrong_weights_are_named() -> None:
    with pytest.raises(QueryError, match="100 values and 2 weights"):
        domain_count(HUNDRED, "a = 1", weights={"a": [1, 2]})
    with pytest.raises(QueryError, match="no column 'z'"):
        integer_weights({"z": [1]}, ["a"], [1])


def test_residues_are_exact_where_float64_is_not() -> None:
    ones = domain_network.Tensor(indices=(0, 1), entries=np.full((3, 3), 2**52 + 1, dtype=object))
    total = domain_network.contract([ones, ones], (), 9 * (2**53) ** 2)
    assert total.item() == 9 * (2**52 + 1) ** 2
