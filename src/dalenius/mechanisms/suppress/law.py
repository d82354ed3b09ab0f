"""Laws of outcomes: {kept counts: probability}, exact, and one exact draw from them.

Kept counts are in rank order: the commonest value of the whole table first.

Every sorted histogram of n records over m values, and how many labelled ones each stands for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import factorial, lcm
from typing import TypeVar

import numpy as np

from dalenius.errors import InternalError
from dalenius.mechanisms.suppress.d_suppression import Counts

Law = Mapping[Counts, Fraction]
Outcome = TypeVar("Outcome")


def expected_suppressed(law: Law, n_rows: int) -> Fraction:
    """How many of the rows are withheld, on average.

    >>> expected_suppressed({(4, 4): Fraction(1, 2), (2, 2): Fraction(1, 2)}, 10)
    Fraction(4, 1)
    """
    return sum((p * (n_rows - sum(kept)) for kept, p in law.items()), Fraction(0))


def draw_from(law: Mapping[Outcome, Fraction], stream: np.random.Generator) -> Outcome:
    """One outcome, with exactly the probabilities of the law."""
    common = lcm(*(p.denominator for p in law.values()))
    ticket = integer_below(common, stream)
    for outcome, p in law.items():
        ticket -= p.numerator * (common // p.denominator)
        if ticket < 0:
            return outcome
    raise InternalError(f"the probabilities of a law add up to {sum(law.values())}, not to 1")


def integer_below(bound: int, stream: np.random.Generator) -> int:
    """A uniformly random integer in 0..bound-1, of any size, by rejection."""
    n_bits = bound.bit_length()
    while True:
        drawn = int.from_bytes(stream.bytes((n_bits + 7) // 8), "little") & ((1 << n_bits) - 1)
        if drawn < bound:
            return drawn


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
