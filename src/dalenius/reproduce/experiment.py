"""What an experiment is, and what it gives: numbers, what the paper states, and how ours differ.

How far an experiment is: whoever runs it may watch, and need not.

Its rows are drawn here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from dalenius.display import drawing_library
from dalenius.engines.base import Progress, silent
from dalenius.errors import InputError
from dalenius.pages.pictures import COLOURS, save
from dalenius.plain import plain_fields
from dalenius.reproduce.microdata import data_file
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


_WIDTH, _HEIGHT = 420, 280
_PANEL_WIDTH, _PANEL_HEIGHT = 260, 200
ERRORS_SHOWN = 2
"""Standard errors up and down: about 95 % of means lie within."""
_SOLID, _DASHED = [1, 0], [5, 3]


def refuse_table(experiment: Experiment) -> Line:
    """How the experiment is drawn, if it is."""
    if experiment.picture is None:
        raise InputError(f"{experiment.name} is a table; it has no picture")
    return experiment.picture


def draw(experiment: Experiment, outcome: Reproduction, path: Path) -> None:
    """Draw the outcome into an .svg or .png file."""
    line = refuse_table(experiment)
    altair = drawing_library()
    rows = outcome.to_dict()["rows"]
    series = _series(altair, list(dict.fromkeys(str(row[line.series]) for row in rows)))
    scale = _scale(altair, line.y.scale, zero=True)
    base = altair.Chart(altair.Data(values=[_drawn_cells(line, row) for row in rows])).encode(
        x=altair.X("x:Q", title=line.x.title, scale=_scale(altair, line.x.scale), axis=_x_axis(line, rows)),
        color=series.pop("color"),
    )
    chart = base.encode(y=altair.Y("y:Q", title=line.y.title, scale=scale), **series)
    if line.mark == "points":
        chart = _cloud(altair, chart)
    elif line.error is None:
        chart = chart.mark_line(point=True)
    else:
        ends = {"y": altair.Y("low:Q", title=line.y.title, scale=scale), "y2": altair.Y2("high:Q")}
        bars = base.mark_rule(strokeWidth=1.5, strokeOpacity=0.6).encode(**ends)
        chart = altair.layer(bars, chart.mark_line(point=True))
    if line.panel is None:
        chart = chart.properties(width=_WIDTH, height=_HEIGHT)
    else:
        panels = list(dict.fromkeys(str(row[line.panel]) for row in rows))
        facet = altair.Facet("panel:N", title=None, sort=panels, header=altair.Header(labelFontSize=12))
        chart = chart.properties(width=_PANEL_WIDTH, height=_PANEL_HEIGHT).facet(facet, columns=line.columns)
        chart = chart.resolve_scale(**dict.fromkeys(line.own_axes, "independent"))
    save(chart.properties(title=experiment.title), path)


def _cloud(altair: Any, chart: Any) -> Any:
    """Points, and the diagonal as a line."""
    is_diagonal = altair.datum.series == DIAGONAL
    return altair.layer(
        chart.mark_point(size=14).transform_filter(~is_diagonal),
        chart.mark_line().transform_filter(is_diagonal),
    )


def _drawn_cells(line: Line, row: dict[str, Any]) -> dict[str, Any]:
    """The cells of a row that are drawn, under names without the signs that the library gives a meaning."""
    cells = {"x": row[line.x.column], "y": row[line.y.column], "series": str(row[line.series])}
    if line.error is not None:
        reach = ERRORS_SHOWN * row[line.error]
        cells |= {"low": row[line.y.column] - reach, "high": row[line.y.column] + reach}
    return cells if line.panel is None else {**cells, "panel": str(row[line.panel])}


def _scale(altair: Any, scale: Scale, *, zero: bool = False) -> Any:
    if scale == "log":
        return altair.Scale(type="log") if zero else altair.Scale(type="log", nice=False, padding=12)
    return altair.Scale(zero=zero)


def _x_axis(line: Line, rows: Sequence[dict[str, Any]]) -> Any:
    """Marks at whole numbers only, where x is one; at the numbers themselves, where they are few on a log."""
    altair = drawing_library()
    values = sorted({row[line.x.column] for row in rows})
    if line.x.scale == "log" and len(values) <= 8:
        return altair.Axis(values=values, format="~s")
    if all(isinstance(value, int) for value in values):
        return altair.Axis(tickMinStep=1, format=",d")
    return altair.Axis()


def _series(altair: Any, names: list[str]) -> dict[str, Any]:
    """Colour and shape tell series apart, and dashes where there are more series than colours."""
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(names))]
    dashes = [_SOLID if i < len(COLOURS) else _DASHED for i in range(len(names))]
    legend = altair.Legend(title=None, labelLimit=260, symbolSize=70)
    return {
        "color": altair.Color("series:N", scale=altair.Scale(domain=names, range=colours), legend=legend),
        "shape": altair.Shape("series:N", scale=altair.Scale(domain=names), legend=legend),
        "strokeDash": altair.StrokeDash(
            "series:N", scale=altair.Scale(domain=names, range=dashes), legend=legend
        ),
    }
