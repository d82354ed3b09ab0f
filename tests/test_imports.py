"""Who may import whom, what is public, and what `import dalenius` does not load."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dalenius
from dalenius import errors

SOURCE = Path(dalenius.__file__).parent
# Imports go from right to left only.
ORDER = [
    {"errors"},
    {
        "arrow_memory",
        "sql",
        "exact",
        "column_names",
        "charts",
        "ahead",
        "postgres_uri",
        "postgres_connection",
    },
    {"coded_columns"},
    {"csv_source", "postgres_source", "recode", "domains"},
    {"table", "histogram", "randomness"},
    {"promises"},
    {"mechanism_configs"},
    {"policy_sections"},
    {"policy"},
    {"mechanisms"},
    {"engines"},
    {"release", "ledger"},
    {"series"},
    {"batches", "repeats"},
    {"publishing", "ask", "export", "attacks", "inspection", "demo_data"},
    {"evaluate"},
    {"reproduce", "report"},
    {"api"},
    {"cli"},
    {"__main__"},
]
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
MODULES = sorted(
    path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem not in ("__init__",)
)


def imported_rooms(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dalenius"):
            parts = node.module.split(".")[1:]
            names |= {parts[0]} if parts else {alias.name for alias in node.names}
    return names


def test_every_room_has_its_place() -> None:
    assert {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in MODULES} == set(RANK)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_imports_go_downwards(path: Path) -> None:
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    for other in imported_rooms(path) - {room}:
        assert RANK[other] < RANK[room], f"{room} must not import {other}"


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
    """They are loaded when they are used, and a room of the same name (report) does not hide one."""
    code = (
        "import dalenius; from dalenius.report.building import build_report;"
        "assert all(callable(getattr(dalenius, name)) for name in dalenius.__all__);"
        "assert set(dalenius.__all__) <= set(dir(dalenius));"
        "from dalenius import *; assert report.__module__ == 'dalenius.api'; import dalenius.report.writing;"
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
        "open_release",
        "plan",
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
