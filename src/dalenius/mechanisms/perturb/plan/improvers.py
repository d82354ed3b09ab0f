"""Improve a partition: move records, merge its groups, split and join its parts.

Records of one value move from one part to another. The amounts worth trying are few: all of the value (the
source gets a smaller domain), as much as lifts the target's count to its top (more rows at no price), as much
as lowers the source's top, and half. A move changes two parts. What moves between all others would change is
what it was: of each pair of parts the least change is kept, and a step looks at the pairs again that have one
of the two.

Phase 3 of the paper merges neighbouring groups so that Σ √|g|·c(g) is least (section 5.3, equation 14).
Merges need not be contiguous in any order: there is a local search, and the exact optimum for few groups.

A local optimum of the moves is left by splitting a part, joining two, or splitting two anew, and
moving again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.perturb.plan.layout import Objective
from dalenius.mechanisms.perturb.plan.starts import split_band

_MOST_CELLS = 4 * 10**6
"""Bounds the work (steps × parts² × values) for thousands of values; never reached with hundreds."""
_N_AMOUNTS = 4
_CELLS_AT_ONCE = 2**14
"""Pairs × values that are looked at together: what they become stays in the processor's cache."""


def improve_by_moves(quotas: Ints, objective: Objective) -> Ints:
    """The k × m quotas after the best moves, parts that ran empty left out."""
    n_steps = _MOST_CELLS // (quotas.shape[0] ** 2 * quotas.shape[1])
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
        least = np.zeros((_N_AMOUNTS, n_parts, n_parts))
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
        by_amount = self.least.reshape(_N_AMOUNTS, -1)
        pairs = by_amount.argmin(axis=1)
        least = by_amount[np.arange(_N_AMOUNTS), pairs]  # not a number where a part has no cost
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
        at_once = max(_CELLS_AT_ONCE // self.quotas.shape[1], 1)
        for start in range(0, len(sources), at_once):
            some, others = sources[start : start + at_once], targets[start : start + at_once]
            changes = self.cost_changes(self.amounts(some, others), some, others, objective)
            least[:, some, others] = changes.min(axis=2)

    def amounts(self, sources: Ints, targets: Ints) -> Ints:
        """Amounts × pairs × values: how many records to move from the source to the target of each pair."""
        source = self.quotas[sources]
        found = np.empty((_N_AMOUNTS, *source.shape), dtype=np.int64)
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


MOST_EXACT_GROUPS = 12
_MOST_SUBSET_CELLS = 1 << 22
_MOST_SWEEPS = 20
_MOST_SWEEP_CELLS = 5 * 10**6
_MOST_ROUNDS = 10
_MOST_REMIXED_CELLS = 3 * 10**5


def merge_runs(groups: Ints, order: Ints, objective: Objective) -> Ints:
    """A label per group: the best partition into contiguous runs of that order, by dynamic programming."""
    ordered = groups[order]
    cuts = _best_cuts(ordered, objective)
    labels = np.empty(len(order), dtype=np.int64)
    stop, label = len(order), 0
    while stop > 0:
        labels[order[cuts[stop] : stop]] = label
        stop, label = int(cuts[stop]), label + 1
    return labels


def add_groups(groups: Ints, labels: Ints) -> Ints:
    """The quotas of the parts: the sums of the groups with the same label, in the order of the labels."""
    quotas = np.zeros((int(labels.max()) + 1, groups.shape[1]), dtype=np.int64)
    np.add.at(quotas, labels, groups)
    is_used = quotas.sum(axis=1) > 0
    return np.compress(is_used, quotas, axis=0)


def _best_cuts(ordered: Ints, objective: Objective) -> Ints:
    """cuts[j]: where the last run of the best partition of the first j groups begins."""
    n_groups = len(ordered)
    runs = np.zeros_like(ordered)  # runs[i]: the counts of groups i..j, for the current j
    sizes, n_values, tops = (np.zeros(n_groups, dtype=np.int64) for _ in range(3))
    best, cuts = np.zeros(n_groups + 1), np.zeros(n_groups + 1, dtype=np.int64)
    for last, group in enumerate(ordered):
        codes, upto = np.flatnonzero(group), slice(last + 1)
        before = runs[upto, codes]
        after = before + group[codes]
        runs[upto, codes] = after
        sizes[upto] += group.sum()
        n_values[upto] += (before == 0).sum(axis=1)
        tops[upto] = np.maximum(tops[upto], np.where(objective.protected[codes], after, 0).max(axis=1))
        totals = best[upto] + objective.of_shape(sizes[upto], n_values[upto], tops[upto])
        cuts[last + 1] = np.argmin(totals)
        best[last + 1] = totals[cuts[last + 1]]
    return cuts


def regroup(groups: Ints, labels: Ints, objective: Objective) -> Ints:
    """Move single groups to other parts or to a part of their own, and join parts, while the cost falls.

    With so many groups and values that a sweep would take seconds, the labels are returned as they are.
    """
    if len(groups) * groups.size > _MOST_SWEEP_CELLS:
        return labels
    labels = labels.copy()
    cost = objective.total(add_groups(groups, labels))
    for _ in range(_MOST_SWEEPS):
        for group in range(len(groups)):
            labels[group] = _best_label(groups, labels, group, objective)
        labels = _join_parts(groups, labels, objective)
        previous, cost = cost, objective.total(add_groups(groups, labels))
        if not cost < previous * (1 - 1e-12):
            break
    return labels


def best_set_partition(groups: Ints, objective: Objective) -> Ints | None:
    """The best of all partitions of the groups, or None where there are too many groups for it.

    Dynamic programming over subsets, 3^t steps: the part with the lowest group of a subset is any subset
    that contains it, and what is left is solved already.
    """
    n_groups = len(groups)
    if n_groups > MOST_EXACT_GROUPS or groups.shape[1] << n_groups > _MOST_SUBSET_CELLS:
        return None
    costs = objective.of_parts(_subset_sums(groups))
    best, choice = np.zeros(1 << n_groups), np.zeros(1 << n_groups, dtype=np.int64)
    for subset in range(1, 1 << n_groups):
        lowest = subset & -subset
        others = _submasks(subset ^ lowest)
        totals = costs[others | lowest] + best[(subset ^ lowest) ^ others]
        winner = int(np.argmin(totals))
        best[subset], choice[subset] = totals[winner], others[winner] | lowest
    return _labels_of(choice, n_groups)


def _best_label(groups: Ints, labels: Ints, group: int, objective: Objective) -> int:
    """Where one group is cheapest, the other groups staying; a new label if alone."""
    n_labels = int(labels.max()) + 1
    parts = np.zeros((n_labels + 1, groups.shape[1]), dtype=np.int64)
    np.add.at(parts, labels, groups)
    parts[labels[group]] -= groups[group]
    # An invalid remainder costs ∞, which makes staying −∞: the best.
    change = objective.of_parts(parts + groups[group]) - objective.of_parts(parts)
    best, stays = int(np.argmin(change)), int(labels[group])
    return best if change[best] < change[stays] - 1e-9 * abs(change[stays]) else stays


def _join_parts(groups: Ints, labels: Ints, objective: Objective) -> Ints:
    labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    parts = add_groups(groups, labels)
    costs = objective.of_parts(parts)
    for one in range(len(parts) - 1):
        joined = objective.of_parts(parts[one] + parts[one + 1 :]) - costs[one] - costs[one + 1 :]
        other = int(np.argmin(joined))
        if joined[other] < -1e-9 * costs[one]:
            joined_labels = np.where(labels == one, one + 1 + other, labels)
            return _join_parts(groups, joined_labels, objective)
    return labels


def _subset_sums(groups: Ints) -> Ints:
    sums = np.zeros((1, groups.shape[1]), dtype=np.int64)
    for group in groups:
        sums = np.concatenate((sums, sums + group))
    return sums


def _submasks(mask: int) -> Ints:
    masks = np.zeros(1, dtype=np.int64)
    while mask:
        lowest = mask & -mask
        masks = np.concatenate((masks, masks | lowest))
        mask ^= lowest
    return masks


def _labels_of(choice: Ints, n_groups: int) -> Ints:
    labels = np.zeros(n_groups, dtype=np.int64)
    left, label = (1 << n_groups) - 1, 0
    while left:
        part = int(choice[left])
        labels[[group for group in range(n_groups) if part >> group & 1]] = label
        left, label = left ^ part, label + 1
    return labels


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
