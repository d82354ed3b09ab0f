"""Blocks of the documentation that are not run as they stand: policies are planned, commands are parsed.

Console and Python blocks are run by `test_docs.py`.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import sqlglot
import typer

from dalenius.cli.main import COMMANDS, application
from dalenius.policy import Policy, open_source_of
from dalenius.publishing import make_plan
from dalenius.question.sql import parse

PROJECT = Path(__file__).parent.parent
PAGES = sorted([PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
DISEASES = ("Flu", "Cold", "Cough", "failed", "passed", "Gout", "HIV")
PERSONS = {
    "columns": {"quasi": ["age", "sex"], "sensitive": ["Asthma", "Flu", "HIV"], "identifiers": ["patient"]},
    "promise": {"kind": "sets", "default": 0.5},
}
BASE: dict[str, Any] = {
    "source": "patients.csv",
    "release": "patients.release",
    "columns": {
        "unit": "patient_id",
        "identifiers": ["name"],
        "quasi": ["age", "sex", "salary", "survey_weight"],
        "sensitive": ["disease"],
        "dropped": ["zip", "notes"],
    },
    "promise": {"kind": "l-diversity", "l": 3},
}


def blocks(*languages: str) -> list[Any]:
    found = []
    for page in PAGES:
        for number, (language, text) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8"))):
            if language in languages:
                found.append(pytest.param(text, id=f"{page.stem}-{number}"))
    return found


def test_every_language_is_looked_at() -> None:
    seen = {language for page in PAGES for language, _ in BLOCK.findall(page.read_text(encoding="utf-8"))}
    assert seen <= {"console", "python", "toml", "sh", "sql", "py"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table that has every column and value that the pages speak of."""
    folder = tmp_path_factory.mktemp("policies")
    rows = ["patient_id;name;age;sex;salary;survey_weight;disease;zip;notes"]
    for i in range(1_400):
        disease = DISEASES[-1] if i % 60 == 0 else DISEASES[i % 6]
        rows.append(
            f"{i};Jürg {i};{20 + i % 5};{'FM'[i // 5 % 2]};{1_000 * (i % 2)};1,5;{disease};{2 ** (i % 9)};x"
        )
    (folder / "t.csv").write_bytes("\n".join(rows).encode("latin-1"))
    (folder / "patients.csv").write_text(
        "\n".join(rows).replace(",", ".").replace(";", ","), encoding="utf-8"
    )
    visits = [
        f"{i % 600},{20 + i % 5},{'FM'[i // 5 % 2]},{'HIV' if i % 45 == 7 else ('Asthma', 'Flu', '')[i % 3]}"
        for i in range(900)
    ]
    (folder / "visits.csv").write_text("\n".join(["patient,age,sex,disease", *visits]), encoding="utf-8")
    (folder / "zips.csv").write_text("zip\n" + "\n".join(str(2**k) for k in range(9)), encoding="utf-8")
    return folder


def completed(block: dict[str, Any]) -> dict[str, Any]:
    """The block's policy: what it does not say is as usual, and a column that it names has no other role."""
    if "persons" in (block.get("source") or ()):
        return {**PERSONS, **block}
    columns = {**BASE["columns"], **block.get("columns", {})}
    said = {
        name
        for role, names in block.get("columns", {}).items()
        if role not in ("k", "undecided")
        for name in ([names] if isinstance(names, str) else names)
    }
    for role, names in BASE["columns"].items():
        if role not in block.get("columns", {}) and role != "unit":
            columns[role] = [name for name in names if name not in said]
    named = {n for names in columns.values() if not isinstance(names, int) for n in _listed(names)}
    columns["dropped"] = [*columns["dropped"], *sorted(_names() - named)]
    return {**BASE, **block, "columns": columns}


def _listed(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _names() -> set[str]:
    return {name for names in BASE["columns"].values() for name in _listed(names)}


@pytest.mark.parametrize("text", blocks("toml"))
def test_every_policy_can_be_planned(text: str, folder: Path) -> None:
    block = tomllib.loads(text)
    if block.get("promise", {}).get("kind") == "d-gamma-privacy" and "columns" not in block:
        block["columns"] = {"quasi": ["name", "age", "sex", "zip"]}  # many rows are possible
    if block.get("promise", {}).get("kind") == "proximity":
        block["columns"] = {"sensitive": ["zip"]}  # numbers
    if "ledger" in block:
        block["ledger"] = {"path": str(folder / "ledger")}
    plan = make_plan(Policy.from_dict(completed(block), folder))
    assert str(plan)


@pytest.mark.parametrize("text", blocks("sh"))
def test_every_command_is_one_that_the_program_takes(text: str) -> None:
    """Its arguments are parsed, and not run: they name servers and files of others."""
    group = typer.main.get_command(application(COMMANDS))
    assert isinstance(group, typer.core.TyperGroup)
    for line in text.replace("\\\n", " ").splitlines():
        for part in re.split(r" && | \| ", line):
            words = shlex.split(part, comments=True)
            if words[:1] == ["dalenius"]:
                command = group.commands[words[1]]
                assert command.make_context(words[1], words[2:]) is not None


@pytest.mark.parametrize("text", blocks("sql"))
def test_every_question_is_one(text: str, folder: Path) -> None:
    names = open_source_of("patients.csv", folder).column_names
    for line in filter(None, (line.partition("--")[0].strip() for line in text.split("\nSELECT "))):
        sql = line if line.startswith("SELECT") else f"SELECT {line}"
        if "UNION" in sql:  # a question for the database that a release is exported to
            assert sqlglot.parse_one(sql, dialect="duckdb")
        else:
            assert parse(sql, names)


@pytest.mark.parametrize("text", blocks("py"))
def test_every_excerpt_is_python(text: str) -> None:
    assert compile(text, "excerpt", "exec")
