"""Identifiers that repeat: rows are perhaps not people, and that is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dalenius.cli.main import run
from dalenius.engines.registry import engine_for
from dalenius.policy import Policy
from dalenius.release.exposure import find_exposures

SAID = "5 cells of 'patient' stand in several rows, 15 in all: if these are people with several rows"


def write(roles: str, names: list[str], promise: str = 'kind = "l-diversity"\nl = 2') -> None:
    rows = [f"{name},{i},{20 + i % 7},{['Flu', 'Cold', 'Gout'][i % 3]}" for i, name in enumerate(names)]
    Path("t.csv").write_text("patient,visit,age,disease\n" + "\n".join(rows) + "\n", encoding="utf-8")
    head = f'source = "t.csv"\nrelease = "t.release"\n[columns]\nquasi = ["age"]\n{roles}\n'
    Path("t.toml").write_text(f"{head}[promise]\n{promise}\n", encoding="utf-8")


SEVERAL = [f"Ann{i // 3}" for i in range(15)] + [f"Bob{i}" for i in range(15)] + ["", ""]
ROLES = 'sensitive = ["disease"]\nidentifiers = ["patient", "visit"]'


def test_plan_and_publish_say_it_and_quote_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(ROLES, SEVERAL)
    assert run(["plan", "t.toml"]) == 0
    planned = capsys.readouterr().out
    assert SAID in planned
    assert "'visit'" not in planned
    assert "Ann" not in planned
    assert "--yes" not in planned
    assert run(["plan", "t.toml", "--json"]) == 0
    alone = {"beside": None, "is_person": False, "sharing": None}
    found = [{"column": "patient", "several": 5, "rows": 15, **alone}]
    assert json.loads(capsys.readouterr().out)["shared_identifiers"] == found
    assert run(["publish", "t.toml", "--draft"]) == 0
    assert SAID in capsys.readouterr().out
    assert run(["publish", "t.toml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["shared_identifiers"] == found


@pytest.mark.parametrize(
    ("roles", "names"),
    [
        (ROLES, [f"Bob{i}" for i in range(32)]),
        ('sensitive = ["disease"]\ndropped = ["patient", "visit"]', SEVERAL),
        ('sensitive = ["disease"]\nunit = "visit"\nidentifiers = ["patient"]', SEVERAL),
    ],
    ids=["each once", "dropped", "unit"],
)
def test_nothing_is_said_where_rows_are_people_or_the_column_is_not_to_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, roles: str, names: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(roles, names)
    read: list[str] = []
    policy = Policy.from_file("t.toml")
    with engine_for(policy).open(policy, None, lambda *_: None) as table:
        counted = type(table).count_repeated

        def count(self: Any, *columns: str) -> tuple[int, int]:
            read.extend(columns)
            return counted(self, *columns)

        monkeypatch.setattr(type(table), "count_repeated", count)
        assert find_exposures(policy, table).shared == ()
    wanted = {"dropped": [], "unit": ["patient", "visit"]}
    assert read == next((found for role, found in wanted.items() if role in roles), ["patient", "visit"])


def test_it_is_told_of_promises_about_rows_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    promise = (
        'kind = "d-gamma-privacy"\nd = "1/10"\ngamma = 0.5\n[domains]\nage = [20, 21, 22, 23, 24, 25, 26]'
    )
    roles = 'identifiers = ["patient", "visit"]\ndropped = ["disease"]'
    write(roles, SEVERAL, promise)
    policy = Policy.from_file("t.toml")
    with engine_for(policy).open(policy, None, lambda *_: None) as opened:
        (one,) = find_exposures(policy, opened).shared
    assert (one.column, one.several, one.rows) == ("patient", 5, 15)
