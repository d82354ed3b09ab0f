"""Columns that the secret decides, as the disease decides the ward: a cell rules all other values out.

Nobody reads the value off such a cell, which people of several diseases share. But a bucket holds few values,
and of these hardly any but the person's own is of that ward. What the cell of a value is, is learned from one
half of the people and tried on the other half, so that it is never true of few people by chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log

import numpy as np

from dalenius.arrays import Ints
from dalenius.tables.giveaways.cells import (
    CHANCE,
    COMMON,
    IN_PAIRS,
    MUCH,
    NEARLY,
    CellTable,
    CodedColumn,
    any_order,
)

_MOST_COUNTED = 2**16
"""Values × cells that are counted in a table; more are sorted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Halves:
    """The people of one half, and those of the other who have the same value or the ones next to it."""

    secret: CodedColumn
    known: Ints
    asked: Ints
    of_known: Ints
    """The values of these, by their codes."""
    of_asked: Ints
    below: Ints | None
    """Of everybody asked, the known person with the next value that is not larger; None: without an order."""
    above: Ints | None

    @classmethod
    def of(cls, secret: CodedColumn) -> Halves:
        """Divide the people at random."""
        rows = any_order(len(secret.codes))
        known, asked = np.split(rows, [(len(rows) + 1) // 2])
        below = above = None
        if secret.places is not None:
            ordered = known[np.argsort(secret.places[known], kind="stable")]
            place = np.searchsorted(secret.places[ordered], secret.places[asked])
            below, above = ordered[np.maximum(place - 1, 0)], ordered[np.minimum(place, len(ordered) - 1)]
        return cls(
            secret=secret,
            known=known,
            asked=asked,
            of_known=secret.codes[known],
            of_asked=secret.codes[asked],
            below=below,
            above=above,
        )

    def kinds(self, column: CodedColumn) -> Ints:
        """The cell that everybody asked should have by the value; −1 where the known people do not tell."""
        learned = self._learn(column)
        kind = learned[self.of_asked]
        if self.below is not None and learned.min() < 0:
            lower, upper = column.codes[self.below], column.codes[self.above]
            kind = np.where((kind < 0) & (lower == upper), lower, kind)
        return np.asarray(kind, dtype=np.int64)

    def _learn(self, column: CodedColumn) -> Ints:
        """The commonest cell of every value among the people known, −1 of a value that none of them has."""
        n_values, n_cells = self.secret.n_values, column.n_values
        keys = self.of_known * n_cells + column.codes[self.known]
        if n_values * n_cells <= _MOST_COUNTED:
            table = np.bincount(keys, minlength=n_values * n_cells).reshape(n_values, n_cells)
            return np.where(table.any(axis=1), table.argmax(axis=1), -1)
        keys, counts = np.unique(keys, return_counts=True)
        value, cell = np.divmod(keys[np.argsort(counts, kind="stable")], n_cells)
        learned = np.full(n_values, -1, dtype=np.int64)
        learned[value] = cell  # the commonest comes last
        return learned

    def telling(self, column: CodedColumn) -> Iterator[tuple[int, float, bool]]:
        """How many of those asked have a cell that tells the value's kind, how often, and if few have."""
        if column.n_values < 2:
            return
        cells, kind, n_cells = column.codes[self.asked], self.kinds(column), column.n_values
        is_told = kind >= 0
        some = slice(None) if is_told.all() else is_told
        people, right, of_kind = (
            np.bincount(chosen, minlength=n_cells)
            for chosen in (cells[some], cells[kind == cells], kind[some])
        )
        share = of_kind / max(int(of_kind.sum()), 1)
        is_rare = share <= COMMON
        n_rare, n_right = int(people[is_rare].sum()), int(right[is_rare].sum())
        if n_right >= NEARLY * n_rare >= NEARLY * MUCH * len(cells) and _is_sure(
            n_right, float((people * share)[is_rare].sum())
        ):
            yield n_rare, n_right / n_rare, False
            return
        several = np.flatnonzero((people > 1) & (right > 0))
        groups = CellTable(
            n=people[several].astype(np.float64),
            top=right[several].astype(np.float64),
            value=several,
            frequency=share,
            n_rows=len(cells),
        )
        if (found := groups.telling()) is not None:
            # a cell of several values must be told by them too: farmers are in several industries
            yield *found, not groups.tell_most(NEARLY)


def shares_cells(column: CodedColumn) -> bool:
    """Whether people share cells, apart from one, which may be NULL: what was measured of few."""
    return (column.n_values - 1) * IN_PAIRS <= len(column.codes) - int(np.bincount(column.codes).max())


def common_or_not(column: CodedColumn) -> CodedColumn:
    """Whether people have the commonest cell, or one of all others; if many have it."""
    counts = np.bincount(column.codes)
    is_common = (column.codes == counts.argmax()).astype(np.int64)
    return CodedColumn(codes=is_common, n_values=2 if counts.max() >= MUCH * len(is_common) else 1)


def _is_sure(right: int, by_chance: float) -> bool:
    """Whether chance has so many cells right less than once in 10⁹ times (Chernoff)."""
    return right > by_chance > 0 and right - by_chance + right * log(by_chance / right) <= log(CHANCE)
