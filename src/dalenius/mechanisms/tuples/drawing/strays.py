"""People whom a law of main effects does not expect: each of their columns by itself.

A model of people is never quite right. Whoever is much rarer by it than in truth looks like noise; but the
noise is known to be so much and no more, in all and of each value. What is shown beyond it and beyond the
people of the model are strays, whose number and shares of values are learned from all rows of the view.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.rows.climbing import descend
from dalenius.mechanisms.tuples.domain import TupleCodes
from dalenius.mechanisms.tuples.drawing.evidence import Evidence, hold, hold_sure

_PRIOR = 3.0
"""Strays beforehand, of every column for each of its values, with values as all people have them."""
_ROUNDS, _CLOSE = 40, 0.1
_WORTH = 3.0
_FIRST = 0.05
"""Strays to begin with, for each of the people of the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strays:
    """How many strays there are, and their shares of the values of every column."""

    shares: tuple[Floats, ...]
    n: float
    """0: none are believed."""

    def rates(self, codes: TupleCodes) -> Floats:
        """How many of them come to each tuple on average."""
        found = np.full(len(codes[0]), self.n)
        for share, code in zip(self.shares, codes, strict=True):
            found *= share[code]
        return found

    def draw(self, n: int, stream: np.random.Generator) -> TupleCodes:
        """So many tuples."""
        found = []
        for share in self.shares:
            place = np.searchsorted(np.cumsum(share), stream.random(n) * share.sum(), side="right")
            found.append(np.minimum(place, len(share) - 1))
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StrayFit:
    """All rows of a view, and how many people of a model come to each."""

    codes: TupleCodes
    usual: tuple[Floats, ...]
    """The shares of all people's values, column by column."""
    evidence: Evidence

    def none(self) -> Strays:
        """No strays."""
        return Strays(shares=self.usual, n=0.0)

    def worth(self, strays: Strays) -> float:
        """How much likelier strays must make a view to be believed: by more than chance does (Akaike)."""
        sizes = np.array([len(share) for share in self.usual])
        return _WORTH + float((sizes * strays.n / (strays.n + _PRIOR * sizes)).sum())

    def climbed(
        self, start: Strays, x: Floats, n_model: float, weights: Floats, n_people: float
    ) -> tuple[Strays, float, float]:
        """The likeliest strays, how many times as many people of the model there are, and what that gains.

        Args:
            start: where to begin.
            x: how many people of the model come to each row.
            n_model: how many come to all tuples.
            weights: of the rows.
            n_people: how many rows the table has.
        """
        ends = np.cumsum([len(share) for share in start.shares])[:-1]
        prior = _PRIOR * np.concatenate([len(share) * share for share in self.usual])
        spared = self.evidence.spared(slice(None))
        n = max(start.n, _FIRST * n_model)
        first = np.append(np.log(np.maximum(np.concatenate(start.shares), 1e-12)), [np.log(n), 0.0])
        sure = hold_sure(self.evidence) * self.evidence.n_people**2
        # about how much the rows tell of how many there are
        ends_told = [n + sure * (n / (n + n_model)) ** 2, n_model + sure]
        unit = 1 / np.sqrt(np.append(n * np.concatenate(start.shares) + prior, ends_told))

        def lost(place: Floats) -> tuple[float, Floats]:
            shares, n, times = _read(first + place * unit, ends)
            own = Strays(shares=shares, n=n).rates(self.codes)
            value, slope = self.evidence.gain(own + times * x, slice(None))
            total, each = self.evidence.tell_total(n + n_model * times)
            again, steeper = self.evidence.repeats(own + times * x, slice(None))
            held, pull = hold(n + n_model * times - float(again.sum()), n_people, self.evidence)
            gained = float(weights @ value + (spared * (own + times * x)).sum()) + total + held
            gained += float(prior @ np.log(np.maximum(np.concatenate(shares), 1e-300)))
            slope = weights * slope + spared - pull * steeper
            each += pull
            told = slope * own
            by_shares = [
                np.bincount(code, told, len(share)) - (told.sum() + _PRIOR * len(share)) * share
                for code, share in zip(self.codes, shares, strict=True)
            ]
            gradient = np.concatenate(by_shares) + prior
            by_times = times * (float(slope @ x) + each * n_model)
            return -gained, -np.append(gradient, [told.sum() + each * n, by_times]) * unit

        found = descend(lost, np.zeros(len(first)), _ROUNDS, _CLOSE)
        shares, n, times = _read(first + found * unit, ends)
        value, _ = self.evidence.gain(x, slice(None))
        alone = float(weights @ value + (spared * x).sum()) + self.evidence.tell_total(n_model)[0]
        n_rows = n_model - float(self.evidence.repeats(x, slice(None))[0].sum())
        alone += hold(n_rows, n_people, self.evidence)[0]
        alone += float(prior @ np.log(np.maximum(np.concatenate(self.usual), 1e-300)))
        return Strays(shares=shares, n=n), times, -lost(found)[0] - alone


def _read(place: Floats, ends: Ints) -> tuple[tuple[Floats, ...], float, float]:
    shares = tuple(np.exp(part - part.max()) for part in np.split(place[:-2], ends))
    n, times = np.exp(np.clip(place[-2:], -50, 50))
    return tuple(share / share.sum() for share in shares), float(n), float(times)
