"""The probabilities by which tuples get into views, and what the views tell about one tuple.

View i of v (algorithm 4; v = 1 is algorithm 1): a tuple of the table appears with probability s = α+β;
a tuple outside the table that an earlier view has shown, with s·e; any other tuple with
b_i = (1−s)^(i−1)·β. The paper's e is exp(−1/v). Here it is a rational number near it that is published,
so that every probability is rational and the promise is checked without rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from operator import mul

from dalenius.errors import PolicyError
from dalenius.promises.d_gamma_privacy import Adversary

_DECAY_DENOMINATOR = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewLaw:
    """How likely each kind of tuple is to appear in each view.

    >>> law = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 10))
    >>> law.alpha, law.largest_ratio(), law.smallest_ratio()
    (Fraction(2, 5), Fraction(5, 1), Fraction(5, 9))
    """

    retention: Fraction
    """s = α + β."""
    beta: Fraction
    views: int = 1
    decay: Fraction = Fraction(1)
    """e: how much less likely than in the table a known noise tuple is to appear again."""

    def __post_init__(self) -> None:
        if not 0 < self.beta < self.retention <= 1:
            raise PolicyError(
                f"beta ({self.beta}) and alpha+beta ({self.retention}) must satisfy 0 < beta < alpha+beta ≤ 1"
            )
        if self.views < 1:
            raise PolicyError(f"views is {self.views}; at least 1 view is published")
        if self.views > 1 and not 0 < self.decay < 1:
            raise PolicyError(f"decay is {self.decay}; with several views it lies between 0 and 1")

    @property
    def alpha(self) -> Fraction:
        """How much more likely a tuple of the table is to appear in the first view."""
        return self.retention - self.beta

    @property
    def seen_rate(self) -> Fraction:
        """The probability that a noise tuple shown before appears again."""
        return self.retention * self.decay

    def fresh_rate(self, view: int) -> Fraction:
        """b_i: the probability that a tuple outside the table, not shown yet, appears in view i ≥ 1."""
        return (1 - self.retention) ** (view - 1) * self.beta

    def largest_ratio(self) -> Fraction:
        """The largest Pr[pattern | t in table] / Pr[pattern | t not in it] over patterns of appearance.

        First appearing in view i and then in every one is the strongest evidence for presence, for some i.
        """
        again = 1 / self.decay
        return max(ratio * again ** (self.views - view) for view, ratio in self._first_appearances())

    def smallest_ratio(self) -> Fraction:
        """The smallest such ratio: never appearing, or appearing once and never again."""
        missing = (1 - self.retention) / (1 - self.seen_rate)
        once = [ratio * missing ** (self.views - view) for view, ratio in self._first_appearances()]
        never = (1 - self.retention) ** self.views / self._unseen()[-1]
        return min(never, *once)

    def worst_posterior(self, d: Fraction) -> Fraction:
        """The highest posterior that the views can give a tuple of prior d, by Bayes on that tuple."""
        odds = self.largest_ratio() * d / (1 - d)
        return odds / (1 + odds)

    def epsilon(self) -> float:
        """The ε of differential privacy for the presence of one tuple, over all views together."""
        smallest = self.smallest_ratio()
        if smallest == 0:
            return math.inf
        return math.log(max(self.largest_ratio(), 1 / smallest))

    def keeps(self, d: Fraction, gamma: Fraction, adversary: Adversary) -> bool:
        """Whether the promise holds, exactly.

        Evidence from a part of the views is a mean of ratios over the rest, so what holds for all views
        holds for the first few.
        """
        return self.hides_presence(d, gamma, adversary) and self.hides_absence(d, gamma)

    def hides_presence(
        self, d: Fraction, gamma: Fraction, adversary: Adversary, margin: Fraction = Fraction(0)
    ) -> bool:
        """Whether no posterior exceeds γ, or comes nearer than the margin in its odds.

        The posterior odds are the ratio times the prior odds, at most d/(1−d). Against the exclusive
        adversary the other tuples of the set, of total prior 1−d, may all show the smallest ratio.
        """
        against = self.smallest_ratio() if adversary == "exclusive" else Fraction(1)
        allowed = gamma * (1 - d) / (d * (1 - gamma))
        return self.largest_ratio() * (1 + margin) <= allowed * against

    def hides_absence(self, d: Fraction, gamma: Fraction, margin: Fraction = Fraction(0)) -> bool:
        """Whether Pr[t|V] ≥ (d/γ)·Pr[t]: the quotient is least for a prior near 0, where it is the ratio."""
        return self.smallest_ratio() >= d / gamma * (1 + margin)

    def _unseen(self) -> list[Fraction]:
        """Π_{j≤i}(1−b_j) for i = 0..v: the probability that noise stays unseen for i views."""
        misses = (1 - self.fresh_rate(view) for view in range(1, self.views + 1))
        return list(accumulate(misses, mul, initial=Fraction(1)))

    def _first_appearances(self) -> list[tuple[int, Fraction]]:
        """(i, likelihood ratio of first appearing in view i); (1−s)^(i−1) cancels against b_i."""
        unseen = self._unseen()
        return [(i, self.retention / (self.beta * unseen[i - 1])) for i in range(1, self.views + 1)]


def usual_decay(views: int) -> Fraction:
    """The paper's exp(−1/v), rounded up to six decimals; 1 for a single view, which does not use it.

    >>> usual_decay(2)
    Fraction(606531, 1000000)
    """
    if views == 1:
        return Fraction(1)
    return Fraction(math.ceil(math.exp(-1 / views) * _DECAY_DENOMINATOR), _DECAY_DENOMINATOR)
