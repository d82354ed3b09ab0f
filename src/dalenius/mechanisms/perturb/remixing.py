"""Leave a local optimum of the moves: split a part, join two, or split two anew, then move records again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from dalenius.mechanisms.perturb.bands import split_band
from dalenius.mechanisms.perturb.bounds import IntArray, Objective
from dalenius.mechanisms.perturb.moves import improve_by_moves

_MOST_ROUNDS = 10
_MOST_CELLS = 3 * 10**5


def remix(quotas: IntArray, objective: Objective) -> IntArray:
    """The quotas after as many improving remixes as there are, each followed by its best moves.

    Where that would take long (many parts or thousands of values) they are returned as they are.
    """
    for _ in range(_MOST_ROUNDS):
        if len(quotas) ** 4 * quotas.shape[1] > _MOST_CELLS:
            break
        moved = (improve_by_moves(mixed, objective) for mixed in _remixes(quotas, objective))
        best = min(moved, key=objective.total, default=quotas)
        if not objective.total(best) < objective.total(quotas) * (1 - 1e-9):
            break
        quotas = best
    return quotas


def _remixes(quotas: IntArray, objective: Objective) -> Iterator[IntArray]:
    for number, part in enumerate(quotas):
        yield from _with_halves(quotas, [number], part, objective)
    for pair in combinations(range(len(quotas)), 2):
        joined = quotas[list(pair)].sum(axis=0)
        yield np.concatenate((np.delete(quotas, pair, axis=0), joined[np.newaxis, :]))
        yield from _with_halves(quotas, list(pair), joined, objective)


def _with_halves(
    quotas: IntArray, replaced: list[int], part: IntArray, objective: Objective
) -> Iterator[IntArray]:
    halves = split_band(part, objective)
    if halves is not None:
        yield np.concatenate((np.delete(quotas, replaced, axis=0), halves))
