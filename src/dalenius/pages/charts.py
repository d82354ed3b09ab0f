"""What every picture shares: the drawing library, which is optional, and colours that all can tell apart."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from dalenius.errors import InputError
from dalenius.files import make_private

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")
"""Okabe and Ito's, which colour-blind people can tell apart."""


def drawing_library() -> Any:
    """Altair, if it and what it saves pictures with are installed."""
    try:
        importlib.import_module("vl_convert")
        return importlib.import_module("altair")
    except ImportError as error:
        raise InputError("charts need the extra `plots`", hint='pip install "dalenius[plots]"') from error


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
