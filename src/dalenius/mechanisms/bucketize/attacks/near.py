"""Guessing a secret number, give or take a distance: the attacker of proximity."""

from __future__ import annotations

import numpy as np

from dalenius.arrays import Ints
from dalenius.mechanisms.bucketize.attacks.case import BucketCase
from dalenius.mechanisms.bucketize.attacks.linking import mark_broken
from dalenius.mechanisms.bucketize.published import Entries
from dalenius.promises.proximity import Proximity, ascending
from dalenius.threats.result import AttackResult, Threat, make_result

NEAR_NUMBERS = Threat(
    knows="everybody's quasi-identifiers, and so each person's bucket",
    wants="a number near the person's own: the one that most values of the bucket are near",
    covered=True,
)


def attack_near_numbers(case: BucketCase, promise: Proximity) -> AttackResult:
    """In every bucket the guess that hits most of its values; every guess against the limit, exactly.

    As with single values, a bucket whose people can be told apart is scored by the original, and the others
    by their listed values.
    """
    entries = _entries(case)
    held, row_bucket = entries.count_near(promise), entries.bucket_of_row()
    best = np.lexsort((held, row_bucket))[np.append(entries.starts[1:], len(held)) - 1]
    rank, ends = _ranks(case, promise)
    begin = rank[case.st_value[best]]
    end = ends[begin]
    truth, own = case.row_truth(), case.row_bucket
    is_right = (truth >= 0) & (rank[truth] >= begin[own]) & (rank[truth] < end[own])
    right = np.bincount(own[is_right], minlength=case.n_buckets)
    successes = np.where(case.known_buckets(), right, np.minimum(held[best], case.size))
    n_rows = len(own)
    below = np.concatenate([[0.0], np.cumsum(case.frequency[np.argsort(rank)])])
    top, bottom = promise.at_most.as_integer_ratio()
    n_above = int(np.count_nonzero(held > top * case.size[row_bucket] // bottom))
    result = make_result(
        "near numbers",
        NEAR_NUMBERS,
        successes=float(successes.sum()),
        trials=n_rows,
        baseline=float((below[ends] - below[:-1]).max()),
        control=float((below[end] - below[begin]) @ case.size) / n_rows,
        bound=float(promise.at_most),
        detail={
            "within": promise.within.to_text(),
            "at_most": float(promise.at_most),
            "largest_posterior": float((held / np.maximum(case.size[row_bucket], 1)).max(initial=0.0)),
            "guesses_above_limit": n_above,
        },
        advice="the buckets do not keep the limit: publish again, and `dalenius verify` it",
    )
    return result if not n_above else mark_broken(result, "numbers that are near each other")


def _entries(case: BucketCase) -> Entries:
    return Entries(
        bucket=case.st_bucket,
        count=case.st_count,
        starts=np.flatnonzero(np.diff(case.st_bucket, prepend=-1)),
        code=case.st_value,
        values=case.values,
    )


def _ranks(case: BucketCase, promise: Proximity) -> tuple[Ints, Ints]:
    """The rank of each value among the numbers, and where those end that are near the one of each rank."""
    written = [value[0] for value in case.values]
    order = ascending(written)
    return np.argsort(order), np.array(promise.reach([written[code] for code in order]), dtype=np.int64)
