"""The frontier: how much may be inferred against how far off the answers are.

Where its picture has what (axes, marks and labels, in pixels) is settled whatever draws it; here it is drawn
into a file.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dalenius.display import drawing_library
from dalenius.errors import InputError
from dalenius.evaluate.compare import Comparison, Standing
from dalenius.evaluate.contender import NOTHING, all_labels, label_of
from dalenius.pages.pictures import COLOURS, save_private

X_TITLE = "largest probability that may be inferred, as promised (lower is more private)"
# in pixels: the picture, between a mark and its label, the longest label, between labels, a letter
WIDTH, HEIGHT, GAP, LABEL, _LINE, _LETTER = 560, 360, 10, 190, 14, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The axes: where a number is, in pixels, and back."""

    x_max: float
    y_min: float
    y_max: float
    is_log: bool
    y_title: tuple[str, ...]
    width: int = WIDTH
    spare: int = LABEL // 2
    """Pixels right of the axes that labels may use."""

    @classmethod
    def around(cls, comparison: Comparison, *, width: int = WIDTH, spare: int = LABEL // 2) -> Frame:
        """The axes that hold everything that was measured; a probability ends at 1.

        Raises:
            InputError: nothing was measured.
        """
        if not comparison.ranked:
            raise InputError(
                f"nothing could be measured by {comparison.measure.name}: there is nothing to draw"
            )
        values = [one.value(comparison.measure) or 0.0 for one in comparison.ranked]
        is_log = min(values) > 0 and max(values) > 10 * min(values)
        title = textwrap.wrap(f"{comparison.measure.title} ({comparison.measure.better} is better)", 60)
        return cls(
            x_max=float(min(1.0, 1.25 * max(one.bound for one in comparison.ranked))),
            y_min=min(values) / 2 if is_log else 0.0,
            y_max=(2.0 if is_log else 1.15) * max([*values, 1e-9]),
            is_log=is_log,
            y_title=tuple(title),
            width=width,
            spare=spare,
        )

    def ticks(self) -> list[float]:
        """1, 2 and 5 of every power of ten, or eight even steps."""
        if not self.is_log:
            step = self.y_max / 8
            rounded = 10 ** math.floor(math.log10(step))
            step = next(rounded * k for k in (1, 2, 5, 10) if rounded * k >= step)
            return [step * k for k in range(9) if step * k <= self.y_max]
        powers = range(math.floor(math.log10(self.y_min)), math.ceil(math.log10(self.y_max)) + 1)
        marks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
        return [mark for mark in marks if self.y_min <= mark <= self.y_max]

    def across(self, bound: float) -> float:
        """Pixels from the left."""
        return self.width * bound / self.x_max

    def pixel(self, value: float) -> float:
        """From the bottom."""
        low, high, at = self.y_min, self.y_max, max(value, self.y_min)
        share = math.log(at / low) / math.log(high / low) if self.is_log else (at - low) / (high - low)
        return HEIGHT * share

    def value(self, pixel: float) -> float:
        """The number that is so many pixels from the bottom."""
        share = pixel / HEIGHT
        if self.is_log:
            return float(self.y_min * (self.y_max / self.y_min) ** share)
        return self.y_min + share * (self.y_max - self.y_min)

    def points(self, comparison: Comparison) -> list[dict[str, Any]]:
        """A mark for everything that was measured, with the place of its label."""
        points = [_point(one, comparison, self) for one in comparison.ranked]
        _spread_labels(points, self)
        return points

    def corners(self, comparison: Comparison) -> list[dict[str, Any]]:
        """Of the steps below which nothing is: from each point on to the bound of the next."""
        found = [{"bound": one.bound, "value": one.value(comparison.measure)} for one in comparison.frontier]
        return [*found, *({"bound": self.x_max, "value": last["value"]} for last in found[-1:])]


def _point(one: Standing, comparison: Comparison, frame: Frame) -> dict[str, Any]:
    value = one.value(comparison.measure) or 0.0
    own = not one.contender.is_baseline
    deviation = one.spreads[comparison.measure.name].deviation or 0.0
    is_best = own and one.contender.name in {best.policy for best in comparison.best}
    return {
        "name": one.contender.name + (" (best)" if is_best else ""),
        "kind": label_of(one.contender.kind, one.contender.method),
        "own": own,
        "side": "left" if one.contender.kind == NOTHING else "right",
        "bound": one.bound,
        "value": value,
        "low": max(value - deviation, frame.y_min),
        "high": min(value + deviation, frame.y_max),
    }


def _spread_labels(points: list[dict[str, Any]], frame: Frame) -> None:
    """Put every label beside its mark, right or left, or as near as it can be without covering another."""
    placed: list[tuple[float, float, float]] = []
    for point in sorted(points, key=lambda point: -float(point["value"])):
        at = frame.across(point["bound"])
        height = frame.pixel(point["value"])
        sides = ("left", "right") if point["side"] == "left" else ("right", "left")
        spots = [(step, side) for step in _steps() for side in sides]
        step, side = next(
            (spot for spot in spots if _is_free(spot, point, at, height, placed, frame.width + frame.spare)),
            spots[0],
        )
        placed.append((*label_span(side, point, at), height + step))
        point["side"], point["label"] = side, frame.value(height + step)


def _steps() -> list[float]:
    """Up and down from the mark, the nearest first."""
    rows = range(1, int(HEIGHT / _LINE))
    return [0.0, *(sign * row * _LINE / 2 for row in rows for sign in (-1, 1))]


def label_span(side: str, point: dict[str, Any], at: float) -> tuple[float, float]:
    """From where to where a label goes, beside a mark."""
    length = min(LABEL, _LETTER * len(point["name"])) + GAP
    return (at, at + length) if side == "right" else (at - length, at)


def _is_free(
    spot: tuple[float, str],
    point: dict[str, Any],
    at: float,
    height: float,
    placed: list[tuple[float, float, float]],
    edge: float,
) -> bool:
    """Whether a label is inside the picture there and covers no other."""
    begin, end = label_span(spot[1], point, at)
    level = height + spot[0]
    if begin < 0 or end > edge or not 4 <= level <= HEIGHT - 4:
        return False
    return all(end <= left or right <= begin or abs(level - other) >= _LINE for left, right, other in placed)


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
