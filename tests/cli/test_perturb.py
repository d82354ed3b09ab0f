"""Perturbation from the command line: plan, publish, verify, ask, and refusals with their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv
import pytest

from dalenius.cli.main import run
from dalenius.demo_data import hospital
from tests.cli.test_cli import call

POLICY = """
source = "patients.csv"
release = "patients.release"
[columns]
unit = "patient_id"
identifiers = ["name"]
quasi = ["age", "sex", "district", "insurance"]
sensitive = ["disease"]
[promise]
kind = "rho-privacy"
rho1 = "max"
rho2 = 0.5
[mechanism]
kind = "perturb"
method = "small-domain"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pyarrow.csv.write_csv(hospital(2_000), tmp_path / "patients.csv")
    (tmp_path / "patients.toml").write_text(POLICY)
    return tmp_path


@pytest.mark.parametrize("method", ["best", "small-domain", "least-variance", "paper", "uniform"])
def test_plan_publish_verify_ask(method: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "patients.toml").write_text(POLICY.replace("small-domain", method))
    code, plan = call(capsys, "plan", folder / "patients.toml")
    assert (code, plan["mechanism"], plan["method"], plan["feasible"]) == (0, "perturb", method, True)
    assert plan["private"] is True
    assert plan["rows"] == 2_000 == sum(part["rows"] for part in plan["parts"])
    for part in plan["parts"]:
        assert set(part) == {"rows", "values", "gamma", "retention", "diagonal", "weighted"}
        assert part["retention"] == pytest.approx((part["gamma"] - 1) / (part["values"] - 1 + part["gamma"]))
    assert plan["error_bound_hoeffding"] < plan["error_bound"]
    assert method in ("best", "least-variance") or plan["error_bound"] <= plan["paper_error_bound"]

    code, published = call(capsys, "publish", folder / "patients.toml")
    assert code == 0
    assert published["rows"] == published["published"] == 2_000
    assert (published["suppressed"], published["posterior"]) == (0, None)

    code, verdict = call(capsys, "verify", published["release"], "--strict")
    assert (code, verdict["ok"]) == (0, True)
    assert {"parts", "values", "promise"} <= {check["name"] for check in verdict["checks"]}

    sql = "SELECT disease, COUNT(*) FROM t WHERE age >= 40 GROUP BY disease"
    code, answer = call(capsys, "ask", published["release"], sql, "--confidence", 0.9999)
    assert (code, answer["assumption"]) == (0, None)
    ages, diseases = (hospital(2_000)[name].to_pylist() for name in ("age", "disease"))
    for row in answer["rows"]:
        truth = sum(a >= 40 and d == row["group"]["disease"] for a, d in zip(ages, diseases, strict=True))
        # beyond five standard errors from the estimate: never by chance
        assert row["low"] - row["std_error"] * 2 <= truth <= row["high"] + row["std_error"] * 2


def test_what_people_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy, release = str(folder / "patients.toml"), str(folder / "patients.release")
    sql = "SELECT COUNT(*) FROM t WHERE disease = 'Flu'"
    for arguments, expected in [
        (["plan", policy], "the paper's procedure"),
        (["publish", policy, "--seed", "1"], "not for publication"),
        (["verify", release], "the release shows agrees with its promise"),
        (["ask", release, sql, "--explain"], "rests on: the coins of the publisher alone"),
        (["ask", release, sql, "--estimator", "hoeffding"], "interval"),
    ]:
        assert run(arguments) == 0
        assert expected in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "code", "expected"),
    [
        (("rho2 = 0.5", "rho2 = 0.01"), 3, "rho2 (1/100) is not above rho1"),
        (("rho2 = 0.5", "rho2 = 1.5"), 2, "must lie between 0 and 1"),
        (('rho1 = "max"', "rho1 = 0.6"), 2, "rho1 (3/5) must be below rho2"),
        (('rho1 = "max"', "rho1 = 0.0001"), 2, "covers no value"),
        (('rho1 = "max"\n', ""), 2, "needs rho1"),
        (("small-domain", "small-domains"), 2, "did you mean 'small-domain'"),
        (('"perturb"', '"bucketize"'), 2, "bucketize does not keep rho-privacy"),
    ],
)
def test_wrong_policies(
    folder: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str], code: int, expected: str
) -> None:
    policy = folder / "patients.toml"
    policy.write_text(POLICY.replace(*change))
    found, printed = call(capsys, "publish", policy)
    assert found == code
    assert expected in printed["error"]["message"]
    assert sorted(path.name for path in folder.iterdir()) == ["patients.csv", "patients.toml"]
    if code == 3:
        found, plan = call(capsys, "plan", policy)
        assert (found, plan["feasible"]) == (3, False)


def test_a_single_value_is_refused_without_being_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = hospital(50)
    flu = pyarrow.array(["Flu"] * 50)
    pyarrow.csv.write_csv(
        table.set_column(table.column_names.index("disease"), "disease", flu), folder / "patients.csv"
    )
    code, printed = call(capsys, "publish", folder / "patients.toml")
    assert code == 2
    assert "perturbation needs 2 or more" in printed["error"]["message"]
    assert "Flu" not in json.dumps(printed)
