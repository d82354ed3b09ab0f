"""Step 3: how sure anybody may become, value by value.

Its form has a sentence to begin with, and a line for every value.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any
from xml.etree.ElementTree import Element

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dalenius.errors import DaleniusError, InputError, PromiseNotMet
from dalenius.inspection.looking import look_at, with_histogram
from dalenius.mechanisms.config import config_of
from dalenius.mechanisms.feasible import TableFacts
from dalenius.pages import document as doc
from dalenius.pages.words import say_plan
from dalenius.policy import open_source_of
from dalenius.promises import PROMISES
from dalenius.promises.f_privacy import FPrivacy
from dalenius.promises.l_diversity import LDiversity
from dalenius.publishing import preview
from dalenius.release.verify import tell_outright
from dalenius.studio.frame import Studio, made_for, read_form, refuse_on, refuse_outdated, show, studio_of
from dalenius.studio.parts import cell, command, next_link, refusal, show_progress, table, wait_briefly
from dalenius.studio.project import number
from dalenius.studio.tasks import Task
from dalenius.tables.histogram import Histogram, label, label_cell
from dalenius.web.page import blocks, choice, element, field, form, within

SHOWN = 200
"""How many values get a line; the others have the limit of all."""
KINDS = (
    ("f-privacy", "a limit of its own for every value"),
    ("l-diversity", "the same limit for all values: 1 in l"),
    ("proximity", "numbers: one limit for what is near a guess"),
)
DEFAULT = {"times": Decimal(4), "plus": Decimal("0.02"), "cap": Decimal("0.5")}
_TITLES = ("value", "people", "share", "lowest possible limit", "limit now", "its own (1: no secret)")


def promise_form(
    csrf: str, histogram: Histogram, promise: Mapping[str, Any], about: Hashable
) -> list[Element]:
    """The form, filled with what the policy has; values go by their places in what it is about."""
    order = _shown(histogram)
    made = form(
        "/promise",
        csrf,
        made_for(about),
        _sentence(histogram, order),
        _kind(promise),
        _rule(promise),
        _table(histogram, promise, order),
        element("button", "Keep this promise", type="submit"),
    )
    told = {"Groups of values with a limit together": promise.get("groups")}
    if others := _unshown_limits(promise, histogram):
        told["Values with a limit of their own that have no line here"] = map(label, others)
    return [
        *(
            element("p", f"{what}: {', '.join(map(str, names))}. The policy file has them.")
            for what, names in told.items()
            if names
        ),
        made,
    ]


def _shown(histogram: Histogram) -> list[int]:
    """The values that get a line, the commonest first."""
    return sorted(range(len(histogram)), key=lambda code: -histogram.counts[code])[:SHOWN]


def _sentence(histogram: Histogram, order: list[int]) -> Element:
    """Such as: nobody should be more than 1 in 5 sure that a person has HIV."""
    values = [(str(code), label(histogram.values[code])) for code in reversed(order)]
    limit = element("input", autocomplete="off", placeholder="1 in 5, 20 % or 0.2")
    return within(
        element("fieldset"),
        element("legend", "Begin with a sentence"),
        field("sentence-limit", "Nobody should be more than … sure", limit),
        field("sentence-value", "that a person has", choice(values, values[0][0])),
    )


def _kind(promise: Mapping[str, Any]) -> Element:
    diversity = element("input", value=str(promise.get("l", 3)), inputmode="numeric")
    return within(
        element("fieldset"),
        field("kind", "Kind of promise", choice(KINDS, str(promise.get("kind", "f-privacy")))),
        field("l", "l: nobody more than 1 in l sure", diversity),
        field(
            "within",
            "numbers: near means within (5000, or 10%)",
            element("input", value=str(promise.get("within", "10%"))),
        ),
        field(
            "at_most",
            "numbers: how sure of any guess",
            element("input", value=str(promise.get("at_most", "0.2")), inputmode="decimal"),
        ),
    )


def _rule(promise: Mapping[str, Any]) -> Element:
    default = promise.get("default", {})
    default = default if isinstance(default, Mapping) else {"times": 0, "plus": default}
    rule = within(
        element("fieldset"),
        element("legend", "The limit of all other values: min(cap, times × share + plus)"),
    )
    for name, usual in DEFAULT.items():
        within(
            rule,
            field(name, name, element("input", value=str(default.get(name, usual)), inputmode="decimal")),
        )
    return rule


def _table(histogram: Histogram, promise: Mapping[str, Any], order: list[int]) -> Element:
    limits = _limits(histogram, promise)
    own = _own_limits(promise, histogram.columns)
    rows = []
    for code in order:
        value = histogram.values[code]
        typed = element(
            "input",
            name=f"limit-{code}",
            value=str(own.get(_cells(value), "")),
            autocomplete="off",
            inputmode="decimal",
            aria_label=f"limit of {label(value)}",
        )
        rows.append(_row(histogram, code, None if limits is None else limits[code], typed))
    return table("Limits", _TITLES, rows)


def _row(histogram: Histogram, code: int, limit: Fraction | None, typed: Element) -> Element:
    share = histogram.frequency(code)
    row = within(
        element("tr", role="row"),
        element("th", label(histogram.values[code]), data_label=_TITLES[0], class_="words", role="rowheader"),
    )
    texts = (f"{histogram.counts[code]:,}", f"{float(share):.2%}", lowest_limit(share))
    for title, text in zip(_TITLES[1:4], texts, strict=True):
        within(row, cell(title, text, class_="number"))
    now = cell(_TITLES[4], "–" if limit is None else f"{float(limit):.4g} ", class_="number")
    if limit is not None and limit < share:
        within(now, element("span", "cannot be kept: everybody can guess the share", class_="verdict bad"))
    elif limit == 1:
        within(now, element("span", "no secret", class_="verdict bad"))
    return within(row, now, within(cell(_TITLES[5]), typed))


def _limits(histogram: Histogram, promise: Mapping[str, Any]) -> tuple[Fraction, ...] | None:
    """The limit of every value as the policy has it; None: it has none, or it cannot be read."""
    kind = PROMISES.get(str(promise.get("kind")))
    if kind not in (FPrivacy, LDiversity):
        return None
    try:
        made = kind.from_policy(dict(promise), histogram.columns)
        return made.thresholds(histogram) if isinstance(made, FPrivacy | LDiversity) else None
    except DaleniusError:
        return None


def _cells(value: tuple[Any, ...]) -> tuple[str, ...]:
    """How a policy names a value: cell by cell."""
    return tuple(map(label_cell, value))


def _own_limits(promise: Mapping[str, Any], columns: tuple[str, ...]) -> dict[tuple[str, ...], Any]:
    """The limits of single values, by their cells: a policy lists them by name, or one by one."""
    values = promise.get("values", {})
    if isinstance(values, Mapping):
        return {(str(name),): limit for name, limit in values.items()}
    return {_cells(tuple(entry.get(name) for name in columns)): entry.get("at_most") for entry in values}


def _unshown_limits(promise: Mapping[str, Any], histogram: Histogram) -> dict[tuple[str, ...], Any]:
    """Those of values that occur and have no line, which only the policy file changes."""
    if promise.get("kind") != FPrivacy.kind:
        return {}
    shown = {*_shown(histogram)}
    unshown = {_cells(value) for code, value in enumerate(histogram.values) if code not in shown}
    own = _own_limits(promise, histogram.columns)
    return {cells: limit for cells, limit in own.items() if cells in unshown}


def lowest_limit(share: Fraction) -> str:
    """The share, rounded up to what a person types.

    >>> lowest_limit(Fraction(1, 3))
    '0.3334'
    """
    return f"{-(-share.numerator * 10_000 // share.denominator) / 10_000:g}"


def read_promise_form(
    sent: Mapping[str, Any], histogram: Histogram, before: Mapping[str, Any]
) -> dict[str, Any]:
    """The section `[promise]` of what was typed; the sentence comes last, and what has no line stays.

    Raises:
        InputError: a limit is no number.
    """
    sentence, about = str(sent.get("sentence-limit", "")).strip(), str(sent.get("sentence-value", ""))
    if sent.get("kind") == "l-diversity":
        if sentence:
            hint = f"choose “{KINDS[0][1]}”, or leave the sentence empty"
            raise InputError("the sentence is about one value, and this kind of promise is not", hint=hint)
        text = str(sent.get("l", "")).strip()
        if not text.isdigit() or int(text) < 2:
            raise InputError(f"l: {text!r} must be a whole number of at least 2")
        return {"kind": "l-diversity", "l": int(text)}
    if sent.get("kind") == "proximity":
        near = str(sent.get("within", "")).strip()
        return {
            "kind": "proximity",
            "within": near if near.endswith("%") else number(near, "within"),
            "at_most": number(str(sent.get("at_most", "")), "at_most"),
        }
    default = {key: number(str(sent.get(key, "")), key) for key in DEFAULT}
    typed = {code: str(sent.get(f"limit-{code}", "")).strip() for code in range(len(histogram))}
    if sentence and about.isdigit() and int(about) in typed:
        typed[int(about)] = sentence
    limits = {
        _cells(histogram.values[code]): number(text, f"limit of {label(histogram.values[code])}")
        for code, text in typed.items()
        if text
    }
    limits = _unshown_limits(before, histogram) | limits
    groups = {"groups": before["groups"]} if "groups" in before else {}
    return {"kind": "f-privacy", "default": default, **_section(limits, histogram.columns), **groups}


def _section(limits: Mapping[tuple[str, ...], Any], columns: tuple[str, ...]) -> dict[str, Any]:
    if not limits:
        return {}
    if len(columns) == 1:
        return {"values": {cell: limit for (cell,), limit in limits.items()}}
    entries = [
        {**dict(zip(columns, cells, strict=True)), "at_most": limit} for cells, limit in limits.items()
    ]
    return {"values": entries}


def _facts_key(studio: Studio) -> tuple[Hashable, ...]:
    sensitive, recode = _sensitive(studio.project.read())
    return ("facts", studio.project.table(), repr((sensitive, recode)))


def _sensitive(data: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The sensitive columns, and how they are recoded."""
    sensitive = tuple(data.get("columns", {}).get("sensitive", []))
    return sensitive, {name: spec for name, spec in data.get("recode", {}).items() if name in sensitive}


def facts_of(studio: Studio) -> Task:
    """How often the sensitive values occur, as they would be published."""
    data = studio.project.read()
    sensitive, recode = _sensitive(data)

    def count(_: Any) -> TableFacts:
        source = open_source_of(data["source"], studio.project.folder)
        return with_histogram(source, look_at(source), sensitive, recode, studio.project.folder)

    return studio.tasks.read(_facts_key(studio), count)


def plan_of(studio: Studio) -> Task:
    """The plan of the policy as it is now: its words, and how many people it publishes outright."""
    key = ("plan", studio.project.table(), studio.project.fingerprint())

    def make(progress: Any) -> dict[str, Any]:
        policy = studio.project.policy()
        seen = preview(policy, progress=progress)
        plan = seen.plan
        if isinstance(plan, PromiseNotMet):
            raise plan
        return {
            "words": say_plan(policy.mechanism.kind, policy.mechanism.method, plan),
            "numbers": str(plan),
            "outright": plan.outright,
            "exposed": [f"{what} – {hint}" for what, hint in seen.exposures.reasons()],
            "sensitive": policy.columns.sensitive,
        }

    return studio.tasks.read(key, make)


async def page(request: Request, before: Sequence[Element] = (), status: int = 200) -> Response:
    """How sure anybody may become, and the plan that follows."""
    studio = studio_of(request)
    data = studio.project.read()
    if data.get("columns", {}).get("undecided") or not data.get("columns"):
        return RedirectResponse("/roles", 303)
    content = [*before, *await _content(request, studio, data)]
    policy = studio.project.policy_file.name
    same, python = [command("plan", policy)], f'print(dalenius.plan("{policy}"))'
    return show(request, "promise", content, same=same, python=python, status=status)


async def _content(request: Request, studio: Studio, data: dict[str, Any]) -> list[Element]:
    if not data["columns"].get("sensitive"):
        text = "No column is sensitive: only whole rows can be protected, by a promise in the policy file."
        return blocks([doc.Notice(tone="warning", title="What must not be known?", text=text)])
    task = await wait_briefly(facts_of(studio))
    if not task.finished:
        return show_progress(request, task, "Counting the sensitive values")
    if task.error is not None:
        return [refusal(task.error)]
    histogram = task.result.histogram
    if histogram is None:
        return [refusal(InputError("the table has no rows"))]
    promise, about = data.get("promise", {}), _facts_key(studio)
    shown = promise_form(request.scope["csrf"], histogram, promise, about)
    plan = await wait_briefly(plan_of(studio)) if "promise" in data else None
    if plan is not None:
        shown += show_plan(plan) if plan.finished else show_progress(request, plan, "Planning")
    is_open = plan is not None and plan.ok
    return [*shown, next_link("choose", is_open=is_open, why="a promise that can be kept is needed first")]


def show_plan(task: Task) -> list[Element]:
    """What a plan says, people published outright in red."""
    if task.error is not None:
        return [refusal(task.error, "This promise cannot be kept")]
    found = task.result
    exposed = [doc.Notice(tone="bad", title="Somebody is exposed", text=line) for line in found["exposed"]]
    told = [doc.Bullets(title="What it means", items=tuple(found["words"]))] if found["words"] else []
    numbers = within(element("pre", class_="plan", tabindex="0"), element("code", found["numbers"]))
    return [
        *outright_notice(found["outright"], found["sensitive"]),
        *blocks([*exposed, *told]),
        within(element("details"), element("summary", "The plan in numbers"), numbers),
    ]


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


@refuse_on(page)
async def keep(request: Request) -> Response:
    """The limits go into the policy."""
    studio = studio_of(request)
    sent = await read_form(request)
    refuse_outdated(sent, _facts_key(studio))
    task = facts_of(studio)
    if not task.ok or task.result.histogram is None:
        raise InputError("the values are still being counted", hint="wait until the page shows them")
    written = studio.project.read()
    mechanism = written.get("mechanism")
    promise = read_promise_form(sent, task.result.histogram, written.get("promise", {}))
    studio.project.change(promise=promise, mechanism=mechanism if _fits(mechanism, promise["kind"]) else None)
    return RedirectResponse("/promise", 303)


def _fits(mechanism: Any, kind: str) -> bool:
    try:
        return mechanism is not None and kind in config_of(mechanism.get("kind", "")).promises
    except DaleniusError:
        return False
