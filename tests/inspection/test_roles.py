"""What `init` and `inspect` take a column for: what points at a person is never proposed as quasi."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.inspection.first_policy import FirstPolicy
from dalenius.inspection.looking import guess_roles, inspect_source, look_at
from dalenius.inspection.reading import look_closer
from dalenius.inspection.roles import Guess
from dalenius.tables.source import open_source
from tests.inspection.messy import Messy, tables

MESSY = tables()
NAMES = ("Ann", "Bo", "Cem", "Dan", "Eva", "Fay", "Gus", "Hal", "Ina")


def guesses(table: pa.Table) -> dict[str, Guess]:
    source = open_source(table)
    return {guess.column: guess for guess in guess_roles(source, look_at(source))}


@pytest.mark.parametrize("name", MESSY)
def test_what_points_at_a_person_is_never_proposed_as_quasi(name: str) -> None:
    messy = MESSY[name]
    found = guesses(messy.table)
    assert {column for column in messy.personal if found[column].role in ("quasi", "sensitive")} == set()
    others = set(messy.table.column_names) - messy.personal - {messy.sensitive}
    assert {found[column].role for column in others} <= {"quasi"}


@pytest.mark.parametrize("name", MESSY)
def test_no_evidence_quotes_a_cell(name: str) -> None:
    """Counts are the table's; no text of it is."""
    messy: Messy = MESSY[name]
    words = " ".join(guess.evidence for guess in guesses(messy.table).values())
    for column in messy.table.columns:
        texts = {cell for cell in column.to_pylist() if isinstance(cell, str)}
        assert not {text for text in texts if len(text) > 1 and f"{text} " in words}


@pytest.mark.parametrize(
    ("column", "cells", "role"),
    [
        ("E-Mail", [f"{i}" for i in range(50)], "identifiers"),
        ("mail_consent", ["yes", "no"] * 25, "quasi"),
        ("Téléphone", [f"{i}" for i in range(50)], "identifiers"),
        ("mobile", ["yes", "no"] * 25, "quasi"),
        ("country_name", ["Chad", "Peru"] * 25, "quasi"),
        ("doctorName", ["Dr Ek", "Dr Roe"] * 25, "identifiers"),
        ("Příjmení", ["Novák", "Dvořák"] * 25, "identifiers"),
        ("姓名", ["王伟", "李娜"] * 25, "identifiers"),
        ("이름", ["민준", "서연"] * 25, "identifiers"),
        ("who", [f"{a}{b}" for a in "王李张刘陈" for b in "伟娜敏洋静杨磊军丽涛"], "identifiers"),
        ("кто", [f"Анна {a}{b}" for a in "БВГДЖ" for b in "абвгдежзик"], "identifiers"),
        ("number_of_children", [0, 1, 2, 3, 4] * 10, "quasi"),
        ("region_id", [1, 2, 3, 4, 5] * 10, "quasi"),
        ("ssn", list(range(50)), "identifiers"),
        ("case_no", [i // 2 for i in range(50)], "unit"),
        ("patient", [i // 2 for i in range(50)], "unit"),
        ("Fallnr", [i // 2 for i in range(50)], "unit"),
        ("Kundennummer", [f"K{i}" for i in range(50)], "identifiers"),
        ("Zimmernr", [1, 2, 3, 4, 5] * 10, "quasi"),
        ("household", [f"H{i // 3}" for i in range(50)], "identifiers"),
        ("household_type", ["single", "couple"] * 25, "quasi"),
        ("household size", [1, 2, 3, 4, 5] * 10, "quasi"),
        ("Bemerkung", ["Aufnahme wegen Grippe", "HIV bekannt, Kontrolle"] * 25, "dropped"),
        ("comment", ["good", "bad"] * 25, "quasi"),
        ("Patients", [f"P{i}" for i in range(50)], "identifiers"),
        ("Patient", [f"{a}, {b}" for a in ("Ek", "Roe", "Doe") for b in NAMES] * 9, "identifiers"),
        ("member", ["yes", "no"] * 25, "quasi"),
        ("patient_age", [30 + i % 40 for i in range(50)], "quasi"),
        ("who", [f"P{i}" for i in range(8)], "dropped"),
        ("age", [31, 45, 28, 60, 71, 19, 33, 52], "quasi"),
        ("positive", ["yes", "no"] * 25, "sensitive"),
        ("Krank", ["ja", "nein"] * 25, "sensitive"),
        ("birth_year", [*range(1950, 1975)] * 2, "quasi"),
        ("birth_weight", [3000 + i % 9 for i in range(50)], "quasi"),
        ("zip", [f"{i % 9:05d}" for i in range(50)], "quasi"),
        ("uuid", [f"{i:08x}-0000-4000-8000-{i:012x}" for i in range(50)], "identifiers"),
        ("key", [f"{i:08x}-0000-4000-8000-{i:012x}" for i in range(50)], "identifiers"),
        ("latitude", [50 + i / 1000 for i in range(50)], "identifiers"),
        ("archived", [True, False] * 25, "quasi"),
        ("HIV-Status", ["+", "-"] * 25, "sensitive"),
        ("Einkommen", [1000, 2000] * 25, "sensitive"),
        ("weight", [60.5 + i / 7 for i in range(50)], "dropped"),
        ("all_null", [None] * 50, "quasi"),
        ("same", ["a"] * 50, "quasi"),
        ("postcode", ["SW1A 1AA", "M1 1AE", "EC1A 1BB"] * 17, "quasi"),
    ],
)
def test_a_column_by_its_name_and_its_cells(column: str, cells: list[Any], role: str) -> None:
    assert guesses(pa.table({column: cells}))[column].role == role


def test_the_unit_that_is_proposed_is_a_number_that_repeats_and_not_one_of_rows(tmp_path: Path) -> None:
    """By a number of rows everybody would have one row, and nothing would be said of those who have more."""
    numbers = pa.table({"record_no": range(50), "insured_no": [i // 2 for i in range(50)]})
    pq.write_table(numbers, tmp_path / "t.parquet")
    policy = FirstPolicy.of(tmp_path / "t.parquet", {}).to_toml("t.parquet", Path("t.toml"), "t.release")
    assert '# unit = "insured_no"' in policy


@pytest.mark.parametrize("names", [("s", "n"), ("sample", "s"), ("n", "count")])
def test_columns_may_have_any_name(names: tuple[str, str]) -> None:
    source = open_source(
        pa.table(dict(zip(names, ([f"ab{i}" for i in range(9)], [1, 2, 3] * 3), strict=True)))
    )
    assert look_closer(source, look_at(source)).shapes == ("aa9", "9")


def test_what_is_left_out_without_asking_is_what_nobody_publishes() -> None:
    table = pa.table(
        {
            "mail": [f"p{i}@example.org" for i in range(50)],
            "wage": [1000 + 7 * i for i in range(50)],
            "points": [3 * i for i in range(50)],
            "born": [f"1950-01-{1 + i % 28:02d}" for i in range(50)],
        }
    )
    clear = {name: guess.is_clear for name, guess in guesses(table).items()}
    assert clear == {"mail": True, "wage": False, "points": False, "born": False}


def test_shapes_are_read_off_a_sample_of_a_large_table() -> None:
    n = 200_000
    mails = np.char.add(np.arange(n).astype(str), "@example.org")
    found = guesses(pa.table({"x": mails, "y": np.arange(n) % 7}))
    assert (found["x"].role, found["y"].role) == ("identifiers", "quasi")


def test_a_sensitive_column_is_never_guessed_from_nothing() -> None:
    table = pa.table({"age": [30, 40] * 10, "colour": ["red", "blue"] * 10})
    seen = inspect_source(open_source(table)).to_dict()
    assert seen["sensitive"] is None
    assert seen["feasible"]["largest_l"] is None
    named = inspect_source(open_source(table.append_column("disease", pa.array(["a", "b"] * 10)))).to_dict()
    assert (named["sensitive"]["columns"], named["sensitive"]["guessed"]) == (["disease"], True)
    given = inspect_source(open_source(table), ["colour"]).to_dict()
    assert (given["sensitive"]["columns"], given["sensitive"]["guessed"]) == (["colour"], False)
    json.dumps(seen)


def test_an_empty_table_has_nothing_to_judge(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"name": pa.array([], pa.string()), "x": pa.array([], pa.int64())}), tmp_path / "t.parquet"
    )
    source = open_source(tmp_path / "t.parquet")
    assert [guess.role for guess in guess_roles(source, look_at(source))] == ["identifiers", "quasi"]
