"""FRAPP in words: how it works, and how sure anybody can become that a record is a given row."""

from __future__ import annotations

from dalenius.exact import percent
from dalenius.mechanisms.frapp.published import read
from dalenius.mechanisms.tuples.words import describe_beliefs, tuple_words
from dalenius.pages.document import Number, Section, share
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


WORDS = tuple_words(
    how="every record is published as it is or as another row, drawn at random",
    limits=describe_limits,
    counts_repeats=counts_repeats,
    promise=say_promise,
)
