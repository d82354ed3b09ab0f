"""A report as plain text and as JSON: the same values as the page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from dalenius.pages.document import Block, Bullets, Commands, Facts, Notice, Paragraph, Report, Table
from dalenius.pages.formatting import write_cell


def render_text(report: Report) -> str:
    """The report for a terminal or an e-mail."""
    lines = [report.title, "=" * len(report.title), ""]
    for block in report.lead:
        lines += [*_lines(block), ""]
    for section in report.sections:
        lines += [section.title, "-" * len(section.title), ""]
        for block in section.blocks:
            lines += [*_lines(block), ""]
    return "\n".join(lines).rstrip() + "\n"


def to_json(value: Any) -> Any:
    """A report, or a part of it, as JSON has it; every part names its kind.

    >>> to_json(Paragraph(text="Hello"))
    {'kind': 'paragraph', 'text': 'Hello'}
    """
    if isinstance(value, tuple):
        return [to_json(item) for item in value]
    if not is_dataclass(value):
        return value
    named = {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    return {"kind": type(value).__name__.lower(), **named}


def _lines(block: Block) -> Iterator[str]:
    match block:
        case Paragraph(text=text):
            yield text
        case Notice(title=title, text=text):
            yield f"[{title}] {text}"
        case Bullets(title=title, items=items):
            yield title
            yield from (f"  - {item}" for item in items)
        case Facts(items=items):
            yield from (f"{name}: {write_cell(value)}" for name, value in items)
        case Commands(lines=lines):
            yield from (f"$ {line}    # {meaning}" for line, meaning in lines)
        case Table():
            yield from _table(block)


def _table(table: Table) -> Iterator[str]:
    """Tab-separated, as spreadsheets take it; pictures are left out."""
    read = [i for i, column in enumerate(table.columns) if column.legend is None]
    yield table.caption
    yield "\t".join(table.columns[i].title for i in read)
    for row in table.rows:
        yield "\t".join(write_cell(row[i]) for i in read)
    if table.note:
        yield table.note
