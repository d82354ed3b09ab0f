"""A report in a file: as HTML, JSON or text, with the same values in each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from dalenius.errors import InputError
from dalenius.files import PRIVATE, SHARED, write_whole
from dalenius.pages.document import Block, Bullets, Commands, Facts, Notice, Paragraph, Report, Table
from dalenius.pages.html import render_html
from dalenius.pages.words import write_cell
from dalenius.release.folder import StoredRelease


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


def _render_json(report: Report) -> str:
    return json.dumps(to_json(report), indent=2, ensure_ascii=False) + "\n"


RENDERERS: dict[str, Callable[[Report], str]] = {
    ".html": render_html,
    ".json": _render_json,
    ".txt": render_text,
}


def default_path(folder: Path, *, private: bool) -> Path:
    """Beside the release folder; the name of a private report says so.

    >>> default_path(Path("out/patients.release"), private=True).name
    'patients.release.private-report.html'
    """
    own = folder if folder.name not in ("", "..") else folder.resolve()
    return own.with_name(f"{own.name}.{'private-report' if private else 'report'}.html")


def write_report(report: Report, path: Path, release: StoredRelease) -> None:
    """Write the report, whole or not at all; a private one can be read by its owner only.

    Raises:
        InputError: another kind of file, a place inside the release, or one that cannot be written to.
    """
    render = RENDERERS.get(path.suffix.lower())
    if render is None:
        known = ", ".join(RENDERERS)
        raise InputError(f"a report is written as {known}, not {path.suffix!r}", hint="e.g. report.html")
    for part in release.parts:
        if part.path.resolve() in path.resolve().parents:
            raise InputError(
                f"{path} is inside the release, which would no longer be the one that was published",
                hint="write the report beside the release",
            )
    try:
        write_whole(path, render(report), PRIVATE if report.private else SHARED)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
