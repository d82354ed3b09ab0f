"""Lines that are read without typer: every one of them as typer reads it, or not at all."""

from __future__ import annotations

import inspect
from importlib import import_module
from itertools import product
from typing import Any

import pytest
import typer

from dalenius.cli.declared import declare_to_typer
from dalenius.cli.lines import read_line
from dalenius.cli.main import COMMANDS, ROOMS

WORDS = ("a", "7", "--json", "--seed", "--seed=3", "--yes", "--table", "--", "")
REPEATED = ("a", "--json", "--sensitive", "--quasi", "--measure", "--to", "--column")


def command_of(name: str) -> Any:
    room = next((f"{room}." for room, names in ROOMS.items() if name in names), "")
    return import_module(f"dalenius.cli.{room}{name}").command


def typer_reads(command: Any, words: tuple[str, ...]) -> dict[str, Any] | None:
    """What typer calls the command with; None where it refuses the line."""
    seen: list[dict[str, Any]] = []

    def spy(**values: Any) -> None:
        seen.append(values)

    told = declare_to_typer(command)
    spy.__signature__ = inspect.signature(told)  # type: ignore[attr-defined]
    spy.__annotations__ = told.__annotations__
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(spy)
    try:
        app(list(words), standalone_mode=False)
    except typer.TyperException:
        return None
    return seen[0] if seen else None


@pytest.mark.parametrize(
    ("name", "given", "most"),
    [(name, WORDS, 3) for name in ("verify", "publish", "ask", "plan")]
    + [(name, REPEATED, 4) for name in ("inspect", "compare", "export")],
)
def test_a_line_means_what_typer_takes_it_for(name: str, given: tuple[str, ...], most: int) -> None:
    command, n_plain = command_of(name), 0
    for words in (words for n in range(most + 1) for words in product(given, repeat=n)):
        plain = read_line(command, words)
        if plain is not None:
            n_plain += 1
            read = typer_reads(command, words)
            assert plain == read, words
            assert [type(plain[key]) for key in plain] == [type(read[key]) for key in plain]
    assert n_plain > 3


def test_every_command_has_plain_parameters_or_is_left_to_typer() -> None:
    for name in COMMANDS:
        read_line(command_of(name), ["one", "two"])


@pytest.mark.parametrize("name", ["init", "choose", "report", "export", "complete"])
def test_what_is_written_goes_by_the_same_names_everywhere(name: str) -> None:
    command = command_of(name)
    lines = [("one", option, "two") for option in ("--out", "--output", "--to")]
    found, read = (
        [read_line(command, words) for words in lines],
        [typer_reads(command, words) for words in lines],
    )
    assert "two" in map(str, (read[0] or {}).values())
    assert read[0] == read[1] == read[2]
    assert all(one in (None, read[0]) for one in found)
