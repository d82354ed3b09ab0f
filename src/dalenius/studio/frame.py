"""What every page of the studio has: the steps, what is done and next, and the commands that do the same."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Protocol
from xml.etree.ElementTree import Element

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from dalenius.errors import DaleniusError, InputError
from dalenius.studio.asking import Asker
from dalenius.studio.parts import refusal
from dalenius.studio.project import ROLES, Project
from dalenius.studio.tasks import Tasks
from dalenius.web.page import element, render, within

STEPS = ("data", "roles", "promise", "choose", "rehearse", "publish", "ask", "audit", "report")

_Handler = Callable[[Request], Awaitable[Response]]


class _Page(Protocol):
    def __call__(self, request: Request, before: list[Element], status: int) -> Awaitable[Response]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Studio:
    """What the pages share."""

    project: Project
    tasks: Tasks
    asker: Asker
    largest_upload: int


def studio_of(request: Request) -> Studio:
    """The studio behind a request."""
    found: Studio = request.app.state.studio
    return found


LARGEST_FIELD = 1_000_000


async def read_form(request: Request) -> dict[str, Any]:
    """What a form of this session sent; files are there too.

    Raises:
        InputError: it is not a form of this session.
    """
    sent = await request.form(max_files=1, max_fields=20_000, max_part_size=LARGEST_FIELD)
    if sent.get("csrf") != request.scope["csrf"]:
        raise InputError("the form is not of this session", hint="load the page again")
    return {name: value for name, value in sent.multi_items() if name != "csrf"}


def made_for(*what: object) -> Element:
    """A mark in a form of what it is about.

    Forms name columns and values by their places, and one may come from a tab that was left open while
    another tab went on: then these are the places of others.
    """
    return element("input", type="hidden", name="of", value=_mark(what))


def refuse_outdated(sent: Mapping[str, Any], *what: object) -> None:
    """Refuse a form that was made for something else than there is now."""
    if sent.get("of") != _mark(what):
        raise InputError(
            "the page is of another table, or of choices that were changed since; nothing was kept",
            hint="look at it as it is now, and send it again",
        )


def _mark(what: object) -> str:
    return hashlib.sha256(repr(what).encode()).hexdigest()[:16]


def refuse_on(page: _Page, title: str = "This cannot be done") -> Callable[[_Handler], _Handler]:
    """What a handler of a form cannot do is said on the page that the form is on."""

    def decorate(handler: _Handler) -> _Handler:
        @wraps(handler)
        async def handle(request: Request) -> Response:
            try:
                return await handler(request)
            except DaleniusError as error:
                return await page(request, [refusal(error, title)], status=400)

        return handle

    return decorate


def steps_done(project: Project) -> dict[str, bool]:
    """Which steps need nothing more."""
    data = project.read()
    columns = data.get("columns", {})
    has_roles = (
        bool(columns)
        and not columns.get("undecided")
        and bool(columns.get("quasi") or columns.get("sensitive"))
    )
    stored = project.release()
    return {
        "data": "source" in data,
        "roles": "source" in data and has_roles,
        "promise": has_roles and "promise" in data,
        "choose": has_roles and "promise" in data and "mechanism" in data,
        "rehearse": stored is not None,
        "publish": project.is_published(),
        "ask": False,
        "audit": False,
        "report": False,
    }


def open_steps(project: Project) -> list[str]:
    """Which pages can be opened: those before the first that is not done, and that one."""
    done = steps_done(project)
    needed = ("data", "roles", "promise", "choose")
    missing = [step for step in needed if not done[step]]
    if missing:
        return list(STEPS[: STEPS.index(missing[0]) + 1])
    return [
        step
        for step in STEPS
        if step not in ("ask", "audit", "report") or done["rehearse"] or done["publish"]
    ]


def show(
    request: Request,
    step: str,
    content: Sequence[Element],
    *,
    same: Sequence[str],
    python: str,
    status: int = 200,
) -> Response:
    """A page: steps, content, and the command and the Python that do the same."""
    parts = [_steps(studio_of(request).project, step), *content, _same(same, python)]
    page = render(step.capitalize(), parts, script="/static/htmx.min.js", style="/studio.css")
    # The script shows only what succeeded, and an error is a page too.
    is_part = "hx-request" in request.headers
    return HTMLResponse(page, 200 if is_part else status)


async def stop(studio: Studio, key: Hashable) -> None:
    """Cancel a task; the process has a few seconds to clean up, while other pages are answered."""
    await run_in_threadpool(studio.tasks.cancel, key)


async def stop_and_return(request: Request, key: Hashable) -> Response:
    """Cancel a task from the form below its page's address, and go back to the page."""
    await read_form(request)
    await stop(studio_of(request), key)
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"{request.url.path.removesuffix('/cancel')}{query}", 303)


def _steps(project: Project, current: str) -> Element:
    done, opened = steps_done(project), open_steps(project)
    listed = element("ol")
    for step in STEPS:
        text = f"{'✓ ' if done[step] else ''}{step.capitalize()}"
        shown = element("span", text, class_="later")
        if step in opened:
            shown = element("a", text, href=f"/{step}")
        if step in opened and step == current:
            shown.set("aria-current", "step")
        within(listed, within(element("li"), shown))
    return within(element("nav", class_="steps", aria_label="Steps"), listed)


def _same(commands: Sequence[str], python: str) -> Element:
    made = within(element("details", class_="same"), element("summary", "The same without a browser"))
    for title, text in (("On the command line:", "\n".join(commands)), ("In Python:", python)):
        within(made, element("p", title), within(element("pre"), element("code", text)))
    return made


def roles_of(data: dict[str, Any]) -> dict[str, str]:
    """The role of every column that has one."""
    columns = data.get("columns", {})
    found: dict[str, str] = {}
    for role in ROLES:
        names: Iterable[str] = columns.get(role, [])
        for name in [names] if isinstance(names, str) else names:
            found[name] = role
    return found
