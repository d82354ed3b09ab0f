"""The words of a mechanism: what a report says of its releases, and how it calls what is in them.

Numbers are written for people: few digits, thousands set apart, percentages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

from dalenius.exact import percent, trim
from dalenius.mechanisms.base import Plan
from dalenius.mechanisms.registry import find_room, stage_rooms
from dalenius.mechanisms.stages import StagedPlan
from dalenius.pages.document import (
    Cell,
    Code,
    Column,
    Described,
    Estimate,
    Legend,
    Number,
    Section,
    Style,
    Verdict,
)
from dalenius.plain import escape_controls
from dalenius.release.folder import StoredRelease
from dalenius.tables.histogram import label_cell

NOTHING = "–"


def write_number(value: float, style: Style) -> str:
    """A number in its style.

    >>> [write_number(x, "count") for x in (20000, 3.14159, -0.02)]
    ['20,000', '3.1', '0']
    >>> write_number(1 / 3, "share"), write_number(1 / 3, "number")
    ('33.3 %', '0.3333')
    """
    if style == "count":
        return trim(f"{value:,.1f}")
    if style == "share":
        return percent(value)
    return f"{value:.4g}"


def write_interval(estimate: Estimate) -> str:
    """Both ends of the interval.

    >>> write_interval(Estimate(value=2.0, low=1.0, high=2500.0))
    '1 to 2,500'
    >>> write_interval(Estimate(value=None, low=None, high=None))
    'unknown'
    """
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return "unknown"
    return f"{write_number(low, estimate.style)} to {write_number(high, estimate.style)}"


def write_cell(cell: Cell) -> str:
    """A cell as plain text; pictures are for the eye and have none."""
    match cell:
        case Number(value=value, style=style):
            return write_number(value, style)
        case Estimate(value=value, style=style):
            written = NOTHING if value is None else write_number(value, style)
            return f"{written} ({write_interval(cell)})"
        case Verdict(text=text) | Code(text=text):
            return text
        case Described(name=name, text=text):
            return f"{name}: {text}"
        case str():
            return cell
        case _:
            return NOTHING


Key = tuple[str, ...]
"""The labels of a group's cells."""
SHOWN = 30
"""How many values, or parts, a table lists; the others are summed up."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Words:
    """What a mechanism's room `words` offers."""

    how: str = ""
    """How the table became the release, as the end of a sentence."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """What each table of the release holds."""
    glossary: Mapping[str, str] = field(default_factory=dict)
    limits: Callable[[StoredRelease], Section] | None = None
    """The section on what is promised and how near the release comes to it."""
    promise: Callable[[StoredRelease], str] | None = None
    """What is promised; None: what the promise says by itself."""
    count_exactly: Callable[[StoredRelease], dict[Key, float] | None] = lambda _: None
    """How often each sensitive value occurs, where the release shows it as it is."""
    plan: Callable[[Any], Iterable[str]] = lambda _: ()
    """What a plan means for people, a sentence each: who can learn what, and how far off a count will be."""
    rows_are_people: bool = True
    """Whether every published row is somebody's, and everybody has one who is not withheld."""
    counts_repeats: Callable[[StoredRelease], bool] = lambda _: True
    """Whether a row that repeats another counts again."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StageWords:
    """What the room `words` of a stage before the mechanism offers; nothing, if the release skipped it."""

    section: Callable[[StoredRelease], Section | None]
    promise: Callable[[StoredRelease], str | None]
    """What the stage adds to the promise."""
    published: Callable[[StoredRelease], str | None]
    """What the publisher is told about the records that it withheld."""
    plan: Callable[[Any], Iterable[str]]
    """What its plan means for people, a sentence each."""


def words_of(release: StoredRelease) -> Words:
    """The words of the mechanism that made a release."""
    room = find_room(release.mechanism, release.method, "words")
    found: Words = Words() if room is None else room.WORDS
    return found


def say_plan(kind: str, method: str, plan: Plan) -> list[str]:
    """What a plan means for people, before its numbers: the stage's sentences, then the mechanism's."""
    told: list[str] = []
    after: Plan | None = plan
    if isinstance(plan, StagedPlan):
        told = [text for room in stage_rooms("words") for text in room.WORDS.plan(plan.stage)]
        after = plan.after
    room = find_room(kind, method, "words")
    return told if room is None or after is None else [*told, *room.WORDS.plan(after)]


ASKED = 200
"""People whom the example of an answer's error counts, where the table has so many."""


def count_about(n_people: int) -> int:
    """How many people an example counts, of so many who could be counted."""
    return max(1, min(ASKED, n_people // 2))


def tell_error(n_counted: int, of_whom: str, variance: float) -> str:
    """How far off a count will be: one standard error, in a sentence.

    >>> tell_error(200, "people with Flu", 196.0)
    'A count of 200 people with Flu will typically be off by 14.'
    """
    return f"A count of {n_counted:,} {of_whom} will typically be off by {max(variance, 0) ** 0.5:,.0f}."


def chances(share: Fraction) -> str:
    """A limit as people say it, rounded up: it must not sound lower than it is.

    >>> [chances(Fraction(text)) for text in ("3/100", "1/3", "0.00021", "1/2")]
    ['3 in 100', '33.4 in 100', '2.1 in 10,000', '50 in 100']
    """
    scale = 100
    while share * scale < 1 and scale < 10**12:
        scale *= 100
    tenths = ceil(share * scale * 10)
    return f"{trim(f'{tenths / 10:.1f}')} in {scale:,}"


def unit_of(release: StoredRelease) -> str:
    """What a count counts."""
    return "records" if words_of(release).counts_repeats(release) else "different rows"


def key_of(cells: Iterable[Any]) -> Key:
    """The labels of some cells; numbers are the same however they are stored."""
    return tuple(label_cell(cell) for cell in cells)


def quote_names(columns: Iterable[str]) -> str:
    """Columns in a sentence.

    >>> quote_names(["age"]), quote_names(["age", "sex", "zip"])
    ('“age”', '“age”, “sex” and “zip”')
    """
    quoted = [f"“{escape_controls(column)}”" for column in columns]
    return " and ".join([", ".join(quoted[:-1]), *quoted[-1:]] if len(quoted) > 1 else quoted)


def sensitive_names(release: StoredRelease) -> str:
    """The sensitive attribute in a sentence: one column, or a combination of several."""
    columns = release.columns("sensitive")
    return f"the combination of {quote_names(columns)}" if len(columns) > 1 else quote_names(columns)


def tell_combined(columns: Sequence[str], remedy: str = "") -> Iterator[str]:
    """Of several sensitive columns, that limits of wholes say nothing of their parts.

    >>> list(tell_combined(("test", "stage")))
    ['A value is test and stage together: a cell of one of them alone has no limit.']
    """
    if len(columns) > 1:
        listed = " and ".join(columns)
        yield f"A value is {listed} together: a cell of one of them alone has no limit{remedy}."


def plural(n: int, one: str, many: str) -> str:
    """A number with its noun.

    >>> plural(1, "record", "records"), plural(2000, "record", "records")
    ('1 record', '2,000 records')
    """
    return f"{n:,} {one if n == 1 else many}"


def judge_limit(*, ok: bool) -> Verdict:
    """Whether a limit is kept, loudly where it is not."""
    return Verdict(tone="good", text="yes") if ok else Verdict(tone="bad", text="NO")


def belief_column(title: str) -> Column:
    """A column of pictures of how a belief grows, on a scale from 0 to 100 %."""
    legend = Legend(bar="after the release, at most", reference="before the release", limit="limit")
    return Column(title=title, legend=legend, whole=True)
