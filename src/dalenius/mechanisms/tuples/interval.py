"""Estimated counts with their variances, and intervals that cover, also for small counts.

Small counts: the exact law of n_V, a sum of two binomials that grows with Q, is inverted as Clopper and
Pearson do for one binomial; its coverage is at least the confidence for every Q. Large counts: the score
interval, all Q with (Q̃ − Q)² ≤ z²·Var(Q), the variance taken at each Q and not at the estimate. Weighted
sums over few tuples, whose exact law is not to be had: Bernstein's inequality, wider, which covers too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.arrays import Floats, Ints, normal_quantile

Interval = tuple[float, float]
_Condition = Callable[[int], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class TupleVariance:
    """What one tuple of the query adds to the variance of an estimate."""

    inside: Fraction
    """A tuple of the table (for FRAPP: a record that satisfies the query)."""
    outside: Fraction
    """A tuple of the domain that is not in the table (for FRAPP: a record that does not satisfy it)."""

    def total(self, count: Fraction | int, population: int) -> Fraction:
        """The estimate's variance at a true count, of a population of n_D tuples (FRAPP: n records)."""
        return count * self.inside + (population - count) * self.outside


@dataclass(frozen=True, slots=True, kw_only=True)
class CountEstimate:
    """An unbiased estimate of a count, and an estimate of its variance.

    The variance is the exact one at the estimate, moved into the possible range of counts first.
    """

    value: Fraction
    population: int
    tuple_variance: TupleVariance

    @property
    def variance(self) -> float:
        """The estimated variance."""
        possible = min(max(self.value, Fraction(0)), Fraction(self.population))
        return float(self.tuple_variance.total(possible, self.population))

    @property
    def std_error(self) -> float:
        """The estimated standard error."""
        return math.sqrt(self.variance)


_EXACT_COUNT = 2_000
_EXACT_POPULATION = 50_000
"""With more tuples seen and possible, the normal approximation is as good as the exact interval."""


def count_interval(
    observed: int, estimate: CountEstimate, inside: Fraction, outside: Fraction, confidence: float
) -> Interval:
    """For a plain count of a view: exact where the count is small, score otherwise.

    Args:
        observed: n_V.
        estimate: the estimate made from it.
        inside: the probability that a tuple (FRAPP: record) inside is counted.
        outside: the probability that one outside is counted.
        confidence: of the interval, such as 0.95.
    """
    if observed <= _EXACT_COUNT or estimate.population <= _EXACT_POPULATION:
        return exact_interval(observed, estimate.population, float(inside), float(outside), confidence)
    return score_interval(estimate, confidence)


_MANY_OUTSIDE = 1_000_000
_FEW_TUPLES = 100
"""Where fewer make up a variance, it does not tell enough of the tails."""


def weighted_interval(estimate: CountEstimate, spread: Fraction, confidence: float) -> Interval:
    """For a weighted sum: score where many tuples make up the variance, Bernstein where few do."""
    if estimate.variance > _FEW_TUPLES * float(spread) ** 2:
        return score_interval(estimate, confidence)
    return bernstein_interval(estimate, float(spread), confidence)


def score_interval(estimate: CountEstimate, confidence: float) -> Interval:
    """All Q whose own variance explains the estimate, by the normal law."""
    z = normal_quantile((1 + confidence) / 2)
    return _within(estimate, z**2, 0.0)


def bernstein_interval(estimate: CountEstimate, spread: float, confidence: float) -> Interval:
    """All Q whose own variance explains the estimate, by Bernstein's inequality."""
    log_term = math.log(2 / (1 - confidence))
    return _within(estimate, 2 * log_term, log_term * spread / 3)


def _within(estimate: CountEstimate, scale: float, linear: float) -> Interval:
    """All Q with (|Q̃ − Q| − linear)² ≤ linear² + scale·Var(Q), within the possible counts.

    With y = |Q̃ − Q| this is y² − y(2·linear ± scale·(a−b)) − scale·Var(Q̃) ≤ 0, a and b the variances of a
    tuple inside and outside.
    """
    value = float(estimate.value)
    slope = scale * float(estimate.tuple_variance.inside - estimate.tuple_variance.outside)
    constant = scale * float(estimate.tuple_variance.total(estimate.value, estimate.population))
    above = _larger_root(2 * linear + slope, constant)
    below = _larger_root(2 * linear - slope, constant)
    return _clip(value - below, estimate.population), _clip(value + above, estimate.population)


def _larger_root(linear: float, constant: float) -> float:
    """The larger root of y² − linear·y − constant; where there is none, no Q fits better than the vertex."""
    return max(0.0, linear / 2 + math.sqrt(max(0.0, linear**2 / 4 + constant)))


def _clip(bound: float, population: int) -> float:
    return min(max(bound, 0.0), float(population))


def exact_interval(
    observed: int, population: int, inside: float, outside: float, confidence: float
) -> Interval:
    """All counts Q for which neither tail of Binomial(Q, inside) + Binomial(population − Q, outside) is rare.

    >>> exact_interval(3, 10**20, 0.5, 1e-20, 0.95)
    (0.0, 12.0)
    """
    tail = (1 - confidence) / 2
    guess, step = _near(observed, population, inside, outside)
    lowest = _first_true(
        lambda count: 1 - _cdf(observed - 1, count, population, inside, outside) > tail,
        population,
        max(guess - 2 * step, 0),
        step,
    )
    above = _first_true(
        lambda count: _cdf(observed, count, population, inside, outside) <= tail,
        population,
        min(guess + 2 * step, population),
        step,
    )
    return float(min(lowest, population)), float(max(above - 1, 0))


def _near(observed: int, population: int, inside: float, outside: float) -> tuple[int, int]:
    """A count that the observation points at, and a standard error of it: where to begin to search."""
    count = min(max((observed - outside * population) / (inside - outside), 0.0), float(population))
    error = math.sqrt(observed + 1.0) / (inside - outside)
    return int(count), max(1, min(int(error), population))


def _first_true(condition: _Condition, population: int, start: int, step: int) -> int:
    """The smallest Q ≤ population with the condition, which holds from some Q on; population + 1 if none."""
    low = high = start
    while high <= population and not condition(high):
        low, high, step = high, high + step, 2 * step
    high = min(high, population + 1)
    if high == start:  # it holds already: search below
        low = start - step
        while low >= 0 and condition(low):
            step *= 2
            high, low = low, low - step
        low = max(low, -1)
    while high - low > 1:
        middle = (low + high) // 2
        if condition(middle):
            high = middle
        else:
            low = middle
    return high


def _cdf(observed: int, count: int, population: int, inside: float, outside: float) -> float:
    """Pr[Binomial(count, inside) + Binomial(population − count, outside) ≤ observed]."""
    from scipy import special  # takes a quarter of a second to load: not for counts that are not small

    if observed < 0:
        return 0.0
    middle, reach = count * inside, 8 * math.sqrt(count * inside * (1 - inside)) + 25  # beyond: below 1e-14
    from_inside = np.arange(
        max(0, math.floor(middle - reach)), min(count, observed, math.ceil(middle + reach)) + 1
    )
    weights = _binomial_pmf(from_inside, count, inside)
    n_outside, left = population - count, observed - from_inside
    rest = np.ones(len(left))
    short = left < n_outside
    if n_outside > _MANY_OUTSIDE or not short.any():  # whose probabilities have fewer digits
        rest[short] = special.betaincc(left[short] + 1, float(n_outside) - left[short], outside)
    else:  # one after the other, which is faster: the last is the least
        least = special.betaincc(left[-1] + 1, float(n_outside) - left[-1], outside)
        more = _binomial_pmf(left[short][-2::-1], n_outside, outside)
        rest[short] = (least + np.concatenate([[0.0], np.cumsum(more)]))[::-1]
    return float(weights @ rest)


def _binomial_pmf(successes: Ints, n: int, p: float) -> Floats:
    from scipy import special  # scipy.stats has this too, and takes a second to load

    log_ways = special.gammaln(n + 1) - special.gammaln(successes + 1) - special.gammaln(n - successes + 1)
    log_pmf = log_ways + special.xlogy(successes, p) + special.xlog1py(n - successes, -p)
    return np.asarray(np.exp(log_pmf))
