"""Drawing an experiment's rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dalenius.errors import InputError
from dalenius.pages.charts import COLOURS, drawing_library, save
from dalenius.reproduce.experiment import DIAGONAL, Experiment, Line, Reproduction, Scale

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
