"""Step 2: what every column is. Nothing is decided until the publisher says so.

Columns can be published with coarser values; the page says how many people still stand out with them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from xml.etree.ElementTree import Element

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from dalenius.errors import DaleniusError, InputError
from dalenius.inspection.first_policy import FirstPolicy
from dalenius.inspection.looking import study_people
from dalenius.pages import document as doc
from dalenius.plain import escape_controls
from dalenius.policy import open_source_of
from dalenius.studio.frame import (
    Studio,
    made_for,
    read_form,
    refuse_on,
    refuse_outdated,
    roles_of,
    show,
    studio_of,
)
from dalenius.studio.parts import cell, command, next_link, refusal, show_progress, table, wait_briefly
from dalenius.studio.project import ROLES, number
from dalenius.studio.steps.data import describe_source
from dalenius.studio.tasks import Task
from dalenius.tables.recode import depends_on_table
from dalenius.web.page import blocks, choice, element, form, to_text, within

COARSER: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "number": [
        ("to 5s", {"round": 5}),
        ("to 10s", {"round": 10}),
        ("to 100s", {"round": 100}),
        ("five groups of about equally many", {"quantiles": 5}),
    ],
    "date": [("year", {"date": "year"}), ("quarter", {"date": "quarter"}), ("month", {"date": "month"})],
    "text": [
        ("first 3 characters", {"prefix": 3}),
        ("first 2", {"prefix": 2}),
        ("first 1", {"prefix": 1}),
        ("“other” where fewer than 20 have it", {"rare": 20}),
    ],
}
"""What is offered for a column, by what it holds."""
TYPED = {
    "bins": "bins with these edges",
    "top": "top-coded: nothing above",
    "bottom": "bottom-coded: nothing below",
}
"""Of numbers: what takes numbers of one's own."""


def controls(place: int, name: str, kind: str, recode: Any) -> list[Element]:
    """The list of what can be done to a column, and a line for its own numbers."""
    options = [
        ("", "as it is"),
        *((json.dumps(spec), title) for title, spec in COARSER[_holds(kind)]),
        *(TYPED.items() if _holds(kind) == "number" else ()),
    ]
    chosen, typed = _as_chosen(recode)
    if chosen and chosen not in dict(options):
        options.append((chosen, "as in the policy"))
    listed = choice(options, chosen)
    listed.set("name", f"coarser-{place}")
    listed.set("aria-label", f"coarser values of {name}")
    if _holds(kind) != "number":
        return [listed]
    line = element(
        "input",
        name=f"typed-{place}",
        value=typed,
        class_="typed",
        placeholder="0, 18, 65, 120 or 90",
        autocomplete="off",
        aria_label=f"edges, or the limit, of {name}",
    )
    return [listed, line]


def _as_chosen(recode: Any) -> tuple[str, str]:
    """What the controls show for what the policy has."""
    if recode is None:
        return "", ""
    if isinstance(recode, Mapping) and len(recode) == 1 and (key := next(iter(recode))) in TYPED:
        numbers = recode[key] if isinstance(recode[key], list) else [recode[key]]
        return key, ", ".join(map(str, numbers))
    return json.dumps(recode, default=_plain), ""


def _holds(kind: str) -> str:
    if kind.startswith(("date", "timestamp")):
        return "date"
    is_number = any(word in kind for word in ("int", "double", "float", "decimal", "real"))
    return "number" if is_number else "text"


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) and value == int(value) else float(value)


def chosen_recode(sent: Mapping[str, Any], place: int, column: str, role: str) -> Any:
    """What was chosen for a column, as `[recode]` has it; None: nothing.

    Raises:
        InputError: it is not one of the list, its numbers are none, or the role forbids it.
    """
    chosen = str(sent.get(f"coarser-{place}", ""))
    if not chosen or role not in ("quasi", "sensitive"):
        return None
    if chosen in TYPED:
        texts = [text for text in str(sent.get(f"typed-{place}", "")).split(",") if text.strip()]
        numbers = [number(text, f"{column}: {TYPED[chosen]}") for text in texts]
        if len(numbers) < (2 if chosen == "bins" else 1):
            wanted = "at least two edges, e.g. 0, 18, 65, 120" if chosen == "bins" else "a number, e.g. 90"
            raise InputError(f"{column}: {TYPED[chosen]} …: which?", hint=f"type {wanted}")
        return {chosen: numbers if chosen == "bins" else numbers[0]}
    try:
        spec = json.loads(chosen)
    except ValueError as error:
        raise InputError("coarser values: choose one from the list") from error
    if role == "sensitive" and depends_on_table(spec):
        raise InputError(
            f"{column}: a sensitive column must not decide its own groups",
            hint="type edges, or choose a rounding",
        )
    return spec


async def show_rare(studio: Studio, sections: Mapping[str, Any]) -> list[Element]:
    """How many people are alone with the chosen columns as they would be published; or that it is counted."""
    quasi = sections["columns"].get("quasi", [])
    if not quasi:
        return blocks(
            [doc.Paragraph(text="Choose what is published: then this says how many people stand out.")]
        )
    recode = {name: spec for name, spec in (sections["recode"] or {}).items() if name in quasi}
    project = studio.project
    key = ("rare", project.table(), json.dumps([quasi, recode], default=str))

    def count(_: Any) -> list[str]:
        source = open_source_of(project.read()["source"], project.folder)
        return study_people(source, quasi, recode, project.folder).paragraph()

    task = await wait_briefly(studio.tasks.read(key, count))
    if not task.finished:
        return [_show_counting(task.seconds)]
    if task.error is not None:
        return [refusal(task.error)]
    tone: doc.Tone = "good" if "nobody" in task.result[0] else "warning"
    text = " ".join(line.strip() for line in task.result[1:])
    return blocks([doc.Notice(tone=tone, title=task.result[0], text=text)])


def _show_counting(seconds: float) -> Element:
    """How long it has been counted, looked at again until it is done."""
    box = element("div", class_="waiting")
    again = {"post": "/roles/rare", "include": "closest form", "target": "#rare"}
    for name, setting in {**again, "trigger": "load delay:600ms"}.items():
        box.set(f"hx-{name}", setting)
    bar = element("progress", aria_label="Counting who stands out")
    return within(box, element("p", f"Counting who stands out … ({seconds:.0f} s)"), bar)


MEANING = {
    "": "not decided",
    "unit": "whose row it is: a number of a person; dropped",
    "identifiers": "names somebody: dropped",
    "quasi": "published as it is; others may know it",
    "sensitive": "must not be inferable",
    "dropped": "not published",
}

_TITLES = ("column", "type", "different values", "it looks like", "role", "published")
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
    task = await wait_briefly(look(studio))
    if not task.finished:
        content = [*before, *show_progress(request, task, "Looking at the columns")]
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
    rows = []
    for place, (guess, facts) in enumerate(zip(found.guesses, found.facts.columns, strict=True)):
        name = escape_controls(guess.column)
        role = choice([(r, r or "choose …") for r in ("", *ROLES)], roles.get(guess.column, ""))
        role.set("name", f"role-{place}")
        role.set("aria-label", f"role of {name}")
        role.set("class", "role")
        coarser = controls(place, name, facts.type, recodes.get(guess.column))
        cells = [
            element("th", name, data_label=_TITLES[0], class_="words", role="rowheader"),
            cell(_TITLES[1], facts.type, class_="plain"),
            cell(_TITLES[2], f"{facts.n_distinct:,}", class_="plain"),
            cell(_TITLES[3], f"{guess.role}? {guess.evidence}", class_="words"),
            within(cell(_TITLES[4]), role),
            within(cell(_TITLES[5]), *coarser),
        ]
        rows.append(within(element("tr", role="row"), *cells))
    live = element("div", id="rare", aria_live="polite")
    live.set("hx-post", "/roles/rare")
    live.set("hx-include", "closest form")
    live.set("hx-trigger", "load, change from:closest form delay:200ms")
    saved = element("button", "Keep these roles", type="submit")
    marked = made_for(_names(found))
    made = form("/roles", request.scope["csrf"], marked, live, table("Columns", _TITLES, rows), saved)
    meanings = doc.Facts(items=tuple((role, text) for role, text in MEANING.items() if role))
    return [*blocks([meanings]), made]


def _names(found: FirstPolicy) -> list[str]:
    return [guess.column for guess in found.guesses]


@refuse_on(page)
async def keep(request: Request) -> Response:
    """The roles that were chosen go into the policy."""
    studio = studio_of(request)
    sections = _sections(studio, await read_form(request))
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
    if not task.ok:
        raise InputError("the table is still being read", hint="wait until the page shows its columns")
    refuse_outdated(sent, _names(task.result))
    lists: dict[str, list[str]] = {role: [] for role in ROLES}
    undecided: list[str] = []
    recode: dict[str, Any] = {}
    for place, guess in enumerate(task.result.guesses):
        role = str(sent.get(f"role-{place}", ""))
        lists.get(role, undecided).append(guess.column)
        spec = chosen_recode(sent, place, guess.column, role)
        if spec is not None:
            recode[guess.column] = spec
    if len(lists["unit"]) > 1:
        raise InputError("only one column can be the unit: whose row it is", hint="the others: identifiers")
    columns: dict[str, Any] = {role: names for role, names in lists.items() if names and role != "unit"}
    if lists["unit"]:
        columns = {"unit": lists["unit"][0], **columns}
    if undecided:
        columns["undecided"] = undecided
    written = studio.project.read().get("columns", {})
    columns |= {"k": written["k"]} if "k" in written else {}  # only the policy file changes it
    return {"columns": columns, "recode": recode or None}


async def rare(request: Request) -> Response:
    """How many people are alone with the columns that are chosen now, as a part of the page."""
    studio = studio_of(request)
    try:
        shown = await show_rare(studio, _sections(studio, await read_form(request)))
    except DaleniusError as error:
        shown = [refusal(error)]
    return HTMLResponse("".join(map(to_text, shown)))
