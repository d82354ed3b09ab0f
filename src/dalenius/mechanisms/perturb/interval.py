"""Intervals for totals, also where few records count.

The score interval solves (|estimate − T| − half step)² ≤ z²·Var(T) for T, Var(T) = variance + slope·(T −
estimate), but never below its public floor: Wilson's idea for a mixture of binomials, with a correction for
continuity. Fixing the variance at the estimate instead fails at small counts. Hoeffding's interval holds at
its confidence for any number of records, and is wide. Both are cut to what is possible.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from dalenius.mechanisms.perturb.estimate import Totals
from dalenius.mechanisms.perturb.matrix import FloatArray

Ends = tuple[FloatArray, FloatArray]


def score_ends(totals: Totals, confidence: float) -> Ends:
    """The ends of the score interval of each total."""
    z2 = float(ndtri((1 + confidence) / 2)) ** 2
    below, above = _reach(totals, -totals.slope, z2), _reach(totals, totals.slope, z2)
    return _possible(totals, totals.estimate - below, totals.estimate + above)


def hoeffding_ends(totals: Totals, confidence: float) -> Ends:
    """The ends of an interval that holds with at least that probability, whatever the number of records."""
    reach = np.sqrt(math.log(2 / (1 - confidence)) / 2 * totals.squared_ranges)
    return _possible(totals, totals.estimate - reach, totals.estimate + reach)


def _reach(totals: Totals, slope: FloatArray, z2: float) -> FloatArray:
    """The d > 0 at which (d − c)² = z²·(variance + slope·d), c the half step."""
    middle = 2 * totals.half_step + z2 * slope
    product = totals.half_step**2 - z2 * totals.variance
    root = np.sqrt(np.maximum(middle**2 - 4 * product, 0.0))
    at_least = totals.half_step + np.sqrt(z2 * totals.floor)
    found: FloatArray = np.maximum((middle + root) / 2, at_least)
    return found


def _possible(totals: Totals, low: FloatArray, high: FloatArray) -> Ends:
    """Where the whole interval is impossible, the nearest possible number is left of it."""
    return np.clip(low, totals.low, totals.high), np.clip(high, totals.low, totals.high)
