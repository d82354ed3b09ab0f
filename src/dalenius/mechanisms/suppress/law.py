"""Laws of outcomes, {kept counts: probability}, exact, and what an attacker believes who knows them.

Kept counts are in rank order: the commonest value of the whole table first.

The attacker of the suppression paper knows the algorithm and n, and sees the kept counts. Her prior
is uniform over the labelled histograms of size n, all m values present, that break ℓ-eligibility;
Bayes runs over the algorithm's own coins, the random secret order of equal counts among them. Every
quantity is the same under any relabelling of the values, so tables and views are kept as sorted
tuples, and a belief is held per *count* in the view: values with equal counts are believed in equally.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import factorial, lcm
from typing import Literal, TypeVar

import numpy as np

from dalenius.errors import InternalError
from dalenius.mechanisms.suppress.d_suppression import Counts

Law = Mapping[Counts, Fraction]
Outcome = TypeVar("Outcome")


def expect_suppressed(law: Law, n_rows: int) -> Fraction:
    """How many of the rows are withheld, on average.

    >>> expect_suppressed({(4, 4): Fraction(1, 2), (2, 2): Fraction(1, 2)}, 10)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """A posterior probability, with an interval that holds it and how it was found."""

    value: Fraction
    low: Fraction
    high: Fraction
    how: Literal["exact", "closed form", "simulated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beliefs:
    """The joint law of (sorted view, count of the truly commonest value in it)."""

    joint: Mapping[Counts, Mapping[int, Fraction]]

    def of_view(self, view: Sequence[int]) -> dict[int, Fraction]:
        """For each count in the view, Pr[a value with that count was the commonest | view]."""
        key = tuple(sorted(view, reverse=True))
        weights = self.joint[key]
        total = sum(weights.values())
        return {count: weights.get(count, Fraction(0)) / total / key.count(count) for count in set(key)}

    def worst_of(self, views: Iterable[Sequence[int]]) -> Fraction:
        """The largest posterior that any of the views gives to any value."""
        return max(max(self.of_view(view).values()) for view in views)

    def worst(self) -> Fraction:
        """The largest posterior over all views that can be published."""
        return self.worst_of(self.joint)


def beliefs_from(laws: Iterable[tuple[int | Fraction, Law]]) -> Beliefs:
    """The beliefs of one who gives each law, of one sorted table, the stated weight."""
    joint: dict[Counts, dict[int, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for weight, law in laws:
        for kept, p in law.items():
            joint[tuple(sorted(kept, reverse=True))][kept[0]] += weight * p
    return Beliefs(joint=joint)


def safe_posterior(ranked: Sequence[int], ell: int) -> Posterior:
    """Safe D-suppression, for every prior that treats labels alike: one over the values left on top."""
    value = Fraction(1, sum(count >= ranked[ell - 1] for count in ranked))
    return Posterior(value=value, low=value, high=value, how="closed form")
