"""Step 4: ways to keep about the same promise, with what each costs on this table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from urllib.parse import urlencode
from xml.etree.ElementTree import Element

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dalenius.errors import InputError
from dalenius.mechanisms import registry
from dalenius.mechanisms.feasible import TableFacts
from dalenius.pages import document as doc
from dalenius.pages.words import chances
from dalenius.sql import identifier, identifiers
from dalenius.studio import work
from dalenius.studio.frame import Studio, read_form, refuse_on, show, stop_and_return, studio_of
from dalenius.studio.parts import command, next_link, refusal, show_progress, wait_briefly
from dalenius.studio.project import show_promise
from dalenius.studio.steps.promise import facts_of
from dalenius.studio.tasks import Task
from dalenius.web.page import blocks, element, field, form, unpack, within


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedColumns:
    """The questions that matter: pasted ones, and counts by chosen columns; it is in the address."""

    sql: tuple[str, ...]
    columns: tuple[str, ...]

    @classmethod
    def of(cls, text: str, columns: list[str]) -> AskedColumns:
        """What a form or an address says."""
        pasted = tuple(line.strip() for line in text.split(";") if line.strip())
        return cls(sql=pasted, columns=tuple(columns))

    @classmethod
    def in_address(cls, request: Request) -> AskedColumns:
        """What the address says."""
        query = request.query_params
        return cls.of(query.get("questions", ""), query.getlist("column"))

    @property
    def query(self) -> str:
        """As the end of an address."""
        pairs = [("column", name) for name in self.columns]
        pairs += [("questions", ";".join(self.sql))] if self.sql else []
        return f"?{urlencode(pairs)}" if pairs else ""

    def questions(self, data: Mapping[str, Any]) -> list[str]:
        """In SQL; none: random ones are asked."""
        columns = data["columns"]
        sensitive = identifiers(columns.get("sensitive", []))
        chosen = [identifier(name) for name in self.columns if name in columns.get("quasi", [])]
        groups = [", ".join(filter(None, [name, sensitive])) for name in chosen]
        return [*self.sql, *(f"SELECT {keys}, COUNT(*) FROM t GROUP BY {keys}" for keys in groups)]


def find_ways(facts: TableFacts, data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Whole policies by the name of their card: for the chosen promise, what each mechanism proposes."""
    others = ("promise", "mechanism", "suppress", "domains")
    base = {key: part for key, part in data.items() if key not in others}
    found: dict[str, dict[str, Any]] = {}
    for kind in registry.kinds():
        room = registry.find_room(kind, None, "feasible")
        if room is not None and hasattr(room, "match"):
            sections = room.match(facts, data["promise"])
            if sections is not None:
                found[kind] = {**base, **sections}
    return found


async def ways_of(studio: Studio) -> Task:
    """The task that finds the ways, or the one that counts the values, which comes before."""
    facts = await wait_briefly(facts_of(studio))
    if not facts.ok:
        return facts
    data = studio.project.read()
    key = ("ways", studio.project.table(), repr({k: v for k, v in data.items() if k != "mechanism"}))
    return await wait_briefly(studio.tasks.read(key, lambda _: find_ways(facts.result, data)))


async def _ways(studio: Studio) -> dict[str, dict[str, Any]]:
    task = await ways_of(studio)
    if not task.ok:
        raise InputError("the values are still being counted", hint="wait until the page shows the ways")
    found: dict[str, dict[str, Any]] = task.result
    return found


def key_of(studio: Studio, asked: AskedColumns) -> tuple[str, ...]:
    """What a comparison depends on."""
    data = {key: part for key, part in studio.project.read().items() if key != "mechanism"}
    return ("compare", studio.project.table(), repr((data, asked)))


async def page(request: Request, before: Sequence[Element] = (), status: int = 200) -> Response:
    """The ways, what was measured of them, and the questions that it was measured with."""
    studio = studio_of(request)
    data = studio.project.read()
    if "promise" not in data:
        return RedirectResponse("/promise", 303)
    asked = AskedColumns.in_address(request)
    content = [
        *before,
        element("p", "Each way is published a few times into a private folder, asked, and thrown away."),
        *await _content(request, studio, asked),
        next_link("rehearse", is_open="mechanism" in data, why="choose a way first"),
    ]
    same = [command("compare", "policy.toml", "another.toml")]
    python = 'dalenius.compare(["policy.toml", "another.toml"])'
    return show(request, "choose", content, same=same, python=python, status=status)


async def _content(request: Request, studio: Studio, asked: AskedColumns) -> list[Element]:
    ways = await ways_of(studio)
    if not ways.finished:
        return show_progress(request, ways, "Looking for ways to keep the promise")
    if ways.error is not None:
        return [refusal(ways.error)]
    data, task = studio.project.read(), studio.tasks.find(key_of(studio, asked))
    form_shown = _questions_form(request, data, asked)
    if task is not None and not task.finished:
        cancel_at = f"/choose/cancel{asked.query}"
        return [form_shown, *show_progress(request, task, "Publishing and asking", cancel=cancel_at)]
    failed = [refusal(task.error)] if task is not None and task.error is not None else []
    result = task.result if task is not None and not failed else None
    chosen = data.get("mechanism", {}).get("kind")
    cards = element("div", class_="cards")
    for name, policy in ways.result.items():
        found = _find_way(result, name)
        shown = card(
            request.scope["csrf"], name, policy, found, is_chosen=name == chosen, asked=data["promise"]
        )
        within(cards, shown)
    picture = unpack([result["picture"]]) if result is not None and result["picture"] else []
    return [form_shown, *failed, *picture, cards]


def _find_way(result: Mapping[str, Any] | None, name: str) -> dict[str, Any] | None:
    """What a comparison found of one way; None: nothing was measured."""
    if result is None:
        return None
    found = dict(next(entry for entry in result["policies"] if entry["policy"] == name))
    return found | {row["metric"]: row["value"] for row in result["results"] if row["policy"] == name}


def card(
    csrf: str,
    name: str,
    policy: Mapping[str, Any],
    found: Mapping[str, Any] | None,
    *,
    is_chosen: bool,
    asked: Mapping[str, Any],
) -> Element:
    """The card; what was measured is None until somebody asks for it."""
    room = registry.find_room(name, None, "words")
    how = "" if room is None else room.WORDS.how
    made = element("article", class_="card chosen" if is_chosen else "card", aria_label=name)
    within(
        made,
        element("h2", f"{name}{' (chosen)' if is_chosen else ''}"),
        element("p", f"{how[:1].upper()}{how[1:]}."),
        element("p", f"Promise: {show_promise(policy['promise'])}", class_="remark"),
    )
    if policy["promise"] != asked:
        text = f"Choosing it gives up yours: {show_promise(asked)}."
        within(made, *blocks([doc.Notice(tone="warning", title="Another promise than yours", text=text)]))
    if found is not None:
        within(made, *blocks(_describe(found)))
    button = element("button", "Choose this", type="submit", name="kind", value=name)
    if found is not None and not found["feasible"]:
        button.set("disabled", "disabled")
    return within(made, form("/choose", csrf, button))


def _describe(found: Mapping[str, Any]) -> list[doc.Block]:
    if not found["feasible"]:
        return [doc.Notice(tone="warning", title="Not on this table", text=str(found["reason"]))]
    error, outright = found.get("relative-error"), found.get("outright") or 0
    told: list[doc.Block] = []
    if found["best"]:
        told.append(doc.Notice(tone="good", title="The smallest error at this promise", text=""))
    if outright:
        title = f"{outright:,} people's value would be certain"
        told.append(doc.Notice(tone="bad", title=title, text="Lower the limits."))
    published = found["published"]
    facts: tuple[tuple[str, doc.Cell], ...] = (
        ("Worst case", worst_case(found["bound"], found["bound_on"])),
        ("Answers are off by, on average", None if error is None else doc.Number(value=error, style="share")),
        ("Rows that are published", None if published is None else doc.Number(value=published)),
        ("People published outright", doc.Number(value=outright)),
    )
    stops = doc.Bullets(title="What it does not stop", items=tuple(found["not_covered"]))
    return [*told, doc.Facts(items=facts), stops]


def worst_case(bound: float, what: str) -> str:
    """A bound as a sentence, about the attacker whom the promise is about.

    >>> worst_case(0.05, "a person's sensitive value")
    "The attacker whom the promise is about becomes at most 5 in 100 sure of a person's sensitive value."
    """
    link = "" if what.startswith("that ") else "of "
    sure = f"at most {chances(Fraction(str(bound)))} sure {link}{what}"
    return f"The attacker whom the promise is about becomes {sure}."


def _questions_form(request: Request, data: Mapping[str, Any], asked: AskedColumns) -> Element:
    boxes = within(element("fieldset", class_="boxes"), element("legend", "Counts by these columns matter"))
    for name in data["columns"].get("quasi", []):
        box = element("input", type="checkbox", name="column", value=name)
        if name in asked.columns:
            box.set("checked", "checked")
        label = element("label", class_="box")
        box.tail = name
        within(boxes, within(label, box))
    pasted = element("textarea", ";\n".join(asked.sql), rows="3", spellcheck="false")
    text = "And questions of your own, in SQL about the table t; nothing chosen: random questions"
    button = element("button", "Measure all ways", type="submit")
    return form("/choose/compare", request.scope["csrf"], boxes, field("questions", text, pasted), button)


@refuse_on(page)
async def compare(request: Request) -> Response:
    """Start measuring."""
    studio = studio_of(request)
    sent = await read_form(request)
    chosen = [str(name) for name in (await request.form()).getlist("column")]
    asked = AskedColumns.of(str(sent.get("questions", "")), chosen)
    found, folder = await _ways(studio), str(studio.project.folder)
    questions = asked.questions(studio.project.read())
    studio.tasks.run(key_of(studio, asked), work.compare, found, folder, questions)
    return RedirectResponse(f"/choose{asked.query}", 303)


async def cancel(request: Request) -> Response:
    """Stop measuring."""
    return await stop_and_return(request, key_of(studio_of(request), AskedColumns.in_address(request)))


@refuse_on(page)
async def keep(request: Request) -> Response:
    """The chosen way goes into the policy."""
    studio = studio_of(request)
    sent = await read_form(request)
    found = await _ways(studio)
    if sent.get("kind") not in found:
        raise InputError("choose one of the cards")
    chosen, data = found[str(sent["kind"])], studio.project.read()
    if (data.get("mechanism", {}).get("kind"), data["promise"]) == (sent["kind"], chosen["promise"]):
        return RedirectResponse("/rehearse", 303)  # as it is, with all that the policy file says of it
    sections = {name: chosen.get(name) for name in ("promise", "mechanism", "domains")}
    studio.project.change(**sections)
    return RedirectResponse("/rehearse", 303)
