"""Drafts: rehearsals beside the release, outside the ledger, never to be published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest

import dalenius
from dalenius.cli.main import run
from dalenius.demo_data import hospital
from dalenius.errors import InputError, PromiseNotMet
from dalenius.policy import Policy

COLUMNS = {
    "unit": "patient_id",
    "identifiers": ["name"],
    "quasi": ["age", "sex", "district", "insurance"],
    "sensitive": ["disease"],
}
DIVERSE = {"kind": "l-diversity", "l": 3}


def policy(folder: Path, **sections: Any) -> Policy:
    table = hospital(800)
    data = {"source": table, "release": "r", "columns": COLUMNS, "promise": DIVERSE, **sections}
    return Policy.from_dict({**data, "ledger": {"path": "ledger"}}, folder=folder)


def test_a_draft_goes_beside_the_release_and_the_ledger_is_left_alone(tmp_path: Path) -> None:
    draft = dalenius.publish(policy(tmp_path), draft=True)
    assert draft.path == tmp_path / "r.draft"
    assert (draft.manifest["draft"], draft.manifest["for_publication"]) == (True, False)
    assert not (tmp_path / "ledger").exists()
    assert draft.verify().ok
    failed = [check for check in draft.verify(strict=True).checks if not check.ok]
    assert [check.name for check in failed] == ["for publication"]
    assert "a draft" in failed[0].detail
    release = dalenius.publish(policy(tmp_path))
    assert "draft" not in release.manifest
    assert release.verify(strict=True).ok


def test_drafts_follow_each_other_and_differ(tmp_path: Path) -> None:
    """After a release too: a rehearsal of something else is no second release."""
    dalenius.publish(policy(tmp_path))
    first = dalenius.publish(policy(tmp_path), draft=True).manifest
    second = dalenius.publish(policy(tmp_path), draft=True).manifest
    assert first["id"] != second["id"]
    assert first["tables"][0]["files"][0]["sha256"] != second["tables"][0]["files"][0]["sha256"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger", "r", "r.draft"]
    with pytest.raises(InputError, match="exists already"):
        dalenius.publish(policy(tmp_path))


def test_a_seeded_draft_can_be_repeated(tmp_path: Path) -> None:
    one, two = (dalenius.publish(policy(tmp_path), draft=True, seed=7).manifest for _ in range(2))
    assert one["tables"] == two["tables"]


@pytest.mark.parametrize("what", ["release", "folder", "file"])
def test_nothing_but_a_draft_is_replaced(what: str, tmp_path: Path) -> None:
    target = tmp_path / "r.draft"
    if what == "release":
        dalenius.publish(policy(tmp_path, release="r.draft"), seed=1)
    elif what == "folder":
        target.mkdir()
        (target / "thesis.txt").write_text("three years")
    else:
        target.write_text("three years")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(InputError, match="no draft"):
        dalenius.publish(policy(tmp_path), draft=True)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_a_draft_that_fails_leaves_the_one_before(tmp_path: Path) -> None:
    first = dalenius.publish(policy(tmp_path), draft=True)
    with pytest.raises(PromiseNotMet):
        dalenius.publish(policy(tmp_path, promise={"kind": "l-diversity", "l": 700}), draft=True)
    assert dalenius.open_release(tmp_path / "r.draft").manifest["id"] == first.manifest["id"]
    assert [path.name for path in tmp_path.iterdir()] == ["r.draft"]


@pytest.mark.parametrize("kind", ["batches", "views"])
def test_a_draft_of_a_series_is_a_first_release_that_the_series_never_had(kind: str, tmp_path: Path) -> None:
    sections: dict[str, Any] = {"series": {"kind": "batches"}}
    if kind == "views":
        sections = {
            "promise": {"kind": "d-gamma-privacy", "k": 2, "gamma": 0.3},
            "mechanism": {"kind": "alpha-beta", "domains": "active", "duplicates": "distinct", "views": 2},
        }
    for _ in range(2):
        draft = dalenius.publish(policy(tmp_path, **sections), draft=True)
    assert (draft.path.name, draft.manifest["series"]["index"]) == ("r.draft", 1)
    assert dalenius.publish(policy(tmp_path, **sections)).manifest["series"]["index"] == 1
    draft = dalenius.publish(policy(tmp_path, **sections), draft=True)
    assert draft.manifest["series"]["index"] == 1
    assert len(list((tmp_path / "r").iterdir())) == 1


def test_a_draft_says_whom_it_would_publish_outright_and_does_not_ask(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pyarrow.csv.write_csv(hospital(800), tmp_path / "t.csv")
    (tmp_path / "p.toml").write_text(
        'source = "t.csv"\nrelease = "r"\n[columns]\nunit = "patient_id"\nidentifiers = ["name"]\n'
        'quasi = ["age", "sex", "district", "insurance"]\nsensitive = ["disease"]\n[promise]\n'
        'kind = "f-privacy"\ndefault = { times = 4, plus = 0.02 }\nvalues = { Flu = 1.0 }\n'
    )
    assert run(["publish", str(tmp_path / "p.toml"), "--json"]) == 3
    capsys.readouterr()
    assert run(["publish", str(tmp_path / "p.toml"), "--draft", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["draft"] is True
    assert told["outright"] > 0
    assert told["release"] == str(tmp_path / "r.draft")
    assert run(["publish", str(tmp_path / "p.toml"), "--draft"]) == 0
    said = capsys.readouterr().out
    assert "published outright" in said
    assert "a draft: not for publication" in said
    assert run(["report", str(tmp_path / "r.draft"), "--output", str(tmp_path / "r.txt")]) == 0
    assert "This release is a draft" in (tmp_path / "r.txt").read_text()
