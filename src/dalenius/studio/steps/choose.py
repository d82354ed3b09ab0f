"""Step 4: ways to keep about the same promise, with what each costs on this table."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dalenius.errors import DaleniusError, InputError
from dalenius.mechanisms import registry
from dalenius.pages import document as doc
from dalenius.studio import work
from dalenius.studio.frame import Studio, command, next_link, read_form, refusal, show, studio_of, waiting
from dalenius.studio.project import show_promise
from dalenius.studio.steps.promise import facts_of
from dalenius.studio.tasks import Task
from dalenius.web.page import blocks, element, field, form, within

METRIC = "relative-error"


def candidates(studio: Studio) -> dict[str, dict[str, Any]]:
    """Whole policies by the name of their card: for the chosen promise, what each mechanism proposes."""
    data = studio.project.read()
    base = {
        key: part for key, part in data.items() if key not in ("promise", "mechanism", "suppress", "domains")
    }
    facts = facts_of(studio)
    if not facts.finished or facts.error is not None:
        raise InputError("the values are still being counted", hint="wait until the promise page shows them")
    found: dict[str, dict[str, Any]] = {}
    for kind in registry.kinds():
        room = registry.find_room(kind, None, "feasible")
        if room is not None and hasattr(room, "match"):
            sections = room.match(facts.result, data["promise"])
            if sections is not None:
                found[kind] = {**base, **sections}
    return found


def key_of(studio: Studio, questions: list[str]) -> tuple[str, ...]:
    """What a comparison depends on."""
    data = studio.project.read()
    return ("compare", repr({key: part for key, part in data.items() if key != "mechanism"}), *questions)


def questions_in(request: Request) -> list[str]:
    """The questions that matter, from the address."""
    return [line.strip() for line in request.query_params.get("questions", "").split(";") if line.strip()]


async def page(request: Request) -> Response:
    """The page."""
    return _show(request, [])


def _show(request: Request, before: list[Element], status: int = 200) -> Response:
    studio = studio_of(request)
    data = studio.project.read()
    if "promise" not in data:
        return RedirectResponse("/promise", 303)
    questions = questions_in(request)
    asked = element("textarea", ";\n".join(questions), name="questions", rows="3", spellcheck="false")
    text = field(
        "questions", "Questions that matter to you, in SQL about the table t; none: random ones", asked
    )
    compare = form(
        "/choose/compare", request.scope["csrf"], text, element("button", "Measure all ways", type="submit")
    )
    content = [
        *before,
        element("p", "Each way is published a few times into a private folder, asked, and thrown away."),
        compare,
    ]
    task = studio.tasks.find(key_of(studio, questions))
    if task is not None and not task.finished:
        content += waiting(request, task, "Publishing and asking", cancel="/choose/cancel")
    elif task is not None and task.error is not None:
        content.append(refusal(task.error))
    else:
        content += _cards(request, studio, task)
    content.append(next_link("rehearse", is_open="mechanism" in data, why="choose a way first"))
    response = show(
        request,
        "choose",
        "Choose",
        content,
        same=[command("compare", "policy.toml", "another.toml")],
        python='dalenius.compare(["policy.toml", "another.toml"])',
    )
    response.status_code = status
    return response


def _cards(request: Request, studio: Studio, task: Task | None) -> list[Element]:
    measured: dict[str, dict[str, Any]] = {}
    if task is not None:
        for entry in task.result["policies"]:
            measured[entry["policy"]] = dict(entry)
        for row in task.result["results"]:
            measured[row["policy"]][row["metric"]] = row["value"]
    chosen = studio.project.read().get("mechanism", {}).get("kind")
    cards = element("div", class_="cards")
    try:
        found = candidates(studio)
    except DaleniusError as error:
        return [refusal(error)]
    for name, policy in found.items():
        within(cards, _card(request, name, policy, measured.get(name), is_chosen=name == chosen))
    return [cards]


def _card(
    request: Request, name: str, policy: dict[str, Any], found: dict[str, Any] | None, *, is_chosen: bool
) -> Element:
    room = registry.find_room(name, None, "words")
    how = "" if room is None else room.WORDS.how
    card = element("article", class_="card chosen" if is_chosen else "card", aria_label=name)
    within(
        card,
        element("h2", f"{name}{' (chosen)' if is_chosen else ''}"),
        element("p", f"{how[:1].upper()}{how[1:]}."),
    )
    if found is not None:
        within(card, *blocks(_measured(found)))
    within(card, element("p", f"Promise: {show_promise(policy['promise'])}", class_="remark"))
    button = element("button", "Choose this", type="submit", name="kind", value=name)
    if found is not None and not found["feasible"]:
        button.set("disabled", "disabled")
    return within(card, form("/choose", request.scope["csrf"], button))


def _measured(found: dict[str, Any]) -> list[doc.Block]:
    if not found["feasible"]:
        return [doc.Notice(tone="warning", title="Not on this table", text=str(found["reason"]))]
    error, outright = found.get(METRIC), found.get("outright") or 0
    facts: list[tuple[str, doc.Cell]] = [
        ("Worst case", f"{found['bound_on']}: at most {found['bound']:.1%}"),
        ("Answers are off by, on average", None if error is None else doc.Number(value=error, style="share")),
        ("People published outright", doc.Number(value=outright)),
    ]
    told: list[doc.Block] = [doc.Facts(items=tuple(facts))]
    if outright:
        told.insert(
            0,
            doc.Notice(
                tone="bad", title=f"{outright:,} people's value would be certain", text="Lower the limits."
            ),
        )
    if found["best"]:
        told.insert(0, doc.Notice(tone="good", title="The smallest error at this promise", text=""))
    return told


async def compare(request: Request) -> Response:
    """Start measuring."""
    studio = studio_of(request)
    try:
        sent = await read_form(request)
        questions = [line.strip() for line in str(sent.get("questions", "")).split(";") if line.strip()]
        found = candidates(studio)
        studio.tasks.run(
            key_of(studio, questions), work.compare, found, str(studio.project.folder), questions
        )
    except DaleniusError as error:
        return _show(request, [refusal(error)], status=400)
    from urllib.parse import urlencode

    query = f"?{urlencode({'questions': ';'.join(questions)})}" if questions else ""
    return RedirectResponse(f"/choose{query}", 303)


async def cancel(request: Request) -> Response:
    """Stop measuring."""
    studio = studio_of(request)
    await read_form(request)
    studio.tasks.cancel(key_of(studio, questions_in(request)))
    return RedirectResponse("/choose", 303)


async def keep(request: Request) -> Response:
    """The chosen way goes into the policy."""
    studio = studio_of(request)
    try:
        sent = await read_form(request)
        found = candidates(studio)
        if sent.get("kind") not in found:
            raise InputError("choose one of the cards")
    except DaleniusError as error:
        return _show(request, [refusal(error)], status=400)
    chosen = found[str(sent["kind"])]
    studio.project.change(
        promise=chosen["promise"], mechanism=chosen["mechanism"], domains=chosen.get("domains")
    )
    return RedirectResponse("/rehearse", 303)
