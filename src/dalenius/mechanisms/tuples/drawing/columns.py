"""The columns of a domain as a model of people sees them: few levels each, and traits of the levels.

What goes together with other columns are traits: of numbers smooth curves along the people sorted by them, of
other columns each level by itself. A column of many values has fewer levels, ranges of numbers or the
commonest values and the rest; inside a level its values go with nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.tuples.domain import Domain, DomainColumn, TupleCodes

_CURVES = 3
"""A number goes with other columns by a polynomial of this degree."""
_MOST_TRAITS = 400
"""Of all columns together: effects are as many as pairs of traits."""
_MOST_LEVELS, _LEAST_LEVELS = 64, 8
_LEVELS_OF_NUMBERS = 128
_LEAST, _MOST_ALIKE = 0.02, 1e4
_RARE = 5.0
"""Fewer people than this say nothing about a level by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Margin:
    """How many people have each value of a column, as far as the rows of a view tell by themselves."""

    share: Floats
    """Of the people: as it is shown, moved to the mean as far as noise explains what is shown."""
    alike: float
    """How many people beforehand each value is worth, all values alike: many where they hardly differ."""
    more: Floats
    """How much oftener than noise each value is shown."""
    chance: Floats
    """How far that is off by chance: a variance."""

    @classmethod
    def of(cls, shown: Ints, noise: Floats) -> Margin:
        """From how often each value is shown, and how often noise is shown with it on average.

        >>> Margin.of(np.array([70, 30]), np.array([10.0, 10.0])).share.round(2).tolist()
        [0.72, 0.28]
        """
        more, chance = shown - noise, shown.astype(np.float64) + 1
        mean = max(float(more.mean()), 0.1)
        differ = max(float(((more - mean) ** 2 - chance).mean()), 1e-9)
        moved = mean + (more - mean) * differ / (differ + chance)
        share = np.maximum(moved, _LEAST * mean)
        alike = float(np.clip(mean**2 / differ, _LEAST, _MOST_ALIKE))
        return cls(share=np.asarray(share / share.sum()), alike=alike, more=more, chance=chance)

    def worth(self, level_of: Ints) -> Floats:
        """How many people beforehand each of these levels is worth, those of as many values alike.

        Levels are learned by themselves, as ranges of numbers may differ where the values next to each other
        do not: were they worth nothing, a law of many columns would follow whichever rows it took for people.
        """
        n_values = np.bincount(level_of).astype(np.float64)
        usual, n = n_values / n_values.sum(), max(float(self.more.sum()), 0.1)
        off = np.bincount(level_of, self.more) - n * usual
        differ = max(float((off**2).sum() - self.chance.sum()), 1e-9)
        worth = n**2 * float(usual @ (1 - usual)) / differ / len(usual)
        return np.asarray(float(np.clip(worth, _LEAST, _MOST_ALIKE)) * len(usual) * usual)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Levels:
    """A column's values, each in a level, and its levels' traits."""

    level_of: Ints
    """Of each value."""
    traits: Floats
    """Levels × traits: of mean 0 and variance 1 over people."""
    share: Floats
    """About how many of the people have each value."""
    alike: float
    """How many people beforehand each value is worth, inside its level if that has several."""
    known: Floats
    """The logarithm of each value's share of its level."""
    worth: Floats
    """How many people beforehand each level is worth."""

    @property
    def n_levels(self) -> int:
        """How many levels there are."""
        return len(self.traits)

    @property
    def is_merged(self) -> bool:
        """Whether some level has several values."""
        return self.n_levels < len(self.level_of)

    @property
    def n_inside(self) -> int:
        """How many shares of values inside levels are to be learned: none where values hardly differ."""
        return len(self.level_of) if self.is_merged and self.alike < _MOST_ALIKE else 0


def find_levels(domain: Domain, margins: Sequence[Margin], n_people: float) -> list[Levels]:
    """The levels of every column, where about so many people have its values."""
    most = int(np.clip(_MOST_TRAITS // len(domain.columns), _LEAST_LEVELS, _MOST_LEVELS))
    return [
        _find(column, margin, n_people, most) for column, margin in zip(domain.columns, margins, strict=True)
    ]


def _find(column: DomainColumn, margin: Margin, n_people: float, most: int) -> Levels:
    share = margin.share
    is_null = np.asarray(column.values.is_null().to_numpy(zero_copy_only=False))
    is_number = _is_number(column.values.type) and len(share) - is_null.sum() > _CURVES + 1
    if is_number:
        level_of = _ranges(share, is_null)
    elif len(share) > most:
        level_of = np.full(len(share), most - 1)
        level_of[np.argsort(-share, kind="stable")[: most - 1]] = np.arange(most - 1)
    else:
        level_of = np.arange(len(share))
    of_level = np.bincount(level_of, share).astype(np.float64)
    if is_number:
        null = np.bincount(level_of, is_null) > 0
        traits = _curves(of_level, null, n_people)
    else:
        traits = _indicators(of_level, n_people)
    known = np.log(share / of_level[level_of])
    return Levels(
        level_of=level_of,
        traits=traits,
        share=share,
        alike=margin.alike,
        known=known,
        worth=margin.worth(level_of),
    )


def _is_number(kind: pa.DataType) -> bool:
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_temporal)
    return any(is_kind(kind) for is_kind in kinds)


def _ranges(share: Floats, is_null: Bools) -> Ints:
    """Ranges of about as many people, and NULL by itself; values of a domain ascend."""
    if len(share) <= _LEVELS_OF_NUMBERS:
        return np.arange(len(share))
    own = np.where(is_null, 0.0, share + share.mean() / 10)  # and of some values each, where nobody is
    place = np.floor((np.cumsum(own) - own / 2) / own.sum() * _LEVELS_OF_NUMBERS)
    return np.unique(np.where(is_null, _LEVELS_OF_NUMBERS, place), return_inverse=True)[1].ravel()


def _indicators(share: Floats, n_people: float) -> Floats:
    """A trait of each level, less where few people have it."""
    size = np.sqrt(np.maximum(share, _RARE / max(n_people, 1.0)))
    if len(share) == 2:  # one is what the other is not
        both = np.prod(np.clip(share, _RARE / max(n_people, 2 * _RARE), None))
        return np.asarray(((np.arange(2) - share[1]) / np.sqrt(both))[:, None])
    return np.asarray(np.diag(1 / size) - share / size)


def _curves(share: Floats, is_null: Bools, n_people: float) -> Floats:
    """Orthogonal polynomials of the people's places when they are sorted, and whether there is no number."""
    own = np.where(is_null, 0.0, share + 1e-9)
    own = own / own.sum()
    place = 2 * (np.cumsum(own) - own / 2) - 1
    powers = place[:, None] ** np.arange(_CURVES + 1) * np.sqrt(own)[:, None]
    curves = np.linalg.qr(powers)[0][:, 1:] / np.sqrt(own.clip(1e-300))[:, None]
    curves[is_null] = 0.0
    if not is_null.any():
        return np.asarray(curves)
    missing = _indicators(np.array([share[~is_null].sum(), share[is_null].sum()]), n_people)
    return np.asarray(np.column_stack([curves, np.where(is_null, missing[1], missing[0])]))


def levels_of(columns: Sequence[Levels], codes: TupleCodes) -> list[Ints]:
    """The level of each row, column by column."""
    return [column.level_of[code] for column, code in zip(columns, codes, strict=True)]
