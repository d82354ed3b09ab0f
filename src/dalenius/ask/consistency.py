"""A table that is possible: every count within its range, and counts that add up to what is known.

The estimates are moved as little as possible, in units of their own errors: to the nearest point, by weighted
least squares, of the box of possible counts and of the planes on which groups add up.
"""

from __future__ import annotations

import numpy as np

from dalenius.arrays import Bools, Floats
from dalenius.question.model import Possible


def project(estimate: Floats, std_error: Floats, low: Floats, high: Floats, total: float) -> Floats:
    """The nearest point with low ≤ x ≤ high and Σ x = total.

    >>> project(np.array([-1.0, 4.0]), np.ones(2), np.zeros(2), np.full(2, 9.0), 3.0).round(6).tolist()
    [0.0, 3.0]
    """
    if not len(estimate):
        return estimate
    finite = np.where(np.isfinite(std_error), std_error, 1e6)
    variance = np.maximum(finite, 1e-9) ** 2
    # x(s) = clip(estimate + s·variance) grows with s: bisect for the s at which it adds up
    reach = (np.abs(high - estimate) + np.abs(low - estimate)).max() / variance.min() + 1.0
    below, above = -reach, reach
    for _ in range(200):
        shift = (below + above) / 2
        if np.clip(estimate + shift * variance, low, high).sum() < total:
            below = shift
        else:
            above = shift
    return np.asarray(np.clip(estimate + above * variance, low, high))


def make_consistent(totals: Floats, is_count: Bools, possible: Possible) -> Floats:
    """Move every count to what is possible; sums of numbers are left as they are.

    Args:
        totals: groups × totals.
        is_count: which totals are counts.
        possible: what they can be.
    """
    moved, low, high = totals.copy(), possible.low, possible.high
    counts = is_count & np.isfinite(low) & np.isfinite(high)
    moved[counts] = np.clip(totals[counts], low[counts], high[counts])
    for plane in possible.planes:
        cells = plane.groups, plane.total
        least, most = low[cells], high[cells]
        total = float(np.clip(totals[cells].sum(), least.sum(), most.sum()))
        moved[cells] = project(totals[cells], plane.std_error, least, most, total)
    return moved
