"""A skewed table on the command line: inspect, plan, publish, verify, ask, and a series of batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dalenius.cli.main import run

POLICY = """
source = "day1.csv"
release = "out"
[columns]
unit = "id"
quasi = ["age"]
sensitive = ["disease"]
[promise]
kind = "l-diversity"
l = 3
[suppress]
method = "{method}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for day, counts in enumerate([(10, 4, 2, 1, 1), (3, 9, 2, 2, 1)], start=1):
        diseases = [name for name, count in zip("abcde", counts, strict=True) for _ in range(count)]
        rows = [f"{day}{row:02},{20 + row * 3},{disease}" for row, disease in enumerate(diseases)]
        (tmp_path / f"day{day}.csv").write_text("\n".join(["id,age,disease", *rows]) + "\n")
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    code = run([*map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_inspect_says_when_suppression_is_needed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = call(capsys, "inspect", folder / "day1.csv", "--sensitive", "disease")
    assert code == 0
    assert [entry["l"] for entry in found["suppression"]] == [2, 3, 4, 5]  # five values: no l above 5
    assert [entry["needed"] for entry in found["suppression"]] == [True, True, True, True]
    withheld = {"safe": 10, "randomized": 71 / 9, "exact": 6}
    assert found["suppression"][1]["withheld"] == pytest.approx(withheld)
    assert run(["inspect", str(folder / "day1.csv"), "--sensitive", "disease"]) == 0
    assert "needs [suppress]" in capsys.readouterr().out


@pytest.mark.parametrize(("method", "withheld"), [("safe", 10), ("randomized", None), ("exact", 6)])
def test_plan_publish_verify_ask(
    method: str, withheld: int | None, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = folder / "policy.toml"
    policy.write_text(POLICY.format(method=method))
    code, plan = call(capsys, "plan", policy)
    assert (code, plan["feasible"], plan["mechanism"], plan["rows"]) == (0, True, "bucketize", 18)
    assert plan["suppressed"] == pytest.approx(71 / 9 if withheld is None else withheld)
    assert plan["suppress"]["expected"]["lower bound"] == 6

    code, published = call(capsys, "publish", policy)
    assert code == 0
    assert published["rows"] == 18 == published["published"] + published["suppressed"]
    assert withheld is None or published["suppressed"] == withheld
    # what enumeration gives for the four views that randomized can draw; the others keep 1/3
    possible = [0.4668, 0.4442, 0.3349, 0.2477] if method == "randomized" else [1 / 3]
    assert any(published["posterior"] == pytest.approx(value, abs=1e-4) for value in possible)

    code, verdict = call(capsys, "verify", folder / "out", "--strict")
    assert (code, verdict["ok"]) == (0, True)
    assert {"records", "suppression", "promise"} <= {check["name"] for check in verdict["checks"]}

    code, answer = call(capsys, "ask", folder / "out", "SELECT COUNT(*) FROM t")
    assert (code, answer["rows"][0]["estimate"]) == (0, published["published"])
    assert f"{published['suppressed']} more were withheld" in answer["assumption"]


def test_what_people_read_says_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = folder / "policy.toml"
    policy.write_text(POLICY.format(method="safe"))
    assert run(["plan", str(policy)]) == 0
    assert "withheld by safe        10" in capsys.readouterr().out
    assert run(["publish", str(policy)]) == 0
    assert "0.3333 (closed form), proven to be at most 1/3" in capsys.readouterr().out


def test_without_the_stage_the_table_is_refused_and_the_hint_names_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = folder / "policy.toml"
    policy.write_text(POLICY.split("[suppress]", maxsplit=1)[0])
    code, error = call(capsys, "publish", policy)
    assert code == 3
    assert "[suppress]" in error["error"]["hint"]


def test_a_series_of_batches(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = folder / "policy.toml"
    series = '[series]\nkind = "batches"\n[ledger]\npath = "ledger"\n'
    policy.write_text(POLICY.format(method="safe") + series)
    sizes = []
    for day in (1, 2):
        code, published = call(capsys, "publish", policy, "--source", folder / f"day{day}.csv")
        assert code == 0
        sizes.append(published["published"])
    code, error = call(capsys, "publish", policy, "--source", folder / "day1.csv")
    assert (code, error["error"]["kind"]) == (2, "InputError")
    (folder / "ledger").rename(folder / "away")
    code, error = call(capsys, "publish", policy, "--source", folder / "day1.csv")
    assert code == 2
    assert "does not know the releases in" in error["error"]["message"]
    assert "view" not in f"{error['error']}", "batches are no views"
    (folder / "away").rename(folder / "ledger")
    code, verdict = call(capsys, "verify", folder / "out", "--strict")
    assert (code, verdict["ok"]) == (0, True)
    code, answer = call(capsys, "ask", folder / "out", "SELECT COUNT(*) FROM t")
    assert answer["rows"][0]["estimate"] == sum(sizes)
    code, answer = call(capsys, "ask", folder / "out" / "batch-2", "SELECT COUNT(*) FROM t")
    assert answer["rows"][0]["estimate"] == sizes[1]
