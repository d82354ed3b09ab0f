"""A report as one HTML file that needs nothing else: no script, no font, no network.

Everything is built as elements, and the serialiser of the standard library escapes every text and every
attribute. Should that ever fail, the page's content security policy forbids scripts and requests.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from importlib import resources
from xml.etree.ElementTree import Element, SubElement, tostring

from dalenius.pages.document import (
    Block,
    Bullets,
    Cell,
    Code,
    Column,
    Commands,
    Described,
    Estimate,
    Facts,
    Notice,
    Number,
    Paragraph,
    Picture,
    Report,
    Section,
    Table,
    Tone,
    Verdict,
)
from dalenius.pages.pictures import Scale, draw, draw_axis, draw_key, scale_of
from dalenius.pages.words import NOTHING, write_cell, write_interval, write_number

_SIGNS: dict[Tone, str] = {"good": "✓", "bad": "✗", "warning": "!", "note": "–"}


def render_html(report: Report) -> str:
    """The whole page."""
    page = Element("html", {"lang": "en"})
    page.append(_head(report))
    body = SubElement(page, "body", {"class": "private" if report.private else "public"})
    header = SubElement(body, "header")
    _add(header, "h1", report.title)
    for block in report.lead:
        header.append(render_block(block))
    body.append(_contents(report.sections))
    main = SubElement(body, "main")
    for section in report.sections:
        main.append(_section(section))
    return "<!DOCTYPE html>\n" + tostring(page, encoding="unicode", method="html") + "\n"


@functools.cache
def style_sheet() -> str:
    """The rules that every page has."""
    return resources.files("dalenius.pages").joinpath("style.css").read_text(encoding="utf-8")


def _head(report: Report) -> Element:
    head = Element("head")
    SubElement(head, "meta", {"charset": "utf-8"})
    digest = base64.b64encode(hashlib.sha256(style_sheet().encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    SubElement(head, "meta", {"http-equiv": "Content-Security-Policy", "content": policy})
    SubElement(head, "meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"})
    SubElement(head, "meta", {"name": "color-scheme", "content": "light dark"})
    SubElement(head, "meta", {"name": "referrer", "content": "no-referrer"})
    if report.private:
        SubElement(head, "meta", {"name": "robots", "content": "noindex, nofollow, noarchive"})
    _add(head, "title", f"PRIVATE – {report.title}" if report.private else report.title)
    SubElement(head, "style").text = style_sheet()
    return head


def _contents(sections: tuple[Section, ...]) -> Element:
    nav = Element("nav", {"aria-label": "Contents"})
    listed = SubElement(nav, "ol")
    for section in sections:
        link = SubElement(SubElement(listed, "li"), "a", {"href": f"#{section.id}"})
        link.text = section.title
    return nav


def _section(section: Section) -> Element:
    heading = f"{section.id}-heading"
    element = Element("section", {"id": section.id, "aria-labelledby": heading})
    _add(element, "h2", section.title, {"id": heading})
    for block in section.blocks:
        element.append(render_block(block))
    return element


def render_block(block: Block) -> Element:
    """A block as an element."""
    match block:
        case Paragraph(text=text):
            element = Element("p")
            element.text = text
            return element
        case Notice():
            return _notice(block)
        case Bullets():
            return _bullets(block)
        case Facts():
            return _facts(block)
        case Commands():
            return _commands(block)
        case Table():
            return _table(block)


def _notice(notice: Notice) -> Element:
    element = Element("div", {"class": f"notice {notice.tone}", "role": "note"})
    _add(element, "strong", notice.title)
    _add(element, "p", notice.text)
    return element


def _bullets(bullets: Bullets) -> Element:
    element = Element("div", {"class": "bullets"})
    _add(element, "h3", bullets.title)
    listed = SubElement(element, "ul")
    for item in bullets.items:
        _add(listed, "li", item)
    return element


def _facts(facts: Facts) -> Element:
    element = Element("dl", {"class": "facts"})
    for name, value in facts.items:
        _fill(_add_pair(element, name), value)
    return element


def _commands(commands: Commands) -> Element:
    element = Element("dl", {"class": "commands"})
    for line, meaning in commands.lines:
        SubElement(_add_pair(element, meaning), "code").text = line
    return element


def _add_pair(parent: Element, name: str) -> Element:
    """A name in a list of names and what they stand for; the element for the latter."""
    pair = SubElement(parent, "div")
    _add(pair, "dt", name)
    return SubElement(pair, "dd")


def _table(table: Table) -> Element:
    """A table whose roles are spelled out, because on a phone its rows are laid out as blocks."""
    figure = Element("figure")
    scales = {i: scale_of(table, i) for i, column in enumerate(table.columns) if column.legend}
    _add(figure, "figcaption", table.caption)
    for i, scale in scales.items():
        figure.append(_legend(table.columns[i], scale))
    element = SubElement(figure, "table", {"role": "table", "aria-label": table.caption})
    kinds = [_kind(table, i) for i in range(len(table.columns))]
    head = SubElement(SubElement(element, "thead", {"role": "rowgroup"}), "tr", {"role": "row"})
    for i, column in enumerate(table.columns):
        cell = SubElement(head, "th", {"role": "columnheader", "scope": "col", "class": kinds[i]})
        cell.text = column.title
        if i in scales:
            cell.append(draw_axis(scales[i]))
    body = SubElement(element, "tbody", {"role": "rowgroup"})
    for row in table.rows:
        body.append(_row(table, row, kinds, scales))
    if table.note:
        _add(figure, "p", table.note, {"class": "remark"})
    return figure


def _row(table: Table, row: tuple[Cell, ...], kinds: list[str], scales: dict[int, Scale]) -> Element:
    line = Element("tr", {"role": "row"})
    for i, (cell, column) in enumerate(zip(row, table.columns, strict=True)):
        attributes = {"class": kinds[i], "data-label": column.title}
        element = SubElement(
            line,
            "td" if i else "th",
            {**attributes, "role": "cell"} if i else {**attributes, "role": "rowheader", "scope": "row"},
        )
        if isinstance(cell, Picture):
            element.append(draw(cell, scales[i], column, write_cell(row[0])))
        else:
            _fill(element, cell)
    return line


def _kind(table: Table, index: int) -> str:
    """How a column is set: pictures wide, numbers to the right."""
    if table.columns[index].legend:
        return "drawn"
    cells = [row[index] for row in table.rows]
    if any(isinstance(cell, Described) for cell in cells):
        return "described"
    is_number = index > 0 and any(isinstance(cell, Number | Estimate) for cell in cells)
    return "number" if is_number else "words"


def _legend(column: Column, scale: Scale) -> Element:
    element = Element("ul", {"class": "legend", "aria-hidden": "true"})
    legend = column.legend
    assert legend is not None  # noqa: S101  (only columns of pictures have one)
    for kind in ("bar", "point", "reference", "limit"):
        meaning = getattr(legend, kind)
        if meaning is not None:
            item = SubElement(element, "li")
            key = draw_key(kind)
            key.tail = meaning
            item.append(key)
    _add(element, "li", f"scale from 0 to {write_cell(Number(value=scale.end, style=scale.style))}")
    return element


def _fill(element: Element, cell: Cell) -> None:
    match cell:
        case Verdict(tone=tone, text=text):
            verdict = SubElement(element, "span", {"class": f"verdict {tone}"})
            sign = SubElement(verdict, "span", {"class": "sign", "aria-hidden": "true"})
            sign.text, sign.tail = _SIGNS[tone], text
        case Code(text=text):
            SubElement(element, "code").text = text
        case Estimate(value=value, style=style):
            _add(element, "span", NOTHING if value is None else write_number(value, style))
            _add(element, "span", write_interval(cell), {"class": "interval"})
        case Described(name=name, text=text):
            _add(element, "span", name, {"class": "name"})
            _add(element, "span", text, {"class": "explained"})
        case _:
            element.text = write_cell(cell)


def _add(parent: Element, tag: str, text: str, attributes: dict[str, str] | None = None) -> None:
    SubElement(parent, tag, attributes or {}).text = text
