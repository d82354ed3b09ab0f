"""How the sensitive values scatter together, learned from the release's own columns.

Simple conditions on the published columns (each common value, and pairs of them) stand for the questions to
come. Whether rarer values scatter more than common ones is decided by their likelihood. Which values differ
from the rest in the same way (nurses and teachers, say) is learned as the covariance Σ of the values' shares,
d ~ (0, ρ·s²·Σ) with a ρ for each condition, by a few rounds of expectation–maximization.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dalenius.mechanisms.bucketize.estimate_buckets import Buckets, Floats, Score, ScoreSums
from dalenius.mechanisms.bucketize.estimate_geometry import Geometry, Spectrum
from dalenius.mechanisms.bucketize.estimate_prior import ScatterPrior, fit_prior, likely_rho

_EXPONENTS = (0.0, 0.25, 0.5, 0.75, 1.0)
_VALUES_PER_COLUMN = 12
_LEAST_SHARE = 0.002
_MOST_PAIRS = 150
_ROUNDS = 4
_OF_INDEPENDENCE = 0.5
"""How many conditions' worth independent values are believed, per condition there is."""
MOST_RELATED = 600
"""More values are taken as independent, and as scattering alike or by 1/o: all else would take too long."""


def learn_prior(buckets: Buckets, columns: Sequence[NDArray[np.integer]]) -> tuple[Geometry, ScatterPrior]:
    """Fit scatter and prior to simple conditions on the published columns (their codes)."""
    sums = ScoreSums.of(buckets, simple_conditions(columns))
    spectrum = Spectrum.of(buckets)
    o = spectrum.counts
    exponents = _EXPONENTS if len(o) <= MOST_RELATED else (_EXPONENTS[0], _EXPONENTS[-1])
    powers = [Geometry.scattered(spectrum, np.diag((o.mean() / o) ** exponent)) for exponent in exponents]
    fitted = [(*fit_prior(sums, geometry), geometry) for geometry in powers]
    _, prior, start = max(fitted, key=lambda found: found[0])
    if not sums.scores or not len(start.spread) or len(o) > MOST_RELATED:
        return start, prior
    geometry = start
    for _ in range(_ROUNDS):
        scatter = _expected_scatter(sums, geometry, likely_rho(sums, geometry, prior))
        scatter = (scatter + _OF_INDEPENDENCE * start.scatter) / (1 + _OF_INDEPENDENCE)
        scatter *= (start.scatter.diagonal() @ o) / (scatter.diagonal() @ o)  # ρ has the scale
        geometry = Geometry.scattered(spectrum, scatter)
        _, prior = fit_prior(sums, geometry)
    return geometry, prior


def _expected_scatter(sums: ScoreSums, geometry: Geometry, rho: Floats) -> Floats:
    """The mean over the conditions of E[d dᵀ | contrasts]/(ρ s²)."""
    o = geometry.counts
    surprise = sums.by_value - np.outer(o, sums.total / o.sum())
    z = geometry.contrast @ surprise / np.sqrt(np.maximum(sums.variance, 1e-300))
    told = 1 / ((1 - rho) + rho * geometry.spread[:, None])  # contrasts × conditions
    loads = geometry.random / o[:, None]
    mean = loads @ (z * told)
    seen = (loads * (told * rho).mean(axis=1)) @ loads.T
    return np.asarray((mean * rho) @ mean.T / len(rho) + geometry.scatter - seen)


def simple_conditions(columns: Sequence[NDArray[np.integer]]) -> list[Score]:
    """Each common value of the columns (their codes), and pairs of them."""
    singles = []
    for number, codes in enumerate(columns):
        counts = np.bincount(codes)
        common = np.argsort(-counts, kind="stable")[:_VALUES_PER_COLUMN]
        singles += [
            (number, np.flatnonzero(codes == value))
            for value in common
            if _LEAST_SHARE * len(codes) < counts[value] < (1 - _LEAST_SHARE) * len(codes)
        ]
    pairs = [(one, two) for one, two in combinations(singles, 2) if one[0] != two[0]]
    chosen = pairs[:: max(1, len(pairs) // _MOST_PAIRS)]
    both = [np.intersect1d(one[1], two[1], assume_unique=True) for one, two in chosen]
    least = _LEAST_SHARE * (len(columns[0]) if columns else 0)
    return [Score(rows=rows) for rows in (*(rows for _, rows in singles), *both) if len(rows) > least]
