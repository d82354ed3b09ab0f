"""Cells that hardly anybody shares, and whose order tells: the row numbers of a table sorted by the secret.

Or a viral load, which only some people have. No cell says anything by itself. But who is between two people
that have a value has it too, and a release shows everybody's cell beside a bucket or a coin: many neighbours
together tell what all of them have.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma, log

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.tables.codes import narrowest
from dalenius.tables.giveaways.cells import (
    CHANCE,
    COMMON,
    MOST,
    MUCH,
    NEARLY,
    SEVERAL,
    CodedColumn,
    any_order,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrderTable:
    """Of every value, the people between two neighbours that have it, and those of them who have it too."""

    told: Ints
    right: Ints
    counts: Ints
    """How many people have each value."""
    runs: Ints
    """How many times each value begins, from the first cell to the last."""

    @classmethod
    def of(cls, column: CodedColumn, secret: CodedColumn) -> OrderTable | None:
        """None: the column has no order."""
        place = column.places
        if place is None or len(place) <= 2:  # nobody has two neighbours
            return None
        # places of two bytes are sorted by counting, in a tenth of the time
        order = np.argsort(place[any_order(len(place))], kind="stable")
        value = secret.codes.astype(narrowest(secret.n_values))[any_order(len(place))][order]
        own, before = value[1:-1], value[:-2]
        is_told, goes_on = before == value[2:], value[1:] == value[:-1]
        told, right, going_on = (
            np.bincount(some, minlength=secret.n_values)
            for some in (before[is_told], own[is_told & goes_on[1:]], value[1:][goes_on])
        )
        counts = np.bincount(value, minlength=secret.n_values)
        return cls(told=told, right=right, counts=counts, runs=counts - going_on)

    def telling(self) -> tuple[int, float] | None:
        """The people whose neighbours nearly always tell the value, and how often; None: too few to say."""
        n_rows = int(self.counts.sum())
        is_sure = (self.right >= NEARLY * self.told) & (self.told > 0) & (self.counts <= COMMON * n_rows)
        if self._is_enough(is_sure) and self.log_chance() > log(CHANCE / 2):
            needed = log(CHANCE / 2 / len(self.counts))
            is_sure[is_sure] = [
                self.log_chance_of(code) <= needed for code in np.flatnonzero(is_sure).tolist()
            ]
        if not self._is_enough(is_sure):
            return None
        told = int(self.told[is_sure].sum())
        return told, float(self.right[is_sure].sum() / told)

    def _is_enough(self, is_sure: Bools) -> bool:
        """Whether the values tell much of the table, or most of the people who have one of them."""
        n_rows, held = int(self.counts.sum()), self.right[is_sure]
        is_most = (held >= MOST * self.counts[is_sure]) & (held >= SEVERAL * n_rows)
        return bool(is_most.any() or self.told[is_sure].sum() >= max(MUCH * n_rows, 1))

    def log_chance(self) -> float:
        """A bound on the chance, as a logarithm, that people in any order have so few runs of all values.

        There are at most C(n−1, r−1)·m·(m−1)^(r−1) rows of r runs of m values, and n!/(o₁!·o₂!·…) equally
        likely ones with the table's counts.
        """
        counts = self.counts[self.counts > 0]
        n, m = int(counts.sum()), len(counts)
        if m < 2:
            return 0.0
        more = np.arange(int(self.runs.sum()))
        ways = _log_choose(n - 1, more) + log(m) + more * log(m - 1)
        return min(0.0, _log_sum(ways) - lgamma(n + 1) + sum(lgamma(o + 1) for o in counts.tolist()))

    def log_chance_of(self, code: int) -> float:
        """The chance, as a logarithm, that people in any order have so few runs of one value.

        o people with the value are in k runs among n in C(o−1, k−1)·C(n−o+1, k) of C(n, o) ways.
        """
        n, o, runs = int(self.counts.sum()), int(self.counts[code]), np.arange(1, int(self.runs[code]) + 1)
        ways = _log_choose(o - 1, runs - 1) + _log_choose(n - o + 1, runs)
        return min(0.0, _log_sum(ways) - float(_log_choose(n, np.array([o]))[0]))


def _log_choose(n: int, k: Ints) -> Floats:
    each = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    return np.asarray(each[n] - each[k] - each[n - k], dtype=np.float64)


def _log_sum(logs: Floats) -> float:
    most = float(logs.max())
    return most + log(float(np.exp(logs - most).sum()))
