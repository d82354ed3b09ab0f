"""One question over several releases, and the changes from one to the next."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow as pa
import pytest

import dalenius
from dalenius.ask import ask
from dalenius.ask.course import ask_course
from dalenius.cli.main import run
from dalenius.errors import InputError
from dalenius.release.folder import StoredRelease

ASKED = "SELECT sex, COUNT(*) FROM t WHERE disease = 'Flu' GROUP BY sex"


def test_changes_are_made_of_the_answers_and_their_intervals(
    release: StoredRelease, clear_release: StoredRelease
) -> None:
    course = ask_course([release, clear_release], ASKED)
    first, second = (ask(one, ASKED) for one in (release, clear_release))
    assert [moment.answer.rows for moment in course.moments] == [first.rows, second.rows]
    for change, one, two in zip(course.changes, first.rows, second.rows, strict=True):
        assert change.group == one.group == two.group
        assert change.estimate == pytest.approx(two.estimate - one.estimate)  # type: ignore[operator]
        # the second is exact, so that the error is the first one's, the other way round
        assert change.std_error == pytest.approx(one.std_error)
        assert change.low == pytest.approx(two.estimate - one.high)  # type: ignore[operator]
        assert change.high == pytest.approx(two.estimate - one.low)  # type: ignore[operator]


def test_changes_between_perturbed_releases_hold(tmp_path: Path) -> None:
    """Tables with 300 and 200 of 800 people ill; 12 pairs of releases."""
    held, errors = 0, []
    for seed in range(12):
        made = []
        for year, n_ill in ((0, 300), (1, 200)):
            values = ["a"] * n_ill + ["b"] * 250 + ["c"] * (550 - n_ill)
            policy = {
                "source": pa.table({"sex": ["F", "M"] * 400, "disease": values}),
                "release": str(tmp_path / f"{seed}-{year}"),
                "columns": {"quasi": ["sex"], "sensitive": ["disease"]},
                "promise": {"kind": "rho-privacy", "rho1": "max", "rho2": "3/4"},
                "mechanism": {"kind": "perturb", "method": "uniform"},
            }
            made.append(dalenius.publish(dalenius.Policy.from_dict(policy), seed=100 * seed + year))
        (change,) = made[0].ask_then("SELECT COUNT(*) FROM t WHERE disease = 'a'", made[1]).changes
        assert change.low is not None
        assert change.high is not None
        held += change.low <= -100 <= change.high
        errors.append((change.estimate or 0) + 100)
    assert held >= 9
    assert math.sqrt(sum(e**2 for e in errors) / len(errors)) < 120


def test_the_command(
    release: StoredRelease, clear_release: StoredRelease, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["ask", str(release.path), ASKED, "--then", str(clear_release.path)]
    assert run(arguments) == 0
    shown = capsys.readouterr().out
    assert f"{release.path.name} to {clear_release.path.name}" in shown
    assert run([*arguments, "--json", "--explain"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [moment["release"] for moment in told["moments"]] == [release.path.name, clear_release.path.name]
    assert all("explain" in moment for moment in told["moments"])
    assert {change["group"]["sex"] for change in told["changes"]} >= {"F", "M"}
    assert run(["ask", str(release.path), ASKED, "--then", str(release.path)]) == 2
    assert "named twice" in capsys.readouterr().err
    with pytest.raises(InputError, match="two releases or more"):
        ask_course([release], ASKED)
