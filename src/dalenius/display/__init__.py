"""How values look in a notebook: small self-contained HTML, light and dark; private ones without counts.

What was made with the original shows in a notebook that it is private and what it is, and not its numbers:
notebooks are saved and shared with what they show. `show()` shows them on purpose.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any

from dalenius.errors import InputError

_STYLE = """
.dalenius{font:14px/1.45 system-ui,sans-serif;color:#1c2430;background:#fff;border:1px solid #d9dee5;
border-radius:6px;padding:.6rem .8rem;max-width:60rem;overflow-x:auto}
.dalenius h4{margin:0 0 .3rem;font-size:15px}.dalenius p{margin:.2rem 0}
.dalenius table{border-collapse:collapse;margin:.3rem 0;background:none;color:inherit;font:inherit}
.dalenius th,.dalenius td{padding:.15rem .6rem;text-align:left;border-bottom:1px solid #d9dee5}
.dalenius td.n{text-align:right;font-variant-numeric:tabular-nums}
.dalenius .private{color:#a3200d;font-weight:650}
@media (prefers-color-scheme:dark){.dalenius{color:#e6eaf0;background:#14181f;border-color:#323a46}
.dalenius th,.dalenius td{border-color:#323a46}.dalenius .private{color:#ff9d8c}}
""".replace("\n", "")
_MARK = '<p class="private">PRIVATE: made with the original; not to be published.</p>'
Tell = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Something to look at: HTML in a notebook, text elsewhere."""

    title: str
    is_private: bool = False
    sentences: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    text: str = ""
    """Lines that are aligned by their spaces."""

    def _repr_html_(self) -> str:
        head = f"<h4>{escape(self.title)}</h4>{_MARK if self.is_private else ''}"
        told = "".join(f"<p>{escape(text)}</p>" for text in self.sentences)
        lines = f"<pre>{escape(self.text)}</pre>" if self.text else ""
        return f'<style>{_STYLE}</style><div class="dalenius">{head}{self._table()}{lines}{told}</div>'

    def _table(self) -> str:
        if not self.rows:
            return ""
        titles = "".join(f"<th>{escape(text)}</th>" for text in self.headings)
        lines = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in self.rows)
        return f"<table><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table>"

    def __str__(self) -> str:
        mark = ["PRIVATE: made with the original; not to be published."] if self.is_private else []
        lines = ["  ".join(row) for row in (self.headings, *self.rows) if row]
        return "\n".join([self.title, *mark, *lines, *filter(None, [self.text]), *self.sentences])

    __repr__ = __str__


def _cell(text: str) -> str:
    is_number = text.lstrip("-").translate(str.maketrans("", "", ",.% ")).isdigit()
    return f'<td class="n">{text}</td>' if is_number else f"<td>{escape(text)}</td>"


class Private:
    """What a notebook shows of a value that holds private counts: that it does. `show()` shows them."""

    __slots__ = ()

    def show(self) -> View:
        """All of it, counts included."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return self._closed_view()._repr_html_()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: private; show() shows it, counts included>"

    def _closed_view(self) -> View:
        return View(
            title=type(self).__name__, is_private=True, sentences=("Call show() to see it, counts included.",)
        )


class PrivatePlan(Private):
    """A plan: `print(plan)` and `show()` tell its numbers, `plot()` draws it."""

    __slots__ = ()

    def show(self) -> View:
        """The plan in numbers."""
        return View(title="Plan", is_private=True, text=str(self))

    def plot(self) -> Any:
        """The picture of the plan, which tells the private histogram."""
        draw = getattr(self, "draw", None)
        if draw is None:
            raise InputError("only bucket plans have a chart")
        return draw(drawing_library())


def drawing_library() -> Any:
    """Altair, if it and what it saves pictures with are installed."""
    try:
        importlib.import_module("vl_convert")
        return importlib.import_module("altair")
    except ImportError as error:
        raise InputError("charts need the extra `plots`", hint='pip install "dalenius[plots]"') from error


def polars_frame(table: Any) -> Any:
    """An Arrow table as a polars data frame, if polars is installed."""
    try:
        polars = importlib.import_module("polars")
    except ImportError as error:
        raise InputError("to_polars needs polars", hint="pip install polars") from error
    return polars.from_arrow(table)


def draw_intervals(rows: Sequence[dict[str, Any]], title: str) -> Any:
    """Estimates as points on their intervals; each row has `name`, `estimate`, `low` and `high`."""
    altair = drawing_library()
    base = altair.Chart(altair.Data(values=list(rows))).encode(y=altair.Y("name:N", sort=None, title=None))
    lines = base.mark_rule().encode(x=altair.X("low:Q", title=title), x2="high:Q")
    points = base.mark_point(filled=True, size=60, color="#0072B2").encode(x="estimate:Q")
    return (lines + points).properties(width=420)


def in_notebook() -> bool:
    """Whether this is a Jupyter kernel, which shows what is displayed."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


@contextmanager
def notebook_progress() -> Iterator[Tell]:
    """Progress under the cell of a notebook; nothing elsewhere."""
    if not in_notebook():
        yield lambda _step, _done, _total: None
        return
    page: Any = importlib.import_module("IPython.display")
    shown = page.display(page.HTML(""), display_id=True)

    def show(step: str, done: int, total: int | None) -> None:
        most = f' max="{total}"' if total else ""
        shown.update(page.HTML(f'{escape(step)} <progress value="{done}"{most}></progress>'))

    try:
        yield show
    finally:
        shown.update(page.HTML(""))  # a notebook is saved with what it shows
