"""Improve a partition by moving records between its parts.

Records of one value move from one part to another. The amounts worth trying are few: all of the value (the
source gets a smaller domain), as much as lifts the target's count to its top (more rows at no price), as much
as lowers the source's top, and half. A move changes two parts. What moves between all others would change is
what it was: of each pair of parts the least change is kept, and a step looks at the pairs again that have one
of the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.perturb.plan.layout import Objective

MOST_CELLS = 4 * 10**6
"""Bounds the work (steps × parts² × values) for thousands of values; never reached with hundreds."""
N_AMOUNTS = 4
CELLS_AT_ONCE = 2**14
"""Pairs × values that are looked at together: what they become stays in the processor's cache."""


def improve_plainly(quotas: Ints, objective: Objective) -> Ints:
    """The k × m quotas after the best moves, parts that ran empty left out."""
    n_steps = MOST_CELLS // (quotas.shape[0] ** 2 * quotas.shape[1])
    if not n_steps:
        return quotas
    cost, moves = objective.total(quotas), Moves.of(quotas, objective)
    for _ in range(n_steps):
        best = moves.best(objective)
        if best is None:
            break
        moved, pair = best
        moved_cost = objective.total(moved)
        if not moved_cost < cost * (1 - 1e-12):
            break
        cost, moves = moved_cost, moves.after(moved, pair, objective)
    return moves.parts.quotas


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moves:
    """A partition, and what the best move from each part to each other would change."""

    parts: _MovedParts
    least: Floats
    """Amounts × source × target: the least change of the cost over the values."""

    @classmethod
    def of(cls, quotas: Ints, objective: Objective) -> Moves:
        """All moves of a partition."""
        parts, n_parts = _MovedParts.of(quotas, objective), len(quotas)
        least = np.zeros((N_AMOUNTS, n_parts, n_parts))
        parts.update(least, ~np.eye(n_parts, dtype=bool), objective)
        return cls(parts=parts, least=least)

    def after(self, moved: Ints, pair: tuple[int, int], objective: Objective) -> Moves:
        """The same after records have moved between two parts, of which the first may have run empty."""
        is_left = moved.sum(axis=1) > 0
        parts, least = _MovedParts.of(moved[is_left], objective), self.least[:, is_left][:, :, is_left]
        is_changed = np.zeros(len(moved), dtype=bool)
        is_changed[list(pair)] = True
        is_changed = is_changed[is_left]
        again = is_changed[:, np.newaxis] | is_changed
        np.fill_diagonal(again, val=False)
        parts.update(least, again, objective)
        return Moves(parts=parts, least=least)

    def best(self, objective: Objective) -> tuple[Ints, tuple[int, int]] | None:
        """The quotas after the best move, or with its source and target after the best 2, 4, 8, … moves.

        Several values at a time make one step of what would be thousands in large domains.
        """
        by_amount = self.least.reshape(N_AMOUNTS, -1)
        pairs = by_amount.argmin(axis=1)
        least = by_amount[np.arange(N_AMOUNTS), pairs]  # not a number where a part has no cost
        number = int(np.where(least < 0, least, 0.0).argmin())
        if not least[number] < 0:
            return None
        source, target = divmod(int(pairs[number]), len(self.parts.quotas))
        pair = (source, target)
        amounts = self.parts.amounts(np.array([source]), np.array([target]))
        changes = self.parts.cost_changes(amounts, np.array([source]), np.array([target]), objective)
        codes = np.argsort(changes[number, 0], kind="stable")[: np.count_nonzero(changes[number, 0] < 0)]
        steps = [codes[: 1 << i] for i in range(len(codes).bit_length())]
        options = [_move(self.parts.quotas, pair, some, amounts[number, 0]) for some in steps]
        return min(options, key=objective.total), pair


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _MovedParts:
    """A partition, with what the costs of all moves are found from."""

    quotas: Ints
    """k × m."""
    sizes: Ints
    """How many records each part has."""
    n_values: Ints
    """And how many different values."""
    tops: Ints
    """Each part's top protected count."""
    tops_without: Ints
    """k × m: what it would be without each value."""
    costs: Floats

    @classmethod
    def of(cls, quotas: Ints, objective: Objective) -> _MovedParts:
        protected = np.where(objective.protected, quotas, 0)
        two = np.partition(protected, -2, axis=1)[:, -2:]
        tops = two[:, 1]
        return cls(
            quotas=quotas,
            sizes=quotas.sum(axis=1),
            n_values=np.count_nonzero(quotas, axis=1).astype(np.int64),
            tops=tops,
            tops_without=np.where(protected == tops[:, np.newaxis], two[:, :1], tops[:, np.newaxis]),
            costs=objective.of_parts(quotas),
        )

    def update(self, least: Floats, again: Bools, objective: Objective) -> None:
        """Look again at how much the best move of each amount changes the cost, for some source × target."""
        sources, targets = np.nonzero(again)
        at_once = max(CELLS_AT_ONCE // self.quotas.shape[1], 1)
        for start in range(0, len(sources), at_once):
            some, others = sources[start : start + at_once], targets[start : start + at_once]
            changes = self.cost_changes(self.amounts(some, others), some, others, objective)
            least[:, some, others] = changes.min(axis=2)

    def amounts(self, sources: Ints, targets: Ints) -> Ints:
        """Amounts × pairs × values: how many records to move from the source to the target of each pair."""
        source = self.quotas[sources]
        found = np.empty((N_AMOUNTS, *source.shape), dtype=np.int64)
        found[0] = source
        found[1] = np.minimum(np.maximum(self.tops[targets, np.newaxis] - self.quotas[targets], 0), source)
        found[2] = np.maximum(source - self.tops_without[sources], 0)
        found[3] = source // 2
        return found

    def cost_changes(self, amounts: Ints, sources: Ints, targets: Ints, objective: Objective) -> Floats:
        """How much each move (amounts × pairs × values) changes the cost; 0 where nothing moves."""
        changes = np.zeros(amounts.shape)
        moves = np.flatnonzero(amounts)  # most amounts of most values are 0
        amount, place = amounts.ravel()[moves], moves % amounts[0].size
        pair, value = np.divmod(place, amounts.shape[2])
        source, target = sources[pair], targets[pair]
        less, had = self.quotas[source, value] - amount, self.quotas[target, value]
        is_protected = objective.protected[value]
        # a part has one value less where all of it leaves, and one more where it had none
        of_source = objective.of_shape(
            self.sizes[source] - amount,
            self.n_values[source] - (less == 0),
            np.maximum(self.tops_without[source, value], np.where(is_protected, less, 0)),
        )
        of_target = objective.of_shape(
            self.sizes[target] + amount,
            self.n_values[target] + (had == 0),
            np.maximum(self.tops[target], np.where(is_protected, had + amount, 0)),
        )
        before = self.costs[source] + self.costs[target]
        changes.ravel()[moves] = of_source + of_target - before
        return changes


def _move(quotas: Ints, pair: tuple[int, int], codes: Ints, flow: Ints) -> Ints:
    source, target = pair
    moved = quotas.copy()
    moved[source, codes] -= flow[codes]
    moved[target, codes] += flow[codes]
    return moved
