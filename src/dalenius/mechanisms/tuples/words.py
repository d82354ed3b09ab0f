"""Published tuples in words: what they are, and how sure anybody can become of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from dalenius.pages.document import Cell, Column, Facts, Number, Paragraph, Picture, Section, Table
from dalenius.pages.words import Words, belief_column, judge_limit
from dalenius.release.folder import StoredRelease

Belief = tuple[str, Fraction, Fraction]
"""Who believes it, how strongly before, and at most how strongly after."""


def tuple_words(
    *,
    how: str,
    limits: Callable[[StoredRelease], Section],
    counts_repeats: Callable[[StoredRelease], bool],
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
        promise=promise,
        rows_are_people=False,
        counts_repeats=counts_repeats,
    )


def describe_beliefs(
    explanation: str, facts: Iterable[tuple[str, Cell]], beliefs: Iterable[Belief], gamma: Fraction
) -> Section:
    """The section on how strongly each belief can grow, beside the limit γ."""
    return Section(
        id="limits",
        title="The limit, and how near the release comes to it",
        blocks=(
            Paragraph(text=explanation),
            Facts(items=tuple(facts)),
            Table(
                caption="How sure anybody can become",
                columns=(
                    Column(title="belief"),
                    belief_column("probability"),
                    Column(title="before, at most"),
                    Column(title="after, at most"),
                    Column(title="limit"),
                    Column(title="kept"),
                ),
                rows=tuple(_row(*belief, gamma) for belief in beliefs),
                note="Worked out exactly from the probabilities that the release states.",
            ),
        ),
    )


def _row(who: str, before: Fraction, after: Fraction, gamma: Fraction) -> tuple[Cell, ...]:
    return (
        who,
        Picture(bar=float(after), reference=float(before), limit=float(gamma)),
        Number(value=float(before), style="share"),
        Number(value=float(after), style="share"),
        Number(value=float(gamma), style="share"),
        judge_limit(ok=after <= gamma),
    )
