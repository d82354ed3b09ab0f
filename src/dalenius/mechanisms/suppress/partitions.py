"""Every sorted histogram of n records over m values, and how many labelled ones each stands for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import factorial

from dalenius.mechanisms.suppress.d_suppression import Counts


def partitions(n_rows: int, n_values: int, *, least: int = 1, most: int | None = None) -> Iterator[Counts]:
    """All descending tuples of `n_values` counts in least..most that add up to `n_rows`.

    >>> list(partitions(5, 3))
    [(3, 1, 1), (2, 2, 1)]
    """
    if n_values == 0:
        if n_rows == 0:
            yield ()
        return
    highest = n_rows - least * (n_values - 1)
    for first in range(min(highest, highest if most is None else most), -(-n_rows // n_values) - 1, -1):
        for rest in partitions(n_rows - first, n_values - 1, least=least, most=first):
            yield (first, *rest)


def violating_partitions(n_rows: int, n_values: int, ell: int) -> Iterator[Counts]:
    """The sorted histograms, with every value present, that break ℓ-eligibility."""
    return (counts for counts in partitions(n_rows, n_values) if counts[0] * ell > n_rows)


def n_arrangements(counts: Counts) -> int:
    """How many labelled histograms have these counts in some order.

    >>> n_arrangements((3, 1, 1))
    3
    """
    total = factorial(len(counts))
    for repeats in Counter(counts).values():
        total //= factorial(repeats)
    return total
