"""The effects of all quasi columns together on the sensitive value, fitted to buckets.

Effects, their variances and coordinates are those of `rows.effects`. They are the most likely ones given
everything that was published: the log-likelihood of a bucket is that of its permanent, in the approximation
of `matching`. What buckets tell about values, to first order around no effect, is
I = Σ_g c cᵀ/|g| − o oᵀ/n.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets
from dalenius.mechanisms.bucketize.estimate.matching import Places
from dalenius.mechanisms.rows.effects import Basis, Features, climb


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contents:
    """What the contents of the buckets tell about effects, to first order around none."""

    known: Floats
    """Values × values: I."""
    hidden: Floats
    """Values × values: Ω = Σ_g diag(c) − c cᵀ/|g|, how matchings of a bucket vary."""
    log_share: Floats
    """Regions × values: log f_z."""

    @classmethod
    def of(cls, buckets: Buckets, region_of_bucket: Ints, sizes: Floats) -> Contents:
        """Of a release whose regions have these sizes."""
        held = buckets.composition
        square = held.gram(buckets.copies / buckets.type_size)
        counts = _by_region(buckets, region_of_bucket)
        with np.errstate(divide="ignore"):
            log_share = np.log(counts / sizes[:, None])
        return cls(
            known=square - (counts / sizes[:, None]).T @ counts,
            hidden=np.diag(buckets.counts) - square,
            log_share=np.maximum(log_share, -1e3),
        )


def _by_region(buckets: Buckets, region_of_bucket: Ints) -> Floats:
    """Regions × values: how often each occurs."""
    held, n_regions = buckets.composition.take(buckets.type_of), int(region_of_bucket.max()) + 1
    place = region_of_bucket[held.rows] * held.n_columns + held.columns
    counts = np.bincount(place, held.data, n_regions * held.n_columns)
    return np.asarray(counts.reshape(n_regions, held.n_columns), dtype=np.float64)


_STEPS = ((16, 80), (4, 40), (1, 25))
"""Of so many buckets one, and how many steps."""
_LEAST_ROWS = 8_000
MOST_CELLS = 8_000_000
"""Rows × values that effects are fitted to; of larger releases a part of the buckets."""
_FIRST_ROUNDS, _SCALING_ROUNDS, _CLOSE = 40, 8, 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """Some buckets, and everything that is needed again and again to fit effects to them."""

    places: Places
    indicators: sp.csr_array
    """Rows × features, in the order of the buckets."""
    log_share: Floats
    """Rows (or 1) × values."""
    entry: Ints
    """Where each entry is in a matrix rows × values."""
    factors: Floats
    """Where the scaling is, for every slot."""
    held: Floats
    """Of each slot that has entries: how often the bucket holds the value, by k/(k−1)."""

    @classmethod
    def of(cls, features: Features, contents: Contents, places: Places) -> Fit:
        """Of the buckets that these places are in."""
        rows, n_values = places.rows, places.n_values
        power = np.full(len(places.held), np.inf)
        power[places.slot] = places.spread(places.power)
        region = features.region_of_row[rows] if len(features.sizes) > 1 else np.zeros(1, dtype=np.int64)
        return cls(
            places=places,
            indicators=features.indicators[rows].astype(np.float32),
            log_share=contents.log_share[region],
            entry=np.repeat(np.arange(len(rows)) * n_values, places.width) + places.value,
            factors=np.ones(len(places.held)),
            held=places.held / power,
        )

    def logs(self, effects: Floats) -> tuple[Floats, Floats]:
        """Of each entry log p, and rows × values: p."""
        found = self.indicators @ effects.astype(np.float32)
        found += self.log_share.astype(np.float32)
        found -= found.max(axis=1, keepdims=True)
        logs = found.ravel()[self.entry].astype(np.float64)
        np.exp(found, out=found)
        total = found.sum(axis=1, keepdims=True)
        found /= total
        return logs - self.places.spread(np.log(total[:, 0].astype(np.float64))), found

    def gain(self, effects: Floats) -> tuple[float, Floats]:
        """The log-likelihood of the buckets, and its gradient by effects."""
        places = self.places
        logs, share = self.logs(effects)
        weight = places.scale(logs, self.factors, _SCALING_ROUNDS)
        power = places.spread(places.power)
        gain = float((weight * (logs - np.log(np.maximum(weight, 1e-300)) / power)).sum())
        # the dual's value, whose gradient is `weight` even where values do not add up yet
        missing = np.bincount(places.slot, weight / power, len(places.held)) - self.held
        gain += float((missing * np.log(np.maximum(self.factors, 1e-300))).sum())
        share *= -1
        share.ravel()[self.entry] += weight
        return gain, (self.indicators.T @ share).astype(np.float64)

    def weights(self, effects: Floats, rounds: int, close: float) -> Floats:
        """How likely each entry is."""
        return self.places.scale(self.logs(effects)[0], self.factors, rounds, close)

    def most_likely(self, basis: Basis, start: Floats, rounds: int) -> Floats:
        """Coordinates of the effects that are most likely given these buckets and the effects' variances."""
        self.weights(basis.effects(start), _FIRST_ROUNDS, _CLOSE)  # the search needs a smooth function
        return climb(basis, start, self.gain, len(self.places.rows), rounds)


def fit_effects(features: Features, contents: Contents, buckets: Buckets, basis: Basis) -> Floats:
    """Features × values: the most likely effects, first for a part of the buckets, then for ever more."""
    place = np.zeros(basis.precision.shape)
    cells = buckets.n_rows * buckets.composition.shape[1]
    for part, rounds in _STEPS:
        every = max(-(-cells // MOST_CELLS), min(part, int(buckets.n_rows // _LEAST_ROWS)))
        if part > 1 and every < part / 2:
            continue
        chosen = None if every <= 1 else np.arange(0, len(buckets.size), every)
        fit = Fit.of(features, contents, Places.of(buckets, chosen))
        place = fit.most_likely(basis, place, rounds)
    return basis.effects(place)
