"""A report as values: sections of text, facts and tables; renderers turn them into HTML, JSON or text.

A picture is a column of a table: every row has its own bars and marks beside the numbers that they show, so
that nothing can be seen that cannot also be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, Literal, TypeVar

from dalenius.display import View

Style = Literal["count", "share", "number"]
"""How a number is written: a whole number of records, a percentage, or a plain number."""
Tone = Literal["good", "bad", "warning", "note"]
Of = TypeVar("Of", float, str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number and how it is written."""

    value: float
    style: Style = "count"


def share(value: Fraction | float | None) -> Number | None:
    """A number that is written as a percentage; None stays nothing to say."""
    return None if value is None else Number(value=float(value), style="share")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number that is not exact, and the interval it comes with; None: the release does not tell."""

    value: float | None
    low: float | None
    high: float | None
    style: Style = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Yes, no, or nothing was promised, in words."""

    tone: Tone
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A name with a sentence under it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A hash, a file name or a question, as it is written."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks(Generic[Of]):
    """Something for each kind of mark that a picture can have; None: the mark is not drawn."""

    bar: Of | None = None
    point: Of | None = None
    limit: Of | None = None
    reference: Of | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture(Marks[float]):
    """What is drawn in one row; the column's legend says what each mark means."""

    low: float | None = None
    high: float | None = None
    """The whiskers of the point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Legend(Marks[str]):
    """What the marks of a picture mean."""


Cell = str | Number | Estimate | Verdict | Code | Described | Picture | None
"""None: there is nothing to say here, written as a dash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """The heading of a column; with a legend its cells are pictures on one scale from 0."""

    title: str
    legend: Legend | None = None
    style: Style = "share"
    """Of the picture's scale."""
    whole: bool = False
    """Whether the scale goes up to 100 %, whatever is drawn."""


def head(*titles: str | Column) -> tuple[Column, ...]:
    """The headings of a table, most of which are a title alone.

    >>> [column.title for column in head("value", Column(title="limit"))]
    ['value', 'limit']
    """
    return tuple(Column(title=title) if isinstance(title, str) else title for title in titles)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """Some sentences."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something that must not be overlooked."""

    tone: Tone
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bullets:
    """A list of sentences under a heading."""

    title: str
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Names and what they are."""

    items: tuple[tuple[str, Cell], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under headings."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str | None = None
    """What was left out, or how to read it."""

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"a row of the table {self.caption!r} has not {len(self.columns)} cells")


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """Lines to type, each with what it does."""

    lines: tuple[tuple[str, str], ...]


Block = Paragraph | Notice | Bullets | Facts | Table | Commands


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a report with a heading."""

    id: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that a report says."""

    title: str
    private: bool
    """Whether the original was at hand: such a report must not be published."""
    ok: bool
    """Whether every check passed and no promised bound was broken."""
    lead: tuple[Block, ...]
    """What comes before the first section: whom it is for, and the verdict."""
    sections: tuple[Section, ...]

    def _repr_html_(self) -> str:
        verdict = "everything that was checked is as promised" if self.ok else "NOT everything is as promised"
        contents = () if self.private else tuple((section.title,) for section in self.sections)
        where = 'dalenius.report(…, output="report.html") writes all of it as one file'
        shown = View(
            title=self.title,
            is_private=self.private,
            headings=("contents",),
            rows=contents,
            sentences=(verdict, where),
        )
        return shown._repr_html_()
