"""Suppression rates over many tables at once, for the paper's figures 5 to 8."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalenius.mechanisms.suppress.d_suppression import safe_d, unsafe_d
from dalenius.mechanisms.suppress.exact_groups import grouped
from dalenius.mechanisms.suppress.r_suppression import RSuppression

RATE_COLUMNS = ("unsafe", "randomized", "grouped", "safe", "all")


def suppression_rates(samples: NDArray[np.integer], ell: int) -> dict[str, NDArray[np.float64]]:
    """The share of each sample that each method withholds (expected where random), 0 if eligible.

    Args:
        samples: one histogram a row; a count of 0 is a value that the sample does not have.
        ell: the ℓ of ℓ-eligibility.

    `grouped` is the closed form of the exact method. A violating sample with fewer than ℓ values has
    no solution but to withhold it all, and counts as 1 in every column.
    """
    rates = np.zeros((len(samples), len(RATE_COLUMNS)))
    descending = -np.sort(-samples, axis=1)
    violating = descending[:, 0] * ell > descending.sum(axis=1)
    for number in np.flatnonzero(violating):
        row = descending[number]
        rates[number] = _rates(row[row > 0].tolist(), ell)
    return dict(zip(RATE_COLUMNS, rates.T, strict=True))


def _rates(ranked: list[int], ell: int) -> list[float]:
    n_rows = sum(ranked)
    if len(ranked) < ell:
        return [1.0] * len(RATE_COLUMNS)
    kept = [sum(method(ranked, ell)) for method in (unsafe_d, grouped, safe_d)]
    unsafe, groups, safe = (1 - left / n_rows for left in kept)
    randomized = float(RSuppression(ranked, ell).expected_suppressed() / n_rows)
    return [unsafe, randomized, groups, safe, 1.0]
