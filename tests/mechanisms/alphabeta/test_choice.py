"""The law that is chosen is the one that a twin finds by trying: all patterns of appearance, then β."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import pytest

from dalenius.errors import PromiseNotMet
from dalenius.mechanisms.alphabeta.plan.law import ChangingLaw, ViewLaw, choose_law
from dalenius.promises.d_gamma_privacy import Adversary
from tests.mechanisms.alphabeta.test_changing import nested_ratios
from tests.mechanisms.alphabeta.test_law import noise_by_enumeration, pattern_ratios

MARGIN = Fraction(1, 10**6)
STEPS = 1024
DECAYS = {1: Fraction(1), 2: Fraction(606531, 10**6), 3: Fraction(716532, 10**6)}
"""exp(−1/v), rounded up to six decimals."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A promise, and what is asked of the law that keeps it."""

    d: Fraction
    gamma: Fraction
    adversary: Adversary = "independent"
    views: int = 1
    kind: type[ViewLaw] = ViewLaw
    retention: Fraction | None = None
    most_noise: Fraction = Fraction(1)

    @property
    def highest(self) -> Fraction:
        """The largest α+β that is looked at."""
        highest = Fraction(STEPS - 1, STEPS) if self.retention is None else self.retention
        return min(highest, Fraction(1, self.views + 1)) if self.adversary == "exclusive" else highest

    def law(self, step: int, beta: Fraction) -> ViewLaw:
        retention = self.highest * step / STEPS
        return self.kind(retention=retention, beta=beta, views=self.views, decay=DECAYS[self.views])

    def hides_presence(self, law: ViewLaw) -> bool:
        """A posterior from every pattern, against a set that shows the least likely one."""
        ratios = _ratios(law)
        against = min(ratios) if self.adversary == "exclusive" else 1
        odds = max(ratios) * (1 + MARGIN) / against * self.d / (1 - self.d)
        return odds / (1 + odds) <= self.gamma

    def allows(self, law: ViewLaw) -> bool:
        """Whether absence and noise are as they may be."""
        noise = max(noise_by_enumeration(law, view) for view in range(1, self.views + 1))
        hides = min(_ratios(law)) >= self.d / self.gamma * (1 + MARGIN)
        return hides and noise <= self.most_noise

    def twin(self, step: int) -> ViewLaw | None:
        """With the least β of six digits that hides presence, if that is all that there is to ask."""
        retention, low, high = self.highest * step / STEPS, 0, 900_000 * 12
        while high - low > 1:
            middle = (low + high) // 2
            beta = _six_digits(middle)
            works = beta >= retention or self.hides_presence(self.law(step, beta))
            low, high = (low, middle) if works else (middle, high)
        if _six_digits(high) >= retention:
            return None
        law = self.law(step, _six_digits(high))
        return law if self.allows(law) else None


def _ratios(law: ViewLaw) -> list[Fraction]:
    if isinstance(law, ChangingLaw):
        return list(nested_ratios(law, law.views))
    return pattern_ratios(law, law.views)


def _six_digits(number: int) -> Fraction:
    """The numbers of six digits from 10^−12 to 1, in their order."""
    decade, rest = divmod(number, 900_000)
    return Fraction(100_000 + rest, 10**5) * Fraction(10) ** (decade - 12)


def test_numbers_of_six_digits_ascend() -> None:
    around = [_six_digits(900_000 * 5 + i) for i in (-2, -1, 0, 1)]
    assert [float(x) for x in around] == [9.99998e-8, 9.99999e-8, 1e-7, 1.00001e-7]
    assert all(a < b for a, b in pairwise(around))


SMALL, TIGHT = Fraction(1, 1000), Fraction(9, 50)
FIFTH, HALF = Fraction(1, 5), Fraction(1, 2)


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(d=SMALL, gamma=FIFTH),
        Wanted(d=SMALL, gamma=FIFTH, retention=HALF),
        Wanted(d=SMALL, gamma=FIFTH, views=3),
        Wanted(d=SMALL, gamma=FIFTH, views=2, retention=Fraction(9, 10), kind=ChangingLaw),
        Wanted(d=SMALL, gamma=FIFTH, adversary="exclusive"),
        Wanted(d=SMALL, gamma=FIFTH, adversary="exclusive", retention=Fraction(1, 7)),
        Wanted(d=Fraction(1, 100), gamma=HALF, adversary="exclusive", views=2),
        Wanted(d=Fraction(1, 100), gamma=HALF, adversary="exclusive", views=2, kind=ChangingLaw),
        Wanted(d=TIGHT, gamma=FIFTH),
        Wanted(d=Fraction(1, 20), gamma=FIFTH, views=2),
        Wanted(d=SMALL, gamma=FIFTH, most_noise=Fraction(1, 500)),
        Wanted(d=SMALL, gamma=FIFTH, views=2, most_noise=Fraction(1, 500)),
        Wanted(d=SMALL, gamma=FIFTH, views=2, kind=ChangingLaw, most_noise=Fraction(1, 200)),
    ],
)
def test_the_largest_retention_is_taken_with_the_least_beta(wanted: Wanted) -> None:
    """One step more keeps no promise; of those below, all do."""
    found = choose_law(**{name: getattr(wanted, name) for name in wanted.__dataclass_fields__})
    step = found.retention / wanted.highest * STEPS
    assert step.denominator == 1
    assert found == wanted.twin(int(step))
    assert step == STEPS or wanted.twin(int(step) + 1) is None
    assert step == 1 or wanted.twin(int(step) - 1) is not None


@pytest.mark.parametrize(
    ("views", "most_noise", "what"),
    [(1, Fraction(1, 10**6), "within max_noise_rows"), (3, Fraction(1), r"over 3 view\(s\)$")],
)
def test_what_no_law_keeps_is_refused(views: int, most_noise: Fraction, what: str) -> None:
    """Too little noise, or noise that would be as frequent as the table's own tuples."""
    d = Fraction(1, 10) if most_noise < 1 else Fraction(3999, 20_000)
    assert Wanted(d=d, gamma=FIFTH, views=views, most_noise=most_noise).twin(1) is None
    with pytest.raises(PromiseNotMet, match=what):
        choose_law(d, FIFTH, views=views, most_noise=most_noise)
