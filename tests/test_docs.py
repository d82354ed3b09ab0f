"""The documentation runs, and nothing public is missing from it."""

from __future__ import annotations

import ast
import inspect
import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.size import measure as measure_size
from dalenius import errors
from dalenius.cli.main import COMMANDS, application, run
from dalenius.promises import PROMISES

PROJECT = Path(__file__).parent.parent
PAGES = sorted([PROJECT / "README.md", *(PROJECT / "docs").glob("*.md")])
BLOCK = re.compile(r"```(console|python)\n(.*?)```", re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


TOGETHER = ("README.md", "tutorial.md")
ALONE = [page for page in PAGES if blocks(page) and page.name not in TOGETHER]


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `dalenius demo` leaves: many pages begin with it, and it takes seconds."""
    folder = tmp_path_factory.mktemp("demo") / "tour"
    assert run(["demo", str(folder), "--json"]) == 0
    return folder


@pytest.mark.parametrize("page", ALONE, ids=lambda page: page.name)
def test_code_blocks_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)

    def run_or_copy(arguments: list[str]) -> int:
        if arguments[0] != "demo":
            return run(arguments)
        _, folder, option = arguments
        assert option == "--json"
        shutil.copytree(request.getfixturevalue("tour"), folder)
        return 0

    run_blocks(page, run_or_copy)


def test_readme_then_tutorial_work_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One after the other with one ledger, each with a demo of its own, whose people never lived."""
    monkeypatch.chdir(tmp_path)
    for page in (PROJECT / "README.md", PROJECT / "docs" / "tutorial.md"):
        run_blocks(page, run)
    assert "whose people never lived" in capsys.readouterr().out


def run_blocks(page: Path, run_command: Callable[[list[str]], int]) -> None:
    """Console blocks run line by line in one folder, Python blocks in one module."""
    module: dict[str, object] = {}
    for language, text in blocks(page):
        if language == "python":
            exec(compile(text, page.name, "exec"), module)  # noqa: S102
            continue
        for line in text.splitlines():
            if line.startswith("$ dalenius "):
                command = line.removeprefix("$ dalenius ").split(" > ")[0]
                assert run_command(shlex.split(command, comments=True)) == 0, line


def test_every_command_and_option_is_documented() -> None:
    text = (PROJECT / "docs" / "command-line.md").read_text(encoding="utf-8")
    for command in application(COMMANDS).registered_commands:
        assert f"dalenius {command.name}" in text
        assert command.callback is not None
        for parameter in inspect.signature(command.callback, eval_str=True).parameters.values():
            if parameter.default is not inspect.Parameter.empty and parameter.name not in ("folder", "name"):
                option = {"every": "list", "kind": "format"}.get(
                    parameter.name, parameter.name.removeprefix("as_")
                )
                option = option.replace("_", "-")
                assert f"--{option}" in text, f"{command.name} --{option}"


def test_every_key_of_the_json_is_documented(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the commands of a tour; those that need a second table are in tests of their own."""
    text = (PROJECT / "docs" / "command-line.md").read_text(encoding="utf-8").partition("## JSON")[2]
    lines = dict(re.findall(r"`(\w+)`: (.*?)(?=\n- |\. `\w+`: |\n\n)", text, re.DOTALL))

    def keys(*arguments: str | Path) -> dict[str, Any]:
        assert run([*map(str, arguments), "--json"]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    tour = keys("demo", tmp_path / "tour")
    parts = {name: tour[name] for name in ("plan", "publish", "verify", "ask")}
    parts |= {"demo": tour, "doctor": keys("doctor"), "reproduce": keys("reproduce", "--list")}
    source = tmp_path / "tour" / "patients.csv"
    parts |= {"init": keys("init", source, "--out", tmp_path / "p.toml"), "inspect": keys("inspect", source)}
    for command, found in parts.items():
        for key in found.keys() - {"private"}:
            assert f"`{key}`" in lines[command], f"{command}: {key}"


def test_every_promise_and_page_is_linked() -> None:
    promises = (PROJECT / "docs" / "promises.md").read_text(encoding="utf-8") + (
        PROJECT / "docs" / "policy.md"
    ).read_text(encoding="utf-8")
    assert all(kind in promises for kind in PROMISES)
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert all(f"docs/{page.name}" in readme for page in PAGES if page.parent == PROJECT / "docs")
    assert errors.__doc__


CLAIMS = PROJECT / "docs" / "proofs" / "claims.md"
STATEMENTS = sorted((PROJECT / "src" / "dalenius" / "mechanisms").glob("*/statement.py"))


def test_every_test_that_a_claim_rests_on_exists() -> None:
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", CLAIMS.read_text(encoding="utf-8"))
    assert named
    for path, test in named:
        assert f"def {test}(" in (PROJECT / "tests" / path).read_text(encoding="utf-8"), f"{path}::{test}"


def sentences(room: Path) -> Iterator[str]:
    """The texts of a module that are no documentation, of four words or more; what is put in is a …"""
    tree = ast.parse(room.read_text(encoding="utf-8"))
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    skipped |= {
        id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
    }
    for node in ast.walk(tree):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        texts = [part.value if isinstance(part, ast.Constant) else "…" for part in parts]
        text = "".join(text for text in texts if isinstance(text, str)).replace("1/…", "1/ℓ")
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in skipped:
            yield from [text] if len(text.split()) >= 4 else []


@pytest.mark.parametrize("room", STATEMENTS, ids=lambda room: room.parent.name)
def test_every_sentence_of_a_manifest_is_among_the_claims(room: Path) -> None:
    """By its first words: who writes a new one looks for its test."""
    claims = CLAIMS.read_text(encoding="utf-8")
    no_claims = ("Publishing Skewed Sensitive Microdata", "… among the published records")
    found = [text for text in sentences(room) if text not in no_claims]
    assert found
    missing = [text for text in found if " ".join(text.split()[:5]).rstrip(",:;") not in claims]
    assert not missing


def test_the_size_of_every_room_is_stated_within_a_tenth() -> None:
    told = (
        (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## How large it is")[2]
    )
    rows = re.findall(r"^\| `?([\w/ ]+?)`? \| (\d+) \| ([\d,]+) \| ([\d,]+) \|$", told, re.MULTILINE)
    stated = {name: tuple(int(number.replace(",", "")) for number in numbers) for name, *numbers in rows}
    found = measure_size()
    assert stated.keys() == found.keys(), "`python -m bench.size` prints the table anew"
    for name, sizes in found.items():
        for was, size in zip(stated[name], sizes, strict=True):
            # a file or two more in a small room, or a hundred lines, are no growth to speak of
            assert abs(size - was) <= max(0.1 * was, 2 if was < 100 else 100), name


def test_every_package_is_on_the_map() -> None:
    tree = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## The tree")[2]
    tree = tree.partition("```\n\n")[0]
    source = PROJECT / "src" / "dalenius"
    packages = {path.parent.name for path in source.rglob("__init__.py")} - {source.name}
    modules = {path.stem for path in source.glob("*.py")} - {"__init__", "__main__"}
    listed = set(re.findall(r"(\w+)/?", tree))
    assert packages | modules <= listed, f"not in docs/architecture.md: {(packages | modules) - listed}"
    assert all((source / f"{path}").is_dir() for path in re.findall(r"^  (\w+)/", tree, re.MULTILINE))
