"""Partitions into bands of similar counts, which the paper's groups cannot express.

Ranked by count, the values of a good part are neighbours: a band's commonest value sets its ρ1_i, so rare
values are better off without common ones. What a band of rare values lacks in rows the commonest values of
all can give without raising its top count: each fills in as many records as the band's own top has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.mechanisms.perturb.bounds import IntArray, Objective
from dalenius.mechanisms.perturb.matrix import FloatArray

_MOST_BANDS = 256
_FEWEST_TRIED = 6
_MOST_FILLERS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class _Band:
    """A part, its best split in two, and their costs."""

    counts: IntArray
    cost: float
    halves: IntArray | None
    split_cost: float

    @property
    def change(self) -> float:
        return self.split_cost - self.cost


def band_partitions(counts: IntArray, objective: Objective, n_best: int) -> list[IntArray]:
    """The `n_best` cheapest of the partitions into 2, 3, … bands, cheapest first.

    Each is the one before with one part split in two, the best way. A split may raise the cost: the next
    one, or moving records, can make it worth it. So the chain goes on to a few bands in any case, and
    beyond them while the cost falls.
    """
    bands = [_band(counts, objective)]
    chain: list[tuple[float, list[_Band]]] = []
    while len(bands) < _MOST_BANDS:
        weakest = min(bands, key=lambda band: band.change)
        if weakest.halves is None or (weakest.change >= 0 and len(bands) >= _FEWEST_TRIED):
            break
        bands = [band for band in bands if band is not weakest]
        bands += [_band(half, objective) for half in weakest.halves]
        chain.append((sum(band.cost for band in bands), bands))
    chain.sort(key=lambda entry: entry[0])
    return [np.stack([band.counts for band in found]) for _, found in chain[:n_best]]


def _band(counts: IntArray, objective: Objective) -> _Band:
    halves = split_band(counts, objective)
    split_cost = np.inf if halves is None else objective.total(halves)
    return _Band(counts=counts, cost=objective.total(counts[None]), halves=halves, split_cost=split_cost)


def split_band(part: IntArray, objective: Objective) -> IntArray | None:
    """The best split of a part into a head and a tail with fillers (2 × m), or None if no split is valid."""
    protected = np.where(objective.protected, part, 0)
    unprotected = part - protected
    ranked = np.argsort(-protected, kind="stable")[: np.count_nonzero(protected)]
    if len(ranked) < 2:
        return None
    best, best_cost = None, np.inf
    for with_tail in np.unique((0, int(unprotected.sum()))):
        # The unprotected values stay together, on the side where they dilute best.
        extra = (int(with_tail), int(np.count_nonzero(unprotected)) if with_tail else 0)
        costs = _split_costs(protected[ranked], part, extra, objective)
        cut, n_fillers = np.unravel_index(int(np.argmin(costs)), costs.shape)
        if costs[cut, n_fillers] < best_cost:
            best_cost = costs[cut, n_fillers]
            tail = _tail(protected, ranked, int(cut) + 1, int(n_fillers)) + (unprotected if with_tail else 0)
            best = np.stack((part - tail, tail))
    return best


def _split_costs(
    ranked_counts: IntArray, part: IntArray, extra: tuple[int, int], objective: Objective
) -> FloatArray:
    """The cost of cutting before rank 1, 2, … (rows) with 0, 1, … fillers (columns)."""
    n_ranked = len(ranked_counts)
    cuts = np.arange(1, n_ranked)[:, np.newaxis]
    fillers = np.arange(min(_MOST_FILLERS, n_ranked - 1) + 1)[np.newaxis, :]
    fill = ranked_counts[cuts]
    tail_sums = np.cumsum(ranked_counts[::-1])[::-1][cuts]
    tail_rows = tail_sums + fillers * fill + extra[0]
    tail_values = n_ranked - cuts + fillers + extra[1]
    head_top = np.where(fillers > 0, ranked_counts[0] - fill, 0)
    head_top = np.maximum(head_top, np.where(fillers < cuts, ranked_counts[fillers], 0))
    # A filler that gives all it has leaves the head one value smaller; the cost here ignores it.
    head_values = np.count_nonzero(part) - (n_ranked - cuts) - extra[1]
    costs = objective.of_shape(part.sum() - tail_rows, head_values + 0 * fillers, head_top)
    costs = costs + objective.of_shape(tail_rows, tail_values, fill + 0 * fillers)
    return np.where((fillers <= cuts) & (tail_rows < part.sum()), costs, np.inf)


def _tail(protected: IntArray, ranked: IntArray, cut: int, n_fillers: int) -> IntArray:
    tail = np.zeros_like(protected)
    tail[ranked[cut:]] = protected[ranked[cut:]]
    tail[ranked[:n_fillers]] = protected[ranked[cut]]
    return tail
