"""An exact method in closed form, for tables of any size: groups of ℓ tables that leave the same view.

Write b = F_{ℓ+1} (0 if there is none), C_0 = ⌊n/ℓ⌋ + 1 for the least violating count and
C_{k+1} = 2·C_k - b. A table with C_k ≤ F_1 < C_{k+1} and F_2 < C_k loses exactly C_k - b records of
S_1. Take any of the ℓ largest values of what is left, give it those records back: the result is again
such a table, with the same n, b and k. So each of the ℓ values is the commonest in exactly one table
that leaves this view, and all are equally likely: 1/ℓ. Cutting the view to its highest eligible level
afterwards looks at the view alone and cannot raise that. All other tables, and whole groups that lose
less under safe D-suppression, are left to it. The proof is in docs/proofs/exact-suppression.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalenius.mechanisms.suppress.d_suppression import Counts, safe_d, stop_when_eligible
from dalenius.mechanisms.suppress.eligibility import least_violating_count


def grouped(ranked: Sequence[int], ell: int) -> Counts:
    """What is kept of a violating table; `ranked` in rank order.

    >>> grouped((10, 4, 2, 1, 1), 3)  # the least that any method can withhold
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
