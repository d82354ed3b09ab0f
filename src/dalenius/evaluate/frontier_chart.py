"""The frontier: how much may be inferred against how far off the answers are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dalenius.display import drawing_library
from dalenius.evaluate.compare import Comparison
from dalenius.evaluate.contender import all_labels
from dalenius.evaluate.frontier import GAP, HEIGHT, LABEL, WIDTH, X_TITLE, Frame
from dalenius.pages.pictures import COLOURS, save_private

_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")


def draw_frontier(comparison: Comparison, path: Path) -> None:
    """Draw a comparison into an .svg, .png or .html file."""
    frame = Frame.around(comparison)
    points = frame.points(comparison)
    altair = drawing_library()
    layers = [
        _frontier(altair, comparison, frame),
        _labels(altair, points, frame, stroke="white", strokeWidth=4),  # so that no line strikes them out
        _deviations(altair, points, frame),
        _marks(altair, points, frame, is_own=False),
        _marks(altair, points, frame, is_own=True),
        _labels(altair, points, frame),
    ]
    chart = altair.layer(*layers).properties(width=WIDTH, height=HEIGHT, title=_title(altair, comparison))
    save_private(chart.resolve_scale(color="shared", shape="shared"), path)


def _x(altair: Any, frame: Frame, field: str) -> Any:
    scale = altair.Scale(domain=[0, frame.x_max], nice=False)
    return altair.X(f"{field}:Q", title=X_TITLE, scale=scale, axis=altair.Axis(grid=False, tickCount=7))


def _y(altair: Any, frame: Frame, field: str) -> Any:
    kind = "log" if frame.is_log else "linear"
    scale = altair.Scale(type=kind, domain=[frame.y_min, frame.y_max], nice=False)
    axis = altair.Axis(values=frame.ticks(), format="~g", gridOpacity=0.5)
    return altair.Y(f"{field}:Q", title=list(frame.y_title), scale=scale, axis=axis)


def _frontier(altair: Any, comparison: Comparison, frame: Frame) -> Any:
    """The steps below which nothing is."""
    return (
        altair.Chart(altair.Data(values=frame.corners(comparison)))
        .mark_line(interpolate="step-after", strokeDash=[4, 4], color="#666666")
        .encode(x=_x(altair, frame, "bound"), y=_y(altair, frame, "value"))
    )


def _deviations(altair: Any, points: list[dict[str, Any]], frame: Frame) -> Any:
    return (
        altair.Chart(altair.Data(values=points))
        .mark_rule(color="#666666")
        .encode(x=_x(altair, frame, "bound"), y=_y(altair, frame, "low"), y2="high:Q")
    )


def _marks(altair: Any, points: list[dict[str, Any]], frame: Frame, *, is_own: bool) -> Any:
    kinds = [kind for kind in all_labels() if any(point["kind"] == kind for point in points)]
    legend = altair.Legend(title=None, orient="bottom")
    colour = altair.Color("kind:N", scale=altair.Scale(domain=kinds, range=list(COLOURS)), legend=legend)
    shape = altair.Shape("kind:N", scale=altair.Scale(domain=kinds, range=list(_SHAPES)), legend=legend)
    hollow = {} if is_own else {"fill": "white"}
    chosen = [point for point in points if point["own"] is is_own]
    return (
        altair.Chart(altair.Data(values=chosen))
        .mark_point(size=90, filled=is_own, strokeWidth=2, opacity=1, **hollow)
        .encode(x=_x(altair, frame, "bound"), y=_y(altair, frame, "value"), color=colour, shape=shape)
    )


def _labels(altair: Any, points: list[dict[str, Any]], frame: Frame, **style: Any) -> Any:
    """Names beside the marks."""
    layers = []
    for side, align, dx in (("left", "right", -GAP), ("right", "left", GAP)):
        chosen = [point for point in points if point["side"] == side]
        chart = altair.Chart(altair.Data(values=chosen))
        layers.append(
            chart.mark_text(align=align, dx=dx, fontSize=11, limit=LABEL, **style).encode(
                x=_x(altair, frame, "bound"), y=_y(altair, frame, "label"), text="name:N"
            )
        )
    return altair.layer(*layers)


def _title(altair: Any, comparison: Comparison) -> Any:
    subtitle = [
        f"workload: {comparison.workload}, {comparison.n_cells:,} answers; mean and standard deviation of "
        f"{comparison.n_seeds} draws",
        "filled: your policies; hollow: baselines; dashed: the frontier",
    ]
    return altair.Title("Privacy against error", subtitle=subtitle, anchor="start")
