"""αβ views in words: how they work, and how sure anybody can become that a given row is in the table."""

from __future__ import annotations

from collections.abc import Iterator

from dalenius.mechanisms.alphabeta.plan.views import AlphaBetaPlan
from dalenius.mechanisms.alphabeta.published import PublishedView, read
from dalenius.mechanisms.tuples.plan import ViewPlan
from dalenius.mechanisms.tuples.words import Belief, describe_beliefs, tuple_words
from dalenius.pages.document import Cell, Number, Section, share
from dalenius.pages.words import chances, count_about, tell_error
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
    if view.is_changing:
        yield "The table may change between views", "yes: each view is of the table as it was then"


def _beliefs(view: PublishedView) -> Iterator[Belief]:
    law, d = view.law, view.d
    seen = "the view" if law.views == 1 else f"all {law.views} views"
    when = " at any of their dates" if view.is_changing else ""
    yield f"that a given row is in the table{when}, after {seen}", d, law.worst_posterior(d)
    if view.adversary == "exclusive":
        odds = law.largest_ratio() / law.smallest_ratio() * d / (1 - d)
        yield (
            "the same, for who knows sets of rows of which exactly one is in the table",
            d,
            odds / (1 + odds),
        )


def say_plan(plan: ViewPlan[AlphaBetaPlan]) -> Iterator[str]:
    """What a plan means for people: how far a belief in a row can grow, and the error of a count."""
    made = plan.law
    law, seen = made.law, "the view" if made.law.views == 1 else f"all {made.law.views} views"
    yield (
        f"An attacker to whom rows are independent, and who gave a row at most {chances(made.d)} of being in "
        f"the table, gives it at most {chances(made.promise.gamma)} after seeing {seen}."
    )
    yield (
        f"About {round(made.noise_rows):,} published rows will be nobody's, and a row of the table is "
        f"published with {chances(law.retention)}."
    )
    n_counted = count_about(made.n_rows)
    kept, added = float(law.retention), float(law.beta)
    others = made.noise_rows * n_counted / made.n_rows - n_counted * added  # expected, of rows not counted
    variance = (n_counted * kept * (1 - kept) + others * (1 - added)) / float(law.alpha) ** 2
    yield tell_error(n_counted, "rows, among as large a part of the possible rows,", variance)


WORDS = tuple_words(
    how="rows were deleted and other possible rows added at random",
    limits=describe_limits,
    counts_repeats=counts_repeats,
    plan=say_plan,
)
