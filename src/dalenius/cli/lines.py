"""Command lines of plain words and whole numbers, read without typer.

Typer and pydantic, by which it converts, take longer to load than most commands to run. Most lines need
neither. What is not plainly one of them (an unknown option, something missing, a number with limits)
is left to typer, which also finds the words for what is wrong.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dalenius.cli.declared import Declaration, Option, list_parameters

_KINDS: dict[object, Callable[[str], Any]] = {
    str: str,
    str | None: str,
    Path: Path,
    Path | None: Path,
    int: int,
    int | None: int,
}
_LISTS: dict[object, Callable[[str], Any]] = {
    list[str]: str,
    list[str] | None: str,
    list[Path]: Path,
    list[Path] | None: Path,
}
"""What can be given again and again."""
_MOST_DIGITS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parameter:
    """A parameter of a command."""

    name: str
    options: tuple[str, ...]
    """What it goes by; none: it is known by its place."""
    kind: object
    """What a word becomes; `bool`: a flag; None: typer has to see to it."""
    default: Any

    def value(self, word: str) -> Any:
        """Of a word; None where it is not plain."""
        convert = _KINDS.get(self.kind) or _LISTS.get(self.kind)
        if convert is None or not word or word.startswith("-"):
            return None
        if convert is int and not (word.isascii() and word.isdecimal() and len(word) <= _MOST_DIGITS):
            return None
        return convert(word)


def read_line(command: Callable[..., Any], words: Sequence[str]) -> dict[str, Any] | None:
    """The values of a command's parameters; None where typer has to read the line."""
    parameters = [_read_parameter(one) for one in list_parameters(command)]
    options = {name: one for one in parameters for name in one.options}
    places = [one for one in parameters if not one.options]
    values = {one.name: one.default for one in parameters}
    given: set[str] = set()
    left = iter(words)
    for word in left:
        one = options.get(word) if word.startswith("-") else places[0] if places else None
        if one is None or (one.name in given and one.kind not in _LISTS):
            return None
        if not one.options and one.kind in _LISTS and len(places) > 1:  # where would it end?
            return None
        value = one.value(word) if not one.options else one.kind is bool or one.value(next(left, ""))
        if value is None:
            return None
        if one.kind in _LISTS:
            values[one.name] = [*values[one.name], value] if one.name in given else [value]
        else:
            values[one.name] = value
            places = [place for place in places if place is not one]
        given.add(one.name)
    is_missing = any(value is inspect.Parameter.empty for value in values.values())
    return None if is_missing else values


def _read_parameter(one: inspect.Parameter) -> _Parameter:
    """Of what is declared as `Annotated[kind, Option(…)]`."""
    declared: Declaration = one.annotation.__metadata__[0]
    is_plain = declared.said.keys() <= {"help"}
    kind = one.annotation.__origin__ if is_plain else None
    if not isinstance(declared, Option):
        return _Parameter(name=one.name, options=(), kind=kind, default=one.default)
    if kind is bool and not declared.names:  # which has an opposite, --no-…
        kind = None
    options = declared.names or (f"--{one.name.replace('_', '-')}",)
    return _Parameter(name=one.name, options=options, kind=kind, default=one.default)
