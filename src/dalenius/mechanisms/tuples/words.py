"""Published tuples in words: what they are, and how sure anybody can become of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from dalenius.pages import document as doc
from dalenius.pages.words import Words, belief_column, judge_limit
from dalenius.release.folder import StoredRelease

Belief = tuple[str, Fraction, Fraction]
"""Who believes it, how strongly before, and at most how strongly after."""


def tuple_words(
    *,
    how: str,
    limits: Callable[[StoredRelease], doc.Section],
    counts_repeats: Callable[[StoredRelease], bool],
    plan: Callable[[Any], Iterable[str]],
    promise: Callable[[StoredRelease], str] | None = None,
) -> Words:
    """The words of a mechanism that publishes tuples, of which some are nobody's."""
    return Words(
        how=how,
        tables={"view": "rows; some are the table's, others were added at random"},
        glossary={
            "Tuple": "a row: one value for each column",
            "Domain": "all rows that are possible, whether they occur or not",
            "View": "a published mixture of real rows and rows that were added at random",
            "d, gamma": "the belief in a row before the release that is protected, and the limit after it",
        },
        limits=limits,
        plan=plan,
        promise=promise,
        rows_are_people=False,
        counts_repeats=counts_repeats,
    )


def describe_beliefs(
    explanation: str, facts: Iterable[tuple[str, doc.Cell]], beliefs: Iterable[Belief], gamma: Fraction
) -> doc.Section:
    """The section on how strongly each belief can grow, beside the limit γ."""
    return doc.Section(
        id="limits",
        title="The limit, and how near the release comes to it",
        blocks=(
            doc.Paragraph(text=explanation),
            doc.Facts(items=tuple(facts)),
            doc.Table(
                caption="How sure somebody can become to whom rows are independent",
                columns=doc.head(
                    "belief",
                    belief_column("probability"),
                    "before, at most",
                    "after, at most",
                    "limit",
                    "kept",
                ),
                rows=tuple(_row(*belief, gamma) for belief in beliefs),
                note="Worked out exactly from the probabilities that the release states.",
            ),
        ),
    )


def _row(who: str, before: Fraction, after: Fraction, gamma: Fraction) -> tuple[doc.Cell, ...]:
    return (
        who,
        doc.Picture(bar=float(after), reference=float(before), limit=float(gamma)),
        doc.share(before),
        doc.share(after),
        doc.share(gamma),
        judge_limit(ok=after <= gamma),
    )
