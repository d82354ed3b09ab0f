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
from dalenius.errors import PolicyError
from dalenius.mechanisms.tuples.config import COPY
from dalenius.mechanisms.tuples.plan import (
    TupleSource,
    describe_source,
    disclose_domains,
    news_of_domains,
    warn_of_impossibility,
)

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
