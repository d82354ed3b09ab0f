"""Intervals of counts that are weighted sums over tuples: what each tuple adds has a law of a few classes.

A tuple of the table is of class c with probability P_c, one outside it with R_c, and counts d_c more than one
of the class that is never shown. The sum X over Q tuples inside and N − Q outside has the cumulant function

    K(t) = Q·k₁(t) + (N − Q)·k₀(t),    k₁(t) = log(1 + Σ_c P_c·(e^(t·d_c) − 1)), k₀ with R_c,

from which Lugannani and Rice (1980) get its tails, to a few parts in a hundred of a tail even for few tuples.
The end of an interval is the Q at which X is as rare as the confidence allows. For a given t there is one Q
with K′(t) = x, so the end is sought along t, and no equation is solved inside of another. That Q goes one way
with t where classes that are likelier inside count for more: weights of least variance are so.

Tuples may be of several kinds with laws of their own, as those are that earlier views have shown and others,
and what some kinds have may be taken away, as an earlier table is from a later one. How many of the counted
tuples are of each kind is not known. It is estimated; a count that differs from the estimate is taken to do
so in every kind by its part of the variance, which is the likeliest way, as far as that is possible. K(t) is
then linear in Q again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dalenius.arrays import Floats, normal_cdf

_ROUNDS = 40
_LARGEST = 60.0
"""How far distributions are tilted at most: t times the largest difference."""
_FEW_GROUPS = 1_000
"""Both ends of so few groups are sought in one go: calling numpy takes longer than what it does."""
_Cumulants = tuple[Floats, Floats, Floats]


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
        none = np.zeros(len(population))
        one = Kind(law=self, size=population, estimate=none, variance=none + 1)
        return invert([one], shown, (none, population), confidence)

    def cumulants(self, t: Floats) -> tuple[_Cumulants, _Cumulants]:
        """k, k′ and k″ of a tuple inside, and of one outside."""
        tilt = t[:, None] * self.more
        return self._of_chances(tilt, self.inside), self._of_chances(tilt, self.outside)

    def _of_chances(self, tilt: Floats, chance: Floats) -> _Cumulants:
        less = (chance * np.expm1(tilt)).sum(axis=1)
        tilted = chance * np.exp(tilt) / (1 + less)[:, None]
        slope = tilted @ self.more
        return np.log1p(less), slope, tilted @ self.more**2 - slope**2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kind:
    """Tuples with one law, per group."""

    law: ClassLaw
    size: Floats
    """How many there are."""
    estimate: Floats
    """How many of them are inside, by what is shown; it may be impossible."""
    variance: Floats
    """Of that, but for a factor that all kinds have."""
    sign: float = 1.0
    """-1: what these add is taken away."""


def invert(
    kinds: Sequence[Kind], x: Floats, possible: tuple[Floats, Floats], confidence: float
) -> tuple[Floats, Floats]:
    """Per group, the least and the largest possible count at which a sum of x is not rare."""
    tail = (1 - confidence) / 2
    # a sum of few tuples moves in steps: the one that is observed belongs to both tails
    half = min(float(np.abs(kind.law.more).min()) for kind in kinds) / 2
    together, side = _Kinds.of(kinds), np.ones(len(x))
    if len(x) <= _FEW_GROUPS:
        both = np.concatenate([x - half, x + half]), (np.tile(possible[0], 2), np.tile(possible[1], 2))
        least, most = np.split(together.twice().end(*both, tail, np.concatenate([side, -side])), 2)
    else:
        least = together.end(x - half, possible, tail, side)
        most = together.end(x + half, possible, tail, -side)
    low, high = np.ceil(least - 1e-6), np.floor(most + 1e-6)
    return np.minimum(low, high), np.maximum(low, high)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Kinds:
    """All kinds of tuples together (kinds × groups)."""

    laws: tuple[ClassLaw, ...]
    sign: Floats
    size: Floats
    estimate: Floats
    variance: Floats

    @classmethod
    def of(cls, kinds: Sequence[Kind]) -> _Kinds:
        return cls(
            laws=tuple(kind.law for kind in kinds),
            sign=np.array([[kind.sign] for kind in kinds]),
            size=np.stack([kind.size for kind in kinds]),
            estimate=np.stack([kind.estimate for kind in kinds]),
            variance=np.stack([kind.variance for kind in kinds]),
        )

    def twice(self) -> _Kinds:
        """The same groups, and once more: for both ends of an interval."""
        size, estimate, variance = (np.tile(one, 2) for one in (self.size, self.estimate, self.variance))
        return replace(self, size=size, estimate=estimate, variance=variance)

    def end(self, x: Floats, possible: tuple[Floats, Floats], tail: float, side: Floats) -> Floats:
        """The counts at which X is beyond x with probability `tail`: above it (side 1), or below (-1)."""
        largest = max(float(np.abs(law.more).max()) for law in self.laws)
        few, many = np.zeros(len(x)), np.full(len(x), _LARGEST / largest)
        for _ in range(_ROUNDS):
            t = (few + many) / 2
            count, rare = self._tilted(side * t, x)
            # beyond what is possible on the estimate's own side: on to where it is; on the other: far enough
            above, below = count > possible[1], count <= possible[0]
            before, beyond = np.where(side > 0, (above, below), (below, above))
            further = before | (~beyond & (rare > tail))
            few, many = np.where(further, t, few), np.where(further, many, t)
        return np.clip(self._tilted(side * few, x)[0], *possible)

    def _tilted(self, t: Floats, x: Floats) -> tuple[Floats, Floats]:
        """The count Q whose sum, tilted by t, is x on average, and how likely it is beyond x untilted."""
        found = [law.cumulants(sign * t) for law, (sign,) in zip(self.laws, self.sign, strict=True)]
        one, zero = (np.array([by_law[i] for by_law in found]) for i in (0, 1))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            outside = self.size * zero[:, 1]
            inside = self._allot(one[:, 1] - zero[:, 1], x - (self.sign * outside).sum(axis=0))
            count = (self.sign * inside).sum(axis=0)
            k, _, bend = (inside[:, None] * one + (self.size - inside)[:, None] * zero).sum(axis=0)
            w = np.sqrt(np.maximum(2 * (t * x - k), 0.0))
            u = np.abs(t) * np.sqrt(np.maximum(bend, 0.0))
            density = np.exp(-(w**2) / 2) / np.sqrt(2 * np.pi)
            rare = normal_cdf(-w) + density * (1 / u - 1 / w)
        return count, np.where((w > 1e-3) & np.isfinite(rare), rare, 0.5)

    def _allot(self, each: Floats, left: Floats) -> Floats:
        """How many of each kind are inside if Σ sign·each·inside is what is left to explain."""
        start, part = self.estimate, self.variance
        for _ in self.laws:
            step = (left - (self.sign * each * start).sum(axis=0)) / (each * part).sum(axis=0)
            inside = start + self.sign * part * step
            possible = np.clip(inside, 0.0, self.size)
            out = (possible != inside) & (part > 0)
            out &= (~out & (part > 0)).any(axis=0)  # others have to take the rest
            if not out.any():
                break
            start, part = np.where(out, possible, start), np.where(out, 0.0, part)
        return np.asarray(inside)
