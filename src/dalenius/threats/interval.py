"""Exact intervals of success rates, and rank correlation."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainccinv, betaincinv

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
    """The rate above which the true one is, but for a probability of `tail`."""
    down = math.floor(successes + 1e-9)
    return 0.0 if trials <= 0 or down <= 0 else float(betaincinv(down, trials - down + 1, tail))


def largest_rate(successes: float, trials: float, tail: float) -> float:
    """The rate below which the true one is, but for a probability of `tail`."""
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
