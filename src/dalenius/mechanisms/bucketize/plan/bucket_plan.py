"""A bucket plan: how many buckets of each size, and how many records of each value go to each size.

Whether a setting is valid, and how its records go, `assign` finds out: for given b_S the loads form a
transportation problem: value i supplies o_i, size S asks for S·b_S, and at most u_iS = ⌊f′_i·S⌋·b_S of value
i fit. It is solved by augmenting paths between *sizes* (few), each step moving records of all values at once,
in 64-bit integers, so counts beyond 2³¹ are exact. Where no path is left, the sizes that cannot be reached
form a violated set W: Σ_i min(o_i, Σ_{S∈W} u_iS) < Σ_{S∈W} S·b_S.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.errors import InternalError
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketPlan:
    """A valid bucket setting with its record partition.

    Within one size the records are dealt round-robin, which keeps every bucket within ⌊f′_i·S⌋
    of each value whenever the size as a whole is within ⌊f′_i·S⌋·b (Lemma 2). A group of values is a run of
    them, so the same holds for it.
    """

    method: str
    sizes: tuple[int, ...]
    n_buckets: tuple[int, ...]
    loads: tuple[tuple[int, ...], ...]  # m × sizes
    lower_bound: int | None  # proven, on the loss of any valid setting with the candidate sizes

    @property
    def n_rows(self) -> int:
        """The number of records placed."""
        return sum(size * b for size, b in zip(self.sizes, self.n_buckets, strict=True))

    @property
    def loss(self) -> int:
        """Σ b·(S−1)² (equation 2)."""
        return sum(b * (size - 1) ** 2 for size, b in zip(self.sizes, self.n_buckets, strict=True))

    @property
    def mse(self) -> float:
        """Loss/(n−1) (equation 1), 0 for one row."""
        return self.loss / (self.n_rows - 1) if self.n_rows > 1 else 0.0

    @property
    def gap(self) -> float | None:
        """How far above the proven bound the loss may be, as a share of the loss."""
        if self.lower_bound is None:
            return None
        return (self.loss - self.lower_bound) / max(self.loss, 1)

    def count_certain(self, cells: Sequence[Ints] = ()) -> int:
        """How many records are in buckets that tell their value for certain, or a column of it.

        Args:
            cells: of each column of a compound value, which of its cells each value has.

        >>> loads = ((2,), (2,), (2,))  # two buckets of three: each holds every value
        >>> plan = BucketPlan(method="", sizes=(3,), n_buckets=(2,), loads=loads, lower_bound=None)
        >>> plan.count_certain(), plan.count_certain([np.array([0, 0, 0])])
        (0, 6)
        """
        if not cells:
            return sum(self.certain)
        n_certain = 0
        for held, n_alike in self._contents():
            alike = np.zeros(len(held), dtype=bool)
            for cell in cells:
                alike |= (cell[held] == cell[held[:, :1]]).all(axis=1)
            n_certain += held.shape[1] * int(n_alike[alike].sum())
        return n_certain

    def count_near(self, numbers: Floats, share: float) -> int:
        """How many records are in buckets whose numbers differ by no more than a share of the largest.

        >>> loads = ((1, 1), (1, 1), (0, 1))  # a bucket of two, and one of three
        >>> plan = BucketPlan(method="", sizes=(2, 3), n_buckets=(1, 1), loads=loads, lower_bound=None)
        >>> plan.count_near(np.array([1000.0, 1001.0, 2000.0]), 0.01)
        2
        """
        n_near = 0
        for held, n_alike in self._contents():
            own = numbers[held]
            least, most = own.min(axis=1), own.max(axis=1)
            is_near = most - least <= share * np.maximum(np.abs(least), np.abs(most))
            n_near += held.shape[1] * int(n_alike[is_near].sum())
        return n_near

    def _contents(self) -> Iterator[tuple[Ints, Ints]]:
        """Of each size, the different contents of its buckets, a row of codes each, and how many have it."""
        loads = np.array(self.loads, dtype=np.int64).reshape(-1, len(self.sizes))
        for size, b, load in zip(self.sizes, self.n_buckets, loads.T, strict=True):
            ends = np.cumsum(load)
            # which values a bucket gets changes only where a value ends
            first = np.unique(np.concatenate([[0], ends % b]))
            held = np.searchsorted(ends, first[:, None] + b * np.arange(size), side="right")
            yield held, np.diff([*first, b])

    @property
    def certain(self) -> tuple[int, ...]:
        """How many records of each value are in buckets of that value only.

        Bucket w of b gets the places w, w + b, …, w + (S−1)·b of the records in value order, so it holds
        one value only if the value's places go from w, or before, to w + (S−1)·b, or beyond.

        >>> loads = ((1, 4), (1, 2))
        >>> BucketPlan(method="", sizes=(1, 3), n_buckets=(2, 2), loads=loads, lower_bound=None).certain
        (1, 1)
        """
        n_certain = [0] * len(self.loads)
        for j, (size, b) in enumerate(zip(self.sizes, self.n_buckets, strict=True)):
            begin = 0
            for code, row in enumerate(self.loads):
                end = begin + row[j]
                n_certain[code] += size * max(0, min(b, end - (size - 1) * b) - begin)
                begin = end
        return tuple(n_certain)

    def spread(self, code: int) -> float:
        """Σ k·(S−k)/S over the buckets, k of S people in a bucket having the value.

        Who has the value is a random choice in each bucket: of people chosen with probability p by what the
        buckets do not know, the number who have it has variance p·(1−p) times this, given the buckets.

        >>> loads = ((1, 4), (1, 2))
        >>> BucketPlan(method="", sizes=(1, 3), n_buckets=(2, 2), loads=loads, lower_bound=None).spread(0)
        1.3333333333333333
        """
        total = 0.0
        for size, b, load in zip(self.sizes, self.n_buckets, self.loads[code], strict=True):
            each, one_more = divmod(load, b)
            total += (b - one_more) * each * (size - each) / size
            total += one_more * (each + 1) * (size - each - 1) / size
        return total

    def check(self, problem: BucketProblem) -> None:
        """Verify the plan against the problem in exact integers, from nothing but the definition.

        Raises:
            InternalError: a row or a column does not add up, or a load passes its capacity.
        """
        if list(self.sizes) != sorted(set(self.sizes)) or min((*self.sizes, *self.n_buckets), default=0) < 1:
            raise InternalError("bucket sizes must be positive, ascending and in use")
        if self.sizes[-1] > problem.max_bucket:
            raise InternalError(f"a bucket of {self.sizes[-1]} passes max_bucket {problem.max_bucket}")
        if self.sizes[0] < problem.min_bucket:
            raise InternalError(f"a bucket of {self.sizes[0]} is below min_bucket {problem.min_bucket}")
        if len(self.loads) != problem.n_values or {*map(len, self.loads)} != {len(self.sizes)}:
            raise InternalError("a value has no loads, or not one for each size")
        loads = np.fromiter(chain.from_iterable(self.loads), dtype=np.int64).reshape(-1, len(self.sizes))
        # no sum passes 64 bits: rows × max_bucket do not (`BucketProblem`)
        if np.abs(loads).max() > problem.n_rows or (loads.sum(axis=1) != problem.count_array()).any():
            raise InternalError("the loads of a value do not add up to its count")
        if loads.sum(axis=0).tolist() != [s * b for s, b in zip(self.sizes, self.n_buckets, strict=True)]:
            raise InternalError("the loads of a size do not fill its buckets")
        if not self._keeps_capacities(problem, loads):
            raise InternalError("a load passes the capacity that its threshold allows")
        if not self._keeps_groups(problem):
            raise InternalError("the loads of a group pass the capacity that its threshold allows")
        if not self._keeps_windows(problem):
            raise InternalError("the loads of a window pass the capacity that its threshold allows")

    def _keeps_capacities(self, problem: BucketProblem, loads: Ints) -> bool:
        """Worked out once for each threshold: a million values have thousands of them."""
        ratios, place = problem.ratios()
        buckets = list(zip(self.sizes, self.n_buckets, strict=True))
        room = [[top * size // bottom * b for size, b in buckets] for top, bottom in ratios]
        return bool(((loads >= 0) & (loads <= np.array(room, dtype=np.int64)[place])).all())

    def _keeps_groups(self, problem: BucketProblem) -> bool:
        for group in problem.groups:
            top, bottom = group.threshold.as_integer_ratio()
            for j, (size, b) in enumerate(zip(self.sizes, self.n_buckets, strict=True)):
                if sum(row[j] for row in self.loads[group.begin : group.end]) > top * size // bottom * b:
                    return False
        return True

    def _keeps_windows(self, problem: BucketProblem) -> bool:
        if not problem.windows:
            return True
        before = np.zeros((problem.n_values + 1, len(self.sizes)), dtype=np.int64)
        np.cumsum(np.array(self.loads, dtype=np.int64), axis=0, out=before[1:])
        held = before[list(problem.windows)] - before[:-1]
        room = problem.capacity_table(self.sizes)[0] * np.array(self.n_buckets, dtype=np.int64)
        return bool((held <= room).all())

    def to_table(self) -> list[dict[str, int]]:
        """One row per bucket size: size, count, rows and loss."""
        pairs = zip(self.sizes, self.n_buckets, strict=True)
        return [{"size": s, "count": b, "rows": s * b, "loss": b * (s - 1) ** 2} for s, b in pairs]

    def __str__(self) -> str:
        lines = [f"{'size':>8} {'buckets':>14} {'rows':>16} {'loss':>20}"]
        lines += [
            f"{row['size']:>8} {row['count']:>14} {row['rows']:>16} {row['loss']:>20}"
            for row in self.to_table()
        ]
        bound = "" if self.gap is None else f" (at most {self.gap:.4%} of it could be saved)"
        lines.append(f"{self.method}: {self.n_rows} rows, MSE {self.mse:.4f}, loss {self.loss}{bound}")
        return "\n".join(lines)


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
