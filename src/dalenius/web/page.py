"""A page in a browser, built as elements: the serialiser escapes every text, and no script is needed.

It has the blocks and the style sheet of the reports (`pages/`), and a few rules for forms beside them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from importlib import resources
from xml.etree.ElementTree import Element, SubElement, fromstring, tostring

from dalenius.pages.document import Block
from dalenius.pages.html import render_block, style_sheet

STYLE_PATH = "/style.css"
_SCRIPT_SETTINGS = '{"allowEval": false, "allowScriptTags": false, "includeIndicatorStyles": false}'
"""What htmx must not do: run texts as programs, write styles into the page; other hosts it does not ask."""


_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@functools.cache
def style() -> str:
    """The style sheet of the reports, and that of forms."""
    forms = resources.files("dalenius.web").joinpath("forms.css").read_text(encoding="utf-8")
    return style_sheet() + "\n" + forms


def element(tag: str, text: str | None = None, /, **attributes: str) -> Element:
    """An element; `class_` and `for_` are the attributes that Python has other uses for.

    >>> tostring(element("p", "a < b", class_="note"), encoding="unicode")
    '<p class="note">a &lt; b</p>'
    """
    made = Element(tag, {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()})
    made.text = text
    return made


def within(parent: Element, *children: Element) -> Element:
    """The parent with these children added."""
    parent.extend(children)
    return parent


def blocks(parts: Iterable[Block]) -> list[Element]:
    """Blocks of a report, as elements."""
    return [render_block(part) for part in parts]


def pack(parts: Iterable[Block]) -> list[str]:
    """Blocks of a report as XML, as a process of its own sends them.

    What XML cannot hold, escaped or not, is replaced: a cell may be anything.
    """
    return [_NOT_IN_XML.sub("\ufffd", tostring(made, encoding="unicode")) for made in blocks(parts)]


def unpack(packed: Iterable[str]) -> list[Element]:
    """Blocks that a process of ours has packed."""
    return [fromstring(part) for part in packed]  # noqa: S314  (our own process wrote it)


def field(name: str, label: str, control: Element) -> Element:
    """A labelled control of a form."""
    control.set("id", f"field-{name}")
    control.set("name", name)
    return within(element("p", class_="field"), element("label", label, for_=f"field-{name}"), control)


def choice(options: Iterable[tuple[str, str]], chosen: str) -> Element:
    """A list to choose from: values and what they are called."""
    select = element("select")
    for value, title in options:
        option = SubElement(select, "option", {"value": value})
        option.text = title
        if value == chosen:
            option.set("selected", "selected")
    return select


def form(action: str, csrf: str, *children: Element) -> Element:
    """A form that carries its page's own secret."""
    made = element("form", method="post", action=action)
    return within(made, element("input", type="hidden", name="csrf", value=csrf), *children)


def to_text(made: Element) -> str:
    """An element as HTML, for a part of a page."""
    return tostring(made, encoding="unicode", method="html")


def render(
    title: str, content: Iterable[Element], *, script: str | None = None, style: str | None = None
) -> str:
    """The whole page; a script and a style sheet of its own are files of the same server."""
    page = Element("html", {"lang": "en"})
    head = SubElement(page, "head")
    SubElement(head, "meta", {"charset": "utf-8"})
    SubElement(head, "meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"})
    SubElement(head, "meta", {"name": "color-scheme", "content": "light dark"})
    SubElement(head, "title").text = title
    SubElement(head, "link", {"rel": "icon", "href": "data:,"})  # or browsers ask for one
    SubElement(head, "link", {"rel": "stylesheet", "href": STYLE_PATH})
    if style is not None:
        SubElement(head, "link", {"rel": "stylesheet", "href": style})
    if script is not None:
        SubElement(head, "meta", {"name": "htmx-config", "content": _SCRIPT_SETTINGS})
        SubElement(head, "script", {"src": script, "defer": "defer"})
    within(SubElement(SubElement(page, "body"), "main"), element("h1", title), *content)
    return "<!DOCTYPE html>\n" + tostring(page, encoding="unicode", method="html") + "\n"
