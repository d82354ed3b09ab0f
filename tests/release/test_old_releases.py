"""Releases of every format version so far: they open, verify, and answer what they always answered."""

from __future__ import annotations

from pathlib import Path

import pytest

import dalenius

FOLDER = Path(__file__).parents[1] / "releases"
QUESTIONS = {
    "perturb": [
        ("SELECT COUNT(*) FROM t WHERE ward = 'A'", 85.0),
        ("SELECT COUNT(*) FROM t WHERE disease = 'Cold' AND age < 50", 28 / 3),
        ("SELECT COUNT(*) FROM t WHERE since IS NULL", -477 / 91),
    ],
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_it_opens_and_verifies(name: str) -> None:
    release = dalenius.open_release(FOLDER / name)
    assert release.manifest["format_version"] == 1
    assert release.manifest["mechanism"]["kind"] == name
    assert release.verify().ok


@pytest.mark.parametrize(
    ("name", "sql", "estimate"), [(n, *pair) for n, ps in QUESTIONS.items() for pair in ps]
)
def test_it_answers_as_it_always_did(name: str, sql: str, estimate: float) -> None:
    (row,) = dalenius.open_release(FOLDER / name).ask(sql).rows
    assert row.estimate == pytest.approx(estimate, abs=1e-6)


def test_every_kept_release_is_tested() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(QUESTIONS)
