"""Coarser values on the page of roles, and how many people still stand out with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from xml.etree.ElementTree import Element

from dalenius.errors import InputError
from dalenius.inspection.looking import study_people
from dalenius.pages import document as doc
from dalenius.policy import open_source_of
from dalenius.studio.frame import Studio
from dalenius.studio.parts import patiently, refusal
from dalenius.studio.project import number
from dalenius.tables.recode import depends_on_table
from dalenius.web.page import blocks, choice, element, within

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

    task = await patiently(studio.tasks.read(key, count))
    if not task.finished:
        return [_counting(task.seconds)]
    if task.error is not None:
        return [refusal(task.error)]
    tone: doc.Tone = "good" if "nobody" in task.result[0] else "warning"
    text = " ".join(line.strip() for line in task.result[1:])
    return blocks([doc.Notice(tone=tone, title=task.result[0], text=text)])


def _counting(seconds: float) -> Element:
    """How long it has been counted, looked at again until it is done."""
    box = element("div", class_="waiting")
    again = {"post": "/roles/rare", "include": "closest form", "target": "#rare"}
    for name, setting in {**again, "trigger": "load delay:600ms"}.items():
        box.set(f"hx-{name}", setting)
    bar = element("progress", aria_label="Counting who stands out")
    return within(box, element("p", f"Counting who stands out … ({seconds:.0f} s)"), bar)
