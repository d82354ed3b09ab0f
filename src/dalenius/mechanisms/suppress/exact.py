"""An exact method: no posterior above 1/ℓ for the stated attacker, at less cost than safe D-suppression.

The attacker is that of `posterior`: she knows n and the algorithm, and her prior is uniform over the
violating histograms of size n with all m values present. This is a weaker promise than that of safe
D-suppression, which holds for every prior that treats labels alike: one who knows the sorted counts
may learn S_1 from this method. docs/proofs/exact-suppression.md has the proofs.

Tables that share n and the tail F_{ℓ+1..m} form a class. Classes of up to `N_SOLVED` tables get the
optimum of a linear programme, larger ones the closed form of `exact_groups`. The choice depends on
n, ℓ and the tail alone, all of which the view shows, so that it tells nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from dalenius.mechanisms.suppress.d_suppression import Counts
from dalenius.mechanisms.suppress.exact_groups import grouped
from dalenius.mechanisms.suppress.exact_programme import best_laws, tables_like
from dalenius.mechanisms.suppress.law import Law
from dalenius.mechanisms.suppress.partitions import n_arrangements
from dalenius.mechanisms.suppress.posterior import Posterior, beliefs_from

N_SOLVED = 400
"""The largest class of tables for which the linear programme is solved (about a second)."""


def exact_law(ranked: Sequence[int], ell: int) -> Law:
    """The law of what is kept of a violating table; counts in rank order.

    >>> {kept: str(p) for kept, p in exact_law((4, 1, 1), 2).items()}
    {(1, 1, 1): '1'}
    """
    tables = tuple(tables_like(ranked[ell:], sum(ranked), ell, N_SOLVED + 1))
    if len(tables) > N_SOLVED:
        return {grouped(ranked, ell): Fraction(1)}
    return _solved(tables, ell)[tuple(ranked)]


def exact_posterior(ranked: Sequence[int], ell: int) -> Posterior:
    """The largest posterior over all that may be published of the table.

    Exact where the class is solved; otherwise the proved bound 1/ℓ, which the value need not reach.
    """
    tables = tuple(tables_like(ranked[ell:], sum(ranked), ell, N_SOLVED + 1))
    views = [tuple(ranked)] if len(tables) > N_SOLVED else list(_solved(tables, ell)[tuple(ranked)])
    return _posterior_of(views, tables, ell)


def exact_view_posterior(view: Sequence[int], n_rows: int, ell: int) -> Posterior:
    """The same for one view, in descending order; its tail is the table's, so the view tells its class."""
    return _posterior_of([view], tuple(tables_like(view[ell:], n_rows, ell, N_SOLVED + 1)), ell)


def _posterior_of(views: Sequence[Sequence[int]], tables: tuple[Counts, ...], ell: int) -> Posterior:
    if len(tables) > N_SOLVED:
        bound = Fraction(1, ell)
        return Posterior(value=bound, low=Fraction(1, len(tables[0])), high=bound, how="closed form")
    laws = _solved(tables, ell)
    beliefs = beliefs_from((n_arrangements(table), law) for table, law in laws.items())
    worst = beliefs.worst_of(views)
    return Posterior(value=worst, low=worst, high=worst, how="exact")


@lru_cache(maxsize=64)
def _solved(tables: tuple[Counts, ...], ell: int) -> dict[Counts, dict[Counts, Fraction]]:
    return dict(zip(tables, best_laws(tables, ell), strict=True))
