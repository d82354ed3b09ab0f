"""What is installed is whole: the wheel has its data files, and its entry point runs from it alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import dalenius

PROJECT = Path(__file__).parent.parent
WITHOUT_EXTRAS = """
import sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name in ("altair", "vl_convert", "pandas", "polars", "opendp", "pyspark", "hypothesis"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hide())
from dalenius.cli.main import COMMANDS, run

assert all(run([command, "--help"]) == 0 for command in COMMANDS)
assert run(["demo", sys.argv[1]]) == 0
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "-w", str(folder), str(PROJECT)], check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_has_the_version_that_the_program_names(wheel: Path) -> None:
    assert wheel.name.startswith(f"dalenius-{dalenius.__version__}-")


def test_the_wheel_holds_the_schema_and_the_type_marker(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "dalenius/release/manifest.schema.json" in names
    assert "dalenius/pages/style.css" in names
    assert "dalenius/py.typed" in names
    assert not any(name.startswith("tests") for name in names)


def test_the_source_archive_holds_what_its_makefile_needs(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    needed = set(re.findall(r"[\w/-]+\.(?:lock|toml|txt)\b", makefile))
    needed |= {f"bench/{name}.py" for name in re.findall(r"-m bench\.(\w+)", makefile)}
    assert {"requirements-test.lock", "bench/plan_speed.py"} <= needed
    assert needed <= names


def test_every_command_starts_from_the_wheel_without_the_extras(wheel: Path, tmp_path: Path) -> None:
    """The extras' packages are hidden: a command that needed one would not start."""
    environment = {**os.environ, "PYTHONPATH": str(wheel)}
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, str(tmp_path / "tour")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "Try next" in ran.stdout
