"""`dalenius report`: where it writes, what it says, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dalenius.cli.main import run
from tests.cli.test_cli import call, folder
from tests.reporting.pages import Page

__all__ = ["folder"]


def test_both_reports(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "publish", folder / "patients.toml")[0] == 0
    release = folder / "patients.release"
    code, outsiders = call(capsys, "report", release)
    assert (code, outsiders["private"], outsiders["ok"]) == (0, False, True)
    assert outsiders["report"] == f"{release}.report.html"
    code, private = call(capsys, "report", release, "--original", folder / "patients.toml", "--seed", 1)
    assert (code, private["private"]) == (0, True)
    assert private["report"] == f"{release}.private-report.html"
    for report in (outsiders, private):
        page = Page.of(Path(report["report"]).read_text(encoding="utf-8"))
        assert [s["title"] for s in report["sections"]] == [text for tag, text in page.texts if tag == "h2"]
    assert call(capsys, "verify", release, "--strict")[0] == 0  # the folder is as it was
    again = folder / "again.html"
    assert run(["report", str(release), "--original", str(folder / "patients.toml"), "--seed", "1",
                "--output", str(again)]) == 0  # fmt: skip
    assert again.read_bytes() == Path(private["report"]).read_bytes()
    assert "PRIVATE: do not publish this report" in capsys.readouterr().out


def test_text_and_json_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "publish", folder / "patients.toml")
    release = folder / "patients.release"
    assert call(capsys, "report", release, "--output", folder / "r.txt")[0] == 0
    assert "The promise" in (folder / "r.txt").read_text(encoding="utf-8")
    _, printed = call(capsys, "report", release, "--output", folder / "r.json")
    assert {"report": printed["report"], **json.loads((folder / "r.json").read_text())} == printed


def test_wrong_input(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "publish", folder / "patients.toml")
    release = folder / "patients.release"
    for arguments, message in (
        ((release, "--output", folder / "r.pdf"), "not '.pdf'"),
        ((release, "--output", release / "r.html"), "inside the release"),
        ((release, "--output", folder / "nowhere" / "r.html"), "cannot be written"),
        ((release, "--original", folder / "gone.csv"), "gone.csv"),
        ((folder / "gone",), "is not a release"),
    ):
        code, answer = call(capsys, "report", *arguments)
        assert code == 2
        assert message in answer["error"]["message"]
    assert not list(folder.glob(".*"))
    assert [path.name for path in folder.glob("*.html")] == []
