"""The best setting of two bucket sizes (sections 4.2, 4.3 and 5.1), by three searches with one answer.

Γ(S_1, S_2): every way to cut n rows into buckets of two sizes, addressed by position (section 5.1.1).

The i-th pair is (b_1⁰ − iΔ_1, b_2⁰ + iΔ_2), Δ_j = LCM/S_j, most small buckets first, so the loss rises
along Γ. The first pair comes from a modular inverse; nothing is searched or stored.

PC, min(u_i1, o_i) + min(u_i2, o_i) ≥ o_i, is the same as u_i1 + u_i2 ≥ o_i (neither term is negative), so it
is linear along Γ, and FC(S) depends on b_S alone: it holds up to a largest b_S. All valid pairs of Γ
therefore form one interval, and its first position is found by one division per value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from math import gcd
from typing import Literal

import numpy as np

from dalenius.arrays import Bools, Ints
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.plan.problem import (
    BucketProblem,
    NoSettingFits,
    ValueClasses,
    record_bound,
)
from dalenius.mechanisms.bucketize.plan.sizes import candidate_sizes

NO_LIMIT = 2**62
_BLOCK = 2**17  # how many (value, setting) entries are looked at in one step


@dataclass(frozen=True, slots=True, kw_only=True)
class Gamma:
    """The lists Γ(S_1, S_2) of many pairs of sizes at once, one entry of each array per pair of sizes."""

    small: Ints
    large: Ints
    first_small: Ints  # b_1⁰
    first_large: Ints  # b_2⁰
    step_small: Ints  # Δ_1
    step_large: Ints  # Δ_2
    last: Ints  # k, the last position; −1 where Γ is empty

    @property
    def first_loss(self) -> Ints:
        """The loss at position 0."""
        return self.loss_at(np.zeros_like(self.last))

    @property
    def loss_step(self) -> Ints:
        """What one position further costs, always positive (Lemma 5)."""
        return self.step_large * (self.large - 1) ** 2 - self.step_small * (self.small - 1) ** 2

    def buckets_at(self, position: Ints) -> tuple[Ints, Ints]:
        """(b_1, b_2) at one position of each list."""
        return self.first_small - position * self.step_small, self.first_large + position * self.step_large

    def loss_at(self, position: Ints) -> Ints:
        """The loss at one position of each list."""
        b_small, b_large = self.buckets_at(position)
        return b_small * (self.small - 1) ** 2 + b_large * (self.large - 1) ** 2

    def select(self, chosen: Ints | slice) -> Gamma:
        """The lists of some of the pairs of sizes."""
        return Gamma(**{field.name: getattr(self, field.name)[chosen] for field in fields(self)})


def index_settings(n_rows: int, sizes: tuple[int, ...]) -> Gamma:
    """Γ of every pair S_1 < S_2 of the sizes, in lexicographic order.

    >>> lists = index_settings(28, (2, 4))  # Example 4
    >>> [tuple(int(b[0]) for b in lists.buckets_at(np.array([i]))) for i in (0, 1, int(lists.last[0]))]
    [(14, 0), (12, 1), (0, 7)]
    """
    small, large, divisor, inverse = _pairs(sizes)
    modulus = small // divisor
    # The smallest b_2 with S_2·b_2 ≡ n (mod S_1); it exists iff gcd(S_1, S_2) divides n.
    first_large = (n_rows // divisor % modulus) * inverse % modulus
    left = n_rows - large * first_large
    exists = (n_rows % divisor == 0) & (left >= 0)
    step_small = large // divisor
    return Gamma(
        small=small,
        large=large,
        first_small=np.where(exists, left // small, 0),
        first_large=first_large,
        step_small=step_small,
        step_large=modulus,
        last=np.where(exists, left // small // step_small, -1),
    )


@cache
def _pairs(sizes: tuple[int, ...]) -> tuple[Ints, Ints, Ints, Ints]:
    """S_1, S_2, their greatest common divisor g and (S_2/g)⁻¹ mod S_1/g, for every pair."""
    array = np.array(sizes, dtype=np.int64)
    upper = np.triu_indices(len(sizes), k=1)
    small, large = array[upper[0]], array[upper[1]]
    inverses = []
    for s, t in zip(small.tolist(), large.tolist(), strict=True):
        g = gcd(s, t)
        inverses.append(pow(t // g, -1, s // g))
    return small, large, np.gcd(small, large), np.array(inverses, dtype=np.int64)


Search = Literal["none", "loss", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSizeSetting:
    """Positions of two sizes in the list of sizes, and the numbers of their buckets (0 allowed)."""

    columns: tuple[int, int]
    n_buckets: tuple[int, int]
    loss: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _BestPair:
    """The best setting so far: its loss, which pair of sizes, which position of that pair's Γ."""

    loss: int
    pair: int = -1
    position: int = -1

    def or_better(self, losses: Ints, pairs: Ints, positions: Ints) -> _BestPair:
        """The best of this and some others; of equal ones the first pair of sizes."""
        if not len(pairs):
            return self
        at = int(np.lexsort((pairs, losses))[0])
        other = _BestPair(loss=int(losses[at]), pair=int(pairs[at]), position=int(positions[at]))
        return min(self, other, key=lambda best: (best.loss, best.pair))


@dataclass(frozen=True, slots=True, kw_only=True)
class _CostTable:
    """What the searches look at: o_i, ⌊f′_i·S⌋ by value and size, and Γ of all pairs of sizes."""

    counts: Ints
    capacity: Ints
    sizes: Ints
    lists: Gamma
    small: Ints  # per list the column of S_1
    large: Ints  # and of S_2


def plan_two_size(problem: BucketProblem, search: Search = "full") -> BucketPlan:
    """The valid setting of at most two sizes with the least loss.

    >>> from fractions import Fraction
    >>> problem = BucketProblem(counts=(4, 3, 3), thresholds=(Fraction(2, 5),) * 3, max_bucket=10)
    >>> plan = plan_two_size(problem)
    >>> plan.sizes, plan.n_buckets
    ((5,), (2,))
    """
    sizes, classes = candidate_sizes(problem), ValueClasses.of(problem)
    capacity = classes.capacity_table(sizes)
    found = search_two_size(classes.totals, capacity, sizes, search)
    if found is None:
        raise NoSettingFits(
            f"no setting of two bucket sizes up to {problem.max_bucket} keeps the thresholds",
            hint="use method 'optimal', or a larger max_bucket",
        )
    columns, buckets = list(found.columns), found.n_buckets
    limits = capacity[:, columns] * np.array(buckets, dtype=np.int64)
    loads = partition(classes.totals, limits, sizes[columns[0]] * buckets[0])
    used = [j for j in (0, 1) if buckets[j]]
    return BucketPlan(
        method="two-size",
        sizes=tuple(sizes[columns[j]] for j in used),
        n_buckets=tuple(buckets[j] for j in used),
        loads=classes.to_loads(loads[:, used]),
        lower_bound=record_bound(problem),
    )


def search_two_size(
    counts: Ints,
    capacity: Ints,
    sizes: tuple[int, ...],
    search: Search = "full",
    below: int = NO_LIMIT,
) -> TwoSizeSetting | None:
    """The best pair of sizes and numbers of buckets, or None if no setting of two sizes is valid.

    Args:
        counts: o_i.
        capacity: m × sizes, ⌊f′_i·S⌋.
        sizes: the sizes to choose from, ascending.
        search: "none" validates every feasible setting, "loss" stops each Γ where it cannot win any more,
            "full" computes the first valid position.
        below: only settings of a smaller loss are of interest.
    """
    if len(sizes) < 2:
        return _only_size(counts, capacity, sizes, below)
    small, large = np.triu_indices(len(sizes), k=1)
    table = _CostTable(
        counts=counts,
        capacity=capacity,
        sizes=np.array(sizes, dtype=np.int64),
        lists=index_settings(int(counts.sum()), sizes),
        small=small,
        large=large,
    )
    best = {"none": _validate_all, "loss": _scan, "full": _locate}[search](table, _BestPair(loss=below))
    if best.pair < 0:
        return None
    b_small, b_large = table.lists.select(slice(best.pair, best.pair + 1)).buckets_at(
        np.array([best.position])
    )
    return TwoSizeSetting(
        columns=(int(small[best.pair]), int(large[best.pair])),
        n_buckets=(int(b_small[0]), int(b_large[0])),
        loss=best.loss,
    )


def partition(counts: Ints, limits: Ints, target: int) -> Ints:
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


def most_buckets(counts: Ints, capacity: Ints, sizes: Ints) -> Ints:
    """The largest b_S with Σ_i min(⌊f′_i·S⌋·b_S, o_i) ≥ S·b_S (FC; it holds for every smaller b_S too)."""
    most = int(counts.sum()) // sizes
    short = np.arange(len(sizes))
    while len(short):
        scarce = capacity[:, short] * most[short] > counts[:, None]
        fixed = np.where(scarce, counts[:, None], 0).sum(axis=0)
        rate = np.where(scarce, 0, capacity[:, short]).sum(axis=0)
        fails = fixed + rate * most[short] < sizes[short] * most[short]
        # What is held is concave in b_S, so its tangent here meets S·b_S no sooner than it does (Newton).
        short = short[fails]
        most[short] = fixed[fails] // (sizes[short] - rate[fails])
    return most


def _locate(table: _CostTable, best: _BestPair) -> _BestPair:
    """Full pruning: compute the first valid position of each list, the most promising lists first."""
    lists, most = table.lists, most_buckets(table.counts, table.capacity, table.sizes)
    # FC(S_1) holds from the position on where b_1⁰ − iΔ_1 has come down to the most buckets of that size,
    # FC(S_2) up to the one where b_2⁰ + iΔ_2 reaches its most.
    first = np.maximum(-((most[table.small] - lists.first_small) // lists.step_small), 0)
    last = np.minimum(lists.last, (most[table.large] - lists.first_large) // lists.step_large)
    losses = lists.loss_at(first)
    alive = np.flatnonzero((first <= last) & (losses < best.loss))
    alive = alive[np.argsort(losses[alive], kind="stable")]
    per_step = max(_BLOCK // len(table.counts), 1)
    for begin in range(0, len(alive), per_step):
        pairs = alive[begin : begin + per_step]
        pairs = pairs[losses[pairs] <= best.loss]
        positions = _first_covering(table, pairs, first[pairs])
        fits = positions <= last[pairs]
        pairs, positions = pairs[fits], positions[fits]
        best = best.or_better(lists.select(pairs).loss_at(positions), pairs, positions)
    return best


def _first_covering(table: _CostTable, pairs: Ints, first: Ints) -> Ints:
    """The first position from `first` on where PC holds for every value; past the list's end if nowhere."""
    lists = table.lists.select(pairs)
    small, large = table.capacity[:, table.small[pairs]], table.capacity[:, table.large[pairs]]
    b_small, b_large = lists.buckets_at(first)
    missing = table.counts[:, None] - small * b_small - large * b_large
    gain = large * lists.step_large - small * lists.step_small
    short = missing > 0
    # Lemma 8: where the gain per position is not positive, a value that is short now is short for ever.
    hopeless = (short & (gain <= 0)).any(axis=0)
    steps = np.where(short, -(-missing // np.maximum(gain, 1)), 0).max(axis=0)
    steps = np.minimum(steps, lists.last + 1)  # also keeps what follows within 64 bits
    # A value that loses along Γ may be short at the place that the others need.
    hopeless |= (missing > gain * steps).any(axis=0)
    return np.where(hopeless, lists.last + 1, first + steps)


def _scan(table: _CostTable, best: _BestPair) -> _BestPair:
    """Loss pruning: look at one position after the other, up to the first valid or the last that can win."""
    lists = table.lists
    for pair in range(len(lists.last)):
        one = lists.select(slice(pair, pair + 1))
        can_win = (best.loss - 1 - int(one.first_loss[0])) // int(one.loss_step[0])
        position = next(_valid(table, pair, min(int(one.last[0]), can_win)), -1)
        if position >= 0:
            loss = int(one.loss_at(np.array([position]))[0])
            best = _BestPair(loss=loss, pair=pair, position=position)
    return best


def _validate_all(table: _CostTable, best: _BestPair) -> _BestPair:
    """No pruning: validate every feasible setting."""
    firsts = [
        min(_valid(table, pair, last), default=-1) for pair, last in enumerate(table.lists.last.tolist())
    ]
    positions = np.array(firsts, dtype=np.int64)
    losses = table.lists.loss_at(positions)
    pairs = np.flatnonzero((positions >= 0) & (losses < best.loss))
    return best.or_better(losses[pairs], pairs, positions[pairs])


def _valid(table: _CostTable, pair: int, last: int) -> Iterator[int]:
    """The first valid position of each block of positions of one list."""
    per_step = max(_BLOCK // len(table.counts), 1)
    for begin in range(0, last + 1, per_step):
        block = np.arange(begin, min(begin + per_step, last + 1), dtype=np.int64)
        valid = _is_valid(table, pair, block)
        if valid.any():
            yield int(block[valid.argmax()])


def _is_valid(table: _CostTable, pair: int, block: Ints) -> Bools:
    """Theorem 3 at some positions of one list: PC of every value and FC of both sizes, as printed."""
    one = table.lists.select(slice(pair, pair + 1))
    b_small, b_large = one.buckets_at(block)
    counts = table.counts[:, None]
    in_small = np.minimum(table.capacity[:, [table.small[pair]]] * b_small, counts)
    in_large = np.minimum(table.capacity[:, [table.large[pair]]] * b_large, counts)
    covers = (in_small + in_large >= counts).all(axis=0)
    fills = (in_small.sum(axis=0) >= one.small * b_small) & (in_large.sum(axis=0) >= one.large * b_large)
    return np.asarray(covers & fills)


def _only_size(counts: Ints, capacity: Ints, sizes: tuple[int, ...], below: int) -> TwoSizeSetting | None:
    """With a single candidate size there are no pairs, only n/S buckets of it."""
    n_rows = int(counts.sum())
    if not sizes or n_rows % sizes[0] or (capacity[:, 0] * (n_rows // sizes[0]) < counts).any():
        return None
    b = n_rows // sizes[0]
    loss = b * (sizes[0] - 1) ** 2
    return TwoSizeSetting(columns=(0, 0), n_buckets=(b, 0), loss=loss) if loss < below else None
