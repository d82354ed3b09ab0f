"""Corruption: the attacker knows the sensitive values of q others of the bucket and takes them away.

Without fakes a bucket of which all others are known tells the last value: the success rises to 1, and no
threshold promises otherwise. With fakes the manifest states how sure an attacker can be who knows the
histogram and the law of the fakes (`mechanisms/bucketize/fakes.py`); that statement is the bound here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.attacks.bucket_case import BucketCase, Floats
from dalenius.attacks.original import Ints
from dalenius.attacks.result import AttackResult, measured
from dalenius.attacks.threat import Threat

_SWEEP = (0, 1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Places:
    """The real places of the buckets that can be attacked, in an order that is random within each bucket."""

    bucket: Ints
    value: Ints
    rank: Ints
    """From 0 within each bucket: the first is the victim, the last are known to the attacker."""
    size: Ints
    """Of the place's bucket."""


def attack_corruption(case: BucketCase, stream: np.random.Generator) -> AttackResult:
    """One random victim a bucket, with q random others known; the result is for all but the victim known."""
    places, n_failed = _real_places(case, stream)
    known = [q for q in _SWEEP if q < int(places.size.max(initial=1)) - 1]
    curve = [(str(q), *_success(case, places, np.minimum(q, places.size - 1))) for q in known]
    last = _success(case, places, places.size - 1)
    curve.append(("all others", *last))
    fakes = case.release.manifest["parameters"].get("fakes", {})
    bound = fakes.get("posterior")
    threat = Threat(
        knows="the bucket's members, the sensitive values of all others in it, and the public histogram",
        wants="the last person's sensitive value",
        covered=bound is not None,
    )
    return measured(
        "corruption",
        threat,
        successes=last[0],
        trials=last[1],
        baseline=float(case.frequency.max()),
        control=None,
        bound=bound,
        n_failed=n_failed,
        detail={"curve": [{"known": q, "success": s / max(n, 1)} for q, s, n in curve]},
        recommendation="fakes = 1 or more in [mechanism] leaves the last person's value uncertain"
        if bound is None
        else "raise `fakes`: the attacker is surer than the manifest states",
    )


def _real_places(case: BucketCase, stream: np.random.Generator) -> tuple[_Places, int]:
    """Without fakes the sensitive table holds real values only; with them the original must tell which."""
    counts = case.st_count
    usable = np.ones(case.n_buckets, dtype=bool)
    if case.n_fakes:
        usable = case.known_buckets()
        counts = np.where(case.is_real(), case.st_count, 0)
    counts = np.where(usable[case.st_bucket], counts, 0)
    bucket, value = np.repeat(case.st_bucket, counts), np.repeat(case.st_value, counts)
    order = np.lexsort((stream.random(len(bucket)), bucket))
    bucket, value = bucket[order], value[order]
    starts = np.searchsorted(bucket, bucket, side="left")
    size = np.bincount(bucket, minlength=case.n_buckets)
    rank = np.arange(len(bucket)) - starts
    return _Places(bucket=bucket, value=value, rank=rank, size=size[bucket]), int(case.size[~usable].sum())


def _success(case: BucketCase, places: _Places, known: Ints) -> tuple[float, int]:
    """Take the known values away, guess the likeliest of what is left; expected successes and victims."""
    is_left = places.rank < places.size - known
    removed = np.bincount(
        (places.bucket * case.n_values + places.value)[~is_left], minlength=case.n_buckets * case.n_values
    )
    left = case.st_count - removed[case.st_bucket * case.n_values + case.st_value]
    weight = left * _odds(case)[case.st_value]
    attacked = np.isin(case.st_bucket, places.bucket) & (left > 0)
    bucket, value, weight = case.st_bucket[attacked], case.st_value[attacked], weight[attacked]
    order = np.lexsort((case.frequency[value], weight, bucket))
    last = np.append(np.flatnonzero(np.diff(bucket[order])), len(order) - 1) if len(order) else order
    guess = np.full(case.n_buckets, -1)
    guess[bucket[order][last]] = value[order][last]
    # every one of those left is as likely to be the victim
    right = (guess[places.bucket] == places.value) & is_left
    shares = right / (places.size - known)
    return float(shares.sum()), int((places.rank == 0).sum())


def _odds(case: BucketCase) -> Floats:
    """How much likelier than another a listed value is to be real: 1 for all where there are no fakes.

    With fakes: real entries over fake entries of the value, which the histogram and the table tell.
    """
    if not case.n_fakes:
        return np.ones(case.n_values)
    listed = np.bincount(case.st_value, case.st_count, case.n_values)
    real = case.frequency * case.n_people
    return np.asarray(real / np.maximum(listed - real, 0.5))
