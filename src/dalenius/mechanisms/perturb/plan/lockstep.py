"""The moves of several partitions at once, each step of all of them together.

A step looks at few cells, and most of its time would go to calling numpy for them. What is done is what
`moves.py` does, number by number: the same sums in the same order, and of equal changes the same first one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.perturb.plan.layout import Objective
from dalenius.mechanisms.perturb.plan.moves import CELLS_AT_ONCE, MOST_CELLS, N_AMOUNTS, improve_plainly

_ALL, _UP_TO_TOP, _DOWN_TO_TOP, _HALF = range(N_AMOUNTS)
_LEAST_GAIN = 1e-12


def improve_by_moves(quotas: Ints, objective: Objective) -> Ints:
    """The k × m quotas after the best moves, parts that ran empty left out."""
    return improve_all([quotas], objective)[0]


def improve_all(starts: Sequence[Ints], objective: Objective) -> list[Ints]:
    """The same of each of several partitions of one table."""
    found = list(starts)
    # elsewhere differences of infinite costs are not numbers, which the plain steps pass over in their way
    sound = [i for i, start in enumerate(starts) if _n_steps(start) and _is_sound(start, objective)]
    for i in set(range(len(starts))) - set(sound):
        found[i] = improve_plainly(starts[i], objective)
    for some in _in_batches(sound, starts):
        moved = _Partitions.of([starts[i] for i in some], objective)
        moved.improve()
        for i, quotas in zip(some, moved.quotas(), strict=True):
            found[i] = quotas
    return found


def _n_steps(quotas: Ints) -> int:
    return int(MOST_CELLS // (quotas.shape[0] ** 2 * quotas.shape[1]))


def _is_sound(quotas: Ints, objective: Objective) -> bool:
    return bool(quotas.sum(axis=1).all() and np.isfinite(objective.of_parts(quotas)).all())


def _in_batches(chosen: Sequence[int], starts: Sequence[Ints]) -> Iterator[list[int]]:
    """As many at once as one large partition may have cells."""
    batch: list[int] = []
    for i in chosen:
        most = max(len(starts[j]) for j in (*batch, i))
        if batch and (len(batch) + 1) * most**2 * starts[i].shape[1] > MOST_CELLS:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Partitions:
    """Some partitions, changed in place; each has as many places for parts as the largest has parts.

    Counts are floating numbers, which hold them exactly and are added up several at a time.
    """

    objective: Objective
    protected: Floats
    """m: 1 for values in SA′, else 0."""
    n_steps: Ints
    """How many steps each partition may take."""
    counts: Floats
    """b × k × m."""
    is_part: Bools
    """b × k: of the places, those that hold a part."""
    sizes: Floats
    """b × k, as all that follows: how many records each part has."""
    n_values: Floats
    """And how many different values."""
    tops: Floats
    """Each part's top protected count."""
    tops_without: Floats
    """b × k × m: what it would be without each value."""
    costs: Floats
    left: Floats
    """2 × b × k × m: what a part would cost without all, and without half, of its records of each value."""
    least: Floats
    """b × amounts × source × target: the least change of the cost over the values, or 0."""

    @classmethod
    def of(cls, starts: Sequence[Ints], objective: Objective) -> Self:
        """The partitions, and all their moves."""
        n_parts, n_values = max(map(len, starts)), starts[0].shape[1]
        shape = (len(starts), n_parts)
        counts = np.zeros((*shape, n_values))
        for i, start in enumerate(starts):
            counts[i, : len(start)] = start
        found = cls(
            objective=objective,
            protected=objective.protected.astype(np.float64),
            n_steps=np.array([_n_steps(start) for start in starts]),
            counts=counts,
            is_part=np.array([np.arange(n_parts) < len(start) for start in starts]),
            sizes=np.zeros(shape),
            n_values=np.zeros(shape),
            tops=np.zeros(shape),
            tops_without=np.zeros((*shape, n_values)),
            costs=np.zeros(shape),
            left=np.zeros((2, *shape, n_values)),
            least=np.zeros((len(starts), N_AMOUNTS, n_parts, n_parts)),
        )
        found._measure(*np.nonzero(found.is_part))
        found._look_again(found.is_part[:, :, np.newaxis] & found.is_part[:, np.newaxis, :])
        return found

    def quotas(self) -> Iterator[Ints]:
        """Of each partition its parts."""
        for counts, is_part in zip(self.counts, self.is_part, strict=True):
            yield counts[is_part].astype(np.int64)

    def improve(self) -> None:
        """Step by step, each partition for as long as its cost falls."""
        costs = np.array([own[is_part].sum() for own, is_part in zip(self.costs, self.is_part, strict=True)])
        going, step = np.arange(len(costs)), 0
        while len(going):
            going, sources, targets, numbers = self._best_moves(going)
            options, after = self._options(going, sources, targets, numbers)
            totals = self._totals(going, sources, targets, after)
            best = totals.argmin(axis=1)
            found = totals[np.arange(len(going)), best]
            falls = found < costs[going] * (1 - _LEAST_GAIN)
            going, sources, targets = going[falls], sources[falls], targets[falls]
            self._move(going, sources, targets, options[falls, best[falls]])
            costs[going] = found[falls]
            step += 1
            going = going[self.n_steps[going] > step]

    def _best_moves(self, going: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Which partitions have a move that helps: from which part to which, and which amount."""
        by_amount = self.least[going].reshape(len(going), N_AMOUNTS, -1)
        pairs = by_amount.argmin(axis=2)
        least = np.take_along_axis(by_amount, pairs[:, :, np.newaxis], axis=2)[:, :, 0]
        numbers = least.argmin(axis=1)
        rows = np.arange(len(going))
        helps = least[rows, numbers] < 0
        sources, targets = np.divmod(pairs[rows, numbers], self.least.shape[3])
        return going[helps], sources[helps], targets[helps], numbers[helps]

    def _options(self, going: Ints, sources: Ints, targets: Ints, numbers: Ints) -> tuple[Floats, Floats]:
        """Partitions × options × (source, target) × values after the best 1, 2, 4, … moves; and their costs.

        Options that are none, since fewer moves help, cost ∞.
        """
        records, had = self.counts[going, sources], self.counts[going, targets]
        amounts = self._amounts(going, sources, targets)[numbers, np.arange(len(going))]
        value, pair = np.arange(records.shape[1]), np.arange(len(going))[:, np.newaxis]
        changes = self._changes(amounts, (going, sources), (going, targets), pair, value)
        changes[amounts == 0] = 0.0
        ranks = np.empty(changes.shape, dtype=np.int64)
        np.put_along_axis(ranks, changes.argsort(axis=1, kind="stable"), value[np.newaxis], axis=1)
        n_helping = np.count_nonzero(changes < 0, axis=1)
        n_moves = 2 ** np.arange(int(n_helping.max(initial=1)).bit_length())
        flow = np.where(ranks[:, np.newaxis] < n_moves[:, np.newaxis], amounts[:, np.newaxis], 0.0)
        options = np.stack([records[:, np.newaxis] - flow, had[:, np.newaxis] + flow], axis=2)
        after = self._of_parts(options)
        after[n_moves > n_helping[:, np.newaxis]] = np.inf
        return options, after

    def _of_parts(self, counts: Floats) -> Floats:
        tops = (counts * self.protected).max(axis=-1)
        return self.objective.of_shape(counts.sum(axis=-1), np.count_nonzero(counts, axis=-1), tops)

    def _totals(self, going: Ints, sources: Ints, targets: Ints, after: Floats) -> Floats:
        """The costs of whole partitions, partitions × options, each added up like that of one."""
        totals = np.empty(after.shape[:2])
        for i, (one, source, target) in enumerate(zip(going, sources, targets, strict=True)):
            costs, is_part = self.costs[one].copy(), self.is_part[one]
            for k, (of_source, of_target) in enumerate(after[i]):
                costs[source], costs[target] = of_source, of_target
                totals[i, k] = costs[is_part].sum()
        return totals

    def _move(self, going: Ints, sources: Ints, targets: Ints, moved: Floats) -> None:
        """Put the new counts in place, and look again at what has one of the two parts."""
        self.counts[going, sources], self.counts[going, targets] = moved[:, 0], moved[:, 1]
        self.is_part[going, sources] = moved[:, 0].any(axis=1)
        changed = np.zeros_like(self.is_part)
        changed[going, sources] = changed[going, targets] = True
        self._measure(*np.nonzero(changed & self.is_part))
        one, gone = np.nonzero(changed & ~self.is_part)
        self.costs[one, gone] = 0.0
        self.least[one, :, gone] = 0.0
        self.least[one, :, :, gone] = 0.0
        are_parts = self.is_part[:, :, np.newaxis] & self.is_part[:, np.newaxis, :]
        self._look_again(are_parts & (changed[:, :, np.newaxis] | changed[:, np.newaxis, :]))

    def _measure(self, one: Ints, part: Ints) -> None:
        """What is known of some parts, from their counts."""
        counts = self.counts[one, part]
        protected = counts * self.protected
        two = np.partition(protected, -2, axis=1)[:, -2:]
        sizes, n_values, tops = counts.sum(axis=1), np.count_nonzero(counts, axis=1), two[:, 1]
        without = np.where(protected == tops[:, np.newaxis], two[:, :1], tops[:, np.newaxis])
        self.sizes[one, part], self.n_values[one, part], self.tops[one, part] = sizes, n_values, tops
        self.tops_without[one, part] = without
        self.costs[one, part] = self.objective.of_shape(sizes, n_values, tops)
        for number, amount in enumerate((counts, counts // 2)):
            less = counts - amount
            self.left[number, one, part] = self.objective.of_shape(
                sizes[:, np.newaxis] - amount,
                n_values[:, np.newaxis] - ((less == 0) & (counts > 0)),
                np.maximum(without, less * self.protected),
            )

    def _amounts(self, one: Ints, source: Ints, target: Ints) -> Floats:
        """Amounts × pairs × values: how many records to move from the source to the target of each pair."""
        records, had = self.counts[one, source], self.counts[one, target]
        room = np.maximum(self.tops[one, target][:, np.newaxis] - had, 0)
        above = np.maximum(records - self.tops_without[one, source], 0)
        return np.stack([records, np.minimum(room, records), above, records // 2])

    def _look_again(self, again: Bools) -> None:
        """Look at how much the best move of each amount changes the cost, for some source × target."""
        again &= ~np.eye(again.shape[1], dtype=bool)
        pairs = np.nonzero(again)
        at_once = max(CELLS_AT_ONCE // self.counts.shape[2], 1)
        for start in range(0, len(pairs[0]), at_once):
            self._look(*(places[start : start + at_once] for places in pairs))

    def _look(self, one: Ints, source: Ints, target: Ints) -> None:
        """At the records that the sources have, value by value.

        What a source comes to cost without all or half of them is known. The amount that a target has room
        for is the first one again where it is all that there is, and that which lowers the source's top too:
        they are not looked at, since of equal changes the first amount's is taken.
        """
        records, had = self.counts[one, source], self.counts[one, target]
        pair, value = np.nonzero(records)
        records, had = records[pair, value], had[pair, value]
        first = np.searchsorted(pair, np.arange(len(one)))  # every source has records
        reached = self._reach((one, target), pair, value, had)
        before = (self.costs[one, source] + self.costs[one, target])[pair]
        owner, part = one[pair], source[pair]
        for number, left, amount in ((_ALL, self.left[0], records), (_HALF, self.left[1], records // 2)):
            changes = left[owner, part, value] + reached.cost(amount, self.objective) - before
            changes[amount == 0] = 0.0
            self.least[one, number, source, target] = np.minimum(np.minimum.reduceat(changes, first), 0.0)
        room, above = reached.tops - had, records - self.tops_without[owner, part, value]
        for number, amount in ((_UP_TO_TOP, room), (_DOWN_TO_TOP, above)):
            some = np.flatnonzero((amount > 0) & (amount < records))
            which = pair[some]
            changes = self._changes(amount[some], (one, source), (one, target), which, value[some])
            least = np.zeros(len(one))
            np.minimum.at(least, which, changes)
            self.least[one, number, source, target] = least

    def _changes(self, amount: Floats, source: _Places, target: _Places, pair: Ints, value: Ints) -> Floats:
        """How much moving so many records of a value from a pair's source to its target changes the cost."""
        owner, part = source[0][pair], source[1][pair]
        records = self.counts[owner, part, value]
        had = self.counts[target[0][pair], target[1][pair], value]
        less = records - amount
        # a part has one value less where all of it leaves, and one more where it had none
        of_source = self.objective.of_shape(
            self.sizes[source][pair] - amount,
            self.n_values[source][pair] - (less == 0),
            np.maximum(self.tops_without[owner, part, value], less * self.protected[value]),
        )
        of_target = self._reach(target, pair, value, had).cost(amount, self.objective)
        changes: Floats = of_source + of_target - (self.costs[source] + self.costs[target])[pair]
        return changes

    def _reach(self, target: _Places, pair: Ints, value: Ints, had: Floats) -> _Reached:
        return _Reached(
            sizes=self.sizes[target][pair],
            n_values=self.n_values[target][pair] + (had == 0),
            tops=self.tops[target][pair],
            had=had,
            protected=self.protected[value],
        )


_Places = tuple[Ints, Ints]
"""Partitions, and their parts."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Reached:
    """The parts that records move to."""

    sizes: Floats
    n_values: Floats
    """With the value that is moved."""
    tops: Floats
    had: Floats
    """Of the value."""
    protected: Floats

    def cost(self, amount: Floats, objective: Objective) -> Floats:
        """With so many more records of the value."""
        tops = np.maximum(self.tops, (self.had + amount) * self.protected)
        return objective.of_shape(self.sizes + amount, self.n_values, tops)
