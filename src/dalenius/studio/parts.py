"""What pages are made of: commands, refusals, tables, the way on, and how far a task is."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Iterable
from typing import Any
from xml.etree.ElementTree import Element

from starlette.requests import Request

from dalenius.errors import DaleniusError
from dalenius.pages import document as doc
from dalenius.studio.tasks import Task
from dalenius.web.page import blocks, element, form, within

PATIENCE = 0.15  # seconds that a page waits for a task; then it shows how far the task is


def command(*words: str) -> str:
    """A line of the command line."""
    return shlex.join(["dalenius", *words])


def next_link(step: str, *, is_open: bool, why: str = "") -> Element:
    """The way on; shut until it makes sense, with the reason."""
    if is_open:
        return within(
            element("p", class_="next"),
            element("a", f"Next: {step.capitalize()}", href=f"/{step}", class_="button"),
        )
    button = element("button", f"Next: {step.capitalize()}", type="button", disabled="disabled")
    return within(element("p", class_="next"), button, element("span", f" {why}", class_="remark"))


def refusal(error: DaleniusError | dict[str, Any], title: str = "This cannot be done") -> Element:
    """An error in a page: what is wrong and what would do."""
    told = error.to_dict()["error"] if isinstance(error, DaleniusError) else error
    text = " – ".join(part for part in (told["message"], told.get("hint")) if part)
    notice = blocks([doc.Notice(tone="bad", title=title, text=text)])[0]
    notice.set("role", "alert")
    return notice


async def wait_briefly(task: Task) -> Task:
    """The task, done if it does not take long."""
    end = time.monotonic() + PATIENCE
    while not task.finished and time.monotonic() < end:
        await asyncio.sleep(0.02)
    return task


def show_progress(request: Request, task: Task, what: str, *, cancel: str | None = None) -> list[Element]:
    """How far a task is; the page loads itself again until it is done."""
    done = f"{task.done:,}" + (f" of {task.total:,}" if task.total else "")
    rate = f", {task.done / task.seconds:,.0f} a second" if task.done and task.seconds > 1 else ""
    left = ""
    if task.total and 0 < task.done <= task.total:
        left = f", about {max(task.seconds * (task.total - task.done) / task.done, 0):.0f} s left"
    text = f"{task.step}: {done}{rate}{left}" if task.done else f"{task.step} …"
    box = element("div", class_="waiting", aria_live="polite")
    address = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
    reload = {"get": address, "trigger": "load delay:600ms", "select": "main", "target": "main"}
    for name, setting in {**reload, "swap": "outerHTML"}.items():
        box.set(f"hx-{name}", setting)
    bar = element("progress", max=str(task.total or 1), aria_label=what)
    if task.total:
        bar.set("value", str(min(task.done, task.total)))
    within(box, element("p", what), bar, element("p", f"{text} ({task.seconds:.0f} s)", class_="remark"))
    parts = [box, within(element("noscript"), element("a", "Load again", href=address))]
    if cancel is not None:
        button = element("button", "Cancel", type="submit", class_="quiet")
        parts.append(form(cancel, request.scope["csrf"], button))
    return parts


def table(name: str, titles: Iterable[str], rows: Iterable[Element]) -> Element:
    """A table that a screen reader knows as one, also where the style sheet shows its rows as cards."""
    head = element("tr", role="row")
    within(head, *(element("th", title, scope="col", role="columnheader") for title in titles))
    body = within(element("tbody", role="rowgroup"), *rows)
    made = element("table", role="table", aria_label=name)
    return within(element("figure"), within(made, within(element("thead", role="rowgroup"), head), body))


def cell(title: str, text: str | None = None, **attributes: str) -> Element:
    """A cell of such a table, which knows its column."""
    return element("td", text, data_label=title, role="cell", **attributes)
