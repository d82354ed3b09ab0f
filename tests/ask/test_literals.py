"""A text that no published row has is noted, with the nearest one that some row has."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import dalenius
from dalenius.ask import literals
from dalenius.cli.main import run


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> dalenius.Release:
    path = tmp_path_factory.mktemp("literals") / "r"
    table = pa.table({"sex": ["f", "m"] * 30, "age": list(range(60)), "disease": ["Flu", "HIV", "Gout"] * 20})
    return dalenius.publish(
        dalenius.Policy.from_dict(
            {
                "source": table,
                "release": str(path),
                "columns": {"quasi": ["sex", "age"], "sensitive": ["disease"]},
                "promise": {"kind": "l-diversity", "l": 2},
            }
        ),
        seed=1,
    )


@pytest.mark.parametrize(
    ("where", "notes"),
    [
        ("sex = 'f' AND disease = 'HIV' AND age = 99", []),
        ("sex = 'F'", ["no such value: no published row has sex = 'F'; did you mean 'f'?"]),
        (
            "NOT disease IN ('Flu', 'hiv', 'Plague')",
            [
                "no such value: no published row has disease = 'hiv'; did you mean 'HIV'?",
                "no such value: no published row has disease = 'Plague'",
            ],
        ),
    ],
)
def test_what_no_row_has_is_noted(release: dalenius.Release, where: str, notes: list[str]) -> None:
    answer = release.ask(f"SELECT COUNT(*) FROM t WHERE {where}")
    assert list(answer.notes) == answer.to_dict()["notes"] == notes


def test_conditions_of_aggregates_are_read_too(release: dalenius.Release) -> None:
    (note,) = release.ask("SELECT COUNT(*) FILTER (WHERE disease = 'flu') FROM t").notes
    assert note.endswith("did you mean 'Flu'?")


def test_a_column_is_looked_up_once(release: dalenius.Release, monkeypatch: pytest.MonkeyPatch) -> None:
    release.ask("SELECT COUNT(*) FROM t WHERE sex = 'f' AND disease = 'x'")
    monkeypatch.setattr(literals, "_texts_of", None)
    assert release.ask("SELECT COUNT(*) FROM t WHERE sex = 'M'").notes


def test_the_command_prints_the_note(
    release: dalenius.Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ask", str(release.path), "SELECT COUNT(*) FROM t WHERE sex = 'F'"]) == 0
    assert "note: no such value: no published row has sex = 'F'; did you mean 'f'?" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("where", "is_noted"),
    [
        ("pay >= '50000'", True),
        ("NOT (sex = 'f' AND pay BETWEEN '50000' AND '149999')", True),
        ("'50000' <= pay", True),
        ("pay = '50000-99999'", False),
        ("zip < '20000'", False),
        ("day < '2024-02'", False),
    ],
)
def test_ranges_that_are_compared_as_texts_are_noted(where: str, is_noted: bool, tmp_path: Path) -> None:
    """A count of all who earn 50,000 or more left out those who earn 100,000, and was called exact."""
    pay = [("20000-49999", "50000-99999", "100000-149999")[i % 3] for i in range(60)]
    table = pa.table(
        {
            "sex": ["f", "m"] * 30,
            "zip": [("10115", "20095")[i % 4 // 2] for i in range(60)],
            "day": [f"2024-{1 + i % 5:02d}-01" for i in range(60)],
            "pay": pay,
        }
    )
    policy = {
        "source": table,
        "release": str(tmp_path / "r"),
        "columns": {"quasi": ["sex", "zip", "day"], "sensitive": ["pay"]},
        "promise": {"kind": "l-diversity", "l": 2},
    }
    release = dalenius.publish(dalenius.Policy.from_dict(policy), seed=1)
    notes = release.ask(f"SELECT COUNT(*) FROM t WHERE {where}").notes
    assert any("letter by letter" in note and "pay IN" in note for note in notes) == is_noted
    with pytest.raises(dalenius.QueryError) as refused:
        release.ask("SELECT COUNT(*) FROM t WHERE pay >= 50000")
    assert "ranges and other texts are named" in str(refused.value.hint)
