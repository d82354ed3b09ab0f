"""Plan a perturbation from the counts: one function per method, with one signature, in `METHODS`.

A search finds a partition with a small ε(Part), or with a small variance of the counts: the paper's procedure
first, then everything cheap that beats it. `best` takes the one of all partitions that predicts the least
variance of the answers, the paper's own and the whole table among them.

All searches are deterministic functions of the counts: the choice is made before any coin is tossed. With the
paper's measure the result is never worse than its own procedure or than uniform perturbation, because both
are among the candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import wraps

import numpy as np

from dalenius.arrays import Bools, Ints
from dalenius.errors import InputError, InternalError, PolicyError, PromiseNotMet
from dalenius.mechanisms.perturb.plan.improvers import (
    add_groups,
    best_set_partition,
    merge_runs,
    regroup,
    remix,
)
from dalenius.mechanisms.perturb.plan.layout import (
    DELTA,
    LayoutMeasure,
    Objective,
    Part,
    PerturbPlan,
    hoeffding_bound,
    partition_bound,
    value_rmse,
)
from dalenius.mechanisms.perturb.plan.lockstep import improve_all
from dalenius.mechanisms.perturb.plan.starts import (
    band_partitions,
    candidate_orders,
    initial_groups,
    paper_order,
)
from dalenius.promises.rho_privacy import RhoPrivacy


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
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


Search = Callable[[Ints, Objective], SearchResult]


def _in_ranks(search: Search) -> Search:
    """Rank the values by count first, so that the codes' order does not matter to the search."""

    @wraps(search)
    def search_ranks(counts: Ints, objective: Objective) -> SearchResult:
        ranked = np.argsort(-counts, kind="stable")
        found = search(counts[ranked], replace(objective, protected=objective.protected[ranked]))
        ranks = np.argsort(ranked)
        return replace(
            found,
            best=replace(found.best, quotas=found.best.quotas[:, ranks]),
            paper=replace(found.paper, quotas=found.paper.quotas[:, ranks]),
        )

    return search_ranks


@_in_ranks
def take_paper(counts: Ints, objective: Objective) -> SearchResult:
    """The paper's own partition, and nothing else searched."""
    groups, n_groups = initial_groups(counts, objective.protected)
    paper = paper_partition(groups, objective)
    return SearchResult(best=paper, paper=paper, n_groups=n_groups)


_MOVED_BANDS = 4
"""Moves start from the so many best numbers of bands."""
_FEW_PARTS, _HOPEFUL = 16, 1.05
"""For the least variance bands of more parts, other than the best ones, are moved only if they cost no more
than this, times the best merge's cost after its moves: their moves take most of the time, and hardly ever
make them the best (docs/speed.md)."""
_CHEAP_REMIX = 4_000
"""Parts⁴ × values: below this a remix takes a hundredth of a second."""
_MOST_VALUES = 120
"""Up to so many values the least variance is searched for too: it takes time with their square."""
_FEW_VALUES = 32
"""Of more values, up to `_MOST_VALUES`, the least ε(Part) is hardly ever the most accurate, and takes a third
of the time (docs/speed.md)."""


@_in_ranks
def search_partitions(counts: Ints, objective: Objective) -> SearchResult:
    """The cheapest partition of all searches, the simplest search first among equals."""
    groups, n_groups = initial_groups(counts, objective.protected)
    paper = paper_partition(groups, objective)
    one_part = Partition(search="one-part", quotas=counts[np.newaxis, :])
    if not np.isfinite(objective.total(one_part.quotas)):  # no top count is high enough: nothing to divide
        return SearchResult(best=one_part, paper=paper, n_groups=n_groups)
    candidates = [one_part, paper, *_other_merges(groups, objective)]
    bands = band_partitions(counts, objective, _MOVED_BANDS)
    # Moves start from the best merge and the best numbers of bands: the cheapest start need not win.
    starts = [_cheapest(candidates, objective), *(Partition(search="bands", quotas=q) for q in bands)]
    if objective.measure is LayoutMeasure.VARIANCE and max(map(len, bands), default=0) > _FEW_PARTS:
        moved = _move(starts[:1], objective)
        most = _HOPEFUL * objective.total(moved[0].quotas)
        others = [start for start in starts[2:] if _has_hope(start, most, objective)]
        moved += _move([starts[1], *others], objective)
    else:  # all at once, which is faster
        moved = _move(starts, objective)
    best = _cheapest([*candidates, *starts, *moved], objective)
    # The best after remixing need not be the cheapest before: others are remixed too where that is cheap.
    others = [start for start in moved if _remixing_cells(start) <= _CHEAP_REMIX and start is not best]
    remixed = [
        Partition(search=f"{start.search}+remixed", quotas=remix(start.quotas, objective))
        for start in (best, *others)
    ]
    return SearchResult(best=_cheapest([best, *remixed], objective), paper=paper, n_groups=n_groups)


def _move(starts: list[Partition], objective: Objective) -> list[Partition]:
    quotas = improve_all([start.quotas for start in starts], objective)
    return [
        Partition(search=f"{start.search}+moves", quotas=own)
        for start, own in zip(starts, quotas, strict=True)
    ]


def _has_hope(bands: Partition, most: float, objective: Objective) -> bool:
    return len(bands.quotas) <= _FEW_PARTS or objective.total(bands.quotas) <= most


def _remixing_cells(partition: Partition) -> int:
    n_parts, n_values = partition.quotas.shape
    return int(n_parts**4 * n_values)


def paper_partition(groups: Ints, objective: Objective) -> Partition:
    """The paper's phases 2 and 3 on its initial groups: reverse Cuthill–McKee, then runs of that order."""
    objective = replace(objective, measure=LayoutMeasure.EPSILON, least_top=1)
    (labels,) = merge_runs(groups, [paper_order(groups)], objective)
    return Partition(search="paper", quotas=add_groups(groups, labels))


def _other_merges(groups: Ints, objective: Objective) -> Iterator[Partition]:
    """More unions of the paper's initial groups: other orders, and merges that follow no order."""
    names, orders = zip(*candidate_orders(groups), strict=True)
    merges = merge_runs(groups, orders, objective)
    found = [*zip(names, merges, strict=True)]
    start = min(merges, key=lambda labels: objective.total(add_groups(groups, labels)))
    found.append(("regrouped", regroup(groups, start, objective)))
    exact = best_set_partition(groups, objective)
    if exact is not None:
        found.append(("exact-merge", exact))
    for name, labels in found:
        yield Partition(search=name, quotas=add_groups(groups, labels))


def _cheapest(partitions: list[Partition], objective: Objective) -> Partition:
    return min(partitions, key=lambda found: objective.total(found.quotas))


__all__ = [
    "LEAST_TOP",
    "METHODS",
    "Part",
    "PerturbPlan",
    "plan_as_in_paper",
    "plan_for_release",
    "plan_perturbation",
]


def plan_perturbation(
    counts: Sequence[int], promise: RhoPrivacy, method: str = "small-domain"
) -> PerturbPlan:
    """Plan the perturbation of a table with these counts, and check the plan exactly.

    >>> plan = plan_perturbation([12, 8, 6, 5, 4, 3, 1, 1, 1, 1], RhoPrivacy(rho1=None, rho2=Fraction(2, 3)))
    >>> plan.posterior <= Fraction(2, 3)
    True
    """
    if method not in METHODS:
        raise PolicyError(f"perturb has no method {method!r}; known: {', '.join(METHODS)}")
    exact = tuple(int(count) for count in counts)
    _check_counts(exact)
    plan = METHODS[method](exact, promise)
    plan.check()
    return plan


LEAST_TOP = 30


def plan_for_release(counts: Sequence[int], promise: RhoPrivacy, method: str) -> PerturbPlan:
    """The plan to publish by: no part so small that its size, values and γ give its exact counts away.

    The posterior of a part is for one record, the others unknown. Who knows the part's counts and looks at
    all of it learns more (34/39 instead of 2/3 for three records); with 30 records of the top value hardly
    anything. So a small-domain plan with a smaller part is searched again, with `LEAST_TOP` for every part;
    a table that has no such part is one part. `best` chooses among partitions without small parts only;
    `paper` is published as it is, and the plan warns.
    """
    plan = plan_perturbation(counts, promise, method)
    if method != "small-domain" or len(plan.parts) == 1 or plan.smallest_top >= LEAST_TOP:
        return plan
    wider = _plan_searched(
        plan.counts, promise, method=method, measure=LayoutMeasure.EPSILON, least_top=LEAST_TOP
    )
    wider.check()
    return wider


def plan_uniform(counts: tuple[int, ...], promise: RhoPrivacy) -> PerturbPlan:
    """One part, γ from the promise's own ρ1: it holds for every prior of the attacker."""
    rho1 = promise.prior_limit(counts)
    _check_prior(rho1, promise.rho2)
    part = _part(np.array(counts, dtype=np.int64), rho1, promise)
    return _plan(counts, promise, method="uniform", search="one-part", parts=(part,), n_groups=1)


def plan_small_domain(counts: tuple[int, ...], promise: RhoPrivacy) -> PerturbPlan:
    """The partition with the smallest ε(Part) found, γ_i from each part's own top frequency."""
    return _plan_searched(counts, promise, method="small-domain", measure=LayoutMeasure.EPSILON, least_top=1)


def plan_least_variance(counts: tuple[int, ...], promise: RhoPrivacy) -> PerturbPlan:
    """The partition with the smallest Σ n_i·c_i² found: the most accurate counts, in more and smaller parts.

    That measure would go down to parts of a dozen rows, in which who knows the exact counts learns more
    than from a histogram; so a part's top protected value has `LEAST_TOP` records or more.
    """
    return _plan_searched(
        counts, promise, method="least-variance", measure=LayoutMeasure.VARIANCE, least_top=LEAST_TOP
    )


def plan_as_in_paper(counts: tuple[int, ...], promise: RhoPrivacy) -> PerturbPlan:
    """The paper's own partition; `small-domain` is never worse by its measure, nor `best` by the variance."""
    is_protected, found = _search(counts, promise, LayoutMeasure.EPSILON, 1, take_paper)
    parts = _derive_parts(found.paper, is_protected, promise)
    return _plan(counts, promise, method="paper", search="paper", parts=parts, n_groups=found.n_groups)


def plan_best(counts: tuple[int, ...], promise: RhoPrivacy) -> PerturbPlan:
    """Of all partitions found the one whose counts are predicted to be most accurate (`value_rmse`).

    For a question about some of the people the variance is that of their records, which are dealt to the
    parts at random: so the same partition is the best for all of them. Parts are as large as in a release.
    """
    candidates = [plan_as_in_paper(counts, promise)]
    if len(counts) <= _MOST_VALUES:
        candidates.insert(0, plan_least_variance(counts, promise))
    if not _FEW_VALUES < len(counts) <= _MOST_VALUES:
        candidates.insert(0, plan_for_release(counts, promise, "small-domain"))
    large = [plan for plan in candidates if len(plan.parts) == 1 or plan.smallest_top >= LEAST_TOP]
    best = min(large or candidates[:1], key=lambda plan: plan.value_rmse)
    return replace(best, method="best")


METHODS: dict[str, Callable[[tuple[int, ...], RhoPrivacy], PerturbPlan]] = {
    "best": plan_best,
    "small-domain": plan_small_domain,
    "least-variance": plan_least_variance,
    "paper": plan_as_in_paper,
    "uniform": plan_uniform,
}


def _plan(
    counts: tuple[int, ...],
    promise: RhoPrivacy,
    *,
    method: str,
    search: str,
    parts: tuple[Part, ...],
    n_groups: int,
    paper: tuple[Part, ...] | None = None,
) -> PerturbPlan:
    """The plan of some parts; `paper` are those that the paper's own procedure gives, if they are others."""
    sizes, retentions = _sizes_and_retentions(parts)
    return PerturbPlan(
        method=method,
        promise=promise,
        counts=counts,
        protected=promise.protected(counts),
        parts=parts,
        search=search,
        error_bound=partition_bound(sizes, retentions, DELTA),
        error_bound_hoeffding=hoeffding_bound(sizes, retentions, DELTA),
        value_rmse=value_rmse(sizes, [part.channel for part in parts], sum(map(bool, counts))),
        paper_error_bound=partition_bound(*_sizes_and_retentions(paper or parts), DELTA),
        n_groups=n_groups,
    )


def _sizes_and_retentions(parts: tuple[Part, ...]) -> tuple[list[int], list[Fraction]]:
    return [part.n_rows for part in parts], [part.retention for part in parts]


def _plan_searched(
    counts: tuple[int, ...], promise: RhoPrivacy, *, method: str, measure: LayoutMeasure, least_top: int
) -> PerturbPlan:
    is_protected, found = _search(counts, promise, measure, least_top)
    parts = _derive_parts(found.best, is_protected, promise)
    paper = _derive_parts(found.paper, is_protected, promise)
    search, n_groups = found.best.search, found.n_groups
    return _plan(counts, promise, method=method, search=search, parts=parts, n_groups=n_groups, paper=paper)


def _search(
    counts: tuple[int, ...],
    promise: RhoPrivacy,
    measure: LayoutMeasure,
    least_top: int,
    search: Search = search_partitions,
) -> tuple[Bools, SearchResult]:
    protected = list(promise.protected(counts))
    if not protected:
        raise PolicyError(
            f"no value is as rare as rho1 ({promise.rho1}), so the promise covers no value",
            hint=f"the rarest value has a frequency of {min(filter(None, counts)) / sum(counts):.4g}",
        )
    _check_prior(Fraction(max(counts[code] for code in protected), sum(counts)), promise.rho2)
    is_protected = np.zeros(len(counts), dtype=bool)
    is_protected[protected] = True
    objective = Objective(
        protected=is_protected, rho2=float(promise.rho2), measure=measure, least_top=least_top
    )
    return is_protected, search(np.array(counts, dtype=np.int64), objective)


def _derive_parts(partition: Partition, is_protected: Bools, promise: RhoPrivacy) -> tuple[Part, ...]:
    """Parts with the ρ1_i and γ_i that their own counts give (equations 9 and 10)."""
    tops = np.where(is_protected, partition.quotas, 0).max(axis=1).tolist()
    return tuple(
        _part(quota, Fraction(top, int(quota.sum())), promise)
        for quota, top in zip(partition.quotas, tops, strict=True)
    )


def _part(quota: Ints, rho1: Fraction, promise: RhoPrivacy) -> Part:
    codes = np.flatnonzero(quota)
    if not 0 < rho1 < promise.rho2:
        raise InternalError(f"a part was chosen whose rho1 ({rho1}) is not between 0 and rho2")
    return Part(
        n_rows=int(quota.sum()),
        codes=tuple(codes.tolist()),
        counts=tuple(quota[codes].tolist()),
        gamma=promise.amplification(rho1),
        rho1=rho1,
    )


def _check_counts(counts: tuple[int, ...]) -> None:
    if any(count < 0 for count in counts):
        raise InputError("a count is negative")
    n_occurring = sum(count > 0 for count in counts)
    if n_occurring < 2:
        raise InputError(
            f"the sensitive column has {n_occurring} different values; perturbation needs 2 or more"
        )


def _check_prior(top: Fraction, rho2: Fraction) -> None:
    if top >= rho2:
        raise PromiseNotMet(
            f"rho2 ({rho2}) is not above rho1, the largest frequency ({float(top):.6g}); no release can "
            "bound a posterior below its prior",
            hint="raise rho2, or set rho1 so that the commonest values are not covered",
        )
