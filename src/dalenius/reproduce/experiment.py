"""What an experiment is, and what it gives: numbers, what the paper states, and how ours differ.

How far an experiment is: whoever runs it may watch, and need not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from dalenius.engines.base import Progress, silent
from dalenius.errors import InputError
from dalenius.plain import plain_fields
from dalenius.sql import connect, identifier, literal

Row = tuple[str | int | float, ...]
Scale = Literal["linear", "log"]
DIAGONAL = "y = x"
"""In a cloud of points, the series that is drawn as a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """An experiment's outcome."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    stated: str
    """What the paper says, in words or numbers."""
    differs: str
    """Where ours differs and why, or that it does not."""
    data: str
    """Which data stood in for which."""

    def to_dict(self) -> dict[str, Any]:
        """As `dalenius reproduce --json` prints it."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"rows": rows, **plain_fields(self, "stated", "differs", "data")}


class Axis(NamedTuple):
    """The column that is drawn along it, what is written at it, and its scale."""

    column: str
    label: str | None = None
    """None: the column's name."""
    scale: Scale = "linear"

    @property
    def title(self) -> str:
        """What is written at it."""
        return self.label or self.column


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """How the rows are drawn: one line (or cloud of points) per `series`, along `x`, at height `y`."""

    x: Axis
    y: Axis
    series: str
    error: str | None = None
    """A column of standard errors: bars of two of them are drawn up and down."""
    mark: Literal["line", "points"] = "line"
    panel: str | None = None
    """A column whose values get a picture each, side by side."""
    columns: int = 2
    """How many panels stand in a row."""
    own_axes: tuple[Literal["x", "y"], ...] = ()
    """Which axes differ from panel to panel."""


class Experiment(NamedTuple):
    """One table or figure of a paper."""

    name: str
    """E.g. `suppression-fig5`."""
    title: str
    run: Callable[[], Reproduction]
    picture: Line | None = None


def draw_errors(x: Axis, panel: str, **more: Any) -> Line:
    """How mean relative errors with their standard errors are drawn, method by method."""
    y = Axis("mean RE, %", "mean relative error, % (± 2 s.e.)")
    return Line(x=x, y=y, error="± s.e.", series="method", panel=panel, **more)


def draw_seconds(x: Axis, series: str) -> Line:
    """How times are drawn, table by table."""
    return Line(x=x, y=Axis("processor seconds", scale="log"), series=series, panel="table")


def data_folder() -> Path:
    """The folder of the real microdata, which DALENIUS_DATA names."""
    return Path(os.environ.get("DALENIUS_DATA", "../shared/data"))


def data_file(name: str) -> Path:
    """A file of the real microdata."""
    folder = data_folder()
    path = folder / name
    if not path.is_file():
        raise InputError(
            f"the experiment needs {name}, and {folder} does not have it",
            hint="set DALENIUS_DATA to the folder of the microdata",
        )
    return path


def column_counts(file: str, column: str) -> tuple[int, ...]:
    """How often each value of a column of the microdata occurs, commonest first."""
    source, name = literal(str(data_file(file))), identifier(column)
    with connect() as connection:
        rows = connection.execute(
            f"SELECT count(*) AS n FROM {source} GROUP BY {name} ORDER BY n DESC"
        ).fetchall()
    return tuple(int(n) for (n,) in rows)


Item = TypeVar("Item")

_watcher: ContextVar[Progress] = ContextVar("watcher", default=silent)


@contextmanager
def watched(show: Progress) -> Iterator[None]:
    """Show the steps of the experiments that run inside."""
    token = _watcher.set(show)
    try:
        yield
    finally:
        _watcher.reset(token)


def track(items: Sequence[Item], step: str) -> Iterator[Item]:
    """The items one by one, shown as done when the next is asked for.

    >>> with watched(lambda step, done, total: print(step, done, total)):
    ...     list(track("ab", "letters"))
    letters 0 2
    letters 1 2
    letters 2 2
    ['a', 'b']
    """
    show = _watcher.get()
    show(step, 0, len(items))
    for done, item in enumerate(items, start=1):
        yield item
        show(step, done, len(items))
