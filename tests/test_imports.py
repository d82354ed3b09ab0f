"""Who may import whom, what is public, and what `import dalenius` does not load."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import dalenius
from dalenius import errors

SOURCE = Path(dalenius.__file__).parent
# Vocabulary below, mechanisms in the middle, drivers above: a room imports from its own line and from those
# before it. A module's room is the longest of these names that its own begins with.
LAYERS = [
    ["system"],
    ["errors", "arrays", "files"],
    ["plain"],
    ["display"],
    ["exact", "sql", "randomness", "prefetch"],
    ["tables"],
    ["promises", "demo_data"],
    ["release.manifest"],  # the value that engines write and mechanisms read; its folder is further up
    ["mechanisms.registry", "mechanisms.feasible"],
    ["mechanisms.config"],
    ["policy"],
    ["mechanisms"],  # what all mechanisms share: base, dealing, sharding, repeated
    ["engines.base"],
    ["release"],
    ["question", "threats", "pages", "mechanisms.measures"],
    ["mechanisms.rows"],  # what several mechanisms share, by what they publish
    ["mechanisms.tuples"],
    [
        "mechanisms.suppress",
        "mechanisms.perturb",
        "mechanisms.alphabeta",
        "mechanisms.frapp",
        "mechanisms.bucketize",
    ],
    ["engines"],
    ["publishing", "ask", "auditing", "export", "inspection"],
    ["evaluate"],
    ["reproduce", "reporting"],
    ["web"],
    ["serve", "studio"],
    ["api"],
    ["cli"],
    ["__main__"],
]
RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}
MODULES = sorted(
    path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem not in ("__init__",)
)


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def room_of(module: str) -> str:
    parts = module.split(".")
    names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next(name for name in names if name in RANK)


@cache
def imported_modules(path: Path) -> set[str]:
    """What a module imports of this package, wherever in the file."""
    known = {module_name(other) for other in MODULES}
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dalenius"):
            module = node.module.removeprefix("dalenius").removeprefix(".")
            for alias in node.names:
                inner = f"{module}.{alias.name}".removeprefix(".")
                names.add(inner if inner in known else module)
    return names - {""}


DRIVERS = [
    "ask",
    "auditing",
    "reporting",
    "export",
    "publishing",
    "inspection",
    "evaluate",
    "api",
    "cli",
    "web",
    "serve",
    "studio",
]
"""What drives all mechanisms and knows none of them."""


def test_every_room_has_its_place() -> None:
    rooms = {room_of(module_name(path)) for path in MODULES}
    assert rooms == set(RANK)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_imports_go_downwards(path: Path) -> None:
    room = room_of(module_name(path))
    for other in {room_of(module) for module in imported_modules(path)} - {room}:
        assert RANK[other] < RANK[room], f"{room} must not import {other}"


PACKAGES = sorted(path.parent for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE)
MOST_FILES = 15


@pytest.mark.parametrize("package", [SOURCE, *PACKAGES], ids=lambda path: path.name)
def test_a_room_can_be_looked_over(package: Path) -> None:
    assert len(list(package.glob("*.py"))) <= MOST_FILES, f"{package}: it wants sub-rooms"


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_what_is_in_a_room_has_an_order(package: Path) -> None:
    """Its modules and sub-rooms import each other in one direction: none stands above and below another."""
    inside = f"{module_name(package / '__init__.py')}."

    def in_room(module: str) -> str:
        return module.removeprefix(inside).split(".")[0]

    below: dict[str, set[str]] = {}
    for path in set(package.rglob("*.py")) - {package / "__init__.py"}:
        own = in_room(module_name(path))
        others = {in_room(module) for module in imported_modules(path) if module.startswith(inside)}
        below.setdefault(own, set()).update(others - {own})
    TopologicalSorter(below).prepare()  # or a CycleError that names them


@pytest.mark.parametrize("driver", DRIVERS)
def test_drivers_know_no_mechanism(driver: str) -> None:
    """They ask the registry for rooms; only what reproduces the papers speaks of a mechanism by name."""
    folders = {f"mechanisms.{path.parent.name}" for path in SOURCE.glob("mechanisms/*/__init__.py")}
    for path in MODULES:
        if module_name(path).split(".")[0] == driver:
            known = {".".join(module.split(".")[:2]) for module in imported_modules(path)}
            assert not known & folders, path


def test_importing_dalenius_is_light() -> None:
    heavy = [
        "pyspark",
        "altair",
        "vl_convert",
        "pandas",
        "polars",
        "sklearn",
        "scipy.stats",
        "duckdb",
        "numpy",
    ]
    code = f"import sys, dalenius; print([name for name in {heavy!r} if name in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert printed.stdout.strip() == "[]"


def test_the_public_names_are_there_whatever_is_imported_first() -> None:
    """They are loaded when they are used, and no room has the name of one, which importing it would hide."""
    assert not {path.stem for path in SOURCE.iterdir()} & set(dalenius.__all__)
    code = (
        "import dalenius; from dalenius.reporting.build import build_report;"
        "assert all(callable(getattr(dalenius, name)) for name in dalenius.__all__);"
        "assert set(dalenius.__all__) <= set(dir(dalenius));"
        "from dalenius import *; assert report.__module__ == 'dalenius.api'; import dalenius.pages.writing;"
        "assert dalenius.report is report"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    )
    with pytest.raises(AttributeError, match="no attribute 'publis'"):
        dalenius.publis  # noqa: B018


def test_the_public_names_are_these() -> None:
    assert dalenius.__all__ == [
        "DaleniusError",
        "EngineError",
        "InputError",
        "InternalError",
        "Policy",
        "PolicyError",
        "PromiseNotMet",
        "QueryError",
        "Release",
        "ReleaseCorrupt",
        "SourceError",
        "audit",
        "compare",
        "gather_persons",
        "open_release",
        "plan",
        "pool",
        "publish",
        "report",
        "verify",
    ]


def test_every_error_is_in_the_drawn_tree_with_its_exit_code() -> None:
    classes = [
        c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.DaleniusError)
    ]
    assert {c.__name__: c.exit_code for c in classes} == {
        "DaleniusError": 1,
        "InputError": 2,
        "PolicyError": 2,
        "SourceError": 2,
        "QueryError": 2,
        "PromiseNotMet": 3,
        "ReleaseCorrupt": 1,
        "EngineError": 1,
        "InternalError": 1,
    }
    assert errors.__doc__ is not None
    assert all(c.__name__ in errors.__doc__ for c in classes)
