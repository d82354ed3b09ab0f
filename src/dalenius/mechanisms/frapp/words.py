"""FRAPP in words: how it works, and how sure anybody can become that a record is a given row."""

from __future__ import annotations

from collections.abc import Iterator

from dalenius.exact import percent
from dalenius.mechanisms.frapp.plan import FrappPlan
from dalenius.mechanisms.frapp.published import read
from dalenius.mechanisms.tuples.plan import ViewPlan
from dalenius.mechanisms.tuples.words import describe_beliefs, tuple_words
from dalenius.pages.document import Number, Section, share
from dalenius.pages.words import chances, count_about, tell_error
from dalenius.release.folder import StoredRelease

_HOW = (
    "Every record is published as it is with a small probability, and otherwise as another row, "
    "drawn at random from all that are possible. A published row may therefore be nobody's."
)


def describe_limits(release: StoredRelease) -> Section:
    """The section on γ and the probability of keeping a record."""
    view = read(release.manifest)
    return describe_beliefs(
        _HOW,
        [
            ("Possible rows (the domain)", Number(value=view.domain.size)),
            ("A record is published as it is with probability", share(view.law.gamma_f)),
        ],
        [("that a record is a given row", view.law.prior, view.law.posterior())],
        view.gamma,
    )


def say_promise(release: StoredRelease) -> str:
    """(d,γ)-privacy for a record in its place, which is what FRAPP keeps, and not for a tuple."""
    view = read(release.manifest)
    return (
        f"Whoever gave a row at most {percent(view.law.prior)} of being a given record gives it at most "
        f"{percent(view.gamma)} after seeing what was published for that record."
    )


def counts_repeats(release: StoredRelease) -> bool:
    """Whether a row that repeats another counts again."""
    return read(release.manifest).counts_rows


def say_plan(plan: ViewPlan[FrappPlan]) -> Iterator[str]:
    """What a plan means for people: how far a belief about a record can grow, and the error of a count."""
    made, law = plan.law, plan.law.law
    yield (
        f"An attacker who gave a row at most {chances(law.prior)} of being a given record gives it at most "
        f"{chances(made.promise.gamma)} after seeing what was published for that record; a row that is seen "
        "several times is surer."
    )
    yield f"A record is published as it is with {chances(law.gamma_f)}, and else as another possible row."
    n_counted = count_about(made.n_rows)
    n_possible = law.domain_size * n_counted / made.n_rows
    inside = float(law.gamma_f) + float(law.other_rate) * (n_possible - 1)
    outside = float(law.other_rate) * n_possible
    coins = n_counted * inside * (1 - inside) + (made.n_rows - n_counted) * outside * (1 - outside)
    part = "rows, among as large a part of the possible rows,"
    yield tell_error(n_counted, part, coins / float(law.slope) ** 2)


WORDS = tuple_words(
    how="every record is published as it is or as another row, drawn at random",
    limits=describe_limits,
    counts_repeats=counts_repeats,
    plan=say_plan,
    promise=say_promise,
)
