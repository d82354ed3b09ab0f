"""Views from the command line, as a publisher and an analyst would go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest

from dalenius.cli.main import run
from tests.mechanisms.alphabeta.releases import survey

POLICY = """
source = "survey.csv"
release = "survey.views"
[columns]
quasi = ["age", "sex", "zip"]
sensitive = ["ill"]
[domains]
age = "20..39"
sex = ["F", "M"]
zip = "zips.csv"
ill = ["cold", "flu", "hiv", "NULL"]
[promise]
kind = "d-gamma-privacy"
k = 2
gamma = 0.3
[mechanism]
kind = "alpha-beta"
duplicates = "distinct"
views = 2
[ledger]
path = "private/ledger"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pyarrow.csv.write_csv(survey(), tmp_path / "survey.csv")
    (tmp_path / "zips.csv").write_text("zip\n" + "\n".join(map(str, range(1, 31))) + "\n")
    (tmp_path / "survey.toml").write_text(POLICY)
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    code = run([*map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_from_policy_to_answer(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, plan = call(capsys, "plan", folder / "survey.toml")
    assert (code, plan["mechanism"], plan["method"], plan["feasible"]) == (
        0,
        "alpha-beta",
        "alpha-beta",
        True,
    )
    assert plan["domain_size"] == 4_800
    assert plan["private"] is True
    assert plan["noise_rows"] == pytest.approx(plan["beta"] * 4_800)
    for number in (1, 2):
        code, made = call(capsys, "publish", folder / "survey.toml")
        assert code == 0
        assert made["release"].endswith(f"survey.views/view-{number}")
        assert made["rows"] == 300
        assert made["suppressed"] is None
    assert (folder / "private" / "ledger").is_file()
    code, error = call(capsys, "publish", folder / "survey.toml")
    assert (code, error["error"]["kind"]) == (3, "PromiseNotMet")
    code, verdict = call(capsys, "verify", folder / "survey.views", "--strict")
    assert (code, verdict["ok"]) == (0, True)
    question = "SELECT ill, COUNT(*) FROM t WHERE zip < age GROUP BY ill"
    code, answer = call(capsys, "ask", folder / "survey.views", question)
    assert (code, answer["assumption"], len(answer["rows"])) == (0, None, 4)
    assert answer["rows"][-1]["group"] == {"ill": None}


def test_what_people_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    views, policy = str(folder / "survey.views"), str(folder / "survey.toml")
    for arguments, expected in [
        (
            ["inspect", str(folder / "survey.csv")],
            "d-gamma-privacy of whole rows, 4 columns, 4,800 possible rows",
        ),
        (["plan", policy], "differential    epsilon"),
        (["publish", policy], "a view of"),
        (["ask", views, "SELECT COUNT(*) FROM t", "--explain"], "the coins of the mechanism alone"),
    ]:
        assert run(arguments) == 0
        assert expected in capsys.readouterr().out


def test_inspect_shows_the_feasible_region(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, seen = call(capsys, "inspect", folder / "survey.csv")
    region = {one["k"]: one for one in seen["feasible"]["d_gamma"]["region"]}
    assert (code, list(region)) == (0, [2, 10, 100])
    assert region[2]["d"] == pytest.approx(2 * 300 / 4_800)
    assert region[2]["rho"] > 0
    assert "k = 2 is near √m = 69.3" not in str(region[2]["warnings"])
    assert region[10]["rho"] is None  # d = 0.625 is above 0.2
    assert region[2]["error_rows"] > 30
    assert region[2]["useful_gamma"] is None or region[2]["useful_gamma"] > 0.2


def test_missing_domains_and_infeasible_promises(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = folder / "survey.toml"
    policy.write_text(POLICY.replace('sex = ["F", "M"]\n', ""))
    code, error = call(capsys, "publish", policy)
    assert (code, "no domain is declared for 'sex'" in error["error"]["message"]) == (2, True)
    assert 'domains = "active"' in error["error"]["hint"]
    policy.write_text(POLICY.replace("k = 2", "k = 20"))
    code, plan = call(capsys, "plan", policy)
    assert (code, plan["feasible"]) == (3, False)
    assert not (folder / "survey.views").exists()
