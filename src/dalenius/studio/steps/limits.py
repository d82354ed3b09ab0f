"""The form of a promise: a sentence to begin with, and a line for every value."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any
from xml.etree.ElementTree import Element

from dalenius.errors import DaleniusError, InputError
from dalenius.promises import PROMISES
from dalenius.promises.f_privacy import FPrivacy
from dalenius.promises.l_diversity import LDiversity
from dalenius.studio.project import number
from dalenius.tables.histogram import Histogram, label, label_cell
from dalenius.web.page import choice, element, field, form, within

SHOWN = 200
"""How many values get a line; the others have the limit of all."""
KINDS = (
    ("f-privacy", "a limit of its own for every value"),
    ("l-diversity", "the same limit for all values: 1 in l"),
    ("proximity", "numbers: one limit for what is near a guess"),
)
DEFAULT = {"times": Decimal(4), "plus": Decimal("0.02"), "cap": Decimal("0.5")}
_TITLES = ("value", "people", "share", "lowest possible limit", "limit now", "its own (1: no secret)")


def promise_form(csrf: str, histogram: Histogram, promise: Mapping[str, Any]) -> list[Element]:
    """The form, filled with what the policy has."""
    order = sorted(range(len(histogram)), key=lambda code: -histogram.counts[code])
    made = form(
        "/promise",
        csrf,
        _sentence(histogram, order),
        _kind(promise),
        _rule(promise),
        within(element("figure"), _table(histogram, promise, order[:SHOWN])),
        element("button", "Keep this promise", type="submit"),
    )
    if not isinstance(promise.get("groups"), Mapping):
        return [made]
    names = ", ".join(map(str, promise["groups"]))
    told = f"Groups of values with a limit together: {names}. The policy file has them."
    return [element("p", told), made]


def _sentence(histogram: Histogram, order: list[int]) -> Element:
    """Such as: nobody should be more than 1 in 5 sure that a person has HIV."""
    values = [(str(code), label(histogram.values[code])) for code in reversed(order[:SHOWN])]
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
    head = element("tr", role="row")
    for title in _TITLES:
        within(head, element("th", title, scope="col", role="columnheader"))
    body = element("tbody", role="rowgroup")
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
        within(body, _row(histogram, code, None if limits is None else limits[code], typed))
    table = element("table", role="table", aria_label="Limits")
    return within(table, within(element("thead", role="rowgroup"), head), body)


def _row(histogram: Histogram, code: int, limit: Fraction | None, typed: Element) -> Element:
    share = histogram.frequency(code)
    row = within(
        element("tr", role="row"),
        element("th", label(histogram.values[code]), data_label=_TITLES[0], class_="words", role="rowheader"),
    )
    texts = (f"{histogram.counts[code]:,}", f"{float(share):.2%}", lowest_limit(share))
    for title, text in zip(_TITLES[1:4], texts, strict=True):
        within(row, element("td", text, data_label=title, class_="number", role="cell"))
    now = element("td", _show_limit(limit), data_label=_TITLES[4], class_="number", role="cell")
    if limit is not None and limit < share:
        within(now, element("span", "cannot be kept: everybody can guess the share", class_="verdict bad"))
    elif limit == 1:
        within(now, element("span", "no secret", class_="verdict bad"))
    cell = within(element("td", data_label=_TITLES[5], role="cell"), typed)
    return within(row, now, cell)


def _show_limit(limit: Fraction | None) -> str:
    return "–" if limit is None else f"{float(limit):.4g} "


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


def lowest_limit(share: Fraction) -> str:
    """The share, rounded up to what a person types.

    >>> lowest_limit(Fraction(1, 3))
    '0.3334'
    """
    return f"{-(-share.numerator * 10_000 // share.denominator) / 10_000:g}"


def read_promise_form(sent: Mapping[str, Any], histogram: Histogram) -> dict[str, Any]:
    """The section `[promise]` of what was typed; the sentence comes last.

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
    return {"kind": "f-privacy", "default": default, **_section(limits, histogram.columns)}


def _section(limits: Mapping[tuple[str, ...], Any], columns: tuple[str, ...]) -> dict[str, Any]:
    if not limits:
        return {}
    if len(columns) == 1:
        return {"values": {cell: limit for (cell,), limit in limits.items()}}
    entries = [
        {**dict(zip(columns, cells, strict=True)), "at_most": limit} for cells, limit in limits.items()
    ]
    return {"values": entries}
