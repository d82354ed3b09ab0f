"""`dalenius export` as people and programs call it."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pytest

from dalenius.cli.main import run
from tests.cli.test_cli import call

RELEASE = Path(__file__).parent.parent / "releases" / "perturb"


def test_export_and_add_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out.duckdb"
    code, exported = call(capsys, "export", RELEASE, "--to", target)
    assert code == 0
    assert exported["release"] == str(RELEASE)
    assert exported["target"] == str(target)
    assert all(set(table) == {"name", "rows"} for table in exported["tables"])
    with duckdb.connect(str(target), read_only=True) as connection:
        (total,) = connection.execute(f"SELECT SUM(weight) FROM {exported['view']}").fetchall()
    code, answer = call(capsys, "ask", RELEASE, "SELECT COUNT(*) FROM t")
    assert total[0] == pytest.approx(answer["rows"][0]["estimate"])

    code, refused = call(capsys, "export", RELEASE, "--to", target)
    assert code == 2
    assert "exists already" in refused["error"]["message"]


def test_what_people_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", str(RELEASE), "--to", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "part_values" in printed
    assert "weighted.sql" in printed
    assert "dalenius ask" in printed


@pytest.mark.parametrize(
    "arguments",
    [
        ["export", str(RELEASE), "postgresql://ann:secret@127.0.0.1:1/x"],
        ["export", str(RELEASE), "--to", "postgresql://ann:secret@127.0.0.1:1/x", "--name", "x"],
        ["export", str(RELEASE), "--to=postgresql://ann:secret@127.0.0.1:1/x?password=secret"],
        ["export", str(RELEASE), "--to=postgresql://ann:secret@@127.0.0.1:1/x"],
        ["exprot", "postgresql://ann:secret@127.0.0.1:1/x"],
    ],
)
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_no_password_is_printed(
    arguments: list[str], options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, *options]) == 2
    captured = capsys.readouterr()
    assert "error" in captured.out + captured.err
    assert "secret" not in captured.out + captured.err


def test_without_the_driver(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    code, refused = call(capsys, "export", RELEASE, "--to", "postgresql://127.0.0.1:1/x")
    assert code == 2
    assert "dalenius[postgres]" in refused["error"]["hint"]
