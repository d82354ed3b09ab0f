"""The papers' algorithms as they are written: one record at a time, one table at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product

from dalenius.mechanisms.suppress.d_suppression import (
    Beliefs,
    Law,
    beliefs_from,
    n_arrangements,
    partitions,
)

Counts = tuple[int, ...]


def violating_partitions(n_rows: int, n_values: int, ell: int) -> Iterator[Counts]:
    """The sorted histograms, with every value present, that break ℓ-eligibility."""
    return (counts for counts in partitions(n_rows, n_values) if counts[0] * ell > n_rows)


def eligible(kept: Sequence[int], ell: int) -> bool:
    return Fraction(max(kept)) <= Fraction(sum(kept), ell)


def candidate(kept: Sequence[int], n_rows: int, ell: int) -> bool:
    return sorted(kept)[-ell] + n_rows - sum(kept) > Fraction(n_rows, ell)


def d_states(counts: Sequence[int]) -> Iterator[Counts]:
    """Every state of D-suppression (figure 2), down to nothing."""
    left = list(counts)
    yield tuple(left)
    while any(left):
        top = max(left)
        left[max(rank for rank, count in enumerate(left) if count == top)] -= 1
        yield tuple(left)


def d_until(counts: Sequence[int], stop: Callable[[Counts], bool]) -> Counts:
    return next(state for state in d_states(counts) if stop(state))


def r_law(ranked: Counts, ell: int) -> dict[Counts, Fraction]:
    """R-suppression as printed (figure 3), over every choice of h and F."""
    n_rows, bounds = sum(ranked), (*ranked, 0)
    law: dict[Counts, Fraction] = defaultdict(Fraction)
    for h in range(1, ell + 1):
        levels = range(bounds[h], bounds[h - 1] + 1)
        for level in levels:
            kept = d_until(
                (level, *ranked[1:]), lambda kept: eligible(kept, ell) and candidate(kept, n_rows, ell)
            )
            law[kept] += Fraction(1, ell * len(levels))
    return dict(law)


def all_views(table: Counts, ell: int) -> set[Counts]:
    """Everything eligible that can be published of a table."""
    every = product(*(range(count + 1) for count in table))
    return {view for view in every if eligible(view, ell)}


def small_tables(largest: int, n_values: Sequence[int] = (2, 3, 4, 5)) -> Iterator[tuple[Counts, int]]:
    """Every violating table of up to so many rows, with every ℓ ≤ m."""
    for m in n_values:
        for n_rows in range(m, largest + 1):
            for ell in range(2, m + 1):
                for table in violating_partitions(n_rows, m, ell):
                    yield table, ell


def beliefs_of_uniform_prior(
    n_rows: int, n_values: int, ell: int, law_of: Callable[[Counts, int], Law]
) -> Beliefs:
    """The attacker of the paper, by enumeration of every table she can think of."""
    tables = violating_partitions(n_rows, n_values, ell)
    return beliefs_from((n_arrangements(table), law_of(table, ell)) for table in tables)


def beliefs_if_histogram_is_known(law: Law) -> Beliefs:
    """One who knows the sorted counts of the table, but not which value has which."""
    return beliefs_from([(1, law)])


def mass_above(beliefs: Beliefs, bound: Fraction) -> Fraction:
    """How likely it is that what is published breaks the bound."""
    mass = {view: sum(weights.values(), Fraction(0)) for view, weights in beliefs.joint.items()}
    broken = (mass[view] for view in mass if max(beliefs.of_view(view).values()) > bound)
    return sum(broken, Fraction(0)) / sum(mass.values())
