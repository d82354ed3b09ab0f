"""What is installed is whole: the wheel has its data files, and its entry point runs from it alone."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import dalenius

PROJECT = Path(__file__).parent.parent
LIGHT_EXTRAS = ("files", "plots", "postgres", "serve", "sign", "studio")
"""What runs without Java and without machine learning."""
WITHOUT_EXTRAS = """
import sys

EXTRAS = (
    *("adbc_driver_manager", "adbc_driver_postgresql", "altair", "cryptography", "fastapi", "httpx"),
    *("hypothesis", "multipart", "opendp", "pandas", "polars", "pyreadstat", "pyspark", "python_calamine"),
    *("python_multipart", "sklearn", "starlette", "statsmodels", "uvicorn", "vl_convert"),
)

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name in EXTRAS:
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


def test_the_same_source_makes_the_same_archives(tmp_path: Path) -> None:
    """Neither the time of building, nor that of the files, nor the folder shows."""
    pytest.importorskip("hatchling")
    hashes = []
    for name in ("one", "two"):
        copy = tmp_path / name
        kept = shutil.ignore_patterns(".*", "__pycache__", "releases", "results", "demo", "site")
        shutil.copytree(PROJECT, copy, ignore=kept, copy_function=shutil.copyfile)
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        build = [sys.executable, "-m", "hatchling", "build", "-d", "built"]
        subprocess.run(build, cwd=copy, check=True, capture_output=True, env=environment)
        built = sorted((copy / "built").iterdir())
        hashes.append({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in built})
        os.utime(copy / "src" / "dalenius" / "api.py", (0, 0))
    assert len(hashes[0]) == 2
    assert hashes[0] == hashes[1]


def test_the_oldest_versions_are_those_that_are_allowed() -> None:
    """`make test-lowest` tries each bound of the dependencies, and nothing else."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    light = [entry for name in LIGHT_EXTRAS for entry in extras[name]]
    frames = [entry for entry in extras["test"] if entry.startswith(("pandas", "polars", "httpx"))]
    bounds = dict(entry.split(">=") for entry in [*project["dependencies"], *light, *frames])
    lines = (PROJECT / "requirements-lowest.txt").read_text(encoding="utf-8").splitlines()
    tried = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert set(tried) == set(bounds)
    assert all(re.sub(r"(\.0)+$", "", tried[n]) == re.sub(r"(\.0)+$", "", bounds[n]) for n in bounds)


def test_the_version_is_one() -> None:
    named = re.search(
        r"^version: (\S+)$", (PROJECT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert named is not None
    assert named[1] == dalenius.__version__
