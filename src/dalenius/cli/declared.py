"""What commands declare of their parameters, in typer's words and without loading it.

Typer is a fifth of the processor time of a small command, and most lines are read without it (`lines.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any


class Declaration:
    """What a command says of a parameter: an option's names, and the rest as typer calls it."""

    def __init__(self, *names: str, **said: Any) -> None:
        self.names, self.said = names, said


class Option(Declaration):
    """As `typer.Option` in an annotation."""


class Argument(Declaration):
    """As `typer.Argument` in an annotation: known by its place."""


def list_parameters(command: Callable[..., Any]) -> list[inspect.Parameter]:
    """A command's parameters, each with its kind and declaration."""
    return list(inspect.signature(command, eval_str=True).parameters.values())


def declare_to_typer(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same command, with its declarations as typer reads them."""

    @wraps(command)
    def told(**values: Any) -> Any:
        return command(**values)

    parameters = [one.replace(annotation=_as_typer(one.annotation)) for one in list_parameters(command)]
    told.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    told.__annotations__ = {one.name: one.annotation for one in parameters}
    return told


def _as_typer(annotated: Any) -> Any:
    import typer

    declared: Declaration = annotated.__metadata__[0]
    make = typer.Option if isinstance(declared, Option) else typer.Argument
    return Annotated[annotated.__origin__, make(*declared.names, **declared.said)]
