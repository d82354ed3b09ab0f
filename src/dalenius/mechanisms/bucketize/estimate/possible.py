"""What totals can be at all, whatever the matching of people with sensitive values inside the buckets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dalenius.arrays import Bools, Codes, Floats, Ints
from dalenius.mechanisms.bucketize.estimate.buckets import ScoreSums
from dalenius.question.targets import Range, Score, Targets

_CELLS_AT_ONCE = 4_000_000


def possible_range(sums: ScoreSums, targets: Targets) -> Range:
    """The least and the most that each target can be.

    Of a bucket of size |g| in which q rows have a score and s sensitive values are asked about, between
    max(0, q + s − |g|) and min(q, s) of these rows have one of these values: for a sum those with the least
    or the largest scores. Targets that weigh values other than by 0 and 1: −∞ to ∞.
    """
    low, high = np.zeros(len(targets.score)), np.zeros(len(targets.score))
    is_set, is_count = _are_sets(targets), sums.is_count
    for score, terms in _by_score(targets, np.flatnonzero(is_set)):
        for start, part in _parts(terms, len(sums.scores[score].rows)):
            held = np.asarray(sums.buckets.composition @ targets.weights[part].T)
            found = _bound_count(sums, score, held) if is_count[score] else _bound_sum(sums, score, held)
            low[terms[start : start + len(part)]], high[terms[start : start + len(part)]] = found
    low[~is_set], high[~is_set] = -np.inf, np.inf
    return targets.add_up(low), targets.add_up(high)


def trivial_range(sums: ScoreSums, targets: Targets) -> Range:
    """The same if nothing is known about the contents: everybody counts, or nobody."""
    low = np.array([_sum(score, np.minimum) for score in sums.scores])[targets.score]
    high = np.array([_sum(score, np.maximum) for score in sums.scores])[targets.score]
    is_set = _are_sets(targets)
    return targets.add_up(np.where(is_set, low, -np.inf)), targets.add_up(np.where(is_set, high, np.inf))


def _are_sets(targets: Targets) -> Bools:
    return np.asarray(((targets.weights == 0) | (targets.weights == 1)).all(axis=1))


def _by_score(targets: Targets, terms: Ints) -> Iterator[tuple[int, Ints]]:
    order = terms[np.argsort(targets.score[terms], kind="stable")]
    scores, starts = np.unique(targets.score[order], return_index=True)
    ends = np.append(starts, len(order))[1:]
    for score, begin, end in zip(scores.tolist(), starts, ends, strict=True):
        yield score, order[begin:end]


def _parts(terms: Ints, n_rows: int) -> Iterator[tuple[int, Ints]]:
    step = max(1, _CELLS_AT_ONCE // max(n_rows, 1))
    for start in range(0, len(terms), step):
        yield start, terms[start : start + step]


def _bound_count(sums: ScoreSums, score: int, held: Floats) -> Range:
    """`held`: types × terms, how many of the asked values a bucket holds."""
    begin, end = sums.sums.indptr[score : score + 2]
    where, q = sums.sums.indices[begin:end], sums.sums.data[begin:end, None]
    s = held[sums.buckets.type_of[where]]
    size = sums.buckets.size[where, None]
    return np.maximum(0.0, q + s - size).sum(axis=0), np.minimum(q, s).sum(axis=0)


def _bound_sum(sums: ScoreSums, score: int, held: Floats) -> Range:
    listed, buckets = sums.scores[score], sums.buckets
    assert listed.values is not None  # noqa: S101  (a score without values is counted)
    home = buckets.row_bucket[listed.rows]
    first, last = _ranks(home, listed.values)
    s = held[buckets.type_of[home]]
    q = (first + last + 1)[:, None]  # the rows of the bucket that have a score
    needed = np.maximum(0.0, q + s - buckets.size[home, None])
    value = listed.values[:, None]

    def add_chosen(rank: Ints, wanted: Bools) -> Floats:
        taken = (rank[:, None] < needed) | ((rank[:, None] < s) & wanted)
        return np.asarray((value * taken).sum(axis=0))

    return add_chosen(first, value < 0), add_chosen(last, value > 0)


def _ranks(home: Codes, values: Floats) -> tuple[Ints, Ints]:
    """Which of its bucket's values each is, from the least and from the largest, beginning with 0."""
    order = np.lexsort((values, home))
    sorted_home, place = home[order], np.arange(len(order))
    first, last = np.empty(len(order), dtype=np.int64), np.empty(len(order), dtype=np.int64)
    first[order] = place - np.searchsorted(sorted_home, sorted_home, side="left")
    last[order] = np.searchsorted(sorted_home, sorted_home, side="right") - 1 - place
    return first, last


def _sum(score: Score, side: np.ufunc) -> float:
    if score.values is None:
        return float(side(len(score.rows), 0.0))
    return float(side(score.values, 0.0).sum())
