"""Improve a partition: merge its groups, split and join its parts.

Phase 3 of the paper merges neighbouring groups so that Σ √|g|·c(g) is least (section 5.3, equation 14).
Merges need not be contiguous in any order: there is a local search, and the exact optimum for few groups.

A local optimum of the moves is left by splitting a part, joining two, or splitting two anew, and
moving again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from dalenius.arrays import Ints
from dalenius.mechanisms.perturb.plan.layout import Objective
from dalenius.mechanisms.perturb.plan.lockstep import improve_all
from dalenius.mechanisms.perturb.plan.starts import split_band

MOST_EXACT_GROUPS = 12
_MOST_SUBSET_CELLS = 1 << 22
_MOST_RUN_CELLS = 1 << 16
"""Orders × groups × values that are looked at together, in a processor's cache."""
_MOST_SWEEPS = 20
_MOST_SWEEP_CELLS = 5 * 10**6
_MOST_ROUNDS = 10
_MOST_REMIXED_CELLS = 3 * 10**5


def merge_runs(groups: Ints, orders: Sequence[Ints], objective: Objective) -> list[Ints]:
    """By order a label per group: the best partition into contiguous runs of it, by dynamic programming."""
    at_once = max(1, _MOST_RUN_CELLS // max(groups.size, 1))
    parts = [orders[start : start + at_once] for start in range(0, len(orders), at_once)]
    cuts = [own for part in parts for own in _best_cuts(groups[np.array(part)], objective)]
    return [_label_runs(order, own) for order, own in zip(orders, cuts, strict=True)]


def _label_runs(order: Ints, cuts: Ints) -> Ints:
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
    """By order, cuts[j]: where the last run of the best partition of the first j groups begins.

    Orders × groups × values: all orders take a step together, since each of them has few groups.
    """
    n_orders, n_groups, m = ordered.shape
    runs = np.zeros_like(ordered)  # runs[:, i]: the counts of groups i..j, for the current j
    sizes, n_values, tops = (np.zeros((n_orders, n_groups), dtype=np.int64) for _ in range(3))
    best, cuts = np.zeros((n_orders, n_groups + 1)), np.zeros((n_orders, n_groups + 1), dtype=np.int64)
    for last in range(n_groups):
        some, upto = np.flatnonzero(ordered[:, last].any(axis=0)), slice(last + 1)
        codes = some if 2 * len(some) < m else slice(None)
        group = ordered[:, last : last + 1, codes]
        before = runs[:, upto, codes]
        after = before + group
        n_values[:, upto] += ((before == 0) & (group > 0)).sum(axis=2)
        runs[:, upto, codes] = after
        sizes[:, upto] += group.sum(axis=2)
        top = np.where(objective.protected[codes], after, 0).max(axis=2)
        tops[:, upto] = np.maximum(tops[:, upto], top)
        shape = sizes[:, upto], n_values[:, upto], tops[:, upto]
        totals = best[:, upto] + objective.of_shape(*shape)
        cuts[:, last + 1], best[:, last + 1] = totals.argmin(axis=1), totals.min(axis=1)
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
        moved = improve_all([*_remixes(quotas, objective)], objective)
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
