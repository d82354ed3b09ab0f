"""Fakes and negative association: who excludes a fake for the last person is not deceived by it.

The attacker of the corruption attack, who also excludes values by the person's quasi-identifiers. No law of
fakes stops him: a fake that suits everybody in a bucket comes from the few values that nobody there
excludes, and then every other value is known to be real (docs/attacks.md; exact in the tests).
"""

from __future__ import annotations

import numpy as np

from dalenius.attacks.bucket_case import BucketCase, Floats
from dalenius.attacks.exclusions import Exclusions
from dalenius.attacks.fake_corruption import MOST_CELLS, MOST_VICTIMS, FakeTruth
from dalenius.attacks.original import Ints
from dalenius.attacks.result import AttackResult, measured
from dalenius.attacks.threat import Threat
from dalenius.mechanisms.bucketize.fake_law import likeliest_is_first

THREAT = Threat(
    knows="a bucket's members, the sensitive values of all of them but one, the histogram, the fakes' law, "
    "and what the release tells of which quasi-identifier excludes which value",
    wants="the last person's sensitive value",
    covered=False,
)
_DOUBT = 1e-6
"""The belief that is left to an excluded value."""


def attack_fakes_by_exclusion(case: BucketCase, exclusions: Exclusions) -> AttackResult:
    """Everybody in the buckets whose people the original tells apart; a bucket counts as one trial."""
    truth = FakeTruth.of(case)
    success = alone = 0.0
    n_buckets = n_pairs = n_excluded = n_victims = 0
    assert case.fakes is not None  # noqa: S101  (the caller has seen that there are some)
    code_of = np.zeros(len(case.fakes.values), dtype=np.int64)
    code_of[case.fake_number[case.fake_number >= 0]] = np.flatnonzero(case.fake_number >= 0)
    for law in case.fakes.laws:
        rows, places = _victims(case, truth, law.size)
        if not len(rows):
            continue
        own = case.fake_number[case.row_truth()[rows]]
        known = truth.contents[places].copy()
        known[np.arange(len(rows)), own] -= 1
        left = np.concatenate([own[:, None], truth.fakes[places]], axis=1)
        posterior = law.last_posterior(known, left)
        is_excluded = exclusions.of_rows(case, rows[:, None], code_of[left])
        alone += float(likeliest_is_first(posterior).sum()) / law.size
        success += float(_without(posterior, is_excluded).sum()) / law.size
        n_buckets += len(np.unique(places))
        n_victims += len(rows)
        n_pairs += is_excluded[:, 1:].size
        n_excluded += int(is_excluded[:, 1:].sum())
    return measured(
        "fakes excluded",
        THREAT,
        successes=success,
        trials=n_buckets,
        baseline=float(case.frequency.max()),
        control=alone / n_buckets if n_buckets else None,
        n_failed=case.n_people - n_victims,
        detail={"exclusions": exclusions.n, "fakes_excluded": n_excluded / max(n_pairs, 1)},
        recommendation="coarsen or drop the quasi-identifiers that exclude values, or use more fakes"
        if n_excluded
        else None,
    )


def _victims(case: BucketCase, truth: FakeTruth, size: int) -> tuple[Ints, Ints]:
    """The rows of the buckets of a size whose fakes are known, and each one's place among the contents."""
    usable = (truth.contents.sum(axis=1) == size) & (truth.fakes >= 0).all(axis=1)
    most = min(MOST_VICTIMS, MOST_CELLS // truth.contents.shape[1]) // size
    chosen = np.zeros(len(usable), dtype=bool)
    chosen[np.flatnonzero(usable)[:most]] = True
    place = truth.place[case.row_bucket]
    rows = np.flatnonzero(place >= 0)
    rows = rows[chosen[place[rows]]]
    return rows, place[rows]


def _without(posterior: Floats, is_excluded: np.ndarray) -> Floats:
    return likeliest_is_first(posterior * np.where(is_excluded, _DOUBT, 1.0))
