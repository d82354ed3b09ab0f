"""Whether a bucket setting of any number of sizes is valid, and the record partition if it is.

For given b_S the loads form a transportation problem: value i supplies o_i, size S asks for S·b_S, and at
most u_iS = ⌊f′_i·S⌋·b_S of value i fit. It is solved by augmenting paths between *sizes* (few), each step
moving records of all values at once, in 64-bit integers, so counts beyond 2³¹ are exact. Where no path is
left, the sizes that cannot be reached form a violated set W: Σ_i min(o_i, Σ_{S∈W} u_iS) < Σ_{S∈W} S·b_S.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dalenius.arrays import Bools, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The loads of a valid setting, or the violated set of sizes of one that is not."""

    loads: Ints | None  # m × sizes
    violated: Bools | None  # a mask over the sizes


def assign(counts: Ints, limits: Ints, targets: Ints) -> Assignment:
    """Distribute the records of each value over the sizes, or say why it cannot be done.

    Args:
        counts: o_i.
        limits: m × sizes, the most records of value i that the buckets of a size may hold (u_iS).
        targets: the slots of each size (S·b_S), adding up to the number of records.
    """
    limits = np.ascontiguousarray(limits.T)  # sizes × m from here on
    loads = _fill_in_order(counts, limits)
    if (loads.sum(axis=0) < counts).any():
        return Assignment(loads=None, violated=np.ones(len(targets), dtype=np.bool_))
    movable = np.zeros((len(targets), len(targets)), dtype=np.int64)
    changed = list(range(len(targets)))
    while True:
        surplus = loads.sum(axis=1) - targets
        if not surplus.any():
            return Assignment(loads=loads.T, violated=None)
        _update_movable(movable, loads, limits, changed)
        changed, reached = _shortest_path(movable, surplus)
        if not changed:
            return Assignment(loads=None, violated=~reached)
        _push(loads, limits, changed, movable, surplus)


def _fill_in_order(counts: Ints, limits: Ints) -> Ints:
    """Each value into the sizes from the first on, as far as the limits allow."""
    filled = np.minimum(np.cumsum(limits, axis=0), counts)
    return np.diff(filled, axis=0, prepend=0)


def _update_movable(movable: Ints, loads: Ints, limits: Ints, changed: list[int]) -> None:
    """How many records could move from each size (row) to each other, after some sizes have changed."""
    room = limits - loads
    for size in changed:
        movable[size, :] = np.minimum(loads[size], room).sum(axis=1)
        movable[:, size] = np.minimum(loads, room[size]).sum(axis=1)


def _shortest_path(movable: Ints, surplus: Ints) -> tuple[list[int], Bools]:
    """A shortest path of sizes from one with too many records to one with too few (breadth first)."""
    parent = np.where(surplus > 0, -1, -2)  # −2: not reached
    frontier = np.flatnonzero(surplus > 0)
    while len(frontier):
        ends = frontier[surplus[frontier] < 0]
        if len(ends):
            return _trace(parent, int(ends[np.argmin(surplus[ends])])), parent > -2
        best = movable[frontier].argmax(axis=0)
        fresh = (movable[frontier].max(axis=0) > 0) & (parent == -2)
        parent[fresh] = frontier[best[fresh]]
        frontier = np.flatnonzero(fresh)
    return [], parent > -2


def _trace(parent: Ints, end: int) -> list[int]:
    path = [end]
    while parent[path[-1]] >= 0:
        path.append(int(parent[path[-1]]))
    return path[::-1]


def _push(loads: Ints, limits: Ints, path: list[int], movable: Ints, surplus: Ints) -> None:
    """Move as many records as fit along the path, the last hop first: it makes room for the others."""
    hops = list(pairwise(path))
    amount = min(int(surplus[path[0]]), int(-surplus[path[-1]]), *(int(movable[hop]) for hop in hops))
    for start, end in reversed(hops):
        can_move = np.minimum(loads[start], limits[end] - loads[end])
        moved = np.diff(np.minimum(np.cumsum(can_move), amount), prepend=0)
        loads[start] -= moved
        loads[end] += moved
