"""The doctor looks for all that the package asks for, and at the Java that Spark would find."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from dalenius.cli import doctor

PROJECT = Path(__file__).parents[2]


def test_every_dependency_is_looked_for() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {
        extra: names_in(needs) for extra, needs in project["optional-dependencies"].items() if extra != "test"
    }
    assert set(doctor.REQUIRED) == names_in(project["dependencies"])
    assert set(doctor.OPTIONAL) == set().union(*extras.values()) - {"dalenius"}
    assert all(name in extras[extra] for name, extra in doctor.OPTIONAL.items())


def names_in(needs: list[str]) -> set[str]:
    return {re.split(r"[^\w-]", need)[0] for need in needs}


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("echo 'openjdk version \"17.0.15\" 2025-04-15' >&2", "17.0.15"),
        ("echo 'openjdk version \"21\" 2023-09-19' >&2", "21"),
        ("echo 'java version \"1.8.0_401\"' >&2", None),
        ("exit 1", None),
        ("echo something else >&2", None),
    ],
)
def test_only_a_java_that_spark_can_use_counts(
    script: str, found: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = next(f for f in doctor.examine() if f.name.startswith("java"))
    assert finding.found == found
    assert (finding.remedy is None) == (found is not None)
    assert not finding.needed


def test_no_java_at_all_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    finding = next(f for f in doctor.examine() if f.name.startswith("java"))
    assert finding.found is None
    assert "openjdk-17" in str(finding.remedy)


def test_a_remedy_can_be_copied(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it is, it stands on one line."""
    remedy = f"{'/a/long/path' * 12}/python -m pip install x"
    missing = doctor.Finding(name="x", found=None, needed=False, remedy=remedy)
    monkeypatch.setattr(doctor, "examine", lambda: [missing])
    assert doctor.command() == 0
    assert f"to get x: {remedy}\n" in capsys.readouterr().out
