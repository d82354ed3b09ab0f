"""The error of a linear estimate when the within-value variance differs from value to value.

Estimators weigh buckets as if the score varied alike within every sensitive value; their error bars must not.
An estimate Σ_z ℓ_z·(Anatomy's total of z) gives every bucket the factor b_g = Σ_z ℓ_z·c(g,z)/|g|. The records
of value z, of within-value variance v_z, are dealt without replacement, so the assignment adds exactly
v_z·(Σ_g c(g,z)·b_g² − (Σ_g c(g,z)·b_g)²/o_z), up to the factor o_z/(o_z−1).
"""

from __future__ import annotations

import numpy as np

from dalenius.mechanisms.bucketize.estimate_buckets import Buckets, Floats, Ints, Score, ScoreSums

_CELLS_AT_ONCE = 8_000_000
"""Of types of buckets × estimates: with fakes nearly every bucket is a type of its own."""


def value_variances(sums: ScoreSums, scores: Ints) -> Floats:
    """Terms × values: the variance within each value of each term's score, by Anatomy's estimates.

    In a bucket Anatomy mixes values, so these lie between the truth and the variance over everybody.
    """
    used, place = np.unique(scores, return_inverse=True)
    counts = sums.buckets.counts[:, None]
    mean = sums.by_value[:, used] / counts
    square = mean.copy()
    numbers = np.flatnonzero(~sums.is_count[used])
    if len(numbers):
        squared = [_squared(sums.scores[k]) for k in used[numbers]]
        square[:, numbers] = ScoreSums.of(sums.buckets, squared).by_value / counts
    return np.asarray(np.maximum(square - mean**2, 0.0).T[place.ravel()])


def _squared(score: Score) -> Score:
    return Score(rows=score.rows, values=None if score.values is None else score.values**2)


def assignment_variance(buckets: Buckets, loads: Floats) -> Floats:
    """Estimates × values: what one unit of v_z adds to the variance of estimates with these ℓ_z."""
    held = buckets.composition
    weighted = held.T.multiply(buckets.copies[None, :]).tocsr()
    step = max(1, _CELLS_AT_ONCE // len(buckets.copies))
    parts = [np.zeros((0, len(buckets.counts)))]
    for start in range(0, len(loads), step):
        factors = np.asarray(held @ loads[start : start + step].T) / buckets.type_size[:, None]
        first, second = np.asarray(weighted @ factors), np.asarray(weighted @ factors**2)
        variance = second - first**2 / buckets.counts[:, None]
        # what is known exactly leaves nothing but the rounding of a difference
        parts.append(np.where(variance < 1e-12 * second, 0.0, variance).T)
    return np.concatenate(parts)


def ratio(own: Floats, alike: Floats) -> Floats:
    """By how much variances differ from those of values that all vary alike; 1 where both are 0."""
    return np.asarray(np.divide(own, alike, out=np.ones_like(alike), where=alike > 0))
