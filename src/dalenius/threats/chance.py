"""How far chance can carry a count, by bounds that hold for every size; and what an audit may blame on it.

An audit of a release that keeps its promise is silent, except for one in a million. Every attack that is
judged by chance says how likely such a release looks at least as bad to it, its *p-value*, over all tests
that the attack makes. The false alarm of a whole audit is split into equal shares, one for each such attack
(Bonferroni's bound: the shares add up, however the attacks depend on each other).
A release is accused by an attack whose p-value is within its share.

Tails are bounded by Chernoff's method, which errs on the side of silence also where counts are small.

Success rates have exact intervals (Clopper and Pearson).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainccinv, betaincinv

from dalenius.arrays import Floats

DISPLAY = 0.95


def clopper_pearson(successes: float, trials: float, confidence: float = DISPLAY) -> tuple[float, float]:
    """The exact interval of a binomial probability; expected (fractional) successes are rounded outwards.

    >>> low, high = clopper_pearson(5, 10)
    >>> round(low, 3), round(high, 3)
    (0.187, 0.813)
    """
    tail = (1 - confidence) / 2
    return least_rate(successes, trials, tail), largest_rate(successes, trials, tail)


def least_rate(successes: float, trials: float, tail: float) -> float:
    """The rate above which the true one is, except for a probability of `tail`."""
    down = math.floor(successes + 1e-9)
    return 0.0 if trials <= 0 or down <= 0 else float(betaincinv(down, trials - down + 1, tail))


def largest_rate(successes: float, trials: float, tail: float) -> float:
    """The rate below which the true one is, except for a probability of `tail`."""
    up = math.ceil(successes - 1e-9)
    return 1.0 if trials <= 0 or up >= trials else float(betainccinv(up + 1, trials - up, tail))


def rank_correlation(first: ArrayLike, second: ArrayLike) -> float:
    """Spearman's correlation of two sequences without ties in one of them; 0 for fewer than two."""
    a, b = (np.argsort(np.argsort(np.asarray(x), kind="stable"), kind="stable") for x in (first, second))
    n = len(a)
    if n < 2:
        return 0.0
    centre = (n - 1) / 2
    return float(((a - centre) * (b - centre)).sum() / (n * (n * n - 1) / 12))


FALSE_ALARM = 1e-6
"""The probability with which an audit accuses a release that keeps its promise, all attacks together."""
SHARES = 40
"""Into so many equal shares that is split; no mechanism has more attacks that are judged by chance."""
SHARE = FALSE_ALARM / SHARES
"""What one attack may add to the false alarm of its audit."""
_LEAST = 1e-30
"""P-values below it are not told apart."""


def share_of(n_attacks: int) -> float:
    """What each of so many attacks that are judged by chance may add to the false alarm of their audit.

    >>> share_of(3) == SHARE, share_of(80) == SHARE / 2
    (True, True)
    """
    return FALSE_ALARM / max(SHARES, n_attacks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """What a count may come to by chance: a sum of independent terms, or one over a random permutation.

    Bernstein's inequality, exp(−t²/(2(v + b·t/3))). For Σ a(i, π(i)) over a random permutation π, entries
    from 0 to 1, Chatterjee's exp(−t²/(4μ + 2t)) is the same with v = 2μ and b = 3.

    >>> coins = Chance(expected=50.0, variance=25.0)
    >>> round(coins.limit(1e-6), 1), coins.p_value(coins.limit(1e-6)) < 1.001e-6
    (81.3, True)
    """

    expected: float
    variance: float
    largest: float = 1.0
    """Of the terms, each less its expectation."""
    sides: int = 1
    """2 where a count that is as far below the expectation is as bad, and is turned round."""

    @classmethod
    def of_permutation(cls, expected: float) -> Chance:
        """Of a count of hits that a random permutation makes."""
        return cls(expected=expected, variance=2 * expected, largest=3.0)

    def p_value(self, count: float) -> float:
        """How likely chance makes at least so many, or more likely than it does."""
        excess = count - self.expected
        if excess <= 0:
            return 1.0
        spread = 2 * (self.variance + self.largest * excess / 3)
        return min(1.0, self.sides * math.exp(-(excess**2) / spread))

    def limit(self, level: float = SHARE) -> float:
        """What chance exceeds with that probability at most."""
        log = -math.log(level / self.sides)
        step = self.largest * log / 3
        return self.expected + step + math.sqrt(step**2 + 2 * self.variance * log)


def binomial_tail(successes: float, trials: float, probability: float) -> float:
    """How likely so many successes or more are at most, each of at most that probability (Chernoff).

    The trials need only be independent, with values from 0 to 1 and that mean.

    >>> binomial_tail(50, 100, 0.5), binomial_tail(90, 100, 0.5) < 1e-15
    (1.0, True)
    """
    if trials <= 0 or successes <= probability * trials:
        return 1.0
    return float(np.exp(log_chernoff(successes, trials * probability, trials)))


def log_chernoff(observed: ArrayLike, expected: ArrayLike, trials: ArrayLike) -> Floats:
    """The logarithm of Chernoff's bound −n·kl(x/n, μ/n) on a sum of n terms from 0 to 1 with mean μ.

    It bounds the tail beyond the observed sum on its side of μ, for independent terms (Hoeffding, 1963), and
    for draws without replacement. 2n·kl is the G statistic of the two cells.
    """
    x, mu, n = (np.asarray(a, dtype=np.float64) for a in (observed, expected, trials))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        hits = np.where(x > 0, x * np.log(x / mu), 0.0)
        # of a domain with 10²⁰ tuples nearly all are misses: a difference of logarithms would be lost
        misses = np.where(n > x, (n - x) * np.log1p((mu - x) / (n - mu)), 0.0)
        found = -(hits + misses)
    return np.asarray(np.where(np.isnan(found), 0.0, np.minimum(found, 0.0)))


def log_bennett(excess: ArrayLike, variance: ArrayLike, largest: float = 1.0) -> Floats:
    """The logarithm of Bennett's bound on a centred sum of independent terms, none above `largest`.

    exp(−(v/b²)·h(b·t/v)), h(u) = (1+u)·ln(1+u) − u. A hypergeometric number is a sum of independent coins too
    (Vatutin and Mikhailov, 1982), with its own, smaller variance.
    """
    t, v = np.asarray(excess, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        u = largest * t / v
        found = -(v / largest**2) * ((1 + u) * np.log1p(u) - u)
    return np.asarray(np.where(t <= 0, 0.0, np.where(v > 0, found, -np.inf)))


def least_level(is_broken: Callable[[float], bool], events: int = 2) -> float:
    """The p-value of a finding that needs confidence bounds at some level for so many events at once.

    Args:
        is_broken: whether it is made with bounds each of which fails with this probability.
        events: how many of them there are.

    >>> round(math.log10(least_level(lambda level: level > 1e-9, events=1)), 2)
    -9.0
    """
    low, high = math.log(_LEAST), math.log(0.05)
    if not is_broken(0.05):
        return 1.0
    if is_broken(_LEAST):
        return events * _LEAST
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if is_broken(math.exp(middle)) else (middle, high)
    return min(1.0, events * math.exp(high))
