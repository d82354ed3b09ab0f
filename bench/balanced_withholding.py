"""Would balanced withholding hide the commonest value from who sees who was withheld? Exact Bayes.

    python -m bench.balanced_withholding

Two values are tied after suppression (l = 2): t people of each are published, w people of the commonest are
withheld. The attacker knows everybody's sex, sees who is withheld, and even knows every published person's
value: only which of the two the withheld people have is hidden, and without their sex that is a coin. `plain`
withholds a uniformly random choice of the value's people, as `safe` does. `balanced` first draws how many of
the withheld are women as if they were drawn from the whole table, then people of the value to fit, as far as
there are enough of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import comb

import numpy as np

Withholding = Callable[[int, int, int, int], dict[int, Fraction]]
"""From women with the commonest value and with the other, t and w: the law of how many women are withheld."""


def plain(women: int, others: int, t: int, w: int) -> dict[int, Fraction]:  # noqa: ARG001
    """Hypergeometric, within the value."""
    return {
        k: Fraction(comb(women, k) * comb(t + w - women, w - k), comb(t + w, w))
        for k in range(w + 1)
        if k <= women and w - k <= t + w - women
    }


def balanced(women: int, others: int, t: int, w: int) -> dict[int, Fraction]:
    """Hypergeometric from the whole table, among what the value's people allow."""
    total, size = women + others, 2 * t + w
    possible = [k for k in range(w + 1) if k <= women and w - k <= t + w - women]
    weights = {k: comb(total, k) * comb(size - total, w - k) for k in possible}
    everything = sum(weights.values())
    if not everything:
        return plain(women, others, t, w)
    return {k: Fraction(weight, everything) for k, weight in weights.items() if weight}


def uniform(n: int) -> list[Fraction]:
    """How many of n people with a value are women, where every share is as likely as any other."""
    return [Fraction(1, n + 1)] * (n + 1)


def near_half(n: int) -> list[Fraction]:
    """The same where a value's share of women is near one half: Beta(6, 6)."""
    weights = [Fraction(comb(n, k) * comb(k + 5, 5) * comb(n - k + 5, 5), comb(n, k)) for k in range(n + 1)]
    return [weight / sum(weights) for weight in weights]


def extreme(n: int) -> list[Fraction]:
    """Diseases of men, of women, and of both alike."""
    even = [Fraction(comb(n, k), 2**n) for k in range(n + 1)]
    ends = [Fraction(int(k in (0, n)), 2) for k in range(n + 1)]
    return [(a + b) / 2 for a, b in zip(even, ends, strict=True)]


def outcomes(
    prior: Callable[[int], list[Fraction]], law: Withholding, t: int, w: int
) -> Iterator[tuple[tuple[int, int, int], Fraction]]:
    """What is seen if the first value is the commonest: its published women, the other's, the withheld."""
    for women, p in enumerate(prior(t + w)):
        for others, q in enumerate(prior(t)):
            if p and q:
                for k, chance in law(women, others, t, w).items():
                    yield (women - k, others, k), p * q * chance


def success(prior: Callable[[int], list[Fraction]], law: Withholding, t: int, w: int) -> tuple[float, float]:
    """How often the better guess is right, and the surest that anybody is in one case of twenty or more."""
    likelihood: dict[tuple[int, int, int], Fraction] = defaultdict(Fraction)
    for seen, chance in outcomes(prior, law, t, w):
        likelihood[seen] += chance
    right, sure = Fraction(0), []
    for (first, second, k), chance in likelihood.items():
        other = likelihood.get((second, first, k), Fraction(0))
        right += max(chance, other) / 2  # both orders are listed
        sure.append((float(max(chance, other) / (chance + other)), float(chance)))
    sure.sort(reverse=True)
    reached = np.searchsorted(np.cumsum([weight for _, weight in sure]), 0.05)
    return float(right), sure[min(int(reached), len(sure) - 1)][0]


def share_of_women(law: Withholding, t: int, w: int, share: float) -> float:
    """The expected share of women among the value's published people, where it is `share` among all."""
    women = round(share * (t + w))
    others = round((1 - share) * t)
    return sum(float(chance) * (women - k) for k, chance in law(women, others, t, w).items()) / t


def main() -> None:
    """Print all of it."""
    print("how often the commonest value is guessed right (1/2: nothing learnt), how sure one case in 20 is")
    for t, w in ((6, 4), (20, 15)):
        for prior in (uniform, near_half, extreme):
            found = [success(prior, law, t, w) for law in (plain, balanced)]
            print(
                f"t = {t:>2}, w = {w:>2}, {prior.__name__:>9}:"
                + "".join(
                    f"  {law.__name__} {a:.3f} {b:.3f}"
                    for law, (a, b) in zip((plain, balanced), found, strict=True)
                ),
                flush=True,
            )
    print("women among the published people of a value that has 75 %:")
    print(", ".join(f"{law.__name__} {share_of_women(law, 60, 40, 0.75):.1%}" for law in (plain, balanced)))


if __name__ == "__main__":
    main()
