"""How values and columns are written in a report.

What the sections on limits share: beliefs before and after the release, and whether a limit is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dalenius.mechanisms import registry
from dalenius.pages.document import Column, Legend, Verdict
from dalenius.release.folder import StoredRelease
from dalenius.tables.histogram import label_cell

Key = tuple[str, ...]
"""The labels of a group's cells."""
_LONGEST = 80
_TURNING = {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x7F)}
"""Marks that change the direction of text."""


def key_of(cells: Iterable[Any]) -> Key:
    """The labels of some cells; numbers are the same however they are stored."""
    return tuple(label_cell(cell) for cell in cells)


def shown(cells: Iterable[str | None]) -> str:
    """A value as a report writes it, not longer than a line.

    >>> shown(["Flu", None])
    'Flu / NULL'
    """
    text = " / ".join("NULL" if cell is None else visible(cell) for cell in cells) or "(empty)"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def visible(text: str) -> str:
    r"""A text whose control characters, which could turn the rest of a line around, are written out.

    >>> print(visible("a" + chr(0x202E) + "b" + chr(10)))
    a\u202eb\u000a
    """
    return "".join(f"\\u{ord(c):04x}" if c in _TURNING or ord(c) < 32 else c for c in text)


def names(columns: Iterable[str]) -> str:
    """Columns in a sentence.

    >>> names(["age"]), names(["age", "sex", "zip"])
    ('“age”', '“age”, “sex” and “zip”')
    """
    quoted = [f"“{visible(column)}”" for column in columns]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def sensitive_names(release: StoredRelease) -> str:
    """The sensitive attribute in a sentence: one column, or a combination of several."""
    columns = release.columns("sensitive")
    return f"the combination of {names(columns)}" if len(columns) > 1 else names(columns)


def is_set(release: StoredRelease) -> bool:
    """Whether the release is about different rows, however often each occurs."""
    if release.mechanism != "alpha-beta":
        return False
    view = registry.room(release.mechanism, release.method, "published").read(release.manifest)
    return not view.counts_rows


def unit_of(release: StoredRelease) -> str:
    """What a count counts."""
    return "different rows" if is_set(release) else "records"


def plural(n: int, one: str, many: str) -> str:
    """A number with its noun.

    >>> plural(1, "record", "records"), plural(2000, "record", "records")
    ('1 record', '2,000 records')
    """
    return f"{n:,} {one if n == 1 else many}"


SHOWN = 30
"""How many values, or parts, a table lists; the others are summed up."""


def kept(*, ok: bool) -> Verdict:
    """Whether a limit is kept, loudly where it is not."""
    return Verdict(tone="good", text="yes") if ok else Verdict(tone="bad", text="NO")


def belief_column(title: str) -> Column:
    """A column of pictures of how a belief grows, on a scale from 0 to 100 %."""
    legend = Legend(bar="after the release, at most", reference="before the release", limit="limit")
    return Column(title=title, legend=legend, whole=True)
