"""`dalenius init`: what it leaves to the publisher, and that following its guesses gives nobody away."""

from __future__ import annotations

import json
import stat
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.cli.main import run
from dalenius.demo_data import hospital
from tests.inspection.messy import tables

MESSY = tables()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pyarrow.csv.write_csv(hospital(2_000), tmp_path / "patients.csv")
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    code = run([*map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


def follow(policy: Path, made: dict[str, Any]) -> None:
    """Edit as somebody would who believes every guess."""
    text = policy.read_text()
    columns = tomllib.loads(text)["columns"]
    assert columns.pop("undecided") == [entry["column"] for entry in made["undecided"]]
    for entry in made["undecided"]:
        role = "dropped" if entry["guess"] == "unit" else entry["guess"]
        columns[role] = [*columns.get(role, []), entry["column"]]
    head, _, rest = text.partition("[columns]")
    lines = [f"{role} = {json.dumps(names)}" for role, names in columns.items()]
    policy.write_text(head + "[columns]\n" + "\n".join(lines) + "\n" + rest[rest.index("# [recode]") :])


def test_nothing_that_would_be_published_is_decided(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, made = call(capsys, "init", folder / "patients.csv", "--out", folder / "p.toml")
    assert code == 0
    assert (made["quasi"], made["sensitive"], made["identifiers"]) == ([], [], ["patient_id", "name"])
    guessed = {entry["column"]: entry["guess"] for entry in made["undecided"]}
    quasi = dict.fromkeys(("age", "sex", "district", "insurance"), "quasi")
    assert guessed == {**quasi, "disease": "sensitive"}
    text = (folder / "p.toml").read_text()
    assert "# age         quasi?        " in text
    assert tomllib.loads(text)["columns"]["undecided"] == list(guessed)


@pytest.mark.parametrize("command", ["plan", "publish", "compare"])
def test_undecided_columns_are_refused_by_name(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(capsys, "init", folder / "patients.csv", "--out", folder / "p.toml", "--sensitive", "disease")
    code, error = call(capsys, command, folder / "p.toml")
    assert (code, error["error"]["kind"]) == (2, "PolicyError")
    assert "have no role yet: 'age', 'sex', 'district', 'insurance'" in error["error"]["message"]
    assert "move each name" in error["error"]["hint"]


def test_roles_given_on_the_command_line_make_a_policy_that_works(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = folder / "patients.csv", folder / "p.toml"
    roles = ["--sensitive", "disease", "--quasi", "age,sex", "--quasi", "district", "--dropped", "insurance"]
    code, made = call(capsys, "init", source, "--out", target, *roles, "--unit", "patient_id")
    assert (code, made["unit"], made["undecided"], made["warnings"]) == (0, "patient_id", [], [])
    assert (made["quasi"], made["identifiers"]) == (["age", "sex", "district"], ["name"])
    code, plan = call(capsys, "plan", target)
    assert (code, plan["feasible"]) == (0, True)
    assert min(entry["size"] for entry in plan["buckets"]) > 1
    code, error = call(capsys, "init", source, "--out", target)
    assert (code, error["error"]["kind"]) == (2, "InputError")
    assert "exists already" in error["error"]["message"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sensitive", "diseas"], "did you mean 'disease'"),
        (["--quasi", "age,sexx"], "did you mean 'sex'"),
        (["--quasi", "age", "--sensitive", "age"], "'age' was given two roles: sensitive and quasi"),
        (["--quasi", "age", "--quasi", "age"], "'age' was given two roles: quasi and quasi"),
        (["--quasi", ""], "no column ''"),
    ],
)
def test_wrong_roles_are_explained(
    options: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = call(capsys, "init", folder / "patients.csv", *options)
    assert code == 2
    assert message in error["error"]["message"]
    assert not (folder / "patients.toml").exists()


def test_a_name_that_is_to_be_published_is_warned_of(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", str(folder / "patients.csv"), "--quasi", "name,age", "--sensitive", "disease"]) == 0
    assert "warning: 'name' is quasi, so it is published as it is, but" in capsys.readouterr().out


@pytest.mark.parametrize("name", MESSY)
def test_following_every_guess_gives_nobody_away(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing edited is refused; everything believed keeps names out and every bucket uncertain."""
    monkeypatch.chdir(tmp_path)
    messy = MESSY[name]
    pq.write_table(messy.table, "t.parquet")
    code, made = call(capsys, "init", "t.parquet", "--sensitive", messy.sensitive)
    assert (code, made["sensitive"]) == (0, [messy.sensitive])
    if made["undecided"]:
        assert call(capsys, "publish", "t.toml")[0] == 2
        follow(Path("t.toml"), made)
    code, found = call(capsys, "publish", "t.toml")
    if messy.is_hopeless:
        assert (code, found["error"]["kind"]) == (3, "PromiseNotMet")
        assert not Path("t.release").exists()
        assert "NO default can protect" in Path("t.toml").read_text()
        return
    assert code == 0, found
    release = dalenius.open_release("t.release")
    published = {column["name"] for column in release.manifest["columns"]}
    assert not published & messy.personal
    values: dict[int, int] = {}
    for row in pq.read_table(Path("t.release") / "st.parquet").to_pylist():
        values[row["bucket"]] = values.get(row["bucket"], 0) + 1
    assert min(values.values()) > 1


def test_init_quotes_troublesome_column_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ['the "age"', "größe = [1]", "what's # it", "turned\u202earound"]
    pq.write_table(pa.table({name: [1, 2, 1, 2] for name in names}), tmp_path / "t.parquet")
    options = [text for name in names[1:] for text in ("--quasi", name)]
    assert run(["init", str(tmp_path / "t.parquet"), "--sensitive", names[0], *options]) == 0
    capsys.readouterr()
    assert "\u202e" not in (tmp_path / "t.toml").read_text()
    code, plan = call(capsys, "plan", tmp_path / "t.toml")
    assert (code, plan["feasible"]) == (0, True)


@pytest.mark.parametrize(
    ("counts", "cap", "max_bucket"),
    [
        ({"a": 30, "b": 30, "c": 40}, "0.5", 50),
        ({"a": 60, "b": 40}, "0.5", 50),
        ({"a": 601, "b": 400}, "0.62", 50),
        ({"a": 979, "b": 22}, "0.98", 50),
        ({"a": 9_990, "b": 10}, None, 1_600),
    ],
)
def test_the_default_is_one_that_this_table_can_keep(
    counts: dict[str, int],
    cap: str | None,
    max_bucket: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    values = [value for value, count in counts.items() for _ in range(count)]
    pq.write_table(pa.table({"x": values, "y": [i % 5 for i in range(len(values))]}), tmp_path / "t.parquet")
    assert run(["init", str(tmp_path / "t.parquet"), "--sensitive", "x", "--quasi", "y"]) == 0
    capsys.readouterr()
    policy = tomllib.loads((tmp_path / "t.toml").read_text(), parse_float=str)
    assert policy["mechanism"]["max_bucket"] <= max_bucket
    assert cap in (None, policy["promise"]["default"]["cap"])
    code, plan = call(capsys, "plan", tmp_path / "t.toml")
    assert (code, plan["feasible"]) == (0, True)
    assert min(entry["size"] for entry in plan["buckets"]) > 1


def test_a_policy_with_private_numbers_is_its_owners(folder: Path) -> None:
    assert run(["init", str(folder / "patients.csv"), "--sensitive", "disease"]) == 0
    assert stat.S_IMODE((folder / "patients.toml").stat().st_mode) == 0o600
