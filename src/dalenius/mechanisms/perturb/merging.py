"""Phase 3: merge neighbouring groups so that Σ √|g|·c(g) is least (section 5.3, equation 14)."""

from __future__ import annotations

import numpy as np

from dalenius.mechanisms.perturb.bounds import IntArray, Objective


def merge_runs(groups: IntArray, order: IntArray, objective: Objective) -> IntArray:
    """A label per group: the best partition into contiguous runs of that order, by dynamic programming."""
    ordered = groups[order]
    cuts = _best_cuts(ordered, objective)
    labels = np.empty(len(order), dtype=np.int64)
    stop, label = len(order), 0
    while stop > 0:
        labels[order[cuts[stop] : stop]] = label
        stop, label = int(cuts[stop]), label + 1
    return labels


def merged(groups: IntArray, labels: IntArray) -> IntArray:
    """The quotas of the parts: the sums of the groups with the same label, in the order of the labels."""
    quotas = np.zeros((int(labels.max()) + 1, groups.shape[1]), dtype=np.int64)
    np.add.at(quotas, labels, groups)
    is_used = quotas.sum(axis=1) > 0
    return np.compress(is_used, quotas, axis=0)


def _best_cuts(ordered: IntArray, objective: Objective) -> IntArray:
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
