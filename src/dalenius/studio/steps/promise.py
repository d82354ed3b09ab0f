"""Step 3: how sure anybody may become, value by value."""

from __future__ import annotations

from collections.abc import Sequence
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
from dalenius.publishing import preview
from dalenius.release.verify import tell_outright
from dalenius.studio.frame import Studio, read_form, show, studio_of
from dalenius.studio.parts import command, next_link, patiently, refusal, waiting
from dalenius.studio.steps.limits import promise_form, read_promise_form
from dalenius.studio.tasks import Task
from dalenius.web.page import blocks, element, within


def facts_of(studio: Studio) -> Task:
    """How often the sensitive values occur, as they would be published."""
    data = studio.project.read()
    sensitive = tuple(data.get("columns", {}).get("sensitive", []))
    recode = {name: spec for name, spec in data.get("recode", {}).items() if name in sensitive}

    def count(_: Any) -> TableFacts:
        source = open_source_of(data["source"], studio.project.folder)
        return with_histogram(source, look_at(source), sensitive, recode, studio.project.folder)

    return studio.tasks.read(("facts", studio.project.table(), repr((sensitive, recode))), count)


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
    task = await patiently(facts_of(studio))
    if not task.finished:
        return waiting(request, task, "Counting the sensitive values")
    if task.error is not None:
        return [refusal(task.error)]
    histogram = task.result.histogram
    if histogram is None:
        return [refusal(InputError("the table has no rows"))]
    shown = promise_form(request.scope["csrf"], histogram, data.get("promise", {}))
    plan = await patiently(plan_of(studio)) if "promise" in data else None
    if plan is not None:
        shown += show_plan(plan) if plan.finished else waiting(request, plan, "Planning")
    is_open = plan is not None and plan.finished and plan.error is None
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


async def keep(request: Request) -> Response:
    """The limits go into the policy."""
    studio = studio_of(request)
    try:
        sent = await read_form(request)
        task = facts_of(studio)
        if not task.finished or task.error is not None or task.result.histogram is None:
            raise InputError("the values are still being counted", hint="wait until the page shows them")
        promise = read_promise_form(sent, task.result.histogram)
    except DaleniusError as error:
        return await page(request, [refusal(error)], status=400)
    written = studio.project.read()
    mechanism, before = written.get("mechanism"), written.get("promise")
    if promise["kind"] == "f-privacy" and isinstance(before, dict) and "groups" in before:
        promise["groups"] = before["groups"]  # the form does not show them: only the policy file changes them
    studio.project.change(promise=promise, mechanism=mechanism if _fits(mechanism, promise["kind"]) else None)
    return RedirectResponse("/promise", 303)


def _fits(mechanism: Any, kind: str) -> bool:
    try:
        return mechanism is not None and kind in config_of(mechanism.get("kind", "")).promises
    except DaleniusError:
        return False
