"""Releases of every format version so far: they open, verify, and answer what they always answered."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import dalenius

FOLDER = Path(__file__).parents[1] / "releases"
QUESTIONS = {
    "bucketize": [
        ("SELECT COUNT(*) FROM t WHERE sex = 'F'", 33.0),
        ("SELECT COUNT(*) FROM t WHERE disease = 'Flu'", 12.0),
        ("SELECT SUM(age) FROM t WHERE district = 'Harbour'", 726.0),
    ],
    "bucketize-suppress": [
        ("SELECT COUNT(*) FROM t WHERE sex = 'F'", 28.0),
        ("SELECT COUNT(*) FROM t WHERE disease = 'Flu'", 5.0),
        ("SELECT SUM(age) FROM t WHERE district = 'Harbour'", 632.0),
    ],
    "perturb": [
        ("SELECT COUNT(*) FROM t WHERE ward = 'A'", 85.0),
        ("SELECT COUNT(*) FROM t WHERE disease = 'Cold' AND age < 50", 28 / 3),
        ("SELECT COUNT(*) FROM t WHERE since IS NULL", -477 / 91),
    ],
    "alpha-beta": [
        ("SELECT COUNT(*) FROM t WHERE ill = 'flu' AND age < 33", 3.06249814453067),
    ],
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_it_opens_and_verifies(name: str) -> None:
    release = dalenius.open_release(FOLDER / name)
    assert release.manifest["format_version"] == 1
    assert name.startswith(release.manifest["mechanism"]["kind"])
    assert release.verify().ok


@pytest.mark.parametrize(
    ("name", "sql", "estimate"), [(n, *pair) for n, ps in QUESTIONS.items() for pair in ps]
)
def test_it_answers_as_it_always_did(name: str, sql: str, estimate: float) -> None:
    (row,) = dalenius.open_release(FOLDER / name).ask(sql).rows
    assert row.estimate == pytest.approx(estimate, abs=1e-6)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_folder_named_like_a_partition_changes_nothing(name: str, tmp_path: Path) -> None:
    moved = shutil.copytree(FOLDER / name, tmp_path / "age=1" / "disease=Flu" / name)
    release = dalenius.open_release(moved)
    assert release.verify().ok
    for sql, estimate in QUESTIONS[name]:
        assert release.ask(sql).rows[0].estimate == pytest.approx(estimate, abs=1e-6)


def test_every_kept_release_is_tested() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(QUESTIONS)
