"""What several independent releases of one table would tell together, had they all been made by one plan."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dalenius.plain import Plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated(Plain):
    """The worst that an attacker who joins the releases can come to believe, beside what one promises."""

    times: int
    """How many independent releases are joined."""
    posterior: float
    """The largest posterior, for the worst person, value or tuple."""
    promised: float
    """What one release promises for it."""
    about: str
    """What the posterior is of."""
    how: Literal["exact", "simulated"]
    success: float | None = None
    """How often the best guess of a person's value is right from all of them; None: nobody is guessed."""
    success_of_one: float | None = None
    """The same from one release."""

    def sentence(self) -> str:
        """For an error or a warning."""
        found = (
            f"{self.times} independent releases like this one, joined, give {self.about} a posterior of "
            f"{self.posterior:.4g} where {self.promised:.4g} is promised ({self.how})"
        )
        if self.success is None or self.success_of_one is None:
            return found
        return (
            f"{found}, and the best guess of a person's value is right {self.success:.1%} of the time "
            f"instead of {self.success_of_one:.1%}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSeries:
    """What a series of views was planned for, and what it would tell to go beyond that."""

    views: int
    """How many views there may be."""
    promised: float
    """What no posterior of a tuple exceeds after all of them."""
    if_one_more: float
    """The posterior of a tuple that appears in a view more than there may be."""
    if_changed: float
    """The posterior of a tuple that is new in the table and appears in the next view."""


def repeat_evidence(prior: Fraction, ratio: Fraction, times: int) -> Fraction:
    """The posterior after independent evidence of that likelihood ratio, that many times.

    >>> repeat_evidence(Fraction(1, 10), Fraction(3), 2)
    Fraction(1, 2)
    """
    odds = prior / (1 - prior) * ratio**times
    return odds / (1 + odds)
