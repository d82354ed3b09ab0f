"""An exact method in closed form, for tables of any size: groups of ℓ tables that leave the same view.

Write b = F_{ℓ+1} (0 if there is none), C_0 = ⌊n/ℓ⌋ + 1 for the least violating count and
C_{k+1} = 2·C_k - b. A table with C_k ≤ F_1 < C_{k+1} and F_2 < C_k loses exactly C_k - b records of
S_1. Take any of the ℓ largest values of what is left, give it those records back: the result is again
such a table, with the same n, b and k. So each of the ℓ values is the commonest in exactly one table
that leaves this view, and all are equally likely: 1/ℓ. Cutting the view to its highest eligible level
afterwards looks at the view alone and cannot raise that. All other tables, and whole groups that lose
less under safe D-suppression, are left to it. The proof is in docs/proofs/exact-suppression.md.

The exact method for small tables: the best random level for S_1, found by a linear programme.

A mechanism is a stochastic map from tables to views, and "no posterior above 1/ℓ" is linear in its
probabilities. Tables with the same n and the same tail F_{ℓ+1..m} can be taken by themselves, as long
as no view touches the tail: then the tail of the view tells the class, and nothing else does. The
views offered to a table are R-suppression's: S_1 cut to a level, then all to the highest eligible one.

The solver answers in floating point. What it gives to a view beyond 1/ℓ is trimmed in exact
arithmetic, and whatever is trimmed or lost in rounding goes to safe D-suppression, which keeps the
bound by itself; so the bound holds exactly whatever the solver returned.

An exact method: no posterior above 1/ℓ for the stated attacker, at less cost than safe D-suppression.

The attacker is that of `posterior`: she knows n and the algorithm, and her prior is uniform over the
violating histograms of size n with all m values present. This is a weaker promise than that of safe
D-suppression, which holds for every prior that treats labels alike: one who knows the sorted counts
may learn S_1 from this method. docs/proofs/exact-suppression.md has the proofs.

Tables that share n and the tail F_{ℓ+1..m} form a class. Classes of up to `N_SOLVED` tables get the
optimum of a linear programme, larger ones the closed form of `exact_groups`. The choice depends on
n, ℓ and the tail alone, all of which the view shows, so that it tells nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import islice

import numpy as np

from dalenius.errors import InternalError
from dalenius.mechanisms.suppress.d_suppression import (
    Counts,
    CutPosterior,
    Law,
    beliefs_from,
    least_violating_count,
    n_arrangements,
    partitions,
    safe_d,
    stop_when_eligible,
)

_GRAIN = 2**40  # probabilities are rounded down to multiples of 1/_GRAIN
N_SOLVED = 400
"""The largest class of tables for which the linear programme is solved (about a second)."""


def keep_grouped(ranked: Sequence[int], ell: int) -> Counts:
    """What is kept of a violating table; `ranked` in rank order.

    >>> keep_grouped((10, 4, 2, 1, 1), 3)  # the least that any method can withhold
    (4, 4, 2, 1, 1)
    """
    base = (*ranked, 0)[ell]
    start = least_violating_count(sum(ranked), ell)
    while ranked[0] >= 2 * start - base:
        start = 2 * start - base
    if ranked[1] >= start:
        return safe_d(ranked, ell)
    left = (ranked[0] - (start - base), *ranked[1:])
    kept = stop_when_eligible(left, ell)
    withheld = sum(ranked) - sum(kept)
    if ell * withheld > _withheld_from_group_by_safe_d(left, start - base, ell):
        return safe_d(ranked, ell)
    return kept


def _withheld_from_group_by_safe_d(left: Sequence[int], n_removed: int, ell: int) -> int:
    """What safe D-suppression withholds in all from the ℓ tables that leave this view."""
    top = sorted(left, reverse=True)[:ell]
    # The ℓ-th count of a table is that of the view, or the (ℓ-1)-th where the ℓ-th itself was S_1.
    return ell * (sum(top) + n_removed) - ell * ((ell - 1) * top[-1] + top[-2])


Pair = tuple[int, Counts]
"""The number of a table in its list, and a view of it in the table's rank order."""


def tables_like(tail: Sequence[int], n_rows: int, ell: int, limit: int) -> list[Counts]:
    """The violating tables of n rows with the tail F_{ℓ+1..m}, up to `limit` of them, in a fixed order.

    >>> tables_like((1, 1), 14, 3, 100)[:3]
    [(10, 1, 1, 1, 1), (9, 2, 1, 1, 1), (8, 3, 1, 1, 1)]
    """
    violating = least_violating_count(n_rows, ell)
    tops = partitions(n_rows - sum(tail), ell, least=tail[0] if tail else 1)
    return list(islice(((*top, *tail) for top in tops if top[0] >= violating), limit))


def level_views(table: Counts, ell: int) -> set[Counts]:
    """Safe D-suppression, and S_1 cut to each level followed by a cut to eligibility."""
    base = (*table, 0)[ell]
    cut = {stop_when_eligible((level, *table[1:]), ell) for level in range(base, table[0] + 1)}
    return {safe_d(table, ell), *cut}


def best_laws(
    tables: Sequence[Counts], ell: int, views_of: Callable[[Counts, int], Iterable[Counts]] = level_views
) -> list[dict[Counts, Fraction]]:
    """For each table the law of its view: least expected suppression, every posterior at most 1/ℓ.

    The expectation is over the uniform prior on labelled tables. The bound holds exactly, for the
    attacker whose prior is uniform on the labelled versions of these tables.
    """
    pairs = [(number, view) for number, table in enumerate(tables) for view in sorted(views_of(table, ell))]
    weights = [n_arrangements(table) for table in tables]
    solution = _solve(tables, weights, pairs, ell)
    shares = _round_down(pairs, solution, len(tables))
    return _with_safe_remainder(tables, _trim(shares, weights, ell), ell)


def _solve(
    tables: Sequence[Counts], weights: Sequence[int], pairs: Sequence[Pair], ell: int
) -> Sequence[float]:
    scale = [weight / max(weights) for weight in weights]  # keeps the coefficients near 1
    cost = [scale[number] * (sum(tables[number]) - sum(view)) for number, view in pairs]
    rows: dict[tuple[Counts, int], int] = {}
    entries: list[tuple[int, int, float]] = []
    for column, (number, view) in enumerate(pairs):
        seen = tuple(sorted(view, reverse=True))
        for count in set(seen):
            # ℓ · Pr[view, a given value with this count is S_1] - Pr[view] ≤ 0
            coefficient = (ell / seen.count(count) if count == view[0] else 0) - 1
            entries.append((rows.setdefault((seen, count), len(rows)), column, scale[number] * coefficient))
    from scipy.optimize import linprog  # takes half a second to load
    from scipy.sparse import coo_array

    row, column_of, value = np.array(entries).T
    bounds = coo_array((value, (row.astype(int), column_of.astype(int))), shape=(len(rows), len(pairs)))
    numbers = [number for number, _ in pairs]
    whole = coo_array((np.ones(len(pairs)), (numbers, np.arange(len(pairs)))), (len(tables), len(pairs)))
    result = linprog(  # type: ignore[call-overload]  # its stubs do not know sparse matrices
        cost, A_ub=bounds.tocsr(), b_ub=np.zeros(len(rows)), A_eq=whole.tocsr(), b_eq=np.ones(len(tables))
    )
    if result.x is None:
        raise InternalError(f"the solver found no suppression for {len(tables)} tables: {result.message}")
    return [float(p) for p in result.x]


def _round_down(pairs: Sequence[Pair], solution: Sequence[float], n_tables: int) -> dict[Pair, int]:
    """Whole grains for each pair, no table with more than _GRAIN of them."""
    left = [_GRAIN] * n_tables
    shares = {}
    for (number, view), p in zip(pairs, solution, strict=True):
        grains = min(left[number], max(0, int(p * _GRAIN)))
        left[number] -= grains
        if grains:
            shares[number, view] = grains
    return shares


def _trim(shares: dict[Pair, int], weights: Sequence[int], ell: int) -> dict[Pair, Fraction]:
    """The same shares, those behind a belief above 1/ℓ scaled down until none is."""
    behind: dict[Counts, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for (number, view), grains in shares.items():
        behind[tuple(sorted(view, reverse=True))][view[0]] += weights[number] * grains
    factors = {
        (seen, count): factor
        for seen, by_count in behind.items()
        for count, factor in _factors(seen, by_count, ell).items()
    }
    return {
        (number, view): Fraction(grains, _GRAIN) * factors[tuple(sorted(view, reverse=True)), view[0]]
        for (number, view), grains in shares.items()
    }


def _factors(seen: Counts, by_count: dict[int, int], ell: int) -> dict[int, Fraction]:
    """By how much to scale the weight behind each count, so that no value has more than 1/ℓ of the rest.

    The weights per value are cut to the highest t with ℓ·t ≤ Σ min(weight, t): a highest eligible
    level again, now of rational weights.
    """
    each = {count: Fraction(weight, seen.count(count)) for count, weight in by_count.items()}
    descending = sorted((each.get(count, Fraction(0)) for count in seen), reverse=True)
    n_cut = 0
    while descending[n_cut] * (ell - n_cut) > sum(descending[n_cut:]):
        n_cut += 1
    limit = sum(descending[n_cut:], Fraction(0)) / (ell - n_cut)
    return {count: min(Fraction(1), limit / weight) for count, weight in each.items()}


def _with_safe_remainder(
    tables: Sequence[Counts], shares: dict[Pair, Fraction], ell: int
) -> list[dict[Counts, Fraction]]:
    laws: list[dict[Counts, Fraction]] = [{} for _ in tables]
    for (number, view), p in shares.items():
        if p:
            laws[number][view] = p
    for table, law in zip(tables, laws, strict=True):
        rest = 1 - sum(law.values())
        if rest:
            law[safe_d(table, ell)] = law.get(safe_d(table, ell), Fraction(0)) + rest
    return laws


def exact_law(ranked: Sequence[int], ell: int) -> Law:
    """The law of what is kept of a violating table; counts in rank order.

    >>> {kept: str(p) for kept, p in exact_law((4, 1, 1), 2).items()}
    {(1, 1, 1): '1'}
    """
    tables = tuple(tables_like(ranked[ell:], sum(ranked), ell, N_SOLVED + 1))
    if len(tables) > N_SOLVED:
        return {keep_grouped(ranked, ell): Fraction(1)}
    return _solve_all(tables, ell)[tuple(ranked)]


def exact_posterior(ranked: Sequence[int], ell: int) -> CutPosterior:
    """The largest posterior over all that may be published of the table.

    Exact where the class is solved; otherwise the proved bound 1/ℓ, which the value need not reach.
    """
    tables = tuple(tables_like(ranked[ell:], sum(ranked), ell, N_SOLVED + 1))
    views = [tuple(ranked)] if len(tables) > N_SOLVED else list(_solve_all(tables, ell)[tuple(ranked)])
    return _posterior_of(views, tables, ell)


def exact_view_posterior(view: Sequence[int], n_rows: int, ell: int) -> CutPosterior:
    """The same for one view, in descending order; its tail is the table's, so the view tells its class."""
    return _posterior_of([view], tuple(tables_like(view[ell:], n_rows, ell, N_SOLVED + 1)), ell)


def _posterior_of(views: Sequence[Sequence[int]], tables: tuple[Counts, ...], ell: int) -> CutPosterior:
    if len(tables) > N_SOLVED:
        bound = Fraction(1, ell)
        return CutPosterior(value=bound, low=Fraction(1, len(tables[0])), high=bound, how="closed form")
    laws = _solve_all(tables, ell)
    beliefs = beliefs_from((n_arrangements(table), law) for table, law in laws.items())
    worst = beliefs.worst_of(views)
    return CutPosterior(value=worst, low=worst, high=worst, how="exact")


@lru_cache(maxsize=64)
def _solve_all(tables: tuple[Counts, ...], ell: int) -> dict[Counts, dict[Counts, Fraction]]:
    return dict(zip(tables, best_laws(tables, ell), strict=True))
