"""The source of a view: its domain, what was read off the data, and what counts, on six rows."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from dalenius import Policy
from dalenius.engines.base import silent
from dalenius.engines.local.engine import LocalEngine
from dalenius.errors import PolicyError, ReleaseCorrupt
from dalenius.mechanisms.tuples.config import COPY
from dalenius.mechanisms.tuples.plan import (
    TupleSource,
    ViewPlan,
    _read,
    _type_of,
    describe_source,
    disclose_domains,
    news_of_domains,
    show_error,
    warn_of_impossibility,
)
from dalenius.plain import Stated

ROWS = pa.table({"age": [3, 1, 1, 1, 2, 3], "ill": ["flu", "flu", "flu", "flu", "cold", "cold"]})
DECLARED: dict[str, Any] = {"age": "1..4", "ill": ["cold", "flu", "hiv"]}


def source(
    domains: dict[str, Any], read_off: Sequence[str] = (), duplicates: str = "distinct"
) -> TupleSource:
    given = Policy.from_dict(
        {
            "source": ROWS,
            "release": "r",
            "columns": {"quasi": ["age"], "sensitive": ["ill"]},
            "domains": domains,
            "promise": {"kind": "d-gamma-privacy", "d": 0.02, "gamma": 0.3},
            "mechanism": {"kind": "alpha-beta", "duplicates": duplicates, "domains": read_off},
        }
    )
    with LocalEngine().open(given, None, silent) as scan:
        return TupleSource.of(given, scan, "rows")  # type: ignore[arg-type]


def values(found: TupleSource) -> dict[str, list[Any]]:
    return {column.name: column.values.to_pylist() for column in found.domain.columns}


def test_different_records_count_or_all_of_them() -> None:
    distinct = source(DECLARED)
    copies = source({**DECLARED, COPY: "1..5"}, duplicates="copies")
    assert (distinct.n_rows, distinct.n_tuples) == (6, 4)
    assert (copies.n_rows, copies.n_tuples) == (6, 6)
    assert values(copies)[COPY] == [1, 2, 3, 4, 5]


def test_declared_domains_tell_nothing_and_active_ones_what_occurs() -> None:
    declared = source(DECLARED)
    assert values(declared) == {"age": [1, 2, 3, 4], "ill": ["cold", "flu", "hiv"]}
    assert describe_source(declared)["active_domains"] == []
    assert news_of_domains(declared) == ()
    assert disclose_domains(declared) == ("the domain of every column",)
    active = source({"ill": DECLARED["ill"]}, read_off="active")
    assert values(active) == {"age": [1, 2, 3], "ill": ["cold", "flu", "hiv"]}
    assert describe_source(active)["active_domains"] == ["age"]
    assert len(news_of_domains(active)) == 1
    assert disclose_domains(active)[1].endswith("for age")


def test_copies_are_numbered_up_to_the_most_that_there_are() -> None:
    found = source(DECLARED, duplicates="copies", read_off="active")
    assert values(found)[COPY] == [1, 2, 3]
    assert found.active == (COPY,)


@pytest.mark.parametrize(("read_off", "missing"), [("ill", "age"), ("age", "ill")])
def test_only_the_columns_that_are_named_are_read_off_the_data(read_off: str, missing: str) -> None:
    with pytest.raises(PolicyError, match=missing):
        source({}, read_off=[read_off])
    found = source({missing: DECLARED[missing]}, read_off=[read_off])
    assert found.active == (read_off,)


@pytest.mark.parametrize(("k", "is_near"), [(99, False), (100, True)])
def test_a_tenth_of_the_root_of_the_domain_is_near_it(k: int, is_near: bool) -> None:
    """√m is 1,000, and a k of 100 the first that is warned of; counts are good enough in both."""
    d = Fraction(k * 50, 10**6)
    warnings = warn_of_impossibility(d, 10**6, 50, rho=0.1, miss=0.05)
    assert any("is near √m = 1e+03" in text for text in warnings) == is_near


@pytest.mark.parametrize(("rho", "is_useless"), [(4.99, False), (5.0, True)])
def test_half_the_table_is_too_much_to_be_off_by(rho: float, is_useless: bool) -> None:
    """±50 of 100 rows; k is far from √m."""
    warnings = warn_of_impossibility(Fraction(1, 10**6), 10**6, 100, rho=rho, miss=0.05)
    told = "a count is only known to ±50, 50% of the table's 100 rows, with probability 0.95; "
    assert warnings == ((told + "a lower k or larger domains would help",) if is_useless else ())
    assert show_error(rho, 100, 0.05).startswith("error           one count is within ±50 with probability")


@pytest.mark.parametrize("text", ["decimal128(7, 2)", "decimal128(38, -3)", "int16", "date32[day]"])
def test_a_type_is_read_as_it_is_written(text: str) -> None:
    assert str(_type_of(text)) == text


def described(kind: str, **given: Any) -> Stated:
    return Stated.of({"name": "age", "type": kind, **given}, "domains[0]")


def test_a_range_of_a_manifest_is_read_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are held in memory, so that a range of all numbers is none; both ends belong to it."""
    monkeypatch.setattr("dalenius.mechanisms.tuples.plan._MOST_VALUES", 3)
    assert _read(described("int64", first=-2, last=1)).values.to_pylist() == [-2, -1, 0, 1]
    assert _read(described("int64", first=5, last=5)).values.to_pylist() == [5]
    assert _read(described("uint64", first=2**64 - 2, last=2**64 - 1)).values.to_pylist()[-1] == 2**64 - 1
    for first, last in ((-2, 2), (5, 4)):
        with pytest.raises(ReleaseCorrupt):
            _read(described("int64", first=first, last=last))


def test_what_a_recoding_can_give_is_a_domain() -> None:
    """Bins tell their values; what is rounded does not, and must be declared."""
    base = {
        "source": ROWS,
        "release": "r",
        "columns": {"quasi": ["age"], "sensitive": ["ill"]},
        "domains": {"ill": DECLARED["ill"]},
        "promise": {"kind": "d-gamma-privacy", "d": 0.02, "gamma": 0.3},
        "mechanism": {"kind": "alpha-beta", "duplicates": "distinct"},
    }
    bins = Policy.from_dict({**base, "recode": {"age": {"bins": [0, 2, 9]}}})
    with LocalEngine().open(bins, None, silent) as scan:
        found = TupleSource.of(bins, scan, "rows")  # type: ignore[arg-type]
    assert len(values(found)["age"]) >= 2
    assert found.active == ()


def test_a_plan_as_json_is_of_the_source_and_the_law() -> None:
    class Law:
        method, n_rows = "some", 4

        def warnings(self) -> tuple[str, ...]:
            return ("too many",)

        def to_dict(self) -> dict[str, object]:
            return {"beta": 0.5}

        def __str__(self) -> str:
            return "the law"

    merged = "2 of 6 rows repeat another; answers will count different rows"
    plan = ViewPlan(law=Law(), source=source(DECLARED))
    assert plan.outright == 0
    assert plan.to_dict() == {
        "mechanism": "alpha-beta",
        "method": "some",
        "feasible": True,
        "rows": 6,
        "beta": 0.5,
        "warnings": [merged, "too many"],
        "private": True,
        "tuples": 4,
        "active_domains": [],
    }
    assert str(plan) == f"the law\nwarning         too many\nwarning         {merged}"
