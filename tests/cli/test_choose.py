"""Five questions become a policy that can be planned, with reasons; whatever was answered."""

from __future__ import annotations

import itertools
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from dalenius.cli.main import run
from dalenius.errors import InputError
from dalenius.inspection.choosing import QUESTIONS, choose_sections
from dalenius.inspection.first_policy import FirstPolicy
from dalenius.mechanisms.feasible import Wish
from dalenius.policy import Policy

SAID = {"recipients": "public", "questions": "counts", "hide": "value", "withhold": "no", "again": "no"}
ROLES = ["--sensitive", "disease", "--quasi", "age"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    rows = [f"{i % 40},{'Flu' if i % 10 < 6 else 'HIV' if i % 10 < 8 else 'Gout'}" for i in range(400)]
    path.write_text("age,disease\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def options(said: dict[str, str]) -> list[str]:
    return [part for name, answer in said.items() for part in (f"--{name}", answer)]


def test_every_answer_gives_a_policy_or_a_way_out(table: Path, tmp_path: Path) -> None:
    names = [question.name for question in QUESTIONS]
    first = FirstPolicy.of(table, {"sensitive": ["disease"], "quasi": ["age"]})
    kinds = set()
    out = tmp_path / "p.toml"
    for answers in itertools.product(*(question.answers for question in QUESTIONS)):
        said: dict[str, Any] = dict(zip(names, answers, strict=True))
        wish = Wish(**{**said, "withhold": said["withhold"] == "yes"})
        if (wish.questions, wish.hide, wish.again) == ("records", "value", "others"):
            with pytest.raises(InputError, match="again and again") as refused:
                choose_sections(first.facts, wish)
            assert "published in batches" in str(refused.value.hint)
            continue
        proposal = choose_sections(first.facts, wish)
        out.write_text(first.to_toml(table, out, "r", proposal.sections), encoding="utf-8")
        policy = Policy.from_file(out)
        kinds.add(policy.mechanism.kind)
        assert all(f"# {reason}\n" in out.read_text(encoding="utf-8") for reason in proposal.reasons)
        assert policy.mechanism.views == (2 if wish.again == "same" else 1)
        assert (policy.suppress is not None) <= wish.withhold
    assert kinds == {"bucketize", "perturb", "alpha-beta"}


@pytest.mark.parametrize(
    "said",
    [SAID, {**SAID, "withhold": "yes"}, {**SAID, "questions": "records"}],
    ids=["no", "yes", "rows"],
)
def test_the_policy_can_be_planned(
    table: Path, tmp_path: Path, said: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "p.toml"
    assert run(["choose", str(table), "--out", str(out), *ROLES, *options(said)]) == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert run(["plan", str(out), "--json"]) == 0
    planned = json.loads(capsys.readouterr().out.partition("{")[2].join(("{", "")))
    assert planned["outright"] in (0, None)


def test_roles_stay_undecided(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.toml"
    assert run(["choose", str(table), "--out", str(out), *options(SAID)]) == 0
    assert 'undecided   = ["age", "disease"]' in out.read_text(encoding="utf-8")
    assert run(["plan", str(out)]) == 2


def test_questions_are_asked_on_a_terminal_only(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "p.toml"
    assert run(["choose", str(table), "--out", str(out)]) == 2
    assert "--recipients colleagues | researchers | public" in capsys.readouterr().err
    assert run(["choose", str(table), "--out", str(out), "--again", "som"]) == 2
    typed = iter(["p", "", "counts", "v", "no", "no"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.prompt", lambda _: next(typed))
    assert run(["choose", str(table), "--out", str(out), *ROLES]) == 0
    printed = capsys.readouterr().out
    assert "one of counts, records, please" in printed
    assert "Will it be published again?" in printed
    assert Policy.from_file(out).mechanism.kind == "bucketize"


def test_a_file_is_read_as_the_options_say(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [f"{i % 40};{'Müll' if i % 2 else 'Flu'}" for i in range(400)]
    path.write_bytes(("age;disease\n" + "\n".join(rows) + "\n").encode("latin-1"))
    dialect = ["--encoding", "latin-1", "--delimiter", ";"]
    assert run(["choose", str(path), *dialect, *ROLES, *options(SAID), "--json"]) == 0
    policy = Policy.from_file(tmp_path / "t.toml")
    assert policy.source.column_names == ("age", "disease")


def test_reasons_are_true_where_one_value_is_common(tmp_path: Path) -> None:
    """A usual limit was called what the table allows where plan then refused it."""
    table = tmp_path / "t.csv"
    for n_rare, limit, told in ((23, '"19/20"', "nobody can be kept"), (0, '"9/10"', "NO limit was found")):
        cells = ["yes"] * n_rare + ["no"] * (400 - n_rare)
        rows = [f"{i % 41},{cell}" for i, cell in enumerate(cells)]
        table.write_text("age,hiv\n" + "\n".join(rows) + "\n", encoding="utf-8")
        out = tmp_path / f"{n_rare}.toml"
        said = [*options({**SAID, "questions": "records"}), "--sensitive", "hiv", "--quasi", "age"]
        assert run(["choose", str(table), "--out", str(out), *said]) == 0
        text = out.read_text(encoding="utf-8")
        assert f"rho2 = {limit}" in text
        assert told in text
        assert "that this table allows" not in text
        assert run(["plan", str(out)]) == (0 if n_rare else 2)
