"""Phase 1: break the table into β-balanced initial groups with few values each (sections 5.1, 10.7).

A set of records is β-balanced if no protected value makes up more than 1/β of it. β = ⌊|T′|/f_max⌋ is the
best that the protected records T′ allow as a whole, and every group keeps it. Everything is done on counts.
"""

from __future__ import annotations

import numpy as np

from dalenius.mechanisms.perturb.bounds import BoolArray, IntArray

MOST_GROUPS = 256
"""The paper has 20 groups at most. Beyond this number (thousands of values) neighbours are joined."""


def balancing_level(counts: IntArray) -> int:
    """β, the largest integer for which the counts are β-balanced."""
    return int(counts.sum()) // int(counts.max())


def initial_groups(counts: IntArray, protected: BoolArray) -> tuple[IntArray, int]:
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


def _protected_groups(left: IntArray) -> list[tuple[IntArray, IntArray]]:
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


def _next_group(left: IntArray, total: int, beta: int) -> tuple[IntArray, int]:
    ranked = _commonest(left, beta + 1)
    following = int(left[ranked[beta]]) if len(ranked) > beta else 0
    step = largest_step(total, beta, int(left[ranked[0]]), int(left[ranked[beta - 1]]), following)
    return (ranked[:beta], step) if step else (np.flatnonzero(left), 0)


def _commonest(left: IntArray, number: int) -> IntArray:
    """The codes of the highest counts in descending order, equal counts by code."""
    descending = -left
    if number < len(left):
        threshold = np.partition(descending, number - 1)[number - 1]
        candidates = np.flatnonzero(descending <= threshold)
    else:
        candidates = np.arange(len(left))
    return candidates[np.argsort(descending[candidates], kind="stable")][:number]


def _deal_unprotected(sizes: IntArray, counts: IntArray) -> IntArray:
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
