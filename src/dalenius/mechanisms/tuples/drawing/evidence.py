"""What the rows of a view tell about whether they are people's, for people spread over the domain by a law.

People come by a Poisson process, x(t) of them to tuple t on average. So t is in the table with 1 − e^(−x),
independently of other tuples, and a view's likelihood is a product over tuples. In a view by deletions and
insertions a tuple of the table is ℓ times as likely to be shown as another, and r times as likely not to be.
So

    log L = Σ_shown log(1 + (ℓ − 1)(1 − e^(−x))) + Σ_others log(1 − (1 − r)(1 − e^(−x))),

where the second sum is nearly −(1 − r)(Σ_all x − Σ_shown x): tuples that are likely to be in the table are
mostly shown.

In a view of n replaced records each comes to be t with (γ_f − o)·x(t)/n + o, o the rate of one other tuple,
so that log L = Σ_shown log(1 + (γ_f − o)·x/(n·o)), where Σ_all x = n.

How many rows the table has is estimated without any law from how many the view shows (`number`). Laws are
held to that number, or for copies to others as far off as it may be: a law that follows the noise finds too
many people, and one that is too simple too few. There are Σ_all (1 − e^(−x)) rows, which is Σ_all x less the
repeats x − 1 + e^(−x) of each tuple, and these are added up over what is shown, by how likely it was to be.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.tuples.drawing.number import ViewSize

_TIMES = 0.7
"""Of the logarithm of how many times as many people as tuples there are."""
_SMALL = 1e-4
"""Below this the fourth power of a number is nothing beside its square."""
_FARTHEST, _FARTHEST_OF_OTHERS, _TRIES = 700.0, 30.0, 60
"""Of the logarithm of how many times as likely."""
_FEWEST = 1e-3
"""People, where there is hardly anybody."""
_NEAR, _NEARLY = 1e-3, 0.01
"""A number of rows is found to this share of it, and to so many rows."""
_NOBODY, _SURELY = 1e-300, 5.0
"""So many people at a tuple, and the logarithm of so many, from where more or less change nothing."""
_ROUNDING = 0.002
"""A law is held to a number of people as far as this share of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How many times as many people come to what a view shows, and to what it does not show."""

    shown: float
    others: float


class Evidence(Protocol):
    """What a view tells of its rows."""

    @property
    def n_people(self) -> float:
        """About how many people there are."""

    @property
    def n_noise(self) -> float:
        """How many of the rows are noise, on average."""

    @property
    def deviation(self) -> float:
        """The standard error of their number."""

    def tell_total(self, total: float) -> tuple[float, float]:
        """What Σ_all x adds to the log-likelihood by itself, and its slope."""

    def gain(self, x: Floats, rows: Ints | slice) -> tuple[Floats, Floats]:
        """The part of the log-likelihood of each of these rows, and its slope by x."""

    def spared(self, rows: Ints | slice) -> Floats:
        """What of the cost is not to be paid for x at each of these rows."""

    def repeats(self, x: Floats, rows: Ints | slice) -> tuple[Floats, Floats]:
        """How many people come to tuples that have one already, as these rows tell for all; and its slope."""

    def vary(self, shown: Floats, x: Floats, n: float) -> float:
        """The variance of how many rows draws have, where so many people come to each row, and to all tuples.

        Args:
            shown: to each row that the view shows, as far as it is told by being shown.
            x: to each of them by the law alone.
            n: to all tuples.
        """

    def draw_number(self, by_draws: float, stream: np.random.Generator) -> float:
        """How many rows the table has, where draws of the same law have this variance."""

    def find_times(self, x: Floats, n: float, n_rows: float) -> Times:
        """How many times as many people there have to be that a draw has so many rows on average."""


def hold(n: float, target: float, evidence: Evidence) -> tuple[float, float]:
    """What it takes from the log-likelihood that a law has n people and not so many; and its slope."""
    sure = hold_sure(evidence)
    return -0.5 * sure * (n - target) ** 2, -sure * (n - target)


def hold_sure(evidence: Evidence) -> float:
    """How strongly: the inverse of a variance."""
    return 1 / (_ROUNDING * evidence.n_people) ** 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Insertions:
    """Of views by deletions and insertions."""

    n_people: float
    n_noise: float
    ratio: Floats
    """ℓ of each row."""
    absent: Floats
    """r of each row's tuple, were it not shown."""
    cost: float
    """1 − r, of a tuple as people have them."""
    shown: Floats
    """Of each row, how likely it is to be shown if it is in the table."""
    deviation: float

    def gain(self, x: Floats, rows: Ints | slice) -> tuple[Floats, Floats]:
        """log(1 + (ℓ − 1)(1 − e^(−x))), and its slope."""
        more = self.ratio[rows] - 1
        value = 1 - more * np.expm1(-x)
        return np.log(value), np.exp(-x) * more / value

    def spared(self, rows: Ints | slice) -> Floats:
        """1 − r."""
        return np.asarray(1 - self.absent[rows])

    def tell_total(self, total: float) -> tuple[float, float]:
        """−(1 − r)·Σ_all x; and that no tuple stands for very many people, which no view would tell."""
        off = float(np.log(total / self.n_people)) / _TIMES
        return -self.cost * total - 0.5 * off**2, -self.cost - off / (_TIMES * total)

    def repeats(self, x: Floats, rows: Ints | slice) -> tuple[Floats, Floats]:
        """Of each tuple x − 1 + e^(−x), divided by how likely it was to be shown."""
        none, some, rare = np.exp(-x), -np.expm1(-x), 1 / self.ratio[rows]
        shown = self.shown[rows] * (some + none * rare)
        again, steeper = _more_than_one(x), self.shown[rows] * none * (1 - rare)
        return again / shown, (some - again * steeper / shown) / shown

    @property
    def size(self) -> ViewSize:
        """What its number of rows tells by itself."""
        rates = self.shown / self.ratio
        beta = float(rates.mean()) if len(rates) else 0.0
        retention = float(self.shown.mean()) if len(rates) else self.cost
        return ViewSize(n_shown=len(rates), n_noise=self.n_noise, retention=retention, beta=beta)

    def expect_shown(self, x: Floats) -> Floats:
        """Of each row, how likely it is somebody's."""
        none, real = np.exp(-x), -self.ratio * np.expm1(-x)
        return np.asarray(real / (none + real))

    def expect_others(self, x: Floats, n: float) -> float:
        """How many rows a draw has on average that the view does not show."""
        none, some = np.exp(-x), -np.expm1(-x)
        hidden = self.absent * some
        odds = hidden / (none + hidden)
        shown = self.shown * (some + none / self.ratio)
        return max((1 - self.cost) * n - float(((self.absent * x - odds) / shown + odds).sum()), 0.0)

    def vary(self, shown: Floats, x: Floats, n: float) -> float:
        """Every row by itself, and as much as there are others on average."""
        real = self.expect_shown(shown)
        return float((real * (1 - real)).sum()) + self.expect_others(x, n)

    def draw_number(self, by_draws: float, stream: np.random.Generator) -> float:
        """As far off as the view leaves it; less what draws are off by themselves.

        A gamma law is normal where the number is well known, and exponential where there may well be nobody.
        """
        variance = self.deviation**2 - by_draws
        if variance <= _NOBODY:
            return self.n_people
        return max(float(stream.gamma(self.n_people**2 / variance)) * variance / self.n_people, _FEWEST)

    def find_times(self, x: Floats, n: float, n_rows: float) -> Times:
        """How many of the rows shown are people's is known with the number of rows, whatever the law.

        A law of very many columns is so sharp that its odds are off by many powers of ten: were they held to
        the number by more people alone, all whom it lacks or has too many would be hidden ones.
        """
        wanted = self.size.shown_people(n_rows)
        own = np.log(np.maximum(x, _NOBODY))

        def expect_shown(log: float) -> float:
            return float(self.expect_shown(np.exp(np.minimum(own + log, _SURELY))).sum())

        def expect_others(log: float) -> float:
            return self.expect_others(math.exp(log) * x, math.exp(log) * n)

        return Times(
            shown=math.exp(_find(expect_shown, wanted, _FARTHEST)),
            others=math.exp(_find(expect_others, n_rows - wanted, _FARTHEST_OF_OTHERS)),
        )

    def draw_real(self, x: Floats, stream: np.random.Generator) -> Bools:
        """Which of the rows are in the table."""
        less = np.expm1(-x)  # the odds of being there are 1 − e^(−x) to e^(−x) beforehand
        inside = -self.ratio * less
        return stream.random(len(less)) * (1 + less + inside) < inside


def _find(rising: Callable[[float], float], wanted: float, farthest: float) -> float:
    """Where a function is so large, or as near as it gets no farther from 0."""
    near, step = max(_NEAR * wanted, _NEARLY), 0.5
    place, off = 0.0, rising(0.0) - wanted
    side = -math.copysign(1.0, off)  # the place that is sought is there
    before, off_before = place, off
    while abs(off) > near and off * side < 0:
        if abs(place) >= farthest:
            return place
        before, off_before = place, off
        place = side * min(abs(place) + step, farthest)
        off, step = rising(place) - wanted, 2 * step
    for tries in range(_TRIES):
        if abs(off) <= near:
            break
        # the straight line between both ends, and sometimes the middle, where the function is all steps
        part = 0.5 if tries % 2 else off_before / (off_before - off)
        middle = before + part * (place - before)
        found = rising(middle) - wanted
        if found * off > 0:
            place, off = middle, found
        else:
            before, off_before, place, off = place, off, middle, found
    return place


def _more_than_one(x: Floats) -> Floats:
    """How many more people than one: x − 1 + e^(−x), also of x so small that 1 − e^(−x) is x."""
    return np.where(x < _SMALL, x**2 * (0.5 - x / 6), x + np.expm1(-x))


def hidden_share(x: Floats, absent: Floats) -> Floats:
    """How many of the people who come to be a tuple are kept, where each tuple that is not shown is drawn.

    A tuple that is not shown is in the table with the odds r·(e^x − 1). Of Poisson(x) people at it, each kept
    with this share, there is none with 1/(1 + r(e^x − 1)).
    """
    x = np.maximum(x, 1e-300)
    return np.asarray((x + np.log1p((1 - absent) * np.expm1(-x))) / x)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replacements:
    """Of views of records that were kept or replaced by any other tuple."""

    n_people: float
    kept: float
    """γ_f."""
    other: float
    """o."""
    deviation = 0.0

    @property
    def n_noise(self) -> float:
        """Records that come to be a tuple whatever they were."""
        return self.n_people * (1 - self.kept + self.other)

    def gain(self, x: Floats, rows: Ints | slice) -> tuple[Floats, Floats]:  # noqa: ARG002
        """log(1 + (γ_f − o)·x/(n·o)), and its slope."""
        each = (self.kept / self.other - 1) / self.n_people
        return np.log1p(each * x), each / (1 + each * x)

    def spared(self, rows: Ints | slice) -> Floats:  # noqa: ARG002
        """Nothing: a record that is shown may come again."""
        return np.zeros(1)

    def repeats(self, x: Floats, rows: Ints | slice) -> tuple[Floats, Floats]:  # noqa: ARG002
        """None: records may be alike."""
        return np.zeros(len(x)), np.zeros(len(x))

    def tell_total(self, total: float) -> tuple[float, float]:  # noqa: ARG002
        """Nothing beside their number."""
        return 0.0, 0.0

    def vary(self, shown: Floats, x: Floats, n: float) -> float:  # noqa: ARG002
        """Not at all."""
        return 0.0

    def draw_number(self, by_draws: float, stream: np.random.Generator) -> float:  # noqa: ARG002
        """There are as many records as rows."""
        return self.n_people

    def find_times(self, x: Floats, n: float, n_rows: float) -> Times:  # noqa: ARG002
        """There are as many records as rows, whatever the law."""
        return Times(shown=1.0, others=1.0)

    def draw_real(self, share: Floats, stream: np.random.Generator) -> Bools:
        """Which of the rows were kept, where so many of the people are their tuple."""
        stayed = self.kept * share
        return stream.random(len(share)) * (stayed + self.other * (1 - share)) < stayed
