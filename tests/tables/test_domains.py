"""Declared domains: what is read, and how what is wrong is explained."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dalenius.errors import PolicyError
from dalenius.tables.domains import MOST_VALUES, parse_domain, parse_domains, whole_range


@pytest.mark.parametrize(
    ("spec", "kind", "expected"),
    [
        ("17..19", pa.int64(), [17, 18, 19]),
        ("-1 .. 1", pa.int32(), [-1, 0, 1]),
        (["0..1", 5, "NULL"], pa.int64(), [0, 1, 5, None]),
        (["61234", "61434"], pa.int64(), [61234, 61434]),
        (["61234", "NULL"], pa.string(), ["61234", None]),
        (["1..3"], pa.float64(), [1.0, 2.0, 3.0]),
        ([0.5, 1], pa.float64(), [0.5, 1.0]),
        ([True, False], pa.bool_(), [True, False]),
        ([datetime.date(2020, 1, 2)], pa.date32(), [datetime.date(2020, 1, 2)]),
        (["a..b"], pa.string(), ["a..b"]),
    ],
)
def test_ranges_and_lists(spec: Any, kind: pa.DataType, expected: list[object]) -> None:
    values = parse_domain("x", spec, Path()).to_arrow(kind)
    assert values.type == kind
    assert sorted(values.to_pylist(), key=repr) == sorted(expected, key=repr)


def test_a_file_has_one_value_a_line_and_an_empty_one_is_null(tmp_path: Path) -> None:
    (tmp_path / "zips.csv").write_text('zip\n01234\n"a, b"\n""\n', encoding="utf-8")
    values = parse_domain("zip", "zips.csv", tmp_path).to_arrow(pa.string())
    assert values.to_pylist() == ["01234", "a, b", None]
    (tmp_path / "two.csv").write_text("zip,x\n1,2\n")
    with pytest.raises(PolicyError, match="line 2: expected 1 field, found 2"):
        parse_domain("zip", "two.csv", tmp_path)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("9..3", "range '9..3' is empty"),
        ([], "declares no value"),
        (5, "must be a range, a list or the name of a file"),
        ([["a"]], "is not a value"),
        ("absent.csv", "cannot be read"),
        (f"1..{MOST_VALUES + 1}", "at most"),
    ],
)
def test_what_is_wrong_is_explained(spec: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=message):
        parse_domain("x", spec, tmp_path)


def test_values_of_another_type_or_listed_twice() -> None:
    with pytest.raises(PolicyError, match="not every value is of the column's type"):
        parse_domain("x", ["a"], Path()).to_arrow(pa.int64())
    with pytest.raises(PolicyError, match="1 values are listed twice"):
        parse_domain("x", ["1..3", 2], Path()).to_arrow(pa.int64())


def test_only_published_columns_have_domains() -> None:
    with pytest.raises(PolicyError, match="'name' is not published"):
        parse_domains({"name": "1..2"}, ("age",), Path())
    with pytest.raises(PolicyError, match="must be a section"):
        parse_domains("active", ("age",), Path())


def test_whole_ranges_are_recognised() -> None:
    assert whole_range(pa.array([1, 2, 3])) == (1, 3)
    for other in ([3, 2, 1], [1, 3], [1, None], ["1", "2"], [1.0, 2.0], [1, 1, 3]):
        assert whole_range(pa.array(other)) is None
