"""Laws that a release must have followed, tested count by count against what they say.

A law is about *coins* (each thing independently, with a stated probability), or about *draws* (within each
stratum a number of things was chosen, any as likely as any other). Both are tested by facets: the count of
every cell against its expectation, and all cells together by weights that are learnt from one half of the
things and tried on the other, which finds what is too little to be seen in any one cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.tables.codes import number
from dalenius.threats.counts import Counts, learnt, make_counts, sum_by
from dalenius.threats.facets import Facet


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coins:
    """Independent coins and how they fell."""

    what: str
    heads: Bools
    chance: Floats
    """Of heads, coin by coin."""
    half: Ints | None = None
    """0 or 1: which half each coin is of; None: every other one. It must not depend on how coins fell."""

    def total(self) -> Counts:
        """All of them."""
        mean = float(self.chance.sum())
        spread = float((self.chance * (1 - self.chance)).sum())
        return make_counts(self.what, float(self.heads.sum()), mean, spread, len(self.heads))

    def by(self, facet: Facet) -> Iterator[Counts]:
        """Cell by cell, and all cells by what one half of the coins tells about the other."""
        cell = facet.codes.astype(np.int64) * 2 + _halves(self.half, len(facet.codes))
        size = 2 * facet.n_cells
        halves = Counts(
            name=f"{self.what} by {facet.name}",
            observed=sum_by(cell, self.heads, size),
            expected=sum_by(cell, self.chance, size),
            variance=sum_by(cell, self.chance * (1 - self.chance), size),
            trials=sum_by(cell, None, size),
            label=facet.label,
        )
        yield halves.joined()
        yield learnt(halves, halves.variance, 1.0)

    def count_lagged(self, order: Ints, lag: int) -> Iterator[Counts]:
        """Pairs of coins that far apart in an order, no coin in two pairs: do they fall alike?"""
        blocks = len(order) // (2 * lag)
        pairs = order[: blocks * 2 * lag].reshape(blocks, 2, lag)
        one, two = pairs[:, 0].ravel(), pairs[:, 1].ravel()
        p, q = self.chance[one], self.chance[two]
        alike, chance = self.heads[one] == self.heads[two], p * q + (1 - p) * (1 - q)
        yield make_counts(
            f"{self.what}, two that are {lag} apart alike",
            float(alike.sum()),
            float(chance.sum()),
            float((chance * (1 - chance)).sum()),
            len(alike),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draws:
    """Things to which outcomes were dealt: within a stratum each to so many, any deal as likely as others."""

    what: str
    stratum: Ints
    outcome: Ints
    outcomes: tuple[str, ...]
    """What each outcome is called; of two only the second is tested, which the first follows from."""
    stratum_label: Callable[[int], str]
    half: Ints | None = None
    """0 or 1: which half each thing is of; None: every other one. It must not depend on the outcome."""

    def by(self, facet: Facet) -> Iterator[Counts]:
        """Cell by cell over all strata, in each stratum, and by what one half tells about the other."""
        name = f"{self.what} by {facet.name}".strip()
        own = self._strata(self.stratum, facet)
        yield own.pool(name)
        if own.n_strata > 1:
            yield own.apart(f"{name}, one by one")
        yield self._strata(self.stratum * 2 + _halves(self.half, len(self.stratum)), facet).learnt(name)

    def _strata(self, stratum: Ints, facet: Facet) -> _Strata:
        width, n_outcomes = facet.n_cells, len(self.outcomes)
        n_strata = int(stratum.max(initial=-1)) + 1
        key = stratum * width + facet.codes
        keys = np.arange(n_strata * width)
        if len(keys) * n_outcomes > 4_000_000:  # then those that occur are numbered, and the others not held
            key, keys = number(key)
        size = len(keys) * n_outcomes
        hits = sum_by(key * n_outcomes + self.outcome, None, size).reshape(-1, n_outcomes)
        used = np.flatnonzero(hits.any(axis=1))
        hits, own = hits[used], keys[used] // width
        whole = np.zeros((n_strata, n_outcomes))
        np.add.at(whole, own, hits)
        tested = slice(1 if n_outcomes == 2 else 0, None)
        return _Strata(
            draws=self,
            facet=facet,
            stratum=own,
            cell=keys[used] % width,
            count=hits.sum(axis=1, keepdims=True),
            size=whole.sum(axis=1, keepdims=True)[own],
            hits=hits[:, tested],
            of_stratum=whole[own][:, tested],
            n_strata=n_strata,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Strata:
    """The strata × cells that occur, and how many of their things have each of the tested outcomes."""

    draws: Draws
    facet: Facet
    stratum: Ints
    cell: Ints
    count: Floats
    """How many things there are of the stratum and cell: a column."""
    size: Floats
    """How many the whole stratum has."""
    hits: Floats
    """How many of the cell's things have each outcome."""
    of_stratum: Floats
    """How many of the stratum's."""
    n_strata: int

    @property
    def expected(self) -> Floats:
        """What the stratum's share makes of the cell's things."""
        return np.asarray(self.count * self.of_stratum / self.size)

    @property
    def variance(self) -> Floats:
        """The hypergeometric one."""
        left = (self.size - self.count) / np.maximum(self.size - 1, 1)
        return np.asarray(self.expected * (1 - self.of_stratum / self.size) * left)

    @property
    def trials(self) -> Floats:
        """The cell's things, once for every outcome."""
        return np.broadcast_to(self.count, self.hits.shape)

    def apart(self, name: str) -> Counts:
        """In each stratum by itself."""
        stratum_label = self.draws.stratum_label
        return self._counts(
            name,
            (self.hits, self.expected, self.variance, self.trials),
            lambda i: f"{stratum_label(int(self.stratum[i]))}, {self.facet.label(int(self.cell[i]))}",
        )

    def pool(self, name: str) -> Counts:
        """Cell by cell, over all strata."""
        return self._counts(name, self._over(self.cell, self.facet.n_cells), self.facet.label)

    def learnt(self, name: str) -> Counts:
        """Strata with even numbers are one half, those with odd numbers the other."""
        key, size = self.cell * 2 + self.stratum % 2, 2 * self.facet.n_cells
        # draws without replacement vary less than draws with it, of those chosen or of those left over
        spread = self.count * np.minimum(self.of_stratum, self.size - self.of_stratum) / self.size
        halves = self._counts(name, self._over(key, size), self.facet.label)
        return learnt(halves, _over(key, spread, size).ravel(), 2.0, self.hits.shape[1])

    def _over(self, key: Ints, size: int) -> tuple[Floats, ...]:
        columns = (self.hits, self.expected, self.variance, self.trials)
        return tuple(_over(key, column, size) for column in columns)

    def _counts(self, name: str, columns: tuple[Floats, ...], label: Callable[[int], str]) -> Counts:
        n, outcomes = self.hits.shape[1], self.draws.outcomes[-self.hits.shape[1] :]
        observed, expected, variance, trials = (column.ravel() for column in columns)
        return Counts(
            name=name,
            observed=observed,
            expected=expected,
            variance=variance,
            trials=trials,
            label=lambda i: f"{label(i // n)}: {outcomes[i % n]}",
        )


def _over(key: Ints, columns: Floats, size: int) -> Floats:
    """Rows of the same key added up, column by column."""
    return np.stack([sum_by(key, column, size) for column in columns.T], axis=1)


def _halves(half: Ints | None, n: int) -> Ints:
    return np.arange(n) % 2 if half is None else half


def alike_neighbours(what: str, stratum: Ints, codes: Ints) -> Counts:
    """Things in an order that must be random within each stratum: do neighbours have the same code?

    Every other thing is taken with the next one. Given the second ones, the first ones are in random order:
    equal codes are the hits of a random permutation.
    """
    first = np.arange(0, len(codes) - 1, 2)
    first = first[stratum[first] == stratum[first + 1]]
    width = int(codes.max(initial=-1)) + 1
    sides = [number(stratum[places] * width + codes[places]) for places in (first, first + 1)]
    counts = [dict(zip(keys.tolist(), np.bincount(place).tolist(), strict=True)) for place, keys in sides]
    of_stratum = np.bincount(stratum[first]) if len(first) else np.zeros(0)
    expected = sum(n * counts[1].get(key, 0) / of_stratum[key // width] for key, n in counts[0].items())
    hits = int((codes[first] == codes[first + 1]).sum())
    return Counts(
        name=what,
        observed=np.array([float(hits)]),
        expected=np.array([float(expected)]),
        variance=np.array([2.0 * expected]),
        trials=np.array([float(len(first))]),
        label=lambda _: "neighbours alike",
        largest=3.0,
    )
