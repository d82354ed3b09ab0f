"""Corruption: the attacker knows the sensitive values of q others of the bucket and takes them away.

Without fakes a bucket of which all others are known tells the last value: the success rises to 1, and no
threshold promises otherwise. With fakes the manifest states how often the best attacker is right, who knows
the histogram and the law of the fakes; that statement is the bound here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.bucketize.attacks.case import BucketCase
from dalenius.mechanisms.bucketize.attacks.fakes import attack_last_person
from dalenius.threats.result import AttackResult, Threat, measured

_SWEEP = (0, 1, 2, 4, 8, 16)
THREAT = Threat(
    knows="a bucket's members and the sensitive values of all of them but one",
    wants="the last person's sensitive value",
    covered=False,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Places:
    """The real places of the buckets, in an order that is random within each bucket."""

    bucket: Ints
    value: Ints
    rank: Ints
    """From 0 within each bucket: the last q are known to the attacker."""
    size: Ints
    """Of the place's bucket."""


def attack_corruption(case: BucketCase, stream: np.random.Generator) -> AttackResult:
    """Random victims with q random others known; the result is for all others known."""
    if case.n_fakes:
        return attack_last_person(case, stream)
    places = _real_places(case, stream)
    known = [q for q in _SWEEP if q < int(places.size.max(initial=1)) - 1]
    curve = [(q, _success(case, places, np.minimum(q, places.size - 1))) for q in known]
    successes = _success(case, places, places.size - 1)
    n = case.n_buckets
    return measured(
        "corruption",
        THREAT,
        successes=successes,
        trials=n,
        baseline=float(case.frequency.max()),
        detail={
            "curve": [
                *({"known": str(q), "success": s / n} for q, s in curve),
                {"known": "all others", "success": successes / n},
            ]
        },
        advice="fakes = 1 or more in [mechanism] leaves the last person's value uncertain",
    )


def _real_places(case: BucketCase, stream: np.random.Generator) -> _Places:
    bucket, value = np.repeat(case.st_bucket, case.st_count), np.repeat(case.st_value, case.st_count)
    order = np.lexsort((stream.random(len(bucket)), bucket))
    bucket, value = bucket[order], value[order]
    rank = np.arange(len(bucket)) - np.searchsorted(bucket, bucket, side="left")
    size = np.bincount(bucket, minlength=case.n_buckets)[bucket]
    return _Places(bucket=bucket, value=value, rank=rank, size=size)


def _success(case: BucketCase, places: _Places, known: Ints) -> float:
    """Take the known values away and guess the commonest of what is left; expected successes, one a bucket.

    Every one of those left is as likely to be the victim.
    """
    is_left = places.rank < places.size - known
    key = (places.bucket * case.n_values + places.value)[is_left]
    keys, counts = np.unique(key, return_counts=True)
    most: Floats = np.zeros(case.n_buckets)
    np.maximum.at(most, keys // case.n_values, counts)
    n_left = np.bincount(places.bucket[is_left], minlength=case.n_buckets)
    return float((most / np.maximum(n_left, 1)).sum())
