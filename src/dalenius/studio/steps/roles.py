"""Step 2: what every column is. Nothing is decided until the publisher says so."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from xml.etree.ElementTree import Element

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from dalenius.errors import DaleniusError, InputError
from dalenius.inspection.first_policy import FirstPolicy
from dalenius.pages import document as doc
from dalenius.plain import escape_controls
from dalenius.policy import open_source_of
from dalenius.studio.frame import Studio, read_form, roles_of, show, studio_of
from dalenius.studio.parts import command, next_link, patiently, refusal, waiting
from dalenius.studio.project import ROLES
from dalenius.studio.steps.coarser import chosen_recode, controls, show_rare
from dalenius.studio.steps.data import describe_source
from dalenius.studio.tasks import Task
from dalenius.web.page import blocks, choice, element, form, to_text, within

MEANING = {
    "": "not decided",
    "unit": "whose row it is: a number of a person; dropped",
    "identifiers": "names somebody: dropped",
    "quasi": "published as it is; others may know it",
    "sensitive": "must not be inferable",
    "dropped": "not published",
}


SECTIONS = ("columns", "recode")
"""Of the policy: what this page decides."""


def look(studio: Studio) -> Task:
    """What the columns look like, read once per table."""
    spec = studio.project.read().get("source")
    return studio.tasks.read(
        ("look", studio.project.table()),
        lambda _: FirstPolicy.of_source(open_source_of(spec, studio.project.folder), {}),
    )


async def page(request: Request, before: Sequence[Element] = (), status: int = 200) -> Response:
    """Every column with its role, and what it looks like."""
    studio = studio_of(request)
    data = studio.project.read()
    if "source" not in data:
        return RedirectResponse("/data", 303)
    same, python = _same(data)
    task = await patiently(look(studio))
    if not task.finished:
        content = [*before, *waiting(request, task, "Looking at the columns")]
        return show(request, "roles", content, same=same, python=python)
    if task.error is not None:
        studio.tasks.forget(("look", studio.project.table()))
        failed = refusal(task.error, "The table cannot be read")
        return show(request, "roles", [failed], same=same, python=python)
    undecided = data.get("columns", {}).get("undecided", [])
    are = "column has" if len(undecided) == 1 else "columns have"
    why = f"{len(undecided)} {are} no role yet" if undecided else "something must be published"
    is_open = not undecided and bool({"quasi", "sensitive"} & set(roles_of(data).values()))
    content = [
        *before,
        *_roles_form(request, task.result, data),
        next_link("promise", is_open=is_open, why=why),
    ]
    return show(request, "roles", content, same=same, python=python, status=status)


def _same(data: dict[str, Any]) -> tuple[list[str], str]:
    """What `init` and Python would be told of the columns."""
    roles = roles_of(data)
    lists = [
        f"--{role}={','.join(name for name, given in roles.items() if given == role)}"
        for role in ROLES
        if role in roles.values()
    ]
    told, options = describe_source(data["source"])
    sections = {key: json.loads(json.dumps(data[key], default=float)) for key in SECTIONS if key in data}
    policy = {"source": told, **sections}
    python = f"policy = {policy!r}  # with a promise: dalenius.Policy.from_dict(policy)"
    return [command("init", told["path"], *options, *lists)], python


def _roles_form(request: Request, found: FirstPolicy, data: dict[str, Any]) -> list[Element]:
    roles, recodes = roles_of(data), data.get("recode", {})
    table = within(element("table", role="table", aria_label="Columns"), _head())
    body = element("tbody", role="rowgroup")
    for number, (guess, facts) in enumerate(zip(found.guesses, found.facts.columns, strict=True)):
        name = escape_controls(guess.column)
        role = choice([(r, r or "choose …") for r in ("", *ROLES)], roles.get(guess.column, ""))
        role.set("name", f"role-{number}")
        role.set("aria-label", f"role of {name}")
        role.set("class", "role")
        coarser = controls(number, name, facts.type, recodes.get(guess.column))
        cells = [name, facts.type, f"{facts.n_distinct:,}", f"{guess.role}? {guess.evidence}"]
        row = element("tr", role="row")
        titles = ("column", "type", "different values", "it looks like")
        for i, (title, text) in enumerate(zip(titles, cells, strict=True)):
            kind = "words" if i in (0, 3) else "plain"
            cell = element("td" if i else "th", text, data_label=title, class_=kind)
            cell.set("role", "cell" if i else "rowheader")
            within(row, cell)
        for title, parts in (("role", [role]), ("published", coarser)):
            within(row, within(element("td", data_label=title, role="cell"), *parts))
        within(body, row)
    within(table, body)
    live = element("div", id="rare", aria_live="polite")
    live.set("hx-post", "/roles/rare")
    live.set("hx-include", "closest form")
    live.set("hx-trigger", "load, change from:closest form delay:200ms")
    saved = element("button", "Keep these roles", type="submit")
    made = form("/roles", request.scope["csrf"], live, within(element("figure"), table), saved)
    meanings = doc.Facts(items=tuple((role, text) for role, text in MEANING.items() if role))
    return [*blocks([meanings]), made]


def _head() -> Element:
    row = element("tr", role="row")
    for title in ("column", "type", "different values", "it looks like", "role", "published"):
        cell = element("th", title, scope="col")
        cell.set("role", "columnheader")
        within(row, cell)
    return within(element("thead", role="rowgroup"), row)


async def keep(request: Request) -> Response:
    """The roles that were chosen go into the policy."""
    studio = studio_of(request)
    try:
        sent = await read_form(request)
        sections = _sections(studio, sent)
    except DaleniusError as error:
        return await page(request, [refusal(error)], status=400)
    before = studio.project.read().get("columns", {})
    changed = (
        {**sections, "promise": None}
        if before.get("sensitive") != sections["columns"].get("sensitive")
        else sections
    )
    studio.project.change(**changed)
    return RedirectResponse("/roles", 303)


def _sections(studio: Studio, sent: dict[str, Any]) -> dict[str, Any]:
    """`[columns]` and `[recode]` of what was chosen."""
    task = look(studio)
    if not task.finished or task.error is not None:
        raise InputError("the table is still being read", hint="wait until the page shows its columns")
    lists: dict[str, list[str]] = {role: [] for role in ROLES}
    undecided: list[str] = []
    recode: dict[str, Any] = {}
    for number, guess in enumerate(task.result.guesses):
        role = str(sent.get(f"role-{number}", ""))
        lists.get(role, undecided).append(guess.column)
        spec = chosen_recode(sent, number, guess.column, role)
        if spec is not None:
            recode[guess.column] = spec
    if len(lists["unit"]) > 1:
        raise InputError("only one column can be the unit: whose row it is", hint="the others: identifiers")
    columns: dict[str, Any] = {role: names for role, names in lists.items() if names and role != "unit"}
    if lists["unit"]:
        columns = {"unit": lists["unit"][0], **columns}
    if undecided:
        columns["undecided"] = undecided
    return {"columns": columns, "recode": recode or None}


async def rare(request: Request) -> Response:
    """How many people are alone with the columns that are chosen now, as a part of the page."""
    studio = studio_of(request)
    try:
        shown = await show_rare(studio, _sections(studio, await read_form(request)))
    except DaleniusError as error:
        shown = [refusal(error)]
    return HTMLResponse("".join(map(to_text, shown)))
