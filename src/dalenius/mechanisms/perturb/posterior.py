"""What a published value tells, by Bayes' rule in exact arithmetic, without using how γ was derived."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction


def largest_posterior(
    codes: Sequence[int], counts: Sequence[int], gamma: Fraction, targets: Collection[int]
) -> Fraction:
    """The highest Pr[X = x | Y = y] over the target values x and every y that can be published in a part.

    The prior is the part's histogram, and y is γ times as likely from y itself as from any other value:
    Pr[x | y] = o_x·γ^[x=y] / (n + (γ−1)·o_y). For each y only y itself and the commonest other target can
    be the highest. A part without target values gives 0.

    >>> largest_posterior((0, 1, 2), (6, 3, 3), Fraction(2), {0, 1, 2})
    Fraction(2, 3)
    """
    total, up, down = sum(counts), gamma.numerator, gamma.denominator
    is_target = set(targets)
    aimed = sorted(
        (count for code, count in zip(codes, counts, strict=True) if code in is_target), reverse=True
    )
    best = Fraction(0)
    for code, count in zip(codes, counts, strict=True):
        evidence = down * total + (up - down) * count  # of y, times γ's denominator
        own = up * count if code in is_target else 0
        others = aimed[1:2] if code in is_target and count == aimed[0] else aimed[:1]
        strongest = max(own, down * max(others, default=0))
        if strongest * best.denominator > best.numerator * evidence:
            best = Fraction(strongest, evidence)
    return best
