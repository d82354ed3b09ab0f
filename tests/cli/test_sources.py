"""Tables that need more than a path: from the command line into the policy, and from there to a release."""

from __future__ import annotations

import builtins
import io
import json
import random
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from dalenius.cli.main import run
from dalenius.tables.files import bytes as file_bytes
from tests.tables.files.messy import far_cell

OPTIONS = ["--decimal", ",", "--missing=-99", "--missing", "NA", "--dates", "%d.%m.%Y"]


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    """Semicolons, decimal commas, cp1252, two codes for missing values, German days."""
    coins = random.Random(1)  # noqa: S311
    lines = ["Alter;Größe;Aufnahme;Krankheit"]
    for row in range(200):
        age = coins.choice([31, 42, 53, -99])
        day = f"{coins.randint(1, 28):02}.0{coins.randint(1, 9)}.2024"
        disease = ["Grippe", "Erkältung", "NA", "Gicht", "Angina"][row % 5]
        lines.append(f"{age};1,{coins.randint(50, 99)};{day};{disease}")
    path = tmp_path / "t.csv"
    path.write_bytes("\n".join(lines).encode("cp1252"))
    return path


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, Any]:
    code = run([*map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_inspect_says_how_it_was_read_and_what_may_be_wrong(
    messy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, seen = call(capsys, "inspect", messy)
    assert (code, seen["read_as"]["encoding"], seen["read_as"]["delimiter"]) == (0, "cp1252", "';'")
    assert [column["shape"] for column in seen["columns"]][:3] == ["99", "9,99", "99.99.9999"]
    notes = "\n".join(seen["notes"])
    for expected in ("--missing=-99", "--decimal ,", "--dates '%d.%m.%Y'", "--missing 'NA'"):
        assert expected in notes
    _, better = call(capsys, "inspect", messy, *OPTIONS)
    assert better["notes"] == []
    assert [column["type"] for column in better["columns"]] == ["bigint", "double", "date", "varchar"]


def test_codes_among_decimal_commas_and_a_line_of_totals_are_pointed_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["id;age;size;weight;sex;disease"]
    for row in range(60):
        size = "-99" if row % 5 == 0 else f"1,{50 + row % 40}"
        lines.append(f"{row};{20 + row};{size};{50 + row},5;{'fm'[row % 2]};{'abcd'[row % 4]}")
    path = tmp_path / "t.csv"
    path.write_text("\n".join([*lines, "sum;2970;;;;"]), encoding="utf-8")
    notes = "\n".join(call(capsys, "inspect", path)[1]["notes"])
    assert "'size' looks like numbers with a decimal comma" in notes
    assert "1 row has no cell in most columns" in notes
    path.write_text("\n".join(lines), encoding="utf-8")
    assert "no cell" not in "\n".join(call(capsys, "inspect", path)[1]["notes"])


def test_what_init_was_told_is_in_the_policy_and_publishes(
    messy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quasi = ["--quasi", "Alter,Größe,Aufnahme", "--sensitive", "Krankheit"]
    code, _ = call(capsys, "init", messy, *OPTIONS, *quasi)
    policy = messy.with_suffix(".toml")
    source = tomllib.loads(policy.read_text(encoding="utf-8"))["source"]
    assert (code, source["path"], source["encoding"], source["missing"]) == (
        0,
        "t.csv",
        "cp1252",
        ["-99", "NA"],
    )
    text = policy.read_text(encoding="utf-8")
    policy.write_text(f'{text}\n[recode]\nAufnahme = {{ date = "quarter" }}\n', encoding="utf-8")
    code, seen = call(capsys, "publish", policy, "--draft", "--yes")
    assert (code, seen["rows"]) == (0, 200)
    sql = "SELECT Aufnahme, COUNT(*) FROM t GROUP BY Aufnahme"
    code, seen = call(capsys, "ask", seen["release"], sql)
    assert {row["group"]["Aufnahme"] for row in seen["rows"]} == {"2024-Q1", "2024-Q2", "2024-Q3"}


def test_standard_input_is_a_source(
    messy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file_bytes._read_input.cache_clear()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(messy.read_bytes())))
    code, seen = call(capsys, "inspect", "-")
    file_bytes._read_input.cache_clear()
    assert (code, seen["source"], seen["rows"]) == (0, "standard input", 200)


def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name in ("python_calamine", "pyreadstat"):
            raise ImportError(name)
        return usual(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    for name in ("t.xlsx", "t.sav"):
        (tmp_path / name).write_bytes(b"x")
        code, seen = call(capsys, "inspect", tmp_path / name)
        assert (code, seen["error"]["hint"]) == (2, "pip install 'dalenius[files]'")


def test_a_server_is_no_path_and_its_password_stays_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    code, seen = call(capsys, "inspect", "postgresql://ann:secret@127.0.0.1:1/clinic?table=people")
    assert code == 2
    assert "Connection refused" in seen["error"]["message"]
    assert "secret" not in str(seen)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit a process's memory")
def test_a_workbook_with_one_cell_far_away_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reading it would take 17,179,869,184 cells."""
    pytest.importorskip("python_calamine")
    path = far_cell(tmp_path / "small.xlsx")
    assert run(["inspect", str(path), "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert f"{path} cannot be read: it takes more than 4,096 MB" in error["message"]
    assert "a cell far from the others" in error["hint"]
