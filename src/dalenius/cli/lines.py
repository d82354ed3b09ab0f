"""Command lines of plain words and whole numbers, read without what converts arguments.

Typer converts by pydantic, which takes a tenth of a second to load: a fifth of `dalenius verify`. Most lines
need none of it. What is not plainly one of them (an unknown option, something missing, a number with limits)
is left to typer, which also finds the words for what is wrong.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from typer.models import OptionInfo, ParameterInfo

_KINDS: dict[object, Callable[[str], Any]] = {
    str: str,
    str | None: str,
    Path: Path,
    Path | None: Path,
    int: int,
    int | None: int,
}
_MOST_DIGITS = 15
_SAID = ("help", "param_decls", "default")
"""What a declaration may say and still be plain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parameter:
    """A parameter of a command."""

    name: str
    option: str | None
    """None: it is known by its place."""
    kind: object
    """What a word becomes; `bool`: a flag; None: typer has to see to it."""
    default: Any

    def value(self, word: str) -> Any:
        """Of a word; None where it is not plain."""
        convert = _KINDS.get(self.kind)
        if convert is None or not word or word.startswith("-"):
            return None
        if convert is int and not (word.isascii() and word.isdecimal() and len(word) <= _MOST_DIGITS):
            return None
        return convert(word)


def read_line(command: Callable[..., Any], words: Sequence[str]) -> dict[str, Any] | None:
    """The values of a command's parameters; None where typer has to read the line."""
    parameters = [_read_parameter(*one) for one in _list_parameters(command)]
    options = {one.option: one for one in parameters if one.option is not None}
    places = [one for one in parameters if one.option is None]
    values = {one.name: one.default for one in parameters}
    given: set[str] = set()
    left = iter(words)
    for word in left:
        one = options.get(word) if word.startswith("-") else places.pop(0) if places else None
        if one is None or one.name in given:
            return None
        given.add(one.name)
        value = one.value(word) if one.option is None else one.kind is bool or one.value(next(left, ""))
        if value is None:
            return None
        values[one.name] = value
    is_missing = any(value is inspect.Parameter.empty for value in values.values())
    return None if is_missing else values


def _list_parameters(command: Callable[..., Any]) -> list[tuple[inspect.Parameter, object]]:
    hints = get_type_hints(command, include_extras=True)
    return [(one, hints[name]) for name, one in inspect.signature(command).parameters.items()]


def _read_parameter(one: inspect.Parameter, annotated: Any) -> _Parameter:
    """Of a declaration `Annotated[kind, typer.Option(…)]`."""
    info: ParameterInfo = annotated.__metadata__[0]
    usual, said = vars(type(info)()), vars(info)
    is_plain = all(said[name] == usual[name] for name in usual if name not in _SAID)
    # the first name is where a default would be without `Annotated`
    names = [name for name in (info.default, *(info.param_decls or ())) if isinstance(name, str)]
    kind = annotated.__origin__ if is_plain and len(names) <= 1 else None
    if not isinstance(info, OptionInfo):
        return _Parameter(name=one.name, option=None, kind=kind, default=one.default)
    if kind is bool and not names:  # which has an opposite, --no-…
        kind = None
    option = names[0] if names else f"--{one.name.replace('_', '-')}"
    return _Parameter(name=one.name, option=option, kind=kind, default=one.default)
