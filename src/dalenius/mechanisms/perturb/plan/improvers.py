"""Improve a partition by moving records of one value from one part to another, while the cost falls.

The amounts worth trying are few: all of the value (the source gets a smaller domain), as much as lifts the
target's count to its top (more rows at no price), as much as lowers the source's top, and half.

Leave a local optimum of the moves: split a part, join two, or split two anew, then move records again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.perturb.plan.bounds import Objective
from dalenius.mechanisms.perturb.plan.starts import split_band

_MOST_CELLS = 4 * 10**6
"""Bounds the work (steps × parts² × values) for thousands of values; never reached with hundreds."""


def improve_by_moves(quotas: Ints, objective: Objective) -> Ints:
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


def _best_moves(quotas: Ints, objective: Objective) -> Ints:
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


def _move(quotas: Ints, pair: tuple[int, int], codes: Ints, flow: Ints) -> Ints:
    source, target = pair
    moved = quotas.copy()
    moved[source, codes] -= flow[codes]
    moved[target, codes] += flow[codes]
    return moved


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Parts:
    """A partition, with what the costs of all moves are found from."""

    quotas: Ints
    """k × m."""
    sizes: Ints
    n_values: Ints
    tops: Ints
    """Each part's top protected count."""
    tops_without: Ints
    """k × m: what it would be without each value."""
    costs: Floats

    @classmethod
    def of(cls, quotas: Ints, objective: Objective) -> _Parts:
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

    def amounts(self) -> list[Ints]:
        """Tables source × target × value of how many records to move."""
        shape = (len(self.quotas), *self.quotas.shape)
        source, target = self.quotas[:, np.newaxis, :], self.quotas[np.newaxis, :, :]
        return [
            np.broadcast_to(source, shape),
            np.clip(self.tops[np.newaxis, :, np.newaxis] - target, 0, source),
            np.broadcast_to(np.clip(source - self.tops_without[:, np.newaxis, :], 0, None), shape),
            np.broadcast_to(source // 2, shape),
        ]

    def cost_changes(self, amounts: Ints, objective: Objective) -> Floats:
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


_MOST_ROUNDS = 10
_MOST_REMIXED_CELLS = 3 * 10**5


def remix(quotas: Ints, objective: Objective) -> Ints:
    """The quotas after as many improving remixes as there are, each followed by its best moves.

    Where that would take long (many parts or thousands of values) they are returned as they are.
    """
    for _ in range(_MOST_ROUNDS):
        if len(quotas) ** 4 * quotas.shape[1] > _MOST_REMIXED_CELLS:
            break
        moved = (improve_by_moves(mixed, objective) for mixed in _remixes(quotas, objective))
        best = min(moved, key=objective.total, default=quotas)
        if not objective.total(best) < objective.total(quotas) * (1 - 1e-9):
            break
        quotas = best
    return quotas


def _remixes(quotas: Ints, objective: Objective) -> Iterator[Ints]:
    for number, part in enumerate(quotas):
        yield from _with_halves(quotas, [number], part, objective)
    for pair in combinations(range(len(quotas)), 2):
        joined = quotas[list(pair)].sum(axis=0)
        yield np.concatenate((np.delete(quotas, pair, axis=0), joined[np.newaxis, :]))
        yield from _with_halves(quotas, list(pair), joined, objective)


def _with_halves(quotas: Ints, replaced: list[int], part: Ints, objective: Objective) -> Iterator[Ints]:
    halves = split_band(part, objective)
    if halves is not None:
        yield np.concatenate((np.delete(quotas, replaced, axis=0), halves))
