"""Safe suppression where values have limits of their own: thinned until none is above its limit.

Values with the same limit are a *class*. Where a value of a class is above its limit t, everything in the
class is cut to the count of its ℓ-th commonest value, ℓ = ⌈1/t⌉ (for one limit 1/ℓ this is Safe
D-suppression). At least ℓ values of the class are then equally common, so ℓ·F ≤ n′ and F ≤ t·n′: the limit
holds, and goes on holding whatever else is cut. Fewer rows may bring another class above its limit, so this
is repeated; a class that is above stays above until it is cut, so the order does not matter.

What is kept depends on the counts of a class by their order only. So for every prior that treats the names of
a class's values alike, also that of one who knows the sorted counts of every class, each of the k ≥ ℓ values
that are left on top of a class is as likely as the others to have been its commonest: 1/k ≤ t. By the same
symmetry somebody who was withheld has any one of them with at most 1/k. A value that is alone with its limit
cannot be hidden so: nothing else can have been it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dalenius.errors import PromiseNotMet
from dalenius.exact import show
from dalenius.mechanisms.suppress.d_suppression import Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitCut:
    """A class of values that was thinned."""

    limit: Fraction
    level: int
    """No value of the class has more records left."""
    alike: int
    """How many values have exactly as many: each of them may have been the commonest."""

    @property
    def posterior(self) -> Fraction:
        """How sure anybody can be which value of the class was its commonest."""
        return Fraction(1, self.alike)


class TooFewAlike(PromiseNotMet):
    """A value is above its limit, and too few values have the same limit to hide which one it is."""


def fewest_alike(limit: Fraction, *, is_strict: bool) -> int:
    """How many values must look the same: 1/k at most the limit, or below it.

    >>> fewest_alike(Fraction(1, 5), is_strict=False), fewest_alike(Fraction(1, 5), is_strict=True)
    (5, 6)
    """
    top, bottom = limit.as_integer_ratio()
    return bottom // top + 1 if is_strict else -(-bottom // top)


def cut_to_limits(
    counts: Sequence[int], limits: Sequence[Fraction], *, is_strict: bool = False
) -> tuple[Counts, tuple[LimitCut, ...]]:
    """How many records of each value are kept, and what was cut.

    Args:
        counts: Of each value.
        limits: The most that each value may make up of what is kept.
        is_strict: A value must be below its limit, not at it; a limit of 1 is none.

    >>> third, half = Fraction(1, 3), Fraction(1, 2)
    >>> cut_to_limits((10, 4, 2, 3, 3), (third, third, third, half, half))[0]
    (2, 2, 2, 3, 3)
    """
    kept, cuts = list(counts), dict[Fraction, LimitCut]()
    while True:
        n_rows = sum(kept)
        above = {
            limit
            for count, limit in zip(kept, limits, strict=True)
            if limit < 1 and limit not in cuts and _is_above(count, limit, n_rows, is_strict=is_strict)
        }
        if not above:
            return tuple(kept), tuple(cuts[limit] for limit in sorted(cuts))
        for limit in above:
            own = [code for code, other in enumerate(limits) if other == limit]
            least = fewest_alike(limit, is_strict=is_strict)
            if len(own) < least:
                raise _too_few(limit, len(own), least)
            level = sorted((counts[code] for code in own), reverse=True)[least - 1]
            for code in own:
                kept[code] = min(kept[code], level)
            alike = sum(counts[code] >= level for code in own)
            cuts[limit] = LimitCut(limit=limit, level=level, alike=alike)


def _is_above(count: int, limit: Fraction, n_rows: int, *, is_strict: bool) -> bool:
    top, bottom = limit.as_integer_ratio()
    return count * bottom >= top * n_rows if is_strict else count * bottom > top * n_rows


def _too_few(limit: Fraction, n_values: int, least: int) -> TooFewAlike:
    have = "1 value has" if n_values == 1 else f"{n_values} values have"
    return TooFewAlike(
        f"a value with the limit {show(limit)} is above it, and {have} this limit: at least {least} that "
        "look the same are needed to hide which one it was",
        hint="give more values the same limit, or this one a larger limit",
    )
