"""The privacy–utility frontier as a picture in a page: marks, their names beside them, the steps below."""

from __future__ import annotations

from textwrap import wrap
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from dalenius.evaluate.compare import Comparison
from dalenius.evaluate.frontier import GAP, HEIGHT, X_TITLE, Frame

_LEFT, _TOP, _BOTTOM, _LINE = 78, 12, 46, 13
"""Pixels around the axes, and from one line of a title to the next."""
_NARROW, _NARROW_SPARE = 236, 44
"""Pixels of the axes and right of them, on a phone."""
_N_TICKS = 5


def draw_frontier(comparison: Comparison) -> str:
    """A figure with the picture, as XML; the style sheet colours it, in light and in dark.

    The picture is drawn twice, for wide and for narrow screens; the style sheet shows one of them. A wide one
    made smaller would have letters that nobody can read.

    Raises:
        InputError: nothing was measured.
    """
    figure = Element("figure", {"class": "frontier"})
    SubElement(figure, "figcaption").text = "Privacy against error"
    _draw(figure, "wide", comparison, Frame.around(comparison))
    _draw(figure, "narrow", comparison, Frame.around(comparison, width=_NARROW, spare=_NARROW_SPARE))
    remark = (
        "Filled: ways to keep your promise. Hollow: known methods that allow the same largest probability, "
        "for every value alike. Dashed: the frontier."
    )
    SubElement(figure, "p", {"class": "remark"}).text = remark
    return tostring(figure, encoding="unicode")


def _draw(figure: Element, kind: str, comparison: Comparison, frame: Frame) -> None:
    points = frame.points(comparison)
    told = "; ".join(f"{p['name']}: at most {p['bound']:.3g}, off by {p['value']:.3g}" for p in points)
    titles = wrap(X_TITLE, 80 if kind == "wide" else 50)
    height = _TOP + HEIGHT + _BOTTOM + _LINE * (len(titles) - 1)
    box = f"0 0 {_LEFT + frame.width + frame.spare} {height}"
    svg = SubElement(figure, "svg", {"viewBox": box, "role": "img", "aria-label": told, "class": kind})
    _draw_axes(svg, frame, titles)
    _draw_steps(svg, comparison, frame)
    for point in points:
        _draw_mark(svg, point, frame)


def _draw_mark(svg: Element, point: dict[str, Any], frame: Frame) -> None:
    x, y = _x(frame, point["bound"]), _y(frame, point["value"])
    _line(svg, "whisker", x, x, _y(frame, point["low"]), _y(frame, point["high"]))
    kind = "mark" if point["own"] else "mark other"
    SubElement(svg, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "5", "class": kind})
    is_left = point["side"] == "left"
    at = (x + (-GAP if is_left else GAP), _y(frame, point["label"]) + 4)
    _text(svg, point["name"], *at, "end" if is_left else "start", "name")


def _draw_steps(svg: Element, comparison: Comparison, frame: Frame) -> None:
    places = [
        (_x(frame, corner["bound"]), _y(frame, corner["value"])) for corner in frame.corners(comparison)
    ]
    if places:
        (x, y), *others = places
        steps = "".join(f" H{right:.1f} V{down:.1f}" for right, down in others)
        SubElement(svg, "path", {"d": f"M{x:.1f} {y:.1f}{steps}", "class": "steps-below"})


def _draw_axes(svg: Element, frame: Frame, titles: list[str]) -> None:
    for tick in frame.ticks():
        y = _y(frame, tick)
        _line(svg, "grid", _LEFT, _LEFT + frame.width, y, y)
        _text(svg, f"{tick:g}", _LEFT - 8, y + 4, "end", "tick")
    for i in range(_N_TICKS + 1):
        value = frame.x_max * i / _N_TICKS
        _text(svg, f"{value:.3g}", _x(frame, value), _TOP + HEIGHT + 18, "middle", "tick")
    for i, line in enumerate(titles):
        _text(svg, line, _LEFT + frame.width / 2, _TOP + HEIGHT + 38 + _LINE * i, "middle", "tick")
    for i, line in enumerate(frame.y_title):
        text = _text(svg, line, 0, 0, "middle", "tick")
        text.set("transform", f"translate({12 + _LINE * i} {_TOP + HEIGHT / 2}) rotate(-90)")


def _x(frame: Frame, bound: float) -> float:
    return _LEFT + frame.across(bound)


def _y(frame: Frame, value: float) -> float:
    return _TOP + HEIGHT - frame.pixel(value)


def _line(svg: Element, kind: str, x1: float, x2: float, y1: float, y2: float) -> None:
    ends = {"x1": x1, "x2": x2, "y1": y1, "y2": y2}
    SubElement(svg, "line", {name: f"{value:.1f}" for name, value in ends.items()} | {"class": kind})


def _text(svg: Element, words: str, x: float, y: float, anchor: str, kind: str) -> Element:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor, "class": kind}
    made = SubElement(svg, "text", place)
    made.text = words
    return made
