"""Recoding: what each kind does to values, and what it refuses."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dalenius.errors import PolicyError
from dalenius.sql import connect
from dalenius.tables.recode import parse_recode


def recoded(values: pa.Array, spec: Any, folder: Path = Path()) -> list[Any]:
    recode = parse_recode("x", spec, folder)
    with connect() as connection:
        connection.register("t", pa.table({"x": values}))
        rows = connection.execute(f"SELECT {recode.expression('x')}, {recode.outside('x')} FROM t").fetchall()
    assert not any(outside for _, outside in rows)
    return [value for value, _ in rows]


@pytest.mark.parametrize(
    ("spec", "values", "expected"),
    [
        (
            {"bins": [0, 18, 65, 120]},
            [0, 17, 18, 64, 65, 120, None],
            ["0-17"] * 2 + ["18-64"] * 2 + ["65-120"] * 2 + [None],
        ),
        ({"bins": [0, 1, 2]}, [0, 1, 2], ["0", "1-2", "1-2"]),
        ({"bins": ["0", "0.5", "1"]}, [0.2, 0.5], ["[0, 0.5)", "[0.5, 1]"]),
        ({"top": 90}, [12, 90, 91, None], [12, 90, 90, None]),
        ({"round": 5}, [0, 2, 3, 7, 8, -2, None], [0, 0, 5, 5, 10, 0, None]),
        ({"round": 0.5}, [0.2, 0.3], [0.0, 0.5]),
        ({"prefix": 2}, [123, 4, None], ["12", "4", None]),
        ({"bottom": 18}, [12, 18, 91, None], [18, 18, 91, None]),
        ({"powers": 10}, [0, 1, 9, 10, 999, 1000, -25, None], [0, 1, 1, 10, 100, 1000, -10, None]),
        ({"powers": 2}, [2**62, 2**62 - 1, -(2**63)], [2**62, 2**61, -(2**62)]),
        ({"powers": 2}, [0.5, 1.5], [0, 1]),
        (
            [{"top": 90}, {"round": 10}, {"bins": [0, 50, 100]}],
            [12, 58, 200, None],
            ["0-49", "50-100", "50-100", None],
        ),
        ([{"prefix": 2}], [123], ["12"]),
    ],
)
def test_numbers_become_coarser(spec: Any, values: list[Any], expected: list[Any]) -> None:
    assert recoded(pa.array(values), spec) == expected


def test_a_mapping_file_replaces_texts(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("from,to\nFlu,Lung\n'q',\"a, b\"\n")
    assert recoded(pa.array(["Flu", "'q'", None]), {"map": "m.csv"}, tmp_path) == ["Lung", "a, b", None]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (5, "exactly one of bins, quantiles, top"),
        ({"bins": [1, 2], "top": 3}, "exactly one of"),
        ({"bins": [1]}, "at least two edges"),
        ({"bins": [1, 1]}, "must rise"),
        ({"top": "high"}, "'high' is not a number"),
        ({"top": True}, "True is not a number"),
        ({"round": 0}, "must be positive"),
        ({"rond": 5}, "did you mean 'round'"),
        ({"map": 3}, "name of a file"),
        ({"map": "absent.csv"}, "cannot be read"),
        ([], "0 steps"),
        ([{"round": 5}] * 5, "5 steps"),
        ({"hierarchy": "h.csv"}, "needs a level"),
        ({"round": 5, "level": 1}, "exactly one of"),
        ({"age_at": "soon"}, "'soon' is not a day"),
        ({"powers": 1}, "powers"),
        ({"rare": 20}, "needs the table"),
    ],
)
def test_bad_recodings_are_explained(spec: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=message):
        parse_recode("x", spec, tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [("from,to\na\n", "line 2: expected 2 fields"), ("from,to\na,b\na,c\n", "mapped twice")],
)
def test_bad_mapping_files_are_explained(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(PolicyError, match=message):
        parse_recode("x", {"map": "m.csv"}, tmp_path)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("year", [2024, 1977, None]),
        ("quarter", ["2024-Q4", "1977-Q1", None]),
        ("month", ["2024-12", "1977-01", None]),
        ("week", ["2025-W01", "1976-W53", None]),
        ("weekday", [1, 6, None]),
    ],
)
def test_days_become_coarser(part: str, expected: list[Any]) -> None:
    days = [datetime.date(2024, 12, 30), datetime.date(1977, 1, 1), None]
    assert recoded(pa.array(days), {"date": part}) == expected
    assert recoded(pa.array(days).cast(pa.timestamp("us")), {"date": part}) == expected


def test_texts_become_prefixes() -> None:
    assert recoded(pa.array(["01234", "äöü", "x", "", None]), {"prefix": 2}) == ["01", "äö", "x", "", None]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"prefix": 0}, "at least 1"),
        ({"prefix": "2"}, "must be a whole number"),
        ({"date": "years"}, "did you mean 'year'"),
        ({"date": 3}, "date 3 is unknown"),
        ({"prefx": 3}, "did you mean 'prefix'"),
    ],
)
def test_wrong_prefixes_and_parts_are_explained(spec: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        parse_recode("x", spec, Path())


def test_age_is_counted_in_birthdays() -> None:
    born = [datetime.date(2000, 1, 1), datetime.date(2000, 1, 2), datetime.date(2026, 1, 1), None]
    assert recoded(pa.array(born), {"age_at": "2026-01-01"}) == [26, 25, 0, None]
    spec = [{"age_at": "2026-01-01"}, {"bins": [0, 18, 65, 120]}]
    assert recoded(pa.array(born), spec) == ["18-64", "18-64", "0-17", None]


def test_who_is_born_after_the_day_has_no_age() -> None:
    recode = parse_recode("x", {"age_at": "2026-01-01"}, Path())
    with connect() as connection:
        connection.register("t", pa.table({"x": [datetime.date(2026, 1, 2)]}))
        assert connection.execute(f"SELECT {recode.outside('x')} FROM t").fetchall() == [(True,)]


@pytest.mark.parametrize("delimiter", [";", ","])
def test_a_hierarchy_is_read_as_arx_writes_it(delimiter: str, tmp_path: Path) -> None:
    lines = [["61234", "612**", "6****", "*"], ["61434", "614**", "6****", "*"]]
    (tmp_path / "zip.csv").write_text("\n".join(delimiter.join(line) for line in lines))
    for level, expected in enumerate([["61234", "61434"], ["612**", "614**"], ["6****", "6****"]]):
        spec = {"hierarchy": "zip.csv", "level": level}
        assert recoded(pa.array(["61234", "61434"]), spec, tmp_path) == expected
    with pytest.raises(PolicyError, match="has levels 0 to 3, not 4"):
        parse_recode("x", {"hierarchy": "zip.csv", "level": 4}, tmp_path)


def chosen(values: pa.Array, spec: Any, column: str = "x", other: str = "y") -> list[Any]:
    with connect() as connection:
        connection.register("t", pa.table({column: values, other: np.arange(len(values))}))
        recode = parse_recode(column, spec, Path(), lambda: (connection, "t"))
        return [row[0] for row in connection.execute(f"SELECT {recode.expression(column)} FROM t").fetchall()]


def test_quantiles_have_about_equally_many_people_and_hide_the_ends() -> None:
    labels = chosen(pa.array([17, *range(20, 118), 119, None]), {"quantiles": 4})
    assert {label: labels.count(label) for label in labels} == {
        "below 43": 24,
        "43-67": 25,
        "68-92": 25,
        "93 or more": 26,
        None: 1,
    }
    assert set(chosen(pa.array([1] * 9 + [5]), {"quantiles": 3})) == {"any"}
    assert set(chosen(pa.array([0.25, 0.5, 0.75, 1.0]), {"quantiles": 2})) == {"below 0.5", "0.5 or more"}


def test_rare_values_become_other() -> None:
    towns = ["Ulm"] * 3 + ["Bonn"] * 2 + ["Rom", None]
    assert chosen(pa.array(towns), {"rare": 2}) == ["Ulm"] * 3 + ["Bonn"] * 2 + ["other", None]
    for names in (("x", "y"), ("x", "v"), ("v", "y"), ("t", "x")):  # whatever columns are called
        found = chosen(pa.array([*towns, "Unna"]), [{"prefix": 1}, {"rare": 4}], *names)
        assert found == ["U"] * 3 + ["other"] * 3 + [None, "U"]
