"""Pictures: the drawing library, which is optional, colours that all can tell apart, and bars in reports.

The picture of one row of a table is inline SVG: a bar, a point with whiskers, a limit and a reference.
Positions are percentages of the width, so that a picture fits any window and its lines stay as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from xml.etree.ElementTree import Element, SubElement

from dalenius.display import drawing_library
from dalenius.errors import InputError
from dalenius.files import make_private
from dalenius.pages.document import Column, Picture, Style, Table
from dalenius.pages.words import write_number

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")
"""Okabe and Ito's, which colour-blind people can tell apart."""


def refuse_other_formats(path: Path) -> None:
    """Say so before the work whose outcome could not be drawn."""
    if path.suffix not in (".svg", ".png", ".html"):
        raise InputError(f"a chart is drawn as .svg, .png or .html, not {path.suffix!r}")


def save(chart: Any, path: Path) -> None:
    """Save a chart as .svg, .png or a self-contained .html, as the name says."""
    refuse_other_formats(path)
    options = {"inline": True} if path.suffix == ".html" else {"scale_factor": 2}
    try:
        chart.save(str(path), **options)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


@runtime_checkable
class Drawable(Protocol):
    """A plan that has a picture."""

    def draw(self, altair: Any) -> Any:
        """The picture, as a chart of the drawing library."""


def save_private(chart: Any, path: Path) -> None:
    """Save a chart that tells about the table: only its owner may read it."""
    refuse_other_formats(path)
    try:
        make_private(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    save(chart, path)


def draw_plan(plan: Any, path: Path) -> None:
    """Draw a plan, which is private, into a file."""
    if not isinstance(plan, Drawable):
        raise InputError("only bucket plans have a chart")
    save_private(plan.draw(drawing_library()), path)


_HEIGHT = 24
_MIDDLE = _HEIGHT / 2
_N_STEPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From 0 to a round number.

    >>> Scale.reaching(0.37, "share").ticks
    (0.0, 0.1, 0.2, 0.3, 0.4)
    """

    step: float
    n_steps: int
    style: Style

    @classmethod
    def reaching(cls, largest: float, style: Style) -> Scale:
        """The scale of a few round steps that reaches a number."""
        wanted = (largest or 1.0) / _N_STEPS
        power = 10.0 ** math.floor(math.log10(wanted))
        step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= wanted * (1 - 1e-9))
        return cls(step=step, n_steps=max(1, math.ceil(largest / step - 1e-9)), style=style)

    @property
    def end(self) -> float:
        """The largest number on it."""
        return self.step * self.n_steps

    @property
    def ticks(self) -> tuple[float, ...]:
        """The round numbers."""
        return tuple(round(i * self.step, 12) for i in range(self.n_steps + 1))

    def place(self, value: float) -> str:
        """Where a number is, as SVG writes it; what is below 0 is drawn at 0."""
        share = min(max(value / self.end, 0.0), 1.0)
        return f"{100 * share:.2f}%"


def scale_of(table: Table, index: int) -> Scale:
    """The scale on which a column of pictures is drawn."""
    column = table.columns[index]
    pictures = [row[index] for row in table.rows]
    numbers = [n for picture in pictures if isinstance(picture, Picture) for n in _numbers(picture)]
    largest = 1.0 if column.whole else max((n for n in numbers if math.isfinite(n)), default=1.0)
    return Scale.reaching(max(largest, 0.0), column.style)


def draw(picture: Picture, scale: Scale, column: Column, name: str) -> Element:
    """The picture as an SVG element."""
    svg = Element(
        "svg", {"class": "picture", "role": "img", "aria-label": describe(picture, scale, column, name)}
    )
    for tick in scale.ticks:
        _line(svg, "grid", scale.place(tick), 0, _HEIGHT)
    if picture.bar is not None:
        attributes = {"x": "0", "y": "6", "width": scale.place(picture.bar), "height": "12", "class": "bar"}
        SubElement(svg, "rect", attributes)
    if picture.reference is not None:
        _line(svg, "reference", scale.place(picture.reference), 2, _HEIGHT - 2)
    if picture.limit is not None:
        _line(svg, "limit", scale.place(picture.limit), 1, _HEIGHT - 1)
    if picture.low is not None and picture.high is not None:
        _whiskers(svg, scale.place(picture.low), scale.place(picture.high))
    if picture.point is not None:
        SubElement(
            svg,
            "circle",
            {"cx": scale.place(picture.point), "cy": f"{_MIDDLE:g}", "r": "4", "class": "point"},
        )
    return svg


def draw_axis(scale: Scale) -> Element:
    """The numbers of a scale, for the head of a table."""
    svg = Element("svg", {"class": "axis", "aria-hidden": "true"})
    last = scale.n_steps
    for i in sorted({0, last // 2, last} if last % 2 == 0 else {0, last}):  # more would run into each other
        tick = scale.ticks[i]
        anchor = "start" if i == 0 else "end" if i == last else "middle"
        text = SubElement(svg, "text", {"x": scale.place(tick), "y": "11", "text-anchor": anchor})
        text.text = write_number(tick, scale.style)
    return svg


def describe(picture: Picture, scale: Scale, column: Column, name: str) -> str:
    """What the picture shows, in words, for who cannot see it."""
    legend = column.legend
    if legend is None:
        return name
    shown = [
        (legend.bar, picture.bar),
        (legend.point, picture.point),
        (legend.reference, picture.reference),
        (legend.limit, picture.limit),
    ]
    parts = [f"{what} {write_number(n, scale.style)}" for what, n in shown if what and n is not None]
    if picture.low is not None and picture.high is not None:
        between = f"{write_number(picture.low, scale.style)} to {write_number(picture.high, scale.style)}"
        parts.append(f"interval {between}")
    return f"{name}: {', '.join(parts)}"


def draw_key(kind: str) -> Element:
    """A small sample of a mark, for the legend."""
    svg = Element("svg", {"class": "key", "aria-hidden": "true"})
    if kind == "bar":
        SubElement(svg, "rect", {"x": "0", "y": "2", "width": "20", "height": "10", "class": "bar"})
    elif kind == "point":
        SubElement(svg, "line", {"x1": "0", "x2": "20", "y1": "7", "y2": "7", "class": "whisker"})
        SubElement(svg, "circle", {"cx": "10", "cy": "7", "r": "4", "class": "point"})
    else:
        _line(svg, kind, "10", 0, 14)
    return svg


def _whiskers(svg: Element, low: str, high: str) -> None:
    middle = f"{_MIDDLE:g}"
    SubElement(svg, "line", {"x1": low, "x2": high, "y1": middle, "y2": middle, "class": "whisker"})
    for end in (low, high):
        _line(svg, "whisker", end, _MIDDLE - 4, _MIDDLE + 4)


def _line(svg: Element, kind: str, x: str, top: float, bottom: float) -> None:
    SubElement(svg, "line", {"x1": x, "x2": x, "y1": f"{top:g}", "y2": f"{bottom:g}", "class": kind})


def _numbers(picture: Picture) -> list[float]:
    numbers = (picture.bar, picture.point, picture.low, picture.high, picture.limit, picture.reference)
    return [n for n in numbers if n is not None]
