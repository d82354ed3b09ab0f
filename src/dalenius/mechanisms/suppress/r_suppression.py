"""R-suppression: cut the commonest value to a random level, then D-suppress until both conditions hold.

Suppression paper, sections 4 and 5. Step 1 picks h in 1..ℓ and a level F uniformly in
[F_{h+1}, F_h] and cuts S_1 to F; step 2 is D-suppression until P-eligibility and ℓ-candidacy. A member
of the R* family picks h in 1..m with any probabilities of at most 1/ℓ.

**The printed promise is false.** Theorem 3 says that no posterior exceeds 1/ℓ; exact enumeration says
otherwise (0.717 instead of 1/3 for n = 18, m = 5, ℓ = 3). Nothing here claims 1/ℓ; see `posterior`.

Two facts make everything a closed form in F. Let U be the count of S_1 after unsafe D-suppression.
F ≥ U: the outcome is that of unsafe D-suppression (its state at level U is also on this path, and
by theorem 2 nothing earlier holds). F < U: at the start of level F both conditions hold (they do at
level U, and stay so), so step 2 stops before it would touch S_1, which stays at F.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from dalenius.errors import InputError, PromiseNotMet
from dalenius.mechanisms.suppress.d_suppression import (
    Counts,
    Ladder,
    draw_from,
    integer_below,
    stop_when_eligible_and_candidate,
    unsafe_d,
)

Weights = tuple[Fraction, ...]


def printed_weights(n_values: int, ell: int) -> Weights:
    """The choice of h in R-suppression as printed: 1/ℓ for each of 1..ℓ.

    >>> printed_weights(4, 2)
    (Fraction(1, 2), Fraction(1, 2), Fraction(0, 1), Fraction(0, 1))
    """
    return (Fraction(1, ell),) * ell + (Fraction(0),) * (n_values - ell)


class RSuppression:
    """R-suppression, or a member of its R* family, on one violating table.

    >>> law = RSuppression((10, 4, 2, 1, 1), 3).law()
    >>> {kept: str(p) for kept, p in law.items()}
    {(4, 4, 2, 1, 1): '4/9', (3, 3, 2, 1, 1): '1/9', (2, 3, 2, 1, 1): '5/18', (1, 2, 2, 1, 1): '1/6'}
    """

    __slots__ = ("ell", "n_rows", "ranked", "unsafe", "weights")

    def __init__(self, ranked: Sequence[int], ell: int, weights: Weights | None = None) -> None:
        self.ranked: Counts = tuple(ranked)
        self.ell = ell
        self.n_rows = sum(ranked)
        self.weights = printed_weights(len(ranked), ell) if weights is None else weights
        _check_weights(self.weights, len(ranked), ell)
        self.unsafe = unsafe_d(self.ranked, ell)

    def outcome(self, level: int) -> Counts:
        """What is kept when step 1 cuts S_1 to the level."""
        if level >= self.unsafe[0]:
            return self.unsafe
        return stop_when_eligible_and_candidate((level, *self.ranked[1:]), self.n_rows, self.ell)

    def interval(self, h: int) -> tuple[int, int]:
        """[F_{h+1}, F_h], the levels from which step 1 picks for that h (F_{m+1} = 0)."""
        return (*self.ranked, 0)[h], self.ranked[h - 1]

    def probability_of_level(self, level: int) -> Fraction:
        """How likely step 1 is to cut S_1 to exactly the level."""
        return self.probability_of_levels(level, level)

    def probability_of_levels(self, low: int, high: int) -> Fraction:
        """How likely step 1 is to cut S_1 to a level in low..high."""
        total = Fraction(0)
        for h, weight in self._choices():
            first, last = self.interval(h)
            n_inside = max(0, min(high, last) - max(low, first) + 1)
            total += weight * Fraction(n_inside, last - first + 1)
        return total

    def law(self) -> dict[Counts, Fraction]:
        """Every outcome and its exact probability, highest level first."""
        top = self.unsafe[0]
        law = {self.unsafe: self.probability_of_levels(top, self.ranked[0])}
        for level in range(top - 1, self._lowest_level() - 1, -1):
            law[self.outcome(level)] = self.probability_of_level(level)
        return {kept: p for kept, p in law.items() if p}

    def n_outcomes(self) -> int:
        """An upper bound on how many outcomes the law has, without listing them."""
        return max(0, self.unsafe[0] - self._lowest_level()) + 1

    def expected_suppressed(self) -> Fraction:
        """The exact expected number of withheld records, in closed form (no loop over levels)."""
        total = Fraction(0)
        for h, weight in self._choices():
            first, last = self.interval(h)
            total += weight * Fraction(_SuppressedSums(self).between(first, last), last - first + 1)
        return total

    def draw(self, stream: np.random.Generator) -> Counts:
        """What is kept in one run."""
        h = draw_from(dict(self._choices()), stream)
        first, last = self.interval(h)
        return self.outcome(first + integer_below(last - first + 1, stream))

    def _choices(self) -> list[tuple[int, Fraction]]:
        return [(h, weight) for h, weight in enumerate(self.weights, start=1) if weight]

    def _lowest_level(self) -> int:
        return self.interval(max(h for h, _ in self._choices()))[0]


class _SuppressedSums:
    """Sums of the number of withheld records over ranges of the level F of step 1.

    For F below U only the other values are cut further. Where P-eligibility decides, they are cut to
    L(F), the highest L with ℓ·L ≤ F + A(L), A(L) = Σ_{i≥2} min(F_i, L). With t others at or above L,
    A(L) = a + tL between two neighbouring counts, so L(F) = ⌊(F + a) / (ℓ - t)⌋ there: a sum of floors.

    ℓ-candidacy can ask for more only if F > F_ℓ (else S_1 or a cut value is the ℓ-th largest, and
    F′_ℓ + |T_S| ≥ F_1 > n/ℓ); F_ℓ is then untouched and K = ⌊n/ℓ⌋ - F_ℓ + 1 removals are needed, the
    same for all F. Such F are the highest ones. After K removals P-eligibility fails for fewer than ℓ
    of them: their level is above (n - K)/ℓ by less than one.
    """

    def __init__(self, table: RSuppression) -> None:
        self.table = table
        others = table.ranked[1:]
        self.ladder = Ladder(others)
        self.n_others = sum(others)
        self.top = table.unsafe[0]
        self.needed = table.n_rows // table.ell - table.ranked[table.ell - 1] + 1
        self.first_capped = self._first_capped()

    def between(self, first: int, last: int) -> int:
        """Σ of withheld records over F in first..last."""
        by_eligibility = self._by_eligibility(first, min(last, self.first_capped - 1))
        by_candidacy = self._by_candidacy(max(first, self.first_capped), min(last, self.top - 1))
        n_unsafe = max(0, last - max(first, self.top) + 1)
        return by_eligibility + by_candidacy + n_unsafe * self._count_suppressed(self.top)

    def _first_capped(self) -> int:
        """The lowest F from which ℓ-candidacy asks for more than P-eligibility (U if none does)."""
        low, high = min(self.top, self.table.ranked[self.table.ell - 1] + 1), self.top
        while low < high:
            middle = (low + high) // 2
            if self._by_eligibility(middle, middle) < self.needed:
                high = middle
            else:
                low = middle + 1
        return low

    def _by_candidacy(self, first: int, last: int) -> int:
        n_explicit = max(0, min(last, self.first_capped + self.table.ell - 1) - first + 1)
        explicit = sum(self._count_suppressed(level) for level in range(first, first + n_explicit))
        return explicit + max(0, last - first + 1 - n_explicit) * self.needed

    def _count_suppressed(self, level: int) -> int:
        return self.table.n_rows - sum(self.table.outcome(level))

    def _by_eligibility(self, first: int, last: int) -> int:
        n_levels = max(0, last - first + 1)
        kept = (first + last) * n_levels // 2
        return n_levels * self.table.n_rows - kept - self._others_kept(first, last)

    def _others_kept(self, first: int, last: int) -> int:
        """Σ of A(L(F)) over F in first..last, piece by piece between neighbouring counts."""
        ell, total = self.table.ell, 0
        distinct = [0, *sorted(set(self.table.ranked[1:]))]
        for below, count in pairwise(distinct):
            n_reaching = self.ladder.n_reaching(count)
            rest = self.ladder.count_kept(count) - n_reaching * count  # a in the class's docstring
            low, high = max(first, self._least_level_for(below + 1)), self._least_level_for(count) - 1
            high = min(last, high)
            if high >= low:
                floors = _sum_of_floors(low + rest, high + rest, ell - n_reaching)
                total += (high - low + 1) * rest + n_reaching * floors
            # From here until the next piece starts, L(F) stays at this count.
            stop = last if count == distinct[-1] else min(last, self._least_level_for(count + 1) - 1)
            start = max(first, self._least_level_for(count))
            total += max(0, stop - start + 1) * self.ladder.count_kept(count)
        return total

    def _least_level_for(self, level: int) -> int:
        """The least F at which the others may keep that level: L(F) ≥ L iff F ≥ ℓ·L - A(L)."""
        return self.table.ell * level - self.ladder.count_kept(level)


def _sum_of_floors(first: int, last: int, divisor: int) -> int:
    """Σ ⌊x / divisor⌋ over x in first..last (first ≥ 0)."""

    def up_to(x: int) -> int:
        whole, rest = divmod(x + 1, divisor)
        return divisor * whole * (whole - 1) // 2 + rest * whole

    return up_to(last) - up_to(first - 1)


def _check_weights(weights: Weights, n_values: int, ell: int) -> None:
    if len(weights) != n_values or sum(weights) != 1 or min(weights) < 0:
        raise InputError(f"the probabilities of h must be {n_values} numbers that add up to 1")
    if max(weights) * ell > 1:
        raise PromiseNotMet(f"a probability of h is {max(weights)}; the R* family allows at most 1/{ell}")
