"""`dalenius ledger`: what was published, and forgetting it, which leaves a trail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dalenius
from dalenius.cli.main import run
from dalenius.policy import Policy
from tests.people import people


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    return Policy.from_dict(
        {
            "source": people(300, 1),
            "release": str(tmp_path / "r"),
            "columns": {"quasi": ["age", "sex", "city", "job"], "sensitive": ["disease"]},
            "promise": {"kind": "l-diversity", "l": 3},
        }
    )


def test_a_release_is_listed_shown_and_forgotten_with_a_trail(
    policy: Policy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = dalenius.publish(policy)

    def ask(*arguments: str, code: int = 0) -> Any:
        assert run(["ledger", *arguments, "--json"]) == code
        return json.loads(capsys.readouterr().out)

    (one,) = ask("list")["releases"]
    assert one == ask("show", one["id"][:8])
    assert one["id"] == release.manifest["id"]
    assert one["known_by"] == ["records", "values", "people"] or one["known_by"] == ["records", "people"]
    assert run(["ledger", "list"]) == run(["ledger", "show", one["id"]]) == 0
    assert str(tmp_path / "r") in capsys.readouterr().out

    assert "why" in ask("forget", one["id"], "--yes", code=2)["error"]["message"]
    refused = ask("forget", one["id"], "--reason", "a trial", code=2)["error"]
    assert "--yes" in refused["hint"]
    assert len(ask("list")["releases"]) == 1
    gone = ask("forget", one["id"], "--reason", "a trial", "--yes")
    assert gone["reason"] == "a trial"
    listed = ask("list")
    assert (listed["releases"], listed["forgotten"]) == ([], [gone])
    assert run(["ledger", "list"]) == 0
    assert "a trial" in capsys.readouterr().out
    release.path.rename(tmp_path / "away")
    dalenius.publish(policy)


@pytest.mark.parametrize("arguments", [["show", "zz"], ["show"], ["forget", "zz", "--yes"], ["burn"]])
def test_what_is_not_there_is_an_error(arguments: list[str]) -> None:
    assert run(["ledger", *arguments]) == 2


def test_another_ledger_must_exist(tmp_path: Path) -> None:
    assert run(["ledger", "list", "--path", str(tmp_path / "no")]) == 2
    assert not (tmp_path / "no").exists()
