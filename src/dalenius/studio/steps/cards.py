"""A card for a way to keep the promise: what it does, its worst case, its error, what it does not stop."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any
from xml.etree.ElementTree import Element

from dalenius.mechanisms import registry
from dalenius.pages import document as doc
from dalenius.pages.words import chances
from dalenius.studio.project import show_promise
from dalenius.web.page import blocks, element, form, within

METRIC = "relative-error"


def card(
    csrf: str, name: str, policy: Mapping[str, Any], found: Mapping[str, Any] | None, *, is_chosen: bool
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
    if found is not None:
        within(made, *blocks(_measured(found)))
    button = element("button", "Choose this", type="submit", name="kind", value=name)
    if found is not None and not found["feasible"]:
        button.set("disabled", "disabled")
    return within(made, form("/choose", csrf, button))


def _measured(found: Mapping[str, Any]) -> list[doc.Block]:
    if not found["feasible"]:
        return [doc.Notice(tone="warning", title="Not on this table", text=str(found["reason"]))]
    error, outright = found.get(METRIC), found.get("outright") or 0
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
