"""Find a partition with a small ε(Part): the paper's procedure first, then everything cheap that beats it.

All searches are deterministic functions of the counts. With the paper's measure the result is never worse
than its own procedure or than uniform perturbation, because both are among the candidates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dalenius.arrays import Ints
from dalenius.mechanisms.perturb.plan.bounds import Measure, Objective
from dalenius.mechanisms.perturb.plan.improvers import improve_by_moves, remix
from dalenius.mechanisms.perturb.plan.merging import best_set_partition, merge_runs, merged, regroup
from dalenius.mechanisms.perturb.plan.starts import (
    band_partitions,
    candidate_orders,
    initial_groups,
    paper_order,
)

_MOVED_BANDS = 4
"""Moves start from the so many best numbers of bands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search came to, beside what the paper's own procedure gives."""

    best: Partition
    paper: Partition
    n_groups: int
    """t, the number of the paper's initial groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Quotas of each part and the name of the search that found them."""

    search: str
    quotas: Ints
    """k × m."""


def search_partitions(counts: Ints, objective: Objective) -> Found:
    """The cheapest partition of all searches, the simplest search first among equals.

    The values are ranked by count first, so that the codes' order does not matter to any search.
    """
    ranked = np.argsort(-counts, kind="stable")
    found = _search_ranked(counts[ranked], replace(objective, protected=objective.protected[ranked]))
    ranks = np.argsort(ranked)
    return replace(
        found,
        best=replace(found.best, quotas=found.best.quotas[:, ranks]),
        paper=replace(found.paper, quotas=found.paper.quotas[:, ranks]),
    )


def _search_ranked(counts: Ints, objective: Objective) -> Found:
    groups, n_groups = initial_groups(counts, objective.protected)
    paper = paper_partition(groups, objective)
    one_part = Partition(search="one-part", quotas=counts[np.newaxis, :])
    if not np.isfinite(objective.total(one_part.quotas)):  # no top count is high enough: nothing to divide
        return Found(best=one_part, paper=paper, n_groups=n_groups)
    candidates = [
        one_part,
        paper,
        *_other_merges(groups, objective),
    ]
    bands = band_partitions(counts, objective, _MOVED_BANDS)
    # Moves start from the best merge and the best numbers of bands: the cheapest start need not win.
    starts = [_cheapest(candidates, objective), *(Partition(search="bands", quotas=q) for q in bands)]
    moved = [
        Partition(search=f"{start.search}+moves", quotas=improve_by_moves(start.quotas, objective))
        for start in starts
    ]
    best = _cheapest([*candidates, *starts, *moved], objective)
    remixed = Partition(search=f"{best.search}+remixed", quotas=remix(best.quotas, objective))
    best = _cheapest([best, remixed], objective)
    return Found(best=best, paper=paper, n_groups=n_groups)


def paper_partition(groups: Ints, objective: Objective) -> Partition:
    """The paper's phases 2 and 3 on its initial groups: reverse Cuthill–McKee, then runs of that order."""
    objective = replace(objective, measure=Measure.EPSILON, least_top=1)
    labels = merge_runs(groups, paper_order(groups), objective)
    return Partition(search="paper", quotas=merged(groups, labels))


def _other_merges(groups: Ints, objective: Objective) -> Iterator[Partition]:
    """More unions of the paper's initial groups: other orders, and merges that follow no order."""
    found = [(name, merge_runs(groups, order, objective)) for name, order in candidate_orders(groups)]
    start = min((labels for _, labels in found), key=lambda labels: objective.total(merged(groups, labels)))
    found.append(("regrouped", regroup(groups, start, objective)))
    exact = best_set_partition(groups, objective)
    if exact is not None:
        found.append(("exact-merge", exact))
    for name, labels in found:
        yield Partition(search=name, quotas=merged(groups, labels))


def _cheapest(partitions: list[Partition], objective: Objective) -> Partition:
    return min(partitions, key=lambda found: objective.total(found.quotas))
