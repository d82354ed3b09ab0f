"""Values that go a way of their own: heavier tails for what is asked about.

That all values scatter alike is wrong where most hardly differ and a few differ wholly (a disease that only
women have), and a release tells little about a rare value. So the values of a question may, beside the
scatter that all share, differ from the rest by a number δ ~ N(0, η·s²) of their own, in the direction u of
the question's weights a. The contrasts, of covariance V = s²·diag((1−ρ) + ρ·ω), have mean δ·h, and a
prediction with factors c misses δ·(Σ a·u·o − c·h) of the total. What the contrasts leave of δ's variance,
η·s²/(1 + η·s²·hᵀV⁻¹h), adds to the error.

What they say about δ itself is not used: large contrasts of common values would be taken for the asked
values' own way, and were when tried (99 % intervals then held 0.78 to 0.90 on synthetic tables).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.bucketize.estimate.geometry import Geometry

_SIZES = (0.0, 1.0, 8.0)
"""η/κ, as variances of log-odds: no way of their own, an ordinary one, and a far one."""
OWN_WAYS = np.array([0.6, 0.25, 0.15])
"""How likely each is. Settled on synthetic tables, among them `dalenius demo`'s: docs/coverage.md."""


def own_way_variance(
    geometry: Geometry,
    weights: Floats,
    place: Ints,
    variance: Floats,
    scale: Floats,
    by_rho: Iterable[tuple[float, Floats]],
) -> Floats:
    """Targets × η × ρ: what a way of their own adds to the variance.

    Args:
        geometry: of the release.
        weights: different weights × values, centred.
        place: which of these weights each target has.
        variance: s² of each target's score.
        scale: its κ.
        by_rho: each ρ, with the factors of the best prediction (different weights × contrasts).
    """
    largest = np.maximum(np.abs(weights).max(axis=1), 1e-300)
    h = (weights @ geometry.binomial) / largest[:, None]
    whole = (weights**2 @ geometry.counts) / largest
    eta = np.minimum(np.outer(scale, _SIZES), 1.0)
    parts = []
    for rho, factors in by_rho:
        told = (h**2 / ((1 - rho) + rho * geometry.spread)).sum(axis=1)[place]
        missed = (whole - (factors * h).sum(axis=1))[place]
        parts.append((missed**2 * variance)[:, None] * eta / (1 + eta * told[:, None]))
    return np.stack(parts, axis=2)
