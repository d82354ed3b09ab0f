"""`dalenius compare` as users call it, with wrong input too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.csv
import pytest

import dalenius
from dalenius.cli.main import run
from dalenius.demo_data import hospital

HEAD = """
source = "patients.csv"
release = "patients.release"
[columns]
unit = "patient_id"
identifiers = ["name"]
quasi = ["age", "sex", "insurance"]
sensitive = ["disease"]
dropped = ["district"]
[promise]
"""
DIVERSE = 'kind = "l-diversity"\nl = 4\n'
PERTURBED = 'kind = "rho-privacy"\nrho1 = "max"\nrho2 = "1/4"\n'
FEW = ("--queries", "8", "--seeds", "1", "--seed", "1")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pyarrow.csv.write_csv(hospital(400), tmp_path / "patients.csv")
    (tmp_path / "diverse.toml").write_text(HEAD + DIVERSE)
    (tmp_path / "perturbed.toml").write_text(HEAD + PERTURBED)
    (tmp_path / "strict.toml").write_text(HEAD + DIVERSE.replace("4", "9"))
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    code = run(["compare", *map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_policies_and_baselines_side_by_side(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path.name for path in folder.iterdir()}
    code, found = call(capsys, "diverse.toml", "perturbed.toml", "strict.toml", *FEW, "--chart", "f.svg")
    assert code == 0
    assert found["private"] is True
    assert {row["policy"] for row in found["results"]} >= {"diverse", "perturbed", "strict", "UP", "FRAPP"}
    assert {row["metric"] for row in found["results"]} >= {"relative-error", "rmse", "suppressed"}
    infeasible = [row["policy"] for row in found["policies"] if not row["feasible"]]
    assert infeasible == ["strict"]
    assert found["best"][0]["policy"] in ("diverse", "perturbed")
    assert {path.name for path in folder.iterdir()} - before == {"f.svg"}


def test_the_table_for_people_fits_and_names_the_best(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", "diverse.toml", "--metric", "rmse", "--metric", "retention", *FEW]) == 0
    text = capsys.readouterr().out
    table = text.split("* the best")[0]
    assert all(len(line) <= 80 for line in table.splitlines()[1:])
    assert "best at 0.25: diverse; its rmse is" in text
    assert "no other policy promises as much" in text
    assert "baseline Laplace" in table
    assert "do not publish it" in text


def test_a_file_of_own_questions(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "own.sql").write_text("SELECT disease, COUNT(*) FROM t WHERE sex = 'F' GROUP BY disease;")
    code, found = call(capsys, "diverse.toml", "--workload", "own.sql", "--seeds", 1)
    assert code == 0
    people = hospital(400)
    n_groups = len(people.filter(pc.equal(people["sex"], "F"))["disease"].unique())
    assert found["workload"] == {"name": "own.sql", "questions": 1, "cells": n_groups}
    (folder / "own.sql").write_text("SELECT COUNT(*) FROM t;\nSELECT SUM(DISTINCT age) FROM t;")
    code, found = call(capsys, "diverse.toml", "--workload", "own.sql")
    assert code == 2
    assert "own.sql, line 2, column " in found["error"]["message"]
    assert "DISTINCT" in found["error"]["message"]


def test_nothing_feasible_ends_with_3(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = call(capsys, "strict.toml", *FEW)
    assert code == 3
    assert found["best"] == []
    assert "more frequent" in found["policies"][0]["reason"]


def test_wrong_input_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "other.csv").write_text((folder / "patients.csv").read_text())
    (folder / "other.toml").write_text((HEAD + DIVERSE).replace("patients.csv", "other.csv"))
    (folder / "sub").mkdir()
    for arguments, words in (
        ([], "POLICIES"),
        (["missing.toml"], "does not exist"),
        (["diverse.toml", "diverse.toml"], "given twice"),
        (["diverse.toml", "other.toml"], "only policies for one table"),
        (["diverse.toml", "--workload", "anatomi"], "did you mean 'anatomy'"),
        (["diverse.toml", "--workload", "none.sql"], "cannot be read"),
        (["diverse.toml", "--queries", "0"], "asks nothing"),
        (["diverse.toml", "--seeds", "0"], "0 draws"),
        (["diverse.toml", "--metric", "rmsee"], "did you mean 'rmse'"),
        (["diverse.toml", *FEW, "--chart", "f.pdf"], ".svg, .png or .html"),
    ):
        code, found = call(capsys, *arguments)
        assert code == 2, arguments
        assert words.lower() in found["error"]["message"].lower()


def test_python_says_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, printed = call(capsys, "diverse.toml", *FEW)
    found = dalenius.compare(["diverse.toml"], queries=8, seeds=1, seed=1).to_dict()
    assert [row for row in found["results"] if row["policy"] != "Laplace"] == [
        row for row in printed["results"] if row["policy"] != "Laplace"
    ]
    named = dalenius.compare({"mine": dalenius.Policy.from_file("diverse.toml")}, queries=8, seeds=1)
    assert named.standings[0].contender.name == "mine"
