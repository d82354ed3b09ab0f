"""Intervals of counts that are weighted sums over tuples: what each tuple adds has a law of a few classes.

A tuple of the table is of class c with probability P_c, one outside it with R_c, and counts d_c more than one
of the class that is never shown. The sum X over Q tuples inside and N − Q outside has the cumulant function

    K(t) = Q·k₁(t) + (N − Q)·k₀(t),    k₁(t) = log(1 + Σ_c P_c·(e^(t·d_c) − 1)), k₀ with R_c,

from which Lugannani and Rice (1980) get its tails, to a few parts in a hundred of a tail even for few tuples.
The end of an interval is the Q at which X is as rare as the confidence allows. For a given t there is one Q
with K′(t) = x, so the end is sought along t, and no equation is solved inside of another. That Q goes one way
with t where classes that are likelier inside count for more: weights of least variance are so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.arrays import Floats, normal_cdf

_ROUNDS = 40
_LARGEST = 60.0
"""How far distributions are tilted at most: t times the largest difference."""


def _floats(numbers: Sequence[Fraction]) -> Floats:
    return np.array([float(number) for number in numbers])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassLaw:
    """What a tuple adds, class by class; the class that is never shown adds nothing and is left out."""

    more: Floats
    """d_c, none 0."""
    inside: Floats
    """P_c."""
    outside: Floats
    """R_c."""

    @classmethod
    def of(cls, classes: Iterable[tuple[Fraction, Fraction, Fraction]]) -> ClassLaw:
        """From d, P and R of each class."""
        more, inside, outside = zip(*(one for one in classes if one[0] != 0), strict=True)
        return cls(more=_floats(more), inside=_floats(inside), outside=_floats(outside))

    def intervals(self, shown: Floats, population: Floats, confidence: float) -> tuple[Floats, Floats]:
        """Per group, the least and the largest count at which what is shown is not rare.

        Args:
            shown: Σ d_c over the group's tuples that are shown.
            population: how many tuples of the domain the group has.
            confidence: of the intervals, such as 0.95.
        """
        tail = (1 - confidence) / 2
        # a sum of few tuples moves in steps: the one that is observed belongs to both tails
        half = float(np.abs(self.more).min()) / 2
        low = np.ceil(self._end(shown - half, population, tail, 1.0) - 1e-6)
        high = np.floor(self._end(shown + half, population, tail, -1.0) + 1e-6)
        return np.minimum(low, high), np.maximum(low, high)

    def _end(self, x: Floats, population: Floats, tail: float, side: float) -> Floats:
        """The count at which X is beyond x with probability `tail`: above it (side 1), or below (-1)."""
        few, many = np.zeros(len(x)), np.full(len(x), _LARGEST / float(np.abs(self.more).max()))
        for _ in range(_ROUNDS):
            t = (few + many) / 2
            count, rare = self._tilted(side * t, x, population)
            # beyond what is possible on the estimate's own side: on to where it is; on the other: far enough
            before, beyond = (count > population, count <= 0)[:: int(side)]
            further = before | (~beyond & (rare > tail))
            few, many = np.where(further, t, few), np.where(further, many, t)
        return np.clip(self._tilted(side * few, x, population)[0], 0.0, population)

    def _tilted(self, t: Floats, x: Floats, population: Floats) -> tuple[Floats, Floats]:
        """The count Q whose sum, tilted by t, is x on average, and how likely it is beyond x untilted."""
        (k1, slope1, bend1), (k0, slope0, bend0) = self._cumulants(t)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            count = (x - population * slope0) / (slope1 - slope0)
            k = count * k1 + (population - count) * k0
            bend = count * bend1 + (population - count) * bend0
            w = np.sqrt(np.maximum(2 * (t * x - k), 0.0))
            u = np.abs(t) * np.sqrt(np.maximum(bend, 0.0))
            density = np.exp(-(w**2) / 2) / np.sqrt(2 * np.pi)
            rare = normal_cdf(-w) + density * (1 / u - 1 / w)
        return count, np.where((w > 1e-3) & np.isfinite(rare), rare, 0.5)

    def _cumulants(self, t: Floats) -> list[tuple[Floats, Floats, Floats]]:
        """k, k′ and k″ of a tuple inside, and of one outside."""
        tilt = t[:, None] * self.more
        found = []
        for chance in (self.inside, self.outside):
            less = chance * np.expm1(tilt)
            whole = 1 + less.sum(axis=1)
            tilted = chance * np.exp(tilt) / whole[:, None]
            slope = tilted @ self.more
            found.append((np.log1p(less.sum(axis=1)), slope, tilted @ self.more**2 - slope**2))
        return found
