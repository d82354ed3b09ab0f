"""Phase 1: break the table into β-balanced initial groups with few values each (sections 5.1, 10.7).

A set of records is β-balanced if no protected value makes up more than 1/β of it. β = ⌊|T′|/f_max⌋ is the
best that the protected records T′ allow as a whole, and every group keeps it. Everything is done on counts.

Phase 2: put the initial groups into orders in which neighbours share values (section 5.2).

The paper applies the reverse Cuthill–McKee algorithm to A·Aᵀ, A the groups × values counts. Its result
hangs on how ties are broken: on the paper's own example the other tie gives a worse optimum. So further
orders follow the paper's: the same algorithm from other starts, and the order of the Fiedler vector.

Partitions into bands of similar counts, which the paper's groups cannot express.

Ranked by count, the values of a good part are neighbours: a band's commonest value sets its ρ1_i, so rare
values are better off without common ones. What a band of rare values lacks in rows the commonest values of
all can give without raising its top count: each fills in as many records as the band's own top has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.perturb.plan.layout import Objective

MOST_GROUPS = 256
"""The paper has 20 groups at most. Beyond this number (thousands of values) neighbours are joined."""
_MOST_STARTS = 24
_MOST_BANDS = 256
_FEWEST_TRIED = 6
_MOST_FILLERS = 32


def balancing_level(counts: Ints) -> int:
    """β, the largest integer for which the counts are β-balanced."""
    return int(counts.sum()) // int(counts.max())


def initial_groups(counts: Ints, protected: Bools) -> tuple[Ints, int]:
    """The initial groups, one a row, and the paper's number t of them.

    The rows are the paper's own groups if t ≤ MOST_GROUPS; otherwise consecutive groups, which share most
    of their values, are joined (a union of β-balanced groups is β-balanced).
    """
    shares = _protected_groups(np.where(protected, counts, 0))
    width = -(-len(shares) // MOST_GROUPS)
    groups = np.zeros((-(-len(shares) // width), len(counts)), dtype=np.int64)
    for number, (codes, taken) in enumerate(shares):
        groups[number // width, codes] += taken
    return groups + _deal_unprotected(groups.sum(axis=1), np.where(protected, 0, counts)), len(shares)


def largest_step(total: int, beta: int, top: int, last: int, following: int) -> int:
    """h: how many records of each of the β commonest values can go and leave the rest β-balanced.

    `top`, `last` and `following` are μ_1, μ_β and μ_{β+1}, the highest, β-th and next counts left.
    φ(μ_β) ≥ μ_β is compared in integers (equation 13).
    """
    if total >= beta * (last + max(top - last, following)):
        return last
    return total // beta - following


def _protected_groups(left: Ints) -> list[tuple[Ints, Ints]]:
    """The groups of the protected records: the codes in each, and how many records of each code."""
    beta = balancing_level(left)
    left = left.copy()
    groups = []
    while (total := int(left.sum())) > 0:
        codes, step = _next_group(left, total, beta)
        taken = left[codes] if step == 0 else np.full(len(codes), step, dtype=np.int64)
        groups.append((codes, taken))
        left[codes] -= taken
    return groups


def _next_group(left: Ints, total: int, beta: int) -> tuple[Ints, int]:
    ranked = _commonest(left, beta + 1)
    following = int(left[ranked[beta]]) if len(ranked) > beta else 0
    step = largest_step(total, beta, int(left[ranked[0]]), int(left[ranked[beta - 1]]), following)
    return (ranked[:beta], step) if step else (np.flatnonzero(left), 0)


def _commonest(left: Ints, number: int) -> Ints:
    """The codes of the highest counts in descending order, equal counts by code."""
    descending = -left
    if number < len(left):
        threshold = np.partition(descending, number - 1)[number - 1]
        candidates = np.flatnonzero(descending <= threshold)
    else:
        candidates = np.arange(len(left))
    return candidates[np.argsort(descending[candidates], kind="stable")][:number]


def _deal_unprotected(sizes: Ints, counts: Ints) -> Ints:
    """Deal T″ to the groups in proportion to their sizes, commonest value first, the residue to the last."""
    n_protected, n_unprotected = int(sizes.sum()), int(counts.sum())
    shares = [int(size) * n_unprotected // n_protected for size in sizes]
    shares[-1] += n_unprotected - sum(shares)
    order = np.argsort(-counts, kind="stable")
    value_ends, group_ends = np.cumsum(counts[order]), np.cumsum(shares)
    # Laid end to end, value v covers [value_ends[v-1], value_ends[v]) and group g its own stretch.
    overlap = np.minimum.outer(group_ends, value_ends) - np.maximum.outer(
        group_ends - shares, value_ends - counts[order]
    )
    dealt = np.zeros((len(sizes), len(counts)), dtype=np.int64)
    dealt[:, order] = np.maximum(overlap, 0)
    return dealt


_MANY_GROUPS, _STARTS_OF_MANY = 64, 4


def candidate_orders(groups: Ints) -> Iterator[tuple[str, Ints]]:
    """Named orders of the groups; the first is the paper's."""
    shares_values = _shares_values(groups)
    sizes = groups.sum(axis=1)
    yield "paper", cuthill_mckee_order(shares_values, sizes)
    n_starts = _MOST_STARTS if len(groups) <= _MANY_GROUPS else _STARTS_OF_MANY
    for start in np.unique(np.linspace(0, len(groups) - 1, n_starts).astype(int)):
        yield "rcm", cuthill_mckee_order(shares_values, sizes, start=int(start))
    yield "spectral", spectral_order(groups)


def paper_order(groups: Ints) -> Ints:
    """The reverse Cuthill–McKee order of the groups, as in the paper's example 3."""
    return cuthill_mckee_order(_shares_values(groups), groups.sum(axis=1))


def cuthill_mckee_order(adjacent: Bools, sizes: Ints, start: int | None = None) -> Ints:
    """Reverse Cuthill–McKee: breadth first, low degrees first, the whole reversed.

    Each component begins at its lowest degree, and at the smallest group among equals (that choice gives
    the paper's example 3); `start` begins the first component elsewhere.
    """
    degrees = adjacent.sum(axis=1)
    is_left = np.ones(len(sizes), dtype=bool)
    by_preference = np.lexsort((sizes, degrees))
    starts = by_preference if start is None else np.concatenate(([start], by_preference))
    order: list[int] = []
    for first in starts:
        if is_left[first]:
            is_left[first] = False
            order.append(int(first))
            _visit(order, len(order) - 1, adjacent, degrees, is_left)
    return np.array(order[::-1], dtype=np.int64)


def spectral_order(groups: Ints) -> Ints:
    """The groups by their entry in the Fiedler vector of the cosine similarities of their values."""
    rows = groups / np.linalg.norm(groups, axis=1, keepdims=True)
    similarity = rows @ rows.T
    laplacian = np.diag(similarity.sum(axis=1)) - similarity
    vectors = np.linalg.eigh(laplacian)[1]
    return np.argsort(vectors[:, min(1, len(groups) - 1)], kind="stable")


def _visit(order: list[int], position: int, adjacent: Bools, degrees: Ints, is_left: Bools) -> None:
    """Append everything that can be reached from `order[position]`."""
    while position < len(order):
        neighbours = np.flatnonzero(adjacent[order[position]] & is_left)
        is_left[neighbours] = False
        order.extend(neighbours[np.argsort(degrees[neighbours], kind="stable")].tolist())
        position += 1


def _shares_values(groups: Ints) -> Bools:
    """The pattern of A·Aᵀ; that each group shares values with itself changes no order."""
    occurs = (groups > 0).astype(np.float64)
    return (occurs @ occurs.T) > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _SizeBand:
    """A part, its best split in two, and their costs."""

    counts: Ints
    cost: float
    halves: Ints | None
    split_cost: float

    @property
    def change(self) -> float:
        return self.split_cost - self.cost


def band_partitions(counts: Ints, objective: Objective, n_best: int) -> list[Ints]:
    """The `n_best` cheapest of the partitions into 2, 3, … bands, cheapest first.

    Each is the one before with one part split in two, the best way. A split may raise the cost: the next
    one, or moving records, can make it worth it. So the chain goes on to a few bands in any case, and
    beyond them while the cost falls.
    """
    bands = [_band(counts, objective)]
    chain: list[tuple[float, list[_SizeBand]]] = []
    while len(bands) < _MOST_BANDS:
        weakest = min(bands, key=lambda band: band.change)
        if weakest.halves is None or (weakest.change >= 0 and len(bands) >= _FEWEST_TRIED):
            break
        bands = [band for band in bands if band is not weakest]
        bands += [_band(half, objective) for half in weakest.halves]
        chain.append((sum(band.cost for band in bands), bands))
    chain.sort(key=lambda entry: entry[0])
    return [np.stack([band.counts for band in found]) for _, found in chain[:n_best]]


def _band(counts: Ints, objective: Objective) -> _SizeBand:
    halves = split_band(counts, objective)
    split_cost = np.inf if halves is None else objective.total(halves)
    return _SizeBand(counts=counts, cost=objective.total(counts[None]), halves=halves, split_cost=split_cost)


def split_band(part: Ints, objective: Objective) -> Ints | None:
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


def _split_costs(ranked_counts: Ints, part: Ints, extra: tuple[int, int], objective: Objective) -> Floats:
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


def _tail(protected: Ints, ranked: Ints, cut: int, n_fillers: int) -> Ints:
    tail = np.zeros_like(protected)
    tail[ranked[cut:]] = protected[ranked[cut:]]
    tail[ranked[:n_fillers]] = protected[ranked[cut]]
    return tail
