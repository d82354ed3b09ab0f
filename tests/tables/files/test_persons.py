"""Several rows per person become one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest

from dalenius.errors import DaleniusError, PolicyError
from dalenius.policy import Policy
from dalenius.tables.source import gather_persons, open_source

ROWS = {
    "who": [2, 1, 1, 2, 3],
    "sex": ["M", "F", "F", "M", None],
    "ill": ["Flu", "HIV", "Flu", "Flu", None],
    "day": [1, 2, 3, 4, 5],
}


DROP = {"unit": "who", "values": "ill", "drop": ["day"]}


def test_every_value_is_a_column_and_every_person_a_row() -> None:
    table = gather_persons(pa.table(ROWS), unit="who", values="ill", drop=["day"], count="visits")
    assert table.to_pylist() == [
        {"who": 1, "sex": "F", "visits": 2, "Flu": True, "HIV": True},
        {"who": 2, "sex": "M", "visits": 2, "Flu": True, "HIV": False},
        {"who": 3, "sex": None, "visits": 1, "Flu": False, "HIV": False},
    ]
    assert "visits" not in gather_persons(pa.table(ROWS), unit="who", values="ill", drop=["day"]).column_names


def test_a_file_is_gathered_too(tmp_path: Any) -> None:
    file = tmp_path / "t.csv"
    file.write_text("who,ill\n1,Flu\n1,HIV\n2,Flu\n", encoding="utf-8")
    source = open_source({"path": str(file), "persons": {"unit": "who", "values": "ill"}})
    assert source.column_names == ("who", "Flu", "HIV")


@pytest.mark.parametrize(
    ("changed", "asked", "message"),
    [
        ({}, {"unit": "who", "values": "ill"}, "'day' differs between the rows of 2 people"),
        ({"who": [1, None, 1, 2, 3]}, {"unit": "who", "values": "ill", "drop": ["day"]}, "1 row has no"),
        ({}, {"unit": "who", "values": "nothing"}, "no column 'nothing'"),
        ({}, {"unit": "who"}, "needs values"),
        ({}, {"unit": "who", "values": "ill", "max": 3}, "max"),
        ({}, {"unit": "who", "values": "ill", "drop": "day"}, "list of columns"),
        ({"ill": ["sex"] * 5}, {"unit": "who", "values": "ill", "drop": ["day"]}, "one name"),
        ({"ill": [None] * 5}, {"unit": "who", "values": "ill", "drop": ["day"]}, "0 different values"),
        (
            {"sex": ["M", "F", None, "M", "F"]},
            {"unit": "who", "values": "ill", "drop": ["day"]},
            "'sex' differs",
        ),
    ],
)
def test_what_cannot_be_gathered_is_refused(
    changed: dict[str, Any], asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(DaleniusError, match=message) as refused:
        gather_persons(pa.table({**ROWS, **changed}), **asked)
    assert "HIV" not in str(refused.value)


@pytest.mark.parametrize("way", ["file", "frame"])
@pytest.mark.parametrize(
    ("quasi", "sensitive", "message"),
    [
        (["sex"], ["Flu"], "1 of the 2 values that `persons` has made columns of"),
        ([], ["Flu"], "columns of .* are: 'sex', 1 of the 2 values"),
        (["sex"], ["HVI", "Flu"], "has no column 'HVI'; known: 'who', 'sex'"),
        (["sex"], ["ill"], "has no column 'ill'; known: 'who', 'sex'"),
    ],
)
def test_no_message_lists_the_values_that_became_columns(
    tmp_path: Any, way: str, quasi: list[str], sensitive: list[str], message: str
) -> None:
    """They are cells of the sensitive column, and perhaps of one person."""
    source: Any = gather_persons(pa.table(ROWS), unit="who", values="ill", drop=["day"])
    if way == "file":
        arrow_csv.write_csv(pa.table(ROWS), tmp_path / "t.csv")
        source = {"path": str(tmp_path / "t.csv"), "persons": DROP}
    policy = {
        "source": source,
        "columns": {"unit": "who", "quasi": quasi, "sensitive": sensitive},
        "promise": {"kind": "sets", "default": "0.5"},
        "mechanism": {"kind": "bucketize"},
    }
    with pytest.raises(PolicyError, match=message) as error:
        Policy.from_dict(policy)
    assert "'HIV'" not in str(error.value.to_dict())
    assert "dalenius inspect" in str(error.value.hint)
