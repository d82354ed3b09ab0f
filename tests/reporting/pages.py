"""Reading a report's page as a browser would, and releases to report on."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa

from dalenius import Policy
from dalenius.pages.document import Report, Section, Table
from dalenius.pages.html import render_html
from dalenius.publishing import write_release
from dalenius.release.folder import StoredRelease
from dalenius.release.series import open_release
from dalenius.reporting.build import build_report
from tests.contract.subject import people

VOID = {"meta", "link", "br", "img", "input", "hr"}
COLUMNS = {"quasi": ["uid", "age"], "sensitive": ["disease"]}
DIVERSE = {"kind": "l-diversity", "l": 2}
VIEW = {"kind": "alpha-beta", "duplicates": "distinct", "domains": "active"}


@dataclass
class Page(HTMLParser):
    """Every element of a page with its attributes and its own text."""

    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)
    stack: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    @classmethod
    def of(cls, html: str) -> Page:
        page = cls()
        page.feed(html)
        page.close()
        assert page.stack == [], "every element is closed"
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.stack:
            self.texts.append((self.stack[-1], data))

    def tags(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == name]

    @property
    def text(self) -> str:
        return " ".join(text for tag, text in self.texts if tag != "style")


def policy(release: Path, table: Any = None, **sections: Any) -> Policy:
    given = {"columns": COLUMNS, "promise": DIVERSE, "mechanism": {"kind": "bucketize"}, **sections}
    return Policy.from_dict(
        {"source": people() if table is None else table, "release": str(release), **given}
    )


def published(policy: Policy, n_releases: int = 1, seed: int | None = None) -> StoredRelease:
    for _ in range(n_releases):
        write_release(policy, seed=seed, again=True, yes=True)
    assert policy.release is not None
    return open_release(policy.release)


def page_of(release: StoredRelease, original: pa.Table | None = None) -> tuple[Report, Page]:
    report = build_report(release, original, seed=1)
    return report, Page.of(render_html(report))


def section(report: Report, name: str) -> Section:
    return next(section for section in report.sections if section.id == name)


def tables(report: Report, name: str) -> list[Table]:
    return [block for block in section(report, name).blocks if isinstance(block, Table)]


def column(table: Table, title: str) -> list[Any]:
    (index,) = [i for i, heading in enumerate(table.columns) if heading.title == title]
    return [row[index] for row in table.rows]
