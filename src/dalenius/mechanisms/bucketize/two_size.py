"""The best setting of two bucket sizes (sections 4.2, 4.3 and 5.1), by three searches with one answer.

PC, min(u_i1, o_i) + min(u_i2, o_i) ≥ o_i, is the same as u_i1 + u_i2 ≥ o_i (neither side is negative), so it
is linear along Γ, and FC(S) depends on b_S alone: it holds up to a largest b_S. All valid pairs of Γ therefore
form one interval, and its first position is found by one division per value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dalenius.mechanisms.bucketize.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.gamma import Gamma, index_settings
from dalenius.mechanisms.bucketize.problem import BucketProblem, IntArray, NoSettingFits, record_bound
from dalenius.mechanisms.bucketize.sizes import candidate_sizes

Search = Literal["none", "loss", "full"]

_BLOCK = 2**20  # how many (value, setting) entries are looked at in one step


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSizeSetting:
    """Positions of two sizes in the list of sizes, and the numbers of their buckets (0 allowed)."""

    columns: tuple[int, int]
    n_buckets: tuple[int, int]
    loss: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """What the searches look at: o_i, ⌊f′_i·S⌋ by value and size, the sizes, and the largest b_S that FC allows."""

    counts: IntArray
    capacity: IntArray
    sizes: IntArray
    most: IntArray


def plan_two_size(problem: BucketProblem, search: Search = "full") -> BucketPlan:
    """The valid setting of at most two sizes with the least loss.

    >>> from fractions import Fraction
    >>> plan = plan_two_size(BucketProblem(counts=(4, 3, 3), thresholds=(Fraction(2, 5),) * 3, max_bucket=10))
    >>> plan.sizes, plan.n_buckets
    ((3, 7), (1, 1))
    """
    sizes = candidate_sizes(problem)
    counts, capacity = problem.count_array(), problem.capacity_table(sizes)
    found = search_two_size(counts, capacity, sizes, search)
    if found is None:
        raise NoSettingFits(
            f"no setting of two bucket sizes up to {problem.max_bucket} keeps the thresholds",
            hint="use method 'optimal', or a larger max_bucket",
        )
    return _to_plan(problem, sizes, capacity, found)


def search_two_size(
    counts: IntArray, capacity: IntArray, sizes: tuple[int, ...], search: Search = "full"
) -> TwoSizeSetting | None:
    """The best pair of sizes and numbers of buckets, or None if no setting of two sizes is valid.

    Args:
        counts: o_i.
        capacity: m × sizes, ⌊f′_i·S⌋.
        sizes: the sizes to choose from, ascending.
        search: "none" validates every feasible setting, "loss" stops each Γ where it cannot win any more,
            "full" computes the first valid position.
    """
    if len(sizes) < 2:
        return _only_size(counts, capacity, sizes)
    array = np.array(sizes, dtype=np.int64)
    lists = index_settings(int(counts.sum()), sizes)
    most = np.zeros(0, dtype=np.int64) if search != "full" else most_buckets(counts, capacity, array)
    table = _Table(counts=counts, capacity=capacity, sizes=array, most=most)
    first_valid = {"none": _scan_whole_list, "loss": _scan_from_start, "full": _first_by_division}[search]
    best: TwoSizeSetting | None = None
    start = 0
    for column in range(len(sizes) - 1):
        row = lists.select(slice(start, start := start + len(sizes) - 1 - column))
        limit = None if best is None or search == "none" else best.loss
        last = row.last if limit is None else np.minimum(row.last, (limit - 1 - row.first_loss) // row.loss_step)
        positions = first_valid(table, column, row, last)
        best = _better(best, column, row, positions)
    return best


def partition(counts: IntArray, limits: IntArray, target: int) -> IntArray:
    """Split the records of each value between the two sizes (section 4.3), as an m × 2 array of loads.

    Args:
        counts: o_i.
        limits: m × 2, u_ij.
        target: the slots of the first size, S_1·b_1.
    """
    small = np.minimum(limits[:, 0], counts)
    room = np.minimum(limits[:, 1], counts) - (counts - small)
    surplus = int(small.sum()) - target
    moved = np.diff(np.minimum(np.cumsum(np.minimum(room, small)), surplus), prepend=0)
    return np.stack([small - moved, counts - small + moved], axis=1)


def most_buckets(counts: IntArray, capacity: IntArray, sizes: IntArray) -> IntArray:
    """The largest b_S with Σ_i min(⌊f′_i·S⌋·b_S, o_i) ≥ S·b_S (FC; it holds for every smaller b_S too)."""
    low = np.zeros(len(sizes), dtype=np.int64)
    high = int(counts.sum()) // sizes
    while (low < high).any():
        middle = (low + high + 1) // 2
        held = np.minimum(capacity * middle, counts[:, None]).sum(axis=0)
        fits = held >= sizes * middle
        low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
    return low


def _first_by_division(table: _Table, column: int, row: Gamma, last: IntArray) -> IntArray:
    """Full pruning: the first valid position of each list, −1 for none, with no search along Γ."""
    # FC(S_1): b_1⁰ − iΔ_1 must come down to the most buckets of that size.
    first = np.maximum(-((table.most[column] - row.first_small) // row.step_small), 0)
    position = np.full(len(last), -1, dtype=np.int64)
    alive = np.flatnonzero(first <= last)
    per_step = max(_BLOCK // len(table.counts), 1)
    for begin in range(0, len(alive), per_step):
        chosen = alive[begin : begin + per_step]
        lists = row.select(chosen)
        found = _first_covering(table, column, chosen + column + 1, lists, first[chosen])
        fits = (found <= last[chosen]) & (lists.buckets_at(found)[1] <= table.most[chosen + column + 1])
        position[chosen[fits]] = found[fits]
    return position


def _first_covering(table: _Table, column: int, others: IntArray, lists: Gamma, first: IntArray) -> IntArray:
    """The first position from `first` on where PC holds for every value; past the list's end if nowhere."""
    small, large = table.capacity[:, [column]], table.capacity[:, others]
    b_small, b_large = lists.buckets_at(first)
    missing = table.counts[:, None] - small * b_small - large * b_large
    value, pair = np.nonzero(missing > 0)
    if not len(value):
        return first
    gain = large[value, pair] * lists.step_large[pair] - small[value, 0] * lists.step_small[pair]
    never = lists.last[pair] + 1
    # Lemma 8: where the gain per position is not positive, a value that misses now misses for ever.
    steps = np.where(gain > 0, -(-missing[value, pair] // np.maximum(gain, 1)), never)
    jump = np.zeros(len(first), dtype=np.int64)
    np.maximum.at(jump, pair, steps)
    found = first + jump
    b_small, b_large = lists.buckets_at(found)
    # A value that loses along Γ may be short at the place that the others need.
    holds = (small * b_small + large * b_large >= table.counts[:, None]).all(axis=0)
    return np.where(holds, found, lists.last + 1)


def _scan_from_start(table: _Table, column: int, row: Gamma, last: IntArray) -> IntArray:
    """Loss pruning: look at one position after the other, up to the first valid or the last that can win."""
    return np.array([next(_valid(table, column, row, j, end), -1) for j, end in enumerate(last.tolist())])


def _scan_whole_list(table: _Table, column: int, row: Gamma, last: IntArray) -> IntArray:
    """No pruning: validate every feasible setting."""
    return np.array([min(_valid(table, column, row, j, end), default=-1) for j, end in enumerate(last.tolist())])


def _valid(table: _Table, column: int, row: Gamma, pair: int, last: int) -> Iterator[int]:
    """The first valid position of each block of positions of one list."""
    one = row.select(slice(pair, pair + 1))
    per_step = max(_BLOCK // (16 * len(table.counts)), 1)
    for begin in range(0, last + 1, per_step):
        block = np.arange(begin, min(begin + per_step, last + 1), dtype=np.int64)
        valid = _is_valid(table, column, column + 1 + pair, one, block)
        if valid.any():
            yield int(block[valid.argmax()])


def _is_valid(table: _Table, column: int, other: int, one: Gamma, block: IntArray) -> np.ndarray:
    """Theorem 3 at some positions of one list: PC of every value and FC of both sizes, as printed."""
    b_small, b_large = one.buckets_at(block)
    counts = table.counts[:, None]
    in_small = np.minimum(table.capacity[:, [column]] * b_small, counts)
    in_large = np.minimum(table.capacity[:, [other]] * b_large, counts)
    covers = (in_small + in_large >= counts).all(axis=0)
    fills = (in_small.sum(axis=0) >= one.small * b_small) & (in_large.sum(axis=0) >= one.large * b_large)
    return np.asarray(covers & fills)


def _better(
    best: TwoSizeSetting | None, column: int, row: Gamma, positions: IntArray
) -> TwoSizeSetting | None:
    valid = np.flatnonzero(positions >= 0)
    if not len(valid):
        return best
    losses = row.loss_at(positions)[valid]
    pair = int(valid[losses.argmin()])
    loss = int(losses.min())
    if best is not None and best.loss <= loss:
        return best
    b_small, b_large = row.buckets_at(positions)
    buckets = (int(b_small[pair]), int(b_large[pair]))
    return TwoSizeSetting(columns=(column, column + 1 + pair), n_buckets=buckets, loss=loss)


def _only_size(counts: IntArray, capacity: IntArray, sizes: tuple[int, ...]) -> TwoSizeSetting | None:
    """With a single candidate size there are no pairs, only n/S buckets of it."""
    n_rows = int(counts.sum())
    if not sizes or n_rows % sizes[0] or (capacity[:, 0] * (n_rows // sizes[0]) < counts).any():
        return None
    b = n_rows // sizes[0]
    return TwoSizeSetting(columns=(0, 0), n_buckets=(b, 0), loss=b * (sizes[0] - 1) ** 2)


def _to_plan(
    problem: BucketProblem, sizes: tuple[int, ...], capacity: IntArray, found: TwoSizeSetting
) -> BucketPlan:
    columns, buckets = list(found.columns), found.n_buckets
    limits = capacity[:, columns] * np.array(buckets, dtype=np.int64)
    loads = partition(problem.count_array(), limits, sizes[columns[0]] * buckets[0])
    used = [j for j in (0, 1) if buckets[j]]
    return BucketPlan(
        method="two-size",
        sizes=tuple(sizes[columns[j]] for j in used),
        n_buckets=tuple(buckets[j] for j in used),
        loads=tuple(map(tuple, loads[:, used].tolist())),
        lower_bound=record_bound(problem),
    )
