"""Asking in a browser: a form for those who do not write SQL, and an answer as blocks of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element

from dalenius.pages import document as doc
from dalenius.plain import escape_controls
from dalenius.release.manifest import Column
from dalenius.sql import identifier, literal
from dalenius.tables.histogram import label_cell
from dalenius.web.page import choice, element, field, form, within

OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
SHOWN = 500
"""How many rows of an answer a page shows."""


def question_of(form_data: Mapping[str, str], columns: Sequence[Column]) -> str:
    """The SQL of a filled form: written by hand, or put together of what was chosen."""
    written = form_data.get("sql", "").strip()
    if written:
        return written
    names = {column.name for column in columns}
    kind, _, argument = form_data.get("what", "count").partition(":")
    what = (
        f"{kind.upper()}({identifier(argument)})"
        if argument in names and kind in ("avg", "sum")
        else "COUNT(*)"
    )
    by = form_data.get("by", "")
    sql = f"SELECT {identifier(by)}, {what} FROM t" if by in names else f"SELECT {what} FROM t"
    where, operator = form_data.get("where", ""), form_data.get("operator", "=")
    if where in names and operator in OPERATORS:
        found = next(column for column in columns if column.name == where)
        sql += f" WHERE {identifier(where)} {operator} {_constant(form_data.get('value', ''), found)}"
    return f"{sql} GROUP BY {identifier(by)}" if by in names else sql


def _constant(text: str, column: Column) -> str:
    """A number as it is where the column holds numbers, else a text in quotes."""
    if is_number(column):
        try:
            float(text)
        except ValueError:
            return literal(text)
        return text.strip()
    return literal(text)


def is_number(column: Column) -> bool:
    """Whether sums and averages of the column make sense."""
    return column.type.startswith(("int", "uint", "float", "double", "decimal", "halffloat"))


def examples(columns: Sequence[Column]) -> list[str]:
    """Questions that these columns allow, for who has not written one before."""
    sensitive = [identifier(column.name) for column in columns if column.role == "sensitive"][:1]
    others = [column for column in columns if column.role != "sensitive"]
    numbers = [column for column in others if is_number(column)][:1]
    found = [f"SELECT {name}, COUNT(*) FROM t GROUP BY {name}" for name in sensitive]
    for column in numbers:
        name = identifier(column.name)
        keys = ", ".join(sensitive)
        found.append(
            f"SELECT {keys}, AVG({name}) FROM t GROUP BY {keys}" if keys else f"SELECT AVG({name}) FROM t"
        )
        found.append(f"SELECT COUNT(*) FROM t WHERE {name} >= 40 AND {name} < 60")
    return found


def ask_form(action: str, csrf: str, columns: Sequence[Column], chosen: Mapping[str, str]) -> Element:
    """The form, filled as it was sent."""
    names = [(column.name, escape_controls(column.name)) for column in columns]
    numbers = [column for column in columns if is_number(column)]
    what = [
        ("count", "how many"),
        *((f"avg:{c.name}", f"average of {escape_controls(c.name)}") for c in numbers),
        *((f"sum:{c.name}", f"sum of {escape_controls(c.name)}") for c in numbers),
    ]
    simple = within(
        element("fieldset"),
        element("legend", "Choose a question"),
        field("what", "What", choice(what, chosen.get("what", "count"))),
        field("by", "For each", choice([("", "everybody together"), *names], chosen.get("by", ""))),
        field("where", "Only where", choice([("", "no condition"), *names], chosen.get("where", ""))),
        field("operator", "is", choice([(o, o) for o in OPERATORS], chosen.get("operator", "="))),
        field("value", "this value", element("input", value=chosen.get("value", ""), autocomplete="off")),
    )
    written = element("textarea", chosen.get("sql", ""), spellcheck="false", rows="4")
    written.set("placeholder", "SELECT COUNT(*) FROM t WHERE …")
    sql = within(
        element("fieldset"),
        element("legend", "Or write it in SQL, about the table t"),
        field("sql", "SQL", written),
    )
    return form(action, csrf, simple, sql, element("button", "Ask", type="submit"))


def answer_blocks(sql: str, answer: Mapping[str, Any]) -> list[doc.Block]:
    """An answer as `ask --json` has it, or its error, as blocks."""
    asked = doc.Facts(items=(("Question", doc.Code(text=sql)),))
    if "error" in answer:
        error = answer["error"]
        text = " ".join(part for part in (error["message"], error.get("hint")) if part)
        return [asked, doc.Notice(tone="bad", title="This cannot be answered", text=escape_controls(text))]
    rows = answer["rows"]
    per_cent = f"{answer['confidence'] * 100:g} % interval"
    names = [escape_controls(name) for name in rows[0]["group"]] if rows else []
    drawn = doc.Column(
        title="drawn", style="number", legend=doc.Legend(point=f"estimate, with its {per_cent}")
    )
    table = doc.Table(
        caption="Answer",
        columns=doc.head(*(names or ["group"]), "aggregate", f"estimate and {per_cent}", drawn),
        rows=tuple(_row(row) for row in rows[:SHOWN]),
        note=None if len(rows) <= SHOWN else f"The first {SHOWN} of {len(rows):,} rows.",
    )
    assumed, notes = answer.get("assumption"), [note for note in answer.get("notes", ()) if note]
    told: list[doc.Block] = [doc.Paragraph(text=f"The intervals assume: {assumed}.")] if assumed else []
    if notes:
        told.append(doc.Bullets(title="To know", items=tuple(map(escape_controls, notes))))
    return [asked, table, *told]


def _row(row: Mapping[str, Any]) -> tuple[doc.Cell, ...]:
    estimate, low, high = row["estimate"], row["low"], row["high"]
    lowest = None if low is None else max(low, 0.0)
    is_drawn = estimate is not None and estimate >= 0
    picture = doc.Picture(point=estimate, low=lowest, high=high) if is_drawn else doc.Picture()
    return (
        *([label_cell(cell) for cell in row["group"].values()] or ["everybody"]),
        escape_controls(row["column"]),
        doc.Estimate(value=estimate, low=low, high=high, style="number"),
        picture,
    )
