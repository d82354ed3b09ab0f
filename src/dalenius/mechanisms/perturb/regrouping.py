"""Merges that need not be contiguous in any order: local search, and the exact optimum for few groups."""

from __future__ import annotations

import numpy as np

from dalenius.mechanisms.perturb.bounds import IntArray, Objective
from dalenius.mechanisms.perturb.merging import merged

MOST_EXACT_GROUPS = 12
_MOST_SUBSET_CELLS = 1 << 22
_MOST_SWEEPS = 20
_MOST_SWEEP_CELLS = 5 * 10**6


def regroup(groups: IntArray, labels: IntArray, objective: Objective) -> IntArray:
    """Move single groups to other parts or to a part of their own, and join parts, while the cost falls.

    With so many groups and values that a sweep would take seconds, the labels are returned as they are.
    """
    if len(groups) * groups.size > _MOST_SWEEP_CELLS:
        return labels
    labels = labels.copy()
    cost = objective.total(merged(groups, labels))
    for _ in range(_MOST_SWEEPS):
        for group in range(len(groups)):
            labels[group] = _best_label(groups, labels, group, objective)
        labels = _join_parts(groups, labels, objective)
        previous, cost = cost, objective.total(merged(groups, labels))
        if not cost < previous * (1 - 1e-12):
            break
    return labels


def best_set_partition(groups: IntArray, objective: Objective) -> IntArray | None:
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


def _best_label(groups: IntArray, labels: IntArray, group: int, objective: Objective) -> int:
    """Where one group is cheapest, the other groups staying; a new label if alone."""
    n_labels = int(labels.max()) + 1
    parts = np.zeros((n_labels + 1, groups.shape[1]), dtype=np.int64)
    np.add.at(parts, labels, groups)
    parts[labels[group]] -= groups[group]
    # An invalid remainder costs ∞, which makes staying −∞: the best.
    change = objective.of_parts(parts + groups[group]) - objective.of_parts(parts)
    best, stays = int(np.argmin(change)), int(labels[group])
    return best if change[best] < change[stays] - 1e-9 * abs(change[stays]) else stays


def _join_parts(groups: IntArray, labels: IntArray, objective: Objective) -> IntArray:
    labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    parts = merged(groups, labels)
    costs = objective.of_parts(parts)
    for one in range(len(parts) - 1):
        joined = objective.of_parts(parts[one] + parts[one + 1 :]) - costs[one] - costs[one + 1 :]
        other = int(np.argmin(joined))
        if joined[other] < -1e-9 * costs[one]:
            joined_labels = np.where(labels == one, one + 1 + other, labels)
            return _join_parts(groups, joined_labels, objective)
    return labels


def _subset_sums(groups: IntArray) -> IntArray:
    sums = np.zeros((1, groups.shape[1]), dtype=np.int64)
    for group in groups:
        sums = np.concatenate((sums, sums + group))
    return sums


def _submasks(mask: int) -> IntArray:
    masks = np.zeros(1, dtype=np.int64)
    while mask:
        lowest = mask & -mask
        masks = np.concatenate((masks, masks | lowest))
        mask ^= lowest
    return masks


def _labels_of(choice: IntArray, n_groups: int) -> IntArray:
    labels = np.zeros(n_groups, dtype=np.int64)
    left, label = (1 << n_groups) - 1, 0
    while left:
        part = int(choice[left])
        labels[[group for group in range(n_groups) if part >> group & 1]] = label
        left, label = left ^ part, label + 1
    return labels
