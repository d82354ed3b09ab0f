"""Improve a partition by moving records of one value from one part to another, while the cost falls.

The amounts worth trying are few: all of the value (the source gets a smaller domain), as much as lifts the
target's count to its top (more rows at no price), as much as lowers the source's top, and half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.mechanisms.perturb.bounds import IntArray, Objective
from dalenius.mechanisms.perturb.matrix import FloatArray

_MOST_CELLS = 4 * 10**6
"""Bounds the work (steps × parts² × values) for thousands of values; never reached with hundreds."""


def improve_by_moves(quotas: IntArray, objective: Objective) -> IntArray:
    """The k × m quotas after the best moves, parts that ran empty left out."""
    n_steps = _MOST_CELLS // (quotas.shape[0] ** 2 * quotas.shape[1])
    cost = objective.total(quotas)
    for _ in range(n_steps):
        moved = _best_moves(quotas, objective)
        moved_cost = objective.total(moved)
        if not moved_cost < cost * (1 - 1e-12):
            break
        quotas, cost = moved[moved.sum(axis=1) > 0], moved_cost
    return quotas


def _best_moves(quotas: IntArray, objective: Objective) -> IntArray:
    """The quotas after the best move, or with its source and target after the best 2, 4, 8, … moves.

    Several values at a time make one step of what would be thousands in large domains.
    """
    best_change, options = 0.0, [quotas]
    parts = _Parts.of(quotas, objective)
    for amounts in parts.amounts():
        change = parts.cost_changes(amounts, objective)
        source, target, _ = np.unravel_index(int(np.argmin(change)), change.shape)
        changes = change[source, target]
        if changes.min() < best_change:
            best_change = float(changes.min())
            codes = np.argsort(changes, kind="stable")[: np.count_nonzero(changes < 0)]
            flow = amounts[source, target]
            pair = (int(source), int(target))
            options = [_move(quotas, pair, codes[: 1 << i], flow) for i in range(len(codes).bit_length())]
    return min(options, key=objective.total)


def _move(quotas: IntArray, pair: tuple[int, int], codes: IntArray, flow: IntArray) -> IntArray:
    source, target = pair
    moved = quotas.copy()
    moved[source, codes] -= flow[codes]
    moved[target, codes] += flow[codes]
    return moved


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Parts:
    """A partition, with what the costs of all moves are found from."""

    quotas: IntArray
    """k × m."""
    sizes: IntArray
    n_values: IntArray
    tops: IntArray
    """Each part's top protected count."""
    tops_without: IntArray
    """k × m: what it would be without each value."""
    costs: FloatArray

    @classmethod
    def of(cls, quotas: IntArray, objective: Objective) -> _Parts:
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

    def amounts(self) -> list[IntArray]:
        """Tables source × target × value of how many records to move."""
        shape = (len(self.quotas), *self.quotas.shape)
        source, target = self.quotas[:, np.newaxis, :], self.quotas[np.newaxis, :, :]
        return [
            np.broadcast_to(source, shape),
            np.clip(self.tops[np.newaxis, :, np.newaxis] - target, 0, source),
            np.broadcast_to(np.clip(source - self.tops_without[:, np.newaxis, :], 0, None), shape),
            np.broadcast_to(source // 2, shape),
        ]

    def cost_changes(self, amounts: IntArray, objective: Objective) -> FloatArray:
        """How much each move (source × target × value) changes the cost; 0 where nothing moves."""
        source, target = self.quotas[:, np.newaxis, :], self.quotas[np.newaxis, :, :]
        left, grown = source - amounts, target + amounts
        visible = objective.protected
        source_cost = objective.of_shape(
            self.sizes[:, np.newaxis, np.newaxis] - amounts,
            self.n_values[:, np.newaxis, np.newaxis] - ((source > 0) & (left == 0)),
            np.maximum(self.tops_without[:, np.newaxis, :], np.where(visible, left, 0)),
        )
        target_cost = objective.of_shape(
            self.sizes[np.newaxis, :, np.newaxis] + amounts,
            self.n_values[np.newaxis, :, np.newaxis] + ((target == 0) & (grown > 0)),
            np.maximum(self.tops[np.newaxis, :, np.newaxis], np.where(visible, grown, 0)),
        )
        before = self.costs[:, np.newaxis] + self.costs[np.newaxis, :]
        is_move = (amounts > 0) & ~np.eye(len(self.quotas), dtype=bool)[:, :, np.newaxis]
        return np.where(is_move, source_cost + target_cost - before[:, :, np.newaxis], 0.0)
