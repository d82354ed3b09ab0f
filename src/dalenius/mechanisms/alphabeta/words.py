"""αβ views in words: how they work, and how sure anybody can become that a given row is in the table."""

from __future__ import annotations

from collections.abc import Iterator

from dalenius.mechanisms.alphabeta.published import PublishedView, read
from dalenius.mechanisms.tuples.words import Belief, describe_beliefs, tuple_words
from dalenius.pages.document import Cell, Number, Section, share
from dalenius.release.folder import StoredRelease

_HOW = (
    "The published rows are a mixture. A row of the table was published with one probability, and every "
    "other possible row was added with a smaller one; since so many rows are possible, many of the "
    "published ones are nobody's. Seeing a row is therefore only weak evidence that it is real."
)


def describe_limits(release: StoredRelease) -> Section:
    """The section on γ and the law of the views."""
    view = read(release.manifest)
    return describe_beliefs(_HOW, _facts(release, view), _beliefs(view), view.gamma)


def counts_repeats(release: StoredRelease) -> bool:
    """Whether a row that repeats another counts again."""
    return read(release.manifest).counts_rows


def _facts(release: StoredRelease, view: PublishedView) -> Iterator[tuple[str, Cell]]:
    law = view.law
    yield "Possible rows (the domain)", Number(value=view.domain.size)
    yield (
        "A row of the table is published with probability",
        share(law.retention),
    )
    yield "Any other possible row, in the first view", share(law.beta)
    if view.index == 1 or release.earlier:
        yield "Rows added to the first view, on average", Number(value=float(round(view.noise_rows)))
    if law.views > 1:
        yield "Views that may ever be published", Number(value=law.views)


def _beliefs(view: PublishedView) -> Iterator[Belief]:
    law, d = view.law, view.d
    seen = "the view" if law.views == 1 else f"all {law.views} views"
    yield f"that a given row is in the table, after {seen}", d, law.worst_posterior(d)
    if view.adversary == "exclusive":
        odds = law.largest_ratio() / law.smallest_ratio() * d / (1 - d)
        yield (
            "the same, for who knows sets of rows of which exactly one is in the table",
            d,
            odds / (1 + odds),
        )


WORDS = tuple_words(
    how="rows were deleted and other possible rows added at random",
    limits=describe_limits,
    counts_repeats=counts_repeats,
)
