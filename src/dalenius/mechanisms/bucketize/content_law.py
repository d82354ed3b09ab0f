"""The law of one bucket's contents among all contents with a plan's loads.

In the limit of many buckets of size S the counts c of one have a probability proportional to
Π_x w_x^c_x / c_x! (c_x at most the capacity, Σ c_x = S), with weights w that make the expected counts those
of the plan.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_STEPS = 400
_TOLERANCE = 1e-10


def content_weights(mean: Floats, capacity: Ints, size: int) -> Floats:
    """w: the weights under which a bucket's expected counts are `mean` (which adds up to `size`).

    >>> content_weights(np.array([1.0, 0.5, 0.5]), np.array([1, 1, 1]), 2).round(6).tolist()
    [inf, 1.0, 1.0]
    """
    mean, capacity = np.asarray(mean, dtype=np.float64), np.asarray(capacity, dtype=np.int64)
    weights = np.where(mean >= capacity, np.inf, np.where(mean > 0, 1.0, 0.0))
    free = np.flatnonzero((mean > 0) & (mean < capacity))
    places = size - int(capacity[(mean >= capacity) & (mean > 0)].sum())
    if not len(free) or not places:
        return weights
    target, limit = mean[free], capacity[free]
    w = target / (limit - target)
    for _ in range(_STEPS):
        expected = _expected_counts(w, limit, places)
        w = w * (target / expected) * ((limit - expected) / (limit - target))
        w = w / np.exp(np.log(w).mean())
        if np.abs(expected - target).max() < _TOLERANCE:
            break
    weights[free] = w
    return weights


def _expected_counts(w: Floats, capacity: Ints, places: int) -> Floats:
    """E c_x under Π w^c/c!, c ≤ capacity, Σ c = places."""
    m = len(w)
    terms = np.zeros((m, places + 1))
    terms[:, 0] = 1.0
    for c in range(1, places + 1):
        terms[:, c] = np.where(c <= capacity, terms[:, c - 1] * w / c, 0.0)
    before = [np.eye(1, places + 1)[0]]
    after = [np.eye(1, places + 1)[0]]
    for x in range(m):
        before.append(_times(before[-1], terms[x]))
        after.append(_times(after[-1], terms[m - 1 - x]))
    expected = np.zeros(m)
    counts = np.arange(places + 1)
    for x in range(m):
        others = _times(before[x], after[m - 1 - x])
        law = terms[x] * others[::-1]
        expected[x] = (counts * law).sum() / law.sum()
    return expected


def _times(one: Floats, two: Floats) -> Floats:
    product = np.convolve(one, two)[: len(one)]
    return np.asarray(product / product.max())
