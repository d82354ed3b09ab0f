"""Negative association: learn from the release which quasi-identifier all but excludes which value."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dalenius.attacks.bucket_case import BucketCase, success_by_profile
from dalenius.attacks.pairs import RowPairs, usable_columns
from dalenius.attacks.result import AttackResult, measured
from dalenius.attacks.threat import Threat
from dalenius.mechanisms.bucketize.estimate_buckets import Buckets, Score, ScoreSums
from dalenius.mechanisms.bucketize.estimate_geometry import Geometry
from dalenius.mechanisms.bucketize.estimate_regression import Regression
from dalenius.mechanisms.bucketize.estimate_targets import Targets

THREAT = Threat(
    knows="a person's quasi-identifiers, and what the release tells of how they go with sensitive values",
    wants="the person's sensitive value, by excluding what hardly occurs with the quasi-identifiers",
    covered=False,
)
_EXCLUDED = 0.2
"""A value counts as excluded where it is less than this part as common as in the whole table."""
_SIGNIFICANCE = 0.01
"""Of all exclusions together (Bonferroni): fewer than one release in a hundred has a false one."""
_ENOUGH = 20.0
"""How many records must be expected before a lack of them says anything."""
_DOUBT = 1e-6
"""The belief that is left to an excluded value."""


def attack_negative_association(case: BucketCase, pairs: RowPairs) -> AttackResult:
    """Exclude, and guess the commonest of what is left in the person's bucket."""
    excluded, n_true = learn_exclusions(case)
    is_excluded = np.zeros(len(pairs.row), dtype=bool)
    for column, table in zip(case.columns, excluded, strict=True):
        is_excluded |= table[column.codes[1][pairs.row], pairs.value]
    people = pairs.people(case)
    alone, _ = success_by_profile(case, pairs.row, pairs.value, pairs.share, people)
    belief = np.where(is_excluded, _DOUBT, 1.0) * pairs.share
    successes, trials = success_by_profile(case, pairs.row, pairs.value, belief, people)
    n_excluded = int(sum(table.sum() for table in excluded))
    return measured(
        "negative association",
        THREAT,
        successes=successes,
        trials=trials,
        baseline=float(case.frequency.max()),
        control=alone / max(trials, 1),
        n_failed=case.n_people - trials,
        detail={"exclusions": n_excluded, "exclusions_true": n_true},
        recommendation="drop or coarsen the quasi-identifiers that exclude values" if n_excluded else None,
    )


def learn_exclusions(case: BucketCase) -> tuple[list[NDArray[np.bool_]], int]:
    """Per quasi column, cells × values: which are excluded; and how many of them are so in the original.

    The regression of the buckets' cells on the buckets' values is unbiased whatever the data (it is one of
    `ask`'s estimators). A value is excluded where its count is below a fifth of the expected, error added.
    """
    tables = [np.zeros((column.n_values, case.n_values), dtype=bool) for column in case.columns]
    chosen = [(c, code) for c in usable_columns(case) for code in range(case.columns[c].n_values)]
    if not chosen:
        return tables, 0
    occurring, value = np.unique(case.st_value, return_inverse=True)
    buckets = Buckets.of(case.row_bucket, case.st_bucket, value.ravel(), case.st_count)
    scores = [Score(rows=np.flatnonzero(case.columns[c].codes[1] == code)) for c, code in chosen]
    sums = ScoreSums.of(buckets, scores)
    unit = np.eye(len(occurring))
    targets = Targets.of([[(s, row)] for s in range(len(scores)) for row in unit])
    found = Regression(geometry=Geometry.of(buckets)).estimate(sums, targets)
    expected = np.outer(sums.total, buckets.counts) / buckets.counts.sum()
    error = float(ndtri(1 - _SIGNIFICANCE / expected.size)) * found.std_error
    upper = (found.estimate + error).reshape(expected.shape)
    is_excluded = (upper < _EXCLUDED * expected) & (expected >= _ENOUGH)
    n_true = 0
    for s, (column, code) in enumerate(chosen):
        tables[column][code, occurring] = is_excluded[s]
        mine = np.bincount(case.value[case.columns[column].codes[0] == code], minlength=case.n_values)
        n_true += int((is_excluded[s] & (mine[occurring] < _EXCLUDED * expected[s])).sum())
    return tables, n_true
