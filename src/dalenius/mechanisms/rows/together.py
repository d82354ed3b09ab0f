"""Many combinations of the same totals: what their variances are made of is found once, for all of them.

A test of independence asks for some sixty combinations of the cells of one table. Given the effects, the
variance of each is q·x/f with three quadratic forms of its factors: f and q are those of independent people,
as if the different weights of the values had nothing to do with each other and as they have, and x is what
dealing without replacement leaves of f.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Codes, Floats, Ints
from dalenius.question.targets import Score, Targets, different_weights

Cell = tuple[int, int]
"""A score, and which of some different weights of the values."""
_FEWEST, _MOST = 3, 200
"""So many combinations are worth it, of at most so many totals."""
_CELLS_AT_ONCE = 2_000_000
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Alike:
    """Targets that are made of the same totals."""

    cells: tuple[Cell, ...]
    weights: Floats
    """The different weights of the values that the cells name."""
    factors: dict[int, Floats]
    """Of each target, by cell."""


def find_alike(targets: Targets, wanted: Sequence[int]) -> Iterator[Alike]:
    """Those of some targets that are combinations of the same totals, of different weights of the values."""
    if len(wanted) < _FEWEST:
        return
    terms = np.flatnonzero(np.isin(targets.target, wanted))
    first, place, factor = different_weights(targets.weights[terms])
    by_target: dict[int, dict[Cell, float]] = {}
    listed = (targets.target[terms], targets.score[terms], place, factor)
    for target, score, which, times in zip(*(part.tolist() for part in listed), strict=True):
        own = by_target.setdefault(target, {})
        own[score, which] = own.get((score, which), 0.0) + times
    by_cells: dict[tuple[Cell, ...], dict[int, Floats]] = {}
    for target, own in by_target.items():
        cells = tuple(sorted(own))
        by_cells.setdefault(cells, {})[target] = np.array([own[cell] for cell in cells])
    for cells, factors in by_cells.items():
        if len(factors) >= _FEWEST and len(cells) <= _MOST and len({which for _, which in cells}) > 1:
            used = np.array(sorted({which for _, which in cells}))
            numbered = tuple((score, int(np.searchsorted(used, which))) for score, which in cells)
            yield Alike(cells=numbered, weights=targets.weights[terms][first[used]], factors=factors)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class People:
    """Rows of some buckets, bucket by bucket."""

    numbers: Floats
    """Rows × scores."""
    starts: Ints
    """Where each bucket's rows begin."""
    size: Floats
    """Of each bucket."""
    likely: Callable[[Floats], Floats]
    """Of numbers of the rows: their sums by value, each as likely as it is this row's."""
    first: Floats
    """Rows × weights: the mean of what a row's value weighs."""
    own: Floats
    """Its variance."""
    all_own: Floats
    """Buckets × weights: the variances of all people of a bucket."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forms:
    """The three quadratic forms: cells × cells."""

    square: Floats
    free: Floats
    fixed: Floats

    @classmethod
    def of(cls, alike: Alike, scores: Sequence[int], pieces: Iterator[People]) -> Forms:
        """Added up over pieces of the people."""
        n = len(alike.cells)
        found = cls(square=np.zeros((n, n)), free=np.zeros((n, n)), fixed=np.zeros((n, n)))
        column = np.array([scores.index(score) for score, _ in alike.cells])
        which = np.array([own for _, own in alike.cells])
        for people in pieces:
            for one in range(len(scores)):
                for two in range(one, len(scores)):
                    found._add(people, alike.weights, (one, two), (column, which))
        return found

    def _add(self, people: People, weights: Floats, pair: Cell, place: tuple[Ints, Ints]) -> None:
        """What two scores have in common."""
        (one, two), (column, which) = pair, place
        both = people.numbers[:, one] * people.numbers[:, two]
        square = (weights * people.likely(both)) @ weights.T - (people.first.T * both) @ people.first
        free, left, right = (
            np.add.reduceat(numbers[:, None] * people.own, people.starts, axis=0)
            for numbers in (both, people.numbers[:, one], people.numbers[:, two])
        )
        lost = np.divide(
            left * right, people.all_own, out=np.zeros_like(free), where=people.all_own > _ROUNDING
        )
        fixed = (people.size / np.maximum(people.size - 1, 1)) @ (free - lost)
        i, j = np.flatnonzero(column == one), np.flatnonzero(column == two)
        for form, own in (
            (self.square, square),
            (self.free, np.diag(free.sum(axis=0))),
            (self.fixed, np.diag(fixed)),
        ):
            form[np.ix_(i, j)] += own[np.ix_(which[i], which[j])]
            if one != two:
                form[np.ix_(j, i)] += own[np.ix_(which[j], which[i])]

    def variance(self, factors: Floats) -> float:
        """Of the combination of the totals with these factors."""
        square, free, fixed = (
            float(factors @ form @ factors) for form in (self.square, self.free, self.fixed)
        )
        if free <= _ROUNDING * float(factors**2 @ np.diag(self.free)):
            return max(fixed, 0.0)
        return max(square, 0.0) * max(fixed, 0.0) / free


def in_pieces(home: Codes, rows: Codes, n_weights: int) -> Iterator[Score]:
    """Rows bucket by bucket, no more at once than fit into memory with so many weights."""
    rows = rows[np.argsort(home[rows], kind="stable")]
    begins = np.flatnonzero(np.diff(home[rows], prepend=-1))
    filled = begins * n_weights // _CELLS_AT_ONCE
    starts = begins[np.flatnonzero(np.diff(filled, prepend=-1))].tolist()
    for start, end in zip(starts, [*starts[1:], len(rows)], strict=True):
        yield Score(rows=rows[start:end])
