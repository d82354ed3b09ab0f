"""Exact intervals of success rates, and how far chance can carry a sum."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

FALSE_ALARM = 1e-6
"""The probability with which a release that keeps its promise is said to break it, attack by attack."""
DISPLAY = 0.95


def clopper_pearson(successes: float, trials: float, confidence: float = DISPLAY) -> tuple[float, float]:
    """The exact interval of a binomial probability; expected (fractional) successes are rounded outwards.

    >>> low, high = clopper_pearson(5, 10)
    >>> round(low, 3), round(high, 3)
    (0.187, 0.813)
    """
    if trials <= 0:
        return 0.0, 1.0
    tail = (1 - confidence) / 2
    down, up = math.floor(successes + 1e-9), math.ceil(successes - 1e-9)
    low = 0.0 if down <= 0 else float(betaincinv(down, trials - down + 1, tail))
    high = 1.0 if up >= trials else float(betaincinv(up + 1, trials - up, 1 - tail))
    return low, high


def is_above(successes: float, trials: float, bound: float) -> bool:
    """Whether the success rate is above the bound beyond doubt (false alarm 1e-6).

    >>> is_above(60, 100, 0.5), is_above(90, 100, 0.5)
    (False, True)
    """
    return clopper_pearson(successes, trials, 1 - 2 * FALSE_ALARM)[0] > bound


def bernstein_limit(variance: float, largest: float) -> float:
    """What a centred sum of independent terms of at most `largest` exceeds once in a million times.

    Bernstein's inequality, exp(−t²/(2(v + b·t/3))) = α, solved for t.

    >>> round(bernstein_limit(100.0, 1.0), 1)
    57.4
    """
    log = -math.log(FALSE_ALARM)
    return largest * log / 3 + math.sqrt((largest * log / 3) ** 2 + 2 * variance * log)


def rank_correlation(first: ArrayLike, second: ArrayLike) -> float:
    """Spearman's correlation of two sequences without ties in one of them; 0 for fewer than two."""
    a, b = (np.argsort(np.argsort(np.asarray(x), kind="stable"), kind="stable") for x in (first, second))
    n = len(a)
    if n < 2:
        return 0.0
    centre = (n - 1) / 2
    return float(((a - centre) * (b - centre)).sum() / (n * (n * n - 1) / 12))
