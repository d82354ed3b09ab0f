"""The command line as other programs call it: JSON, exit codes, and messages for wrong input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.cli import demo
from dalenius.cli.main import COMMANDS, application, run
from dalenius.demo_data import hospital

POLICY = """
source = "patients.csv"
release = "patients.release"
[columns]
unit = "patient_id"
identifiers = ["name"]
quasi = ["age", "sex", "district", "insurance"]
sensitive = ["disease"]
[promise]
kind = "f-privacy"
default = { times = 4, plus = 0.02 }
values = { HIV = 0.05, Flu = 0.9 }
[mechanism]
kind = "bucketize"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pyarrow.csv.write_csv(hospital(2_000), tmp_path / "patients.csv")
    (tmp_path / "patients.toml").write_text(POLICY)
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    """Run a command with --json; its exit code and the one object it printed."""
    code = run([*map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_more_time_for_a_plan(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the command line to try it, in the policy to publish what was found."""
    policy = folder / "patients.toml"
    one, longer = (call(capsys, "plan", policy, *more)[1] for more in ((), ("--seconds", 2)))
    policy.write_text(POLICY + "seconds = 2\n")
    assert call(capsys, "plan", policy)[1] == longer
    assert longer["loss"] <= one["loss"]
    assert longer["gap"] <= one["gap"]
    policy.write_text(POLICY + 'method = "two-size"\n')
    code, refused = call(capsys, "plan", policy, "--seconds", 2)
    assert code == 2
    assert "two-size" in refused["error"]["message"]
    policy.write_text(POLICY + "seconds = 0\n")
    assert call(capsys, "plan", policy)[0] == 2


def test_plan_publish_verify_ask(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, plan = call(capsys, "plan", folder / "patients.toml")
    assert code == 0
    assert plan["mechanism"] == "bucketize"
    assert plan["method"] == "optimal"
    assert plan["feasible"] is True
    assert plan["private"] is True
    assert plan["rows"] == 2_000 == sum(entry["size"] * entry["count"] for entry in plan["buckets"])
    assert plan["loss"] == sum((entry["size"] - 1) ** 2 * entry["count"] for entry in plan["buckets"])
    assert plan["mse"] == pytest.approx(plan["loss"] / 1_999)
    assert 0 <= plan["lower_bound"] <= plan["loss"]
    assert 0 <= plan["gap"] <= 1e-4

    code, published = call(capsys, "publish", folder / "patients.toml")
    assert code == 0
    assert published["rows"] == published["published"] == 2_000
    assert published["suppressed"] == 0
    assert published["posterior"] is None
    assert published["seconds"] > 0
    release = published["release"]

    code, verdict = call(capsys, "verify", release, "--strict")
    assert (code, verdict["ok"]) == (0, True)
    assert all(set(check) == {"name", "ok", "detail"} for check in verdict["checks"])

    code, answer = call(capsys, "ask", release, "SELECT COUNT(*) FROM t WHERE age >= 60", "--confidence", 0.9)
    assert code == 0
    (row,) = answer["rows"]
    assert set(row) >= {"group", "column", "estimate", "std_error", "low", "high"}
    truth = sum(age >= 60 for age in hospital(2_000)["age"].to_pylist())
    assert row["estimate"] == pytest.approx(truth)
    assert row["low"] <= row["estimate"] <= row["high"]
    assert answer["confidence"] == 0.9
    assert "assumption" in answer


def test_what_people_read_says_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy, release = str(folder / "patients.toml"), str(folder / "patients.release")
    for arguments, expected in [
        (["inspect", str(folder / "patients.csv")], "l-diversity up to l ="),
        (["plan", policy], "private counts"),
        (["publish", policy, "--seed", "1"], "not for publication"),
        (["verify", release], "the release shows agrees with its promise"),
        (["ask", release, "SELECT COUNT(*) FROM t", "--explain"], "2,000"),
        (["doctor"], "everything that is needed is there"),
    ]:
        assert run(arguments) == 0
        assert expected in capsys.readouterr().out


def test_inspect_counts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, seen = call(
        capsys, "inspect", folder / "patients.csv", "--sensitive", "district", "--sensitive", "sex"
    )
    assert (code, seen["private"], seen["rows"]) == (0, True, 2_000)
    assert seen["columns"][0] == {
        "name": "patient_id",
        "type": "bigint",
        "distinct": 2_000,
        "nulls": 0,
        "shape": "999999",
        "guess": "identifiers",
        "evidence": "its name looks like a number of a record or a person "
        "(2,000 different values, one a row)",
    }
    counts = [entry["count"] for entry in seen["sensitive"]["values"]]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == 2_000
    assert seen["feasible"]["largest_l"] == 2_000 // counts[0]


def test_json_has_no_nan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Programs that read JSON as it is defined refuse a bare NaN."""
    pq.write_table(
        pa.table({"x": [float("nan"), 1.0, 2.0] * 4, "d": ["a", "b", "c"] * 4}), tmp_path / "t.parquet"
    )
    roles = '[columns]\nquasi = ["d"]\nsensitive = ["x"]\n'
    promise = '[promise]\nkind = "l-diversity"\nl = 2\n'
    (tmp_path / "p.toml").write_text(f'source = "t.parquet"\nrelease = "r"\n{roles}{promise}')
    for arguments in (
        ["plan", tmp_path / "p.toml"],
        ["inspect", tmp_path / "t.parquet", "--sensitive", "x"],
        ["publish", tmp_path / "p.toml", "--seed", 1],
        ["ask", tmp_path / "r", "SELECT x, COUNT(*) FROM t GROUP BY x"],
        ["audit", tmp_path / "r", "--original", tmp_path / "t.parquet", "--seed", 1],
        ["report", tmp_path / "r"],
    ):
        assert run([*map(str, arguments), "--json"]) == 0
        json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def test_an_infeasible_promise_exits_3(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = folder / "patients.toml"
    policy.write_text(POLICY.replace("Flu = 0.9", "Flu = 0.1"))
    code, plan = call(capsys, "plan", policy)
    assert (code, plan["feasible"]) == (3, False)
    assert "threshold of 'Flu' (0.1) is below its frequency" in plan["reason"]
    code, error = call(capsys, "publish", policy)
    assert (code, error["error"]["kind"]) == (3, "PromiseNotMet")
    assert not (folder / "patients.release").exists()


def test_an_infeasible_default_names_no_value(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = folder / "patients.toml"
    policy.write_text(
        POLICY.replace("{ times = 4, plus = 0.02 }", "0.15").replace("HIV = 0.05, Flu = 0.9", "")
    )
    code, error = call(capsys, "publish", policy)
    assert code == 3
    assert not any(disease in json.dumps(error) for disease in hospital(2_000)["disease"].to_pylist())


def test_verify_exits_1_on_a_changed_release(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "publish", folder / "patients.toml", "--seed", 1)
    release = folder / "patients.release"
    assert call(capsys, "verify", release)[0] == 0
    assert call(capsys, "verify", release, "--strict")[0] == 3
    (release / "st.parquet").write_bytes(b"")
    code, verdict = call(capsys, "verify", release)
    assert (code, verdict["ok"], verdict["damaged"]) == (1, False, True)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("source =", "sorce ="), "unknown key 'sorce'"),
        (("patients.csv", "absent.csv"), "does not exist"),
        (('"age", ', ""), "does not say what these columns"),
        (("HIV", "HVI"), "no row has 'HVI'"),
        (("HIV = 0.05", "HIV = 1.05"), "is outside (0, 1]"),
        (("plus = 0.02", "plus = x"), "is not valid TOML"),
        (('"bucketize"', '"bucketise"'), "did you mean 'bucketize'"),
        (("patients.release", "absent/patients.release"), "does not exist"),
    ],
)
def test_wrong_policies_exit_2_and_write_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str], expected: str
) -> None:
    policy = folder / "patients.toml"
    policy.write_text(POLICY.replace(*change))
    code, printed = call(capsys, "publish", policy)
    assert code == 2
    assert expected in printed["error"]["message"]
    assert sorted(path.name for path in folder.iterdir()) == ["patients.csv", "patients.toml"]


def test_a_person_with_two_rows_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = hospital(50)
    pyarrow.csv.write_csv(pa.concat_tables([table, table.slice(0, 3)]), folder / "patients.csv")
    (folder / "patients.toml").write_text(POLICY.replace("HIV = 0.05, Flu = 0.9", ""))
    code, error = call(capsys, "publish", folder / "patients.toml")
    assert code == 2
    assert "3 people have more than one row" in error["error"]["message"]


def test_an_empty_table_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "patients.csv").write_text("patient_id,name,age,sex,district,insurance,disease\n")
    code, error = call(capsys, "publish", folder / "patients.toml")
    assert (code, "has no rows" in error["error"]["message"]) == (2, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan"],
        ["plan", "absent.toml"],
        ["publsh", "x"],
        ["publish", "x", "--engine", "spark3"],
        ["ask", "absent.release"],
        ["inspect", "absent.csv"],
    ],
)
def test_wrong_usage_exits_2_with_one_json_object(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, printed = call(capsys, *arguments)
    assert code == 2
    assert set(printed["error"]) == {"kind", "message", "hint"}


def test_a_damaged_release_exits_1_and_a_folder_that_is_none_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(capsys, "verify", tmp_path)[0] == 2
    (tmp_path / "manifest.json").write_text("{")
    code, printed = call(capsys, "verify", tmp_path)
    assert (code, printed["error"]["kind"]) == (1, "ReleaseCorrupt")


def test_demo_takes_the_tour(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", str(tmp_path / "tour")]) == 0
    printed = capsys.readouterr().out
    assert "Try next" in printed
    assert "95 % interval" in printed
    people = hospital().to_pylist()
    truth = sum(person["age"] >= 60 and person["disease"] == "Hypertension" for person in people)
    assert f"which only the publisher has, says {truth:,}.)" in printed
    assert call(capsys, "verify", tmp_path / "tour" / "patients.release", "--strict")[0] == 0
    assert call(capsys, "demo", tmp_path / "tour")[0] == 2


def test_every_command_takes_json_and_has_help() -> None:
    for command in application(COMMANDS).registered_commands:
        assert command.callback is not None
        assert "as_json" in command.callback.__annotations__
        assert command.callback.__doc__


def test_help_and_version_are_whole_and_instant(capsys: pytest.CaptureFixture[str]) -> None:
    """What takes time to load is not loaded for them, nor are lines of help cut off."""
    assert run(["--help"]) == 0
    printed = capsys.readouterr().out
    assert all(f"  {name} " in printed and summary in printed for name, summary in COMMANDS.items())
    code = (
        "import sys; from dalenius.cli.main import run; assert run([sys.argv[1]]) == 0;"
        "heavy = {'numpy', 'pyarrow', 'duckdb', 'sqlglot', 'scipy', 'rich'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    version = f"dalenius {dalenius.__version__}"
    for option, expected in [("--help", "Usage: dalenius"), ("--version", version)]:
        assert python("-c", code, option).stdout.startswith(expected)


def test_no_arguments_show_the_help() -> None:
    done = python("-m", "dalenius")
    assert (done.stdout.startswith("Usage: dalenius"), done.stderr) == (True, "")


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Another process, which must end well."""
    environment = {**os.environ, "PYTHONPATH": str(Path(dalenius.__file__).parents[1])}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True, env=environment
    )


def test_a_bug_shows_its_place_and_no_cell(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("cell: HIV")

    monkeypatch.setattr("dalenius.cli.publisher.plan.preview", broken)
    code, printed = call(capsys, "plan", folder / "patients.toml")
    assert (code, printed["error"]["kind"]) == (1, "InternalError")
    assert "ValueError in test_cli.py, line" in printed["error"]["message"]
    assert "HIV" not in json.dumps(printed)


def test_what_may_not_be_read_is_no_bug(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: object, **__: object) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "manifest.json").write_text("{}")
    monkeypatch.setattr(Path, "read_bytes", refuse)
    monkeypatch.setattr(Path, "read_text", refuse)
    code, found = call(capsys, "verify", tmp_path)
    assert code == 2
    assert found["error"]["kind"] == "InputError"
    assert found["error"]["message"] == f"{tmp_path / 'manifest.json'} cannot be read: Permission denied"
    code, found = call(capsys, "plan", tmp_path / "p.toml")
    assert code == 2
    assert "permission denied" in found["error"]["message"]


def test_wrong_usage_names_the_help_that_helps(capsys: pytest.CaptureFixture[str]) -> None:
    assert "`dalenius publish --help`" in call(capsys, "publish", "p.toml", "--seed", "x")[1]["error"]["hint"]
    assert "`dalenius --help`" in call(capsys, "publisch")[1]["error"]["hint"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), RuntimeError("Query interrupted")])
def test_ctrl_c_is_no_bug(
    stop: BaseException, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB makes a RuntimeError of it while a query runs."""

    def stopped(*_: object, **__: object) -> None:
        try:
            raise stop
        except RuntimeError as error:
            raise dalenius.EngineError("the table could not be read") from error

    monkeypatch.setattr("dalenius.cli.publisher.plan.preview", stopped)
    code, printed = call(capsys, "plan", folder / "patients.toml")
    assert (code, printed["error"]["kind"]) == (1, "Stopped")
    assert run(["plan", str(folder / "patients.toml")]) == 1
    assert capsys.readouterr().err == "error: stopped; nothing was published\n"


def test_an_error_that_is_its_own_cause_is_told_like_any_other(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        error = dalenius.EngineError("the table could not be read")
        raise error from error

    monkeypatch.setattr("dalenius.cli.publisher.plan.preview", fail)
    code, printed = call(capsys, "plan", folder / "patients.toml")
    assert (code, printed["error"]["message"]) == (1, "the table could not be read")


def test_explain_is_in_the_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    release = Path(__file__).parents[1] / "releases" / "bucketize"
    code, answer = call(capsys, "ask", release, "SELECT COUNT(*) FROM t", "--explain")
    assert (code, answer["explain"].startswith("question: SELECT COUNT(*) FROM t")) == (0, True)
    assert "explain" not in call(capsys, "ask", release, "SELECT COUNT(*) FROM t")[1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('unit = "patient_id"', 'unit = ["patient_id"]', "unit must be the name of one column"),
        ("times = 4", "times = nan", "times: NaN is not a number"),
    ],
)
def test_messages_write_values_as_the_policy_does(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    (folder / "patients.toml").write_text(POLICY.replace(old, new))
    code, printed = call(capsys, "plan", folder / "patients.toml")
    assert code == 2
    assert message in printed["error"]["message"]


def test_a_release_that_does_not_exist_is_said_not_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, printed = call(capsys, "verify", tmp_path / "none")
    assert (code, printed["error"]["message"]) == (
        2,
        f"{tmp_path / 'none'} is not a release: it does not exist",
    )


def test_the_demo_names_a_program_that_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [".venv/bin/dalenius", "demo"])
    monkeypatch.setenv("PATH", "/nowhere")
    assert demo.program() == ".venv/bin/dalenius"
    monkeypatch.setattr(sys, "argv", ["__main__.py"])
    assert demo.program() == "dalenius"
