"""When a sensitive attribute can be published with ℓ-diversity, decided on counts with integers only.

Suppression paper, sections 1 and 2: a table of n records is ℓ-eligible when no value holds more than
n/ℓ of them; a published part is P-eligible when it is ℓ-eligible itself, and meets ℓ-candidacy when
at least ℓ values can still have been the one that was too common in the whole table.

D-suppression: always withhold a record of the value with the highest count that is left.

Suppression paper, section 3. Counts are given in rank order (rank 1, the commonest value of the
whole table, first); among equally high values the one of lowest rank is cut first. After k removals
the state is fixed by k alone, so every question is answered from sums of min(count, level), never by
removing records one at a time.

Only `safe_d` is for publishing. `unsafe_d` and `minimal_suppression` are lower bounds: both tell
which value was too common.

Laws of outcomes, {kept counts: probability}, exact, and what an attacker believes who knows them. Kept counts
are in rank order: the commonest value of the whole table first.

The attacker of the suppression paper knows the algorithm and n, and sees the kept counts. Her prior
is uniform over the labelled histograms of size n, all m values present, that break ℓ-eligibility;
Bayes runs over the algorithm's own coins, the random secret order of equal counts among them. Every
quantity is the same under any relabelling of the values, so tables and views are kept as sorted
tuples, and a belief is held per *count* in the view: values with equal counts are believed in equally.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import factorial, lcm
from typing import Literal, TypeVar

import numpy as np

from dalenius.errors import InputError, InternalError, PromiseNotMet


def is_eligible(counts: Sequence[int], ell: int) -> bool:
    """Whether no value has more than 1/ℓ of the records; an empty table is eligible.

    >>> is_eligible((10, 4, 2, 1, 1), 3), is_eligible((4, 4, 2, 1, 1), 3)
    (False, True)
    """
    return max(counts, default=0) * ell <= sum(counts)


def is_candidate_for_l(kept: Sequence[int], n_rows: int, ell: int) -> bool:
    """ℓ-candidacy (definition 2): F′_ℓ + |T_S| > n/ℓ for the kept counts of a table of n rows.

    >>> is_candidate_for_l((5, 4, 2, 1, 1), 18, 3), is_candidate_for_l((6, 4, 2, 1, 1), 18, 3)
    (True, False)
    """
    lth_largest = sorted(kept, reverse=True)[ell - 1]
    return (lth_largest + n_rows - sum(kept)) * ell > n_rows


def least_violating_count(n_rows: int, ell: int) -> int:
    """The smallest count of one value that breaks ℓ-eligibility of a table of n rows."""
    return n_rows // ell + 1


def check_counts(counts: Sequence[int], ell: int) -> None:
    """Refuse counts or an ℓ for which suppression is not defined."""
    if ell < 1:
        raise InputError(f"l is {ell}; it must be a whole number, 1 or more")
    if not counts:
        raise InputError("the sensitive column has no values; suppression needs at least one row")
    if min(counts) < 1:
        raise InputError(
            f"{sum(count < 1 for count in counts)} of the {len(counts)} counts are below 1",
            hint="leave out the values that no record has",
        )
    if ell > len(counts):
        raise PromiseNotMet(
            f"l = {ell} is more than the {len(counts)} different values of the sensitive column",
            hint=f"the largest l that any release can keep is {len(counts)}",
        )


def secret_ranks(counts: Sequence[int], stream: np.random.Generator) -> tuple[int, ...]:
    """The values in descending order of count; equal counts in a uniformly random, secret order.

    A public order between equal counts would leak: with n = 18, m = 5, ℓ = 3 the posterior of the
    commonest value then reaches 0.367 even under safe D-suppression.
    """
    shuffled = stream.permutation(len(counts))
    by_count = np.argsort([-counts[value] for value in shuffled], kind="stable")
    return tuple(int(value) for value in shuffled[by_count])


Counts = tuple[int, ...]


class Ladder:
    """Sums of min(count, level) over a set of counts, each in O(log m)."""

    __slots__ = ("ascending", "sums")

    def __init__(self, counts: Sequence[int]) -> None:
        self.ascending = sorted(counts)
        self.sums = [0, *accumulate(self.ascending)]

    def count_kept(self, level: int) -> int:
        """How many records are left when every count is cut to the level."""
        below = bisect_left(self.ascending, level)
        return self.sums[below] + level * (len(self.ascending) - below)

    def n_reaching(self, level: int) -> int:
        """How many values have at least that count."""
        return len(self.ascending) - bisect_left(self.ascending, level)

    def highest_eligible_level(self, ell: int) -> int:
        """The highest level L with ℓ·L ≤ Σ min(count, L), at most the largest count.

        Σ min(count, L) / L never grows with L, so the eligible levels are all those below the highest.
        """
        return _last_true(0, self.ascending[-1], lambda level: level * ell <= self.count_kept(level))


def cut_to_level(counts: Sequence[int], level: int) -> Counts:
    """The state at the start of a level: no value above it.

    >>> cut_to_level((10, 4, 2, 1, 1), 3)
    (3, 3, 2, 1, 1)
    """
    return tuple(min(count, level) for count in counts)


def after_removals(counts: Sequence[int], n_removed: int) -> Counts:
    """The state of D-suppression after so many removals; `counts` in rank order.

    >>> after_removals((10, 4, 2, 1, 1), 7)  # the value of lower rank goes first among equals
    (4, 3, 2, 1, 1)
    """
    ladder, total = Ladder(counts), sum(counts)
    # The lowest level whose start needs no more than the removals made; what is over is cut within it.
    level = _first_true(0, max(counts), lambda at: total - ladder.count_kept(at) <= n_removed)
    kept = list(cut_to_level(counts, level))
    n_within = n_removed - (total - sum(kept))
    at_level = [rank for rank, count in enumerate(kept) if count == level]
    for rank in at_level[len(at_level) - n_within :]:
        kept[rank] -= 1
    return tuple(kept)


def stop_when(counts: Sequence[int], holds: Callable[[Counts], bool]) -> Counts:
    """The first state at which a condition holds that stays true once it is true.

    >>> stop_when((10, 4, 2, 1, 1), lambda kept: sum(kept) <= 11)
    (4, 3, 2, 1, 1)
    """
    n_removed = _first_true(0, sum(counts), lambda removed: holds(after_removals(counts, removed)))
    return after_removals(counts, n_removed)


def stop_when_eligible(counts: Sequence[int], ell: int) -> Counts:
    """The first state that is P-eligible: always the start of a level, so no ties are broken."""
    return cut_to_level(counts, Ladder(counts).highest_eligible_level(ell))


def stop_when_eligible_and_candidate(
    counts: Sequence[int],
    n_rows: int,
    ell: int,
) -> Counts:
    """The first state with P-eligibility and ℓ-candidacy, the second step of R-suppression.

    ℓ-candidacy stays true once it holds. P-eligibility holds at the start of every level from the
    highest eligible one down, and within a level until too many of its values are cut.
    """
    kept = stop_when_eligible(counts, ell)
    if is_candidate_for_l(kept, n_rows, ell):
        return kept
    kept = _stop_when_candidate(kept, n_rows, ell)
    if max(kept) * ell <= sum(kept):
        return kept
    return cut_to_level(kept, max(kept) - 1)


def _stop_when_candidate(counts: Counts, n_rows: int, ell: int) -> Counts:
    lth_largest = sorted(counts, reverse=True)[ell - 1]
    n_needed = n_rows // ell + 1 - lth_largest - (n_rows - sum(counts))
    if n_needed <= sum(counts) - sum(cut_to_level(counts, lth_largest)):
        return after_removals(counts, n_needed)  # the ℓ-th largest is not touched by so few
    return stop_when(counts, lambda state: is_candidate_for_l(state, n_rows, ell))


def safe_d(ranked: Sequence[int], ell: int) -> Counts:
    """Safe D-suppression (theorem 1): cut everything to the count of the ℓ-th commonest value.

    >>> safe_d((10, 4, 2, 1, 1), 3)
    (2, 2, 2, 1, 1)
    """
    return cut_to_level(ranked, ranked[ell - 1])


def unsafe_d(ranked: Sequence[int], ell: int) -> Counts:
    """Unsafe D-suppression (theorem 2): a lower bound for comparisons, never to be published.

    >>> unsafe_d((10, 4, 2, 1, 1), 3)
    (4, 4, 2, 1, 1)
    """
    return stop_when_eligible_and_candidate(ranked, sum(ranked), ell)


def minimal_suppression(counts: Sequence[int], ell: int) -> Counts:
    """The largest eligible part (example 1): a baseline, never to be published.

    >>> minimal_suppression((10, 4, 2, 1, 1), 3)
    (4, 4, 2, 1, 1)
    """
    return stop_when_eligible(counts, ell)


def suppress_all(counts: Sequence[int]) -> Counts:
    """Publish nothing: the trivial baseline."""
    return (0,) * len(counts)


def _first_true(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The smallest integer in low..high at which a monotone condition holds (it holds at `high`)."""
    return low + bisect_left(range(low, high), True, key=holds)


def _last_true(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The largest integer in low..high at which a condition holds that is true first, then false."""
    return low + bisect_left(range(low + 1, high + 1), True, key=lambda at: not holds(at))


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
class CutPosterior:
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


def safe_posterior(ranked: Sequence[int], ell: int) -> CutPosterior:
    """Safe D-suppression, for every prior that treats labels alike: one over the values left on top."""
    value = Fraction(1, sum(count >= ranked[ell - 1] for count in ranked))
    return CutPosterior(value=value, low=value, high=value, how="closed form")
