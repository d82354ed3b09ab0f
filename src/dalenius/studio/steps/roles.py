"""Step 2: what every column is. Nothing is decided until the publisher says so."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from typing import Any
from xml.etree.ElementTree import Element

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from dalenius.engines.base import silent
from dalenius.engines.local.engine import LocalEngine
from dalenius.errors import DaleniusError, InputError
from dalenius.inspection.first_policy import FirstPolicy
from dalenius.pages import document as doc
from dalenius.plain import escape_controls
from dalenius.policy import Policy, open_source_of
from dalenius.studio.frame import (
    Studio,
    command,
    next_link,
    read_form,
    refusal,
    roles_of,
    show,
    studio_of,
    waiting,
)
from dalenius.studio.project import ROLES, Project
from dalenius.studio.tasks import Task
from dalenius.tables.uniqueness import study_uniqueness
from dalenius.web.page import blocks, choice, element, form, to_text, within

MEANING = {
    "": "not decided",
    "unit": "whose row it is: a number of a person; dropped",
    "identifiers": "names somebody: dropped",
    "quasi": "published as it is; others may know it",
    "sensitive": "must not be inferable",
    "dropped": "not published",
}
LONGEST_WAIT = 20.0
"""Seconds that a part of the page waits for a count; the page itself does not wait."""
COARSER: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "number": [("to 5s", {"round": 5}), ("to 10s", {"round": 10}), ("to 100s", {"round": 100})],
    "date": [("year", {"date": "year"}), ("quarter", {"date": "quarter"}), ("month", {"date": "month"})],
    "text": [("first 3 characters", {"prefix": 3}), ("first 2", {"prefix": 2}), ("first 1", {"prefix": 1})],
}


def look(studio: Studio) -> Task:
    """What the columns look like, read once per table."""
    spec = studio.project.read().get("source")
    key = ("look", json.dumps(spec, default=str))
    return studio.tasks.read(
        key, lambda _: FirstPolicy.of_source(open_source_of(spec, studio.project.folder), {})
    )


async def page(request: Request) -> Response:
    """The page."""
    return _show(request, [])


def _show(request: Request, before: list[Element], status: int = 200) -> Response:
    studio = studio_of(request)
    data = studio.project.read()
    if "source" not in data:
        return RedirectResponse("/data", 303)
    task = look(studio)
    if not task.finished:
        return show(request, "roles", "Roles", waiting(request, task, "Looking at the columns"))
    if task.error is not None:
        studio.tasks.forget(("look", json.dumps(data["source"], default=str)))
        return show(request, "roles", "Roles", [refusal(task.error, "The table cannot be read")])
    content = [*before, *_roles_form(request, task.result, data)]
    undecided = data.get("columns", {}).get("undecided", [])
    why = f"{len(undecided)} columns have no role yet" if undecided else "something must be published"
    roles = roles_of(data)
    is_open = not undecided and bool({"quasi", "sensitive"} & set(roles.values()))
    content.append(next_link("promise", is_open=is_open, why=why))
    lists = [
        f"--{role}={','.join(n for n, r in roles.items() if r == role)}"
        for role in ROLES
        if role in roles.values()
    ]
    response = show(
        request,
        "roles",
        "Roles",
        content,
        same=[command("init", "SOURCE", *lists)],
        python=f"columns = {json.dumps(data.get('columns', {}), default=str)}",
    )
    response.status_code = status
    return response


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
        options = [
            ("", "as it is"),
            *((json.dumps(spec), title) for title, spec in COARSER[_kind(facts.type)]),
        ]
        chosen = json.dumps(recodes.get(guess.column), default=_plain) if guess.column in recodes else ""
        if chosen and chosen not in dict(options):
            options.append((chosen, "as in the policy"))
        coarser = choice(options, chosen)
        coarser.set("name", f"coarser-{number}")
        coarser.set("aria-label", f"coarser values of {name}")
        cells = [name, facts.type, f"{facts.n_distinct:,}", f"{guess.role}? {guess.evidence}"]
        row = element("tr", role="row")
        titles = ("column", "type", "different values", "it looks like")
        for i, (title, text) in enumerate(zip(titles, cells, strict=True)):
            cell = element("td" if i else "th", text, data_label=title, class_="words")
            cell.set("role", "cell" if i else "rowheader")
            within(row, cell)
        for title, control in (("role", role), ("published", coarser)):
            within(row, within(element("td", data_label=title, role="cell"), control))
        within(body, row)
    within(table, body)
    live = element("div", id="rare", aria_live="polite")
    live.set("hx-post", "/roles/rare")
    live.set("hx-include", "closest form")
    live.set("hx-trigger", "load, change from:closest form delay:200ms")
    saved = element("button", "Keep these roles", type="submit")
    made = form("/roles", request.scope["csrf"], within(element("figure"), table), live, saved)
    meanings = doc.Facts(items=tuple((role, text) for role, text in MEANING.items() if role))
    return [*blocks([meanings]), made]


def _head() -> Element:
    row = element("tr", role="row")
    for title in ("column", "type", "different values", "it looks like", "role", "published"):
        cell = element("th", title, scope="col")
        cell.set("role", "columnheader")
        within(row, cell)
    return within(element("thead", role="rowgroup"), row)


def _kind(kind: str) -> str:
    if kind.startswith(("date", "timestamp")):
        return "date"
    is_number = any(word in kind for word in ("int", "double", "float", "decimal", "real"))
    return "number" if is_number else "text"


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) and value == int(value) else float(value)


async def keep(request: Request) -> Response:
    """The roles that were chosen go into the policy."""
    studio = studio_of(request)
    try:
        sent = await read_form(request)
        sections = _sections(studio, sent)
    except DaleniusError as error:
        return _show(request, [refusal(error)], status=400)
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
        coarser = str(sent.get(f"coarser-{number}", ""))
        if coarser and role in ("quasi", "sensitive"):
            try:
                recode[guess.column] = json.loads(coarser)
            except ValueError as error:
                raise InputError("coarser values: choose one from the list") from error
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
        sent = await read_form(request)
        shown = await run_in_threadpool(_rare, studio, _sections(studio, sent))
    except DaleniusError as error:
        shown = [refusal(error)]
    box = within(element("div"), *shown)
    return HTMLResponse("".join(to_text(child) for child in box))


def _rare(studio: Studio, sections: dict[str, Any]) -> list[Element]:
    quasi = sections["columns"].get("quasi", [])
    if not quasi:
        return blocks(
            [doc.Paragraph(text="Choose what is published: then this says how many people stand out.")]
        )
    data = studio.project.read()
    key = ("rare", json.dumps([data.get("source"), quasi, sections["recode"]], default=str))
    task = studio.tasks.read(
        key, lambda _: count_rare_people(studio.project, quasi, sections["recode"] or {})
    )
    while not task.finished and task.seconds < LONGEST_WAIT:
        time.sleep(0.05)
    if not task.finished:
        return blocks([doc.Paragraph(text="Counting who stands out … change something to look again.")])
    if task.error is not None:
        return [refusal(task.error)]
    tone: doc.Tone = "good" if "nobody" in task.result[0] else "warning"
    text = " ".join(line.strip() for line in task.result[1:])
    return blocks([doc.Notice(tone=tone, title=task.result[0], text=text)])


def count_rare_people(project: Project, quasi: list[str], recode: dict[str, Any]) -> list[str]:
    """Sentences on who is alone with these columns, as they would be published."""
    data = project.read()
    source = open_source_of(data["source"], project.folder)
    others = [name for name in source.column_names if name not in quasi]
    policy = Policy.from_dict(
        {
            "source": data["source"],
            "columns": {"quasi": quasi, "dropped": others},
            "recode": {name: spec for name, spec in recode.items() if name in quasi},
            "promise": {"kind": "d-gamma-privacy", "k": 2, "gamma": "1/2"},
            "mechanism": {"kind": "alpha-beta", "domains": "active", "duplicates": "distinct"},
        },
        project.folder,
    )
    with LocalEngine().open(policy, None, silent) as scan:
        relation = f"({scan.source.select})"
        found = study_uniqueness(scan.source.connection, relation, quasi, fixed=list(recode))
    return found.paragraph()
