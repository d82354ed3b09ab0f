"""Negative association: learn from the release which quasi-identifier all but excludes which value."""

from __future__ import annotations

import numpy as np

from dalenius.attacks.bucket_case import BucketCase, success_by_profile
from dalenius.attacks.exclusions import Exclusions
from dalenius.attacks.pairs import RowPairs
from dalenius.attacks.result import AttackResult, measured
from dalenius.attacks.threat import Threat

THREAT = Threat(
    knows="a person's quasi-identifiers, and what the release tells of how they go with sensitive values",
    wants="the person's sensitive value, by excluding what hardly occurs with the quasi-identifiers",
    covered=False,
)
_DOUBT = 1e-6
"""The belief that is left to an excluded value."""


def attack_negative_association(case: BucketCase, pairs: RowPairs, exclusions: Exclusions) -> AttackResult:
    """Exclude, and guess the commonest of what is left in the person's bucket."""
    people = pairs.people(case)
    alone, _ = success_by_profile(case, pairs.row, pairs.value, pairs.share, people)
    is_excluded = exclusions.of_rows(case, pairs.row, pairs.value)
    belief = np.where(is_excluded, _DOUBT, 1.0) * pairs.share
    successes, trials = success_by_profile(case, pairs.row, pairs.value, belief, people)
    return measured(
        "negative association",
        THREAT,
        successes=successes,
        trials=trials,
        baseline=float(case.frequency.max()),
        control=alone / max(trials, 1),
        n_failed=case.n_people - trials,
        detail={"exclusions": exclusions.n, "exclusions_true": exclusions.n_true},
        recommendation="drop or coarsen the quasi-identifiers that exclude values" if exclusions.n else None,
    )
