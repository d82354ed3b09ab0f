"""Terms of a target brought into the form that estimates need: few, and no two about the same value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dalenius.ask.totals import Floats
from dalenius.mechanisms.bucketize.estimate_buckets import Score

ScoredTerm = tuple[Score, Floats]
"""A score of the rows, and the weight of each sensitive value."""


def merge_terms(terms: Sequence[ScoredTerm]) -> list[ScoredTerm]:
    """The same target in fewer terms: those with one score, then those with one direction of weights."""
    by_score: dict[tuple[bytes, bytes], ScoredTerm] = {}
    for score, weights in terms:
        key = score.rows.tobytes(), b"" if score.values is None else score.values.tobytes()
        known = by_score.get(key)
        by_score[key] = (score, weights if known is None else known[1] + weights)
    by_direction: dict[bytes, ScoredTerm] = {}
    for score, weights in by_score.values():
        nonzero = np.flatnonzero(weights)
        if not len(nonzero):
            continue
        scale = float(weights[nonzero[0]])
        direction = weights / scale
        scaled = _scaled(score, scale)
        same = by_direction.get(direction.tobytes())
        by_direction[direction.tobytes()] = (scaled if same is None else added([same[0], scaled]), direction)
    return list(by_direction.values())


def without_overlap(terms: Sequence[ScoredTerm]) -> list[ScoredTerm]:
    """The same target in terms that share no value.

    Where terms overlap, values on which all of them say the same form an atom, with the sum of their scores.

    >>> one = Score(rows=np.array([0, 1]))
    >>> two = Score(rows=np.array([1]), values=np.array([5.0]))
    >>> found = without_overlap([(one, np.array([1.0, 1.0])), (two, np.array([0.0, 1.0]))])
    >>> [(score.values.tolist(), weights.tolist()) for score, weights in found]
    [([1.0, 1.0], [1.0, 0.0]), ([1.0, 6.0], [0.0, 1.0])]
    """
    stacked = np.stack([weights for _, weights in terms])
    if np.count_nonzero(stacked, axis=0).max() <= 1:
        return list(terms)
    columns, atom_of = np.unique(stacked, axis=1, return_inverse=True)
    found = []
    for atom, column in enumerate(columns.T):
        if column.any():
            parts = [_scaled(terms[t][0], float(column[t])) for t in np.flatnonzero(column).tolist()]
            found.append((added(parts), (atom_of.ravel() == atom).astype(np.float64)))
    return found


def added(scores: Sequence[Score]) -> Score:
    """The sum of scores, on all their rows."""
    rows, places = np.unique(np.concatenate([score.rows for score in scores]), return_inverse=True)
    values = np.concatenate([_numbers(score) for score in scores])
    return Score(rows=rows, values=np.bincount(places, values, len(rows)).astype(np.float64))


def _scaled(score: Score, scale: float) -> Score:
    return score if scale == 1 else Score(rows=score.rows, values=_numbers(score) * scale)


def _numbers(score: Score) -> Floats:
    return np.ones(len(score.rows)) if score.values is None else score.values
