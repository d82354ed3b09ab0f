"""Step 3: how sure anybody may become, value by value."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any
from xml.etree.ElementTree import Element

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dalenius.errors import DaleniusError, InputError
from dalenius.inspection.looking import look_at
from dalenius.mechanisms.feasible import TableFacts
from dalenius.pages import document as doc
from dalenius.policy import open_source_of
from dalenius.publishing import make_plan
from dalenius.release.verify import tell_outright
from dalenius.studio.frame import Studio, command, next_link, read_form, refusal, show, studio_of, waiting
from dalenius.studio.project import number
from dalenius.studio.tasks import Task
from dalenius.tables.histogram import label, write_cells
from dalenius.web.page import blocks, choice, element, field, form, within

SHOWN = 200
"""How many values get a line; the others have the limit of all."""
KINDS = (
    ("f-privacy", "a limit of its own for every value"),
    ("l-diversity", "the same limit for all values: 1 in l"),
)
TIMES, PLUS, CAP = Decimal(4), Decimal("0.02"), Decimal("0.5")


def facts_of(studio: Studio) -> Task:
    """How often the sensitive values occur."""
    data = studio.project.read()
    sensitive = tuple(data.get("columns", {}).get("sensitive", []))
    source = data.get("source")
    key = ("facts", repr((source, sensitive)))
    return studio.tasks.read(key, lambda _: look_at(open_source_of(source, studio.project.folder), sensitive))


def plan_of(studio: Studio) -> Task:
    """The plan of the policy as it is now: its words, and how many people it publishes outright."""
    key = ("plan", studio.project.fingerprint())

    def make(progress: Any) -> dict[str, Any]:
        policy = studio.project.policy()
        plan = make_plan(policy, progress=progress)
        return {"words": str(plan), "outright": plan.outright, "sensitive": policy.columns.sensitive}

    return studio.tasks.read(key, make)


async def page(request: Request) -> Response:
    """The page."""
    return _show(request, [])


def _show(request: Request, before: list[Element], status: int = 200) -> Response:
    studio = studio_of(request)
    data = studio.project.read()
    if data.get("columns", {}).get("undecided") or not data.get("columns"):
        return RedirectResponse("/roles", 303)
    if not data["columns"].get("sensitive"):
        text = "No column is sensitive: only whole rows can be protected, by a promise in the policy file."
        notice = doc.Notice(tone="warning", title="What must not be known?", text=text)
        return show(request, "promise", "Promise", blocks([notice]))
    task = facts_of(studio)
    if not task.finished:
        return show(request, "promise", "Promise", waiting(request, task, "Counting the sensitive values"))
    if task.error is not None:
        return show(request, "promise", "Promise", [refusal(task.error)])
    content = [*before, *_promise_form(request, task.result, data)]
    is_open = False
    if "promise" in data:
        plan = plan_of(studio)
        if not plan.finished:
            content += waiting(request, plan, "Planning")
        else:
            content += show_plan(plan)
            is_open = plan.error is None
    content.append(next_link("choose", is_open=is_open, why="a promise that can be kept is needed first"))
    policy = studio.project.policy_file.name
    response = show(
        request,
        "promise",
        "Promise",
        content,
        same=[command("plan", policy)],
        python=f'print(dalenius.plan("{policy}"))',
    )
    response.status_code = status
    return response


def show_plan(task: Task) -> list[Element]:
    """What a plan says, people published outright in red."""
    if task.error is not None:
        return [refusal(task.error, "This promise cannot be kept")]
    outright = task.result["outright"]
    parts = outright_notice(outright, task.result["sensitive"])
    return [*parts, within(element("pre", class_="plan"), element("code", task.result["words"]))]


def outright_notice(outright: int | None, sensitive: Any) -> list[Element]:
    """The people whose value would be certain."""
    if outright is None:
        return []
    told = tell_outright(outright, tuple(sensitive))
    tone: doc.Tone = "bad" if outright else "good"
    title = told[0].upper() + told[1:]
    text = (
        "Lower the limits of the values that are certain."
        if outright
        else "No bucket or part tells a value for certain."
    )
    return blocks([doc.Notice(tone=tone, title=title, text=text)])


def _promise_form(request: Request, facts: TableFacts, data: dict[str, Any]) -> list[Element]:
    histogram, promise = facts.histogram, data.get("promise", {})
    if histogram is None:
        return [refusal(InputError("the table has no rows"))]
    default = promise.get("default", {})
    default = default if isinstance(default, dict) else {"times": 0, "plus": default}
    order = sorted(range(len(histogram)), key=lambda code: -histogram.counts[code])
    rarest = label(histogram.values[order[-1]])
    parts: list[Element] = [
        element(
            "p",
            f"“Nobody should be more than … sure that a person has {rarest}.” Fill in the sentence, for "
            "every value that needs a limit of its own. A limit cannot be below a value's share, which "
            "everybody can guess.",
        )
    ]
    table = within(element("table", role="table", aria_label="Limits"), _head())
    body = element("tbody", role="rowgroup")
    given = promise.get("values", {})
    for code in order[:SHOWN]:
        name = _name(histogram.values[code])
        share = histogram.frequency(code)
        limit = element(
            "input",
            name=f"limit-{code}",
            value=str(given.get(name, "")) if isinstance(given, dict) else "",
            autocomplete="off",
            inputmode="decimal",
            aria_label=f"limit of {label(histogram.values[code])}",
        )
        row = element("tr", role="row")
        th = element("th", label(histogram.values[code]), data_label="value", class_="words")
        th.set("role", "rowheader")
        within(row, th)
        for title, text in (
            ("people", f"{histogram.counts[code]:,}"),
            ("share", f"{float(share):.2%}"),
            ("lowest possible limit", f"{_lowest(share)}"),
        ):
            cell = element("td", text, data_label=title, class_="number")
            cell.set("role", "cell")
            within(row, cell)
        within(row, within(element("td", data_label="limit", role="cell"), limit))
        within(body, row)
    within(table, body)
    same = within(
        element("fieldset"),
        element("legend", "The limit of all other values: min(cap, times × share + plus)"),
        field(
            "times", "times", element("input", value=str(default.get("times", TIMES)), inputmode="decimal")
        ),
        field("plus", "plus", element("input", value=str(default.get("plus", PLUS)), inputmode="decimal")),
        field("cap", "cap", element("input", value=str(default.get("cap", CAP)), inputmode="decimal")),
    )
    kind = within(
        element("fieldset"),
        field("kind", "Kind of promise", choice(KINDS, str(promise.get("kind", "f-privacy")))),
        field(
            "l",
            "l: nobody more than 1 in l sure",
            element("input", value=str(promise.get("l", 3)), inputmode="numeric"),
        ),
    )
    made = form(
        "/promise",
        request.scope["csrf"],
        kind,
        same,
        within(element("figure"), table),
        element("button", "Keep this promise", type="submit"),
    )
    if isinstance(promise.get("groups"), dict):
        names = ", ".join(map(str, promise["groups"]))
        parts.append(
            element("p", f"Groups of values with a limit together: {names}. The policy file has them.")
        )
    return [*parts, made]


def _head() -> Element:
    row = element("tr", role="row")
    for title in ("value", "people", "share", "lowest possible limit", "limit (1: no secret)"):
        cell = element("th", title, scope="col")
        cell.set("role", "columnheader")
        within(row, cell)
    return within(element("thead", role="rowgroup"), row)


def _name(value: tuple[Any, ...]) -> str:
    return str(write_cells(value)[0])


def _lowest(share: Fraction) -> str:
    """The share, rounded up to what a person types."""
    return f"{-(-share.numerator * 10_000 // share.denominator) / 10_000:g}"


async def keep(request: Request) -> Response:
    """The limits go into the policy."""
    studio = studio_of(request)
    try:
        sent = await read_form(request)
        task = facts_of(studio)
        if not task.finished or task.error is not None or task.result.histogram is None:
            raise InputError("the values are still being counted", hint="wait until the page shows them")
        promise = _promise(sent, task.result.histogram)
    except DaleniusError as error:
        return _show(request, [refusal(error)], status=400)
    written = studio.project.read()
    mechanism, before = written.get("mechanism"), written.get("promise")
    if promise["kind"] == "f-privacy" and isinstance(before, dict) and "groups" in before:
        promise["groups"] = before["groups"]  # the form does not show them: only the policy file changes them
    studio.project.change(promise=promise, mechanism=mechanism if _fits(mechanism, promise["kind"]) else None)
    return RedirectResponse("/promise", 303)


def _fits(mechanism: Any, kind: str) -> bool:
    from dalenius.mechanisms.config import config_of

    try:
        return mechanism is not None and kind in config_of(mechanism.get("kind", "")).promises
    except DaleniusError:
        return False


def _promise(sent: dict[str, Any], histogram: Any) -> dict[str, Any]:
    if sent.get("kind") == "l-diversity":
        text = str(sent.get("l", "")).strip()
        if not text.isdigit() or int(text) < 2:
            raise InputError(f"l: {text!r} must be a whole number of at least 2")
        return {"kind": "l-diversity", "l": int(text)}
    default = {key: number(str(sent.get(key, "")), key) for key in ("times", "plus", "cap")}
    values: dict[str, Any] = {}
    for code in range(len(histogram)):
        text = str(sent.get(f"limit-{code}", "")).strip()
        if text:
            values[_name(histogram.values[code])] = number(text, f"limit of {label(histogram.values[code])}")
    return {"kind": "f-privacy", "default": default, **({"values": values} if values else {})}
