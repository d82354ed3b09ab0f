"""Which quasi-identifier excludes which value, learnt from a release alone, with significance.

The regression of the buckets' cells on the buckets' values is unbiased whatever the data (it is one of
`ask`'s estimators). A value is excluded where its count is below a fifth of the expected, error added.

Negative association: learn from the release which quasi-identifier all but excludes which value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from dalenius.arrays import Bools, Ints
from dalenius.mechanisms.bucketize.attacks.case import (
    BucketCase,
    RowPairs,
    success_by_profile,
    usable_columns,
)
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.geometry import Geometry
from dalenius.mechanisms.bucketize.estimate.regression import Regression
from dalenius.question.targets import Score
from dalenius.threats.result import AttackResult, Threat, measured

_EXCLUDED = 0.2
"""A value counts as excluded where it is less than this part as common as in the whole table."""
_SIGNIFICANCE = 0.01
"""Of all exclusions together (Bonferroni): fewer than one release in a hundred has a false one."""
_ENOUGH = 20.0
"""How many records must be expected before a lack of them says anything."""
_MOST_VALUES = 500
"""Of more, the rarest are taken together, and nothing is learnt about them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exclusions:
    """What an attacker excludes."""

    tables: tuple[Bools, ...]
    """Per quasi column, cells × values."""
    n_true: int
    """How many of them are so in the original."""

    @property
    def n(self) -> int:
        """How many there are."""
        return int(sum(table.sum() for table in self.tables))

    def of_rows(self, case: BucketCase, row: Ints, value: Ints) -> Bools:
        """Whether a published row excludes a value, pair by pair."""
        is_excluded = np.zeros(np.broadcast(row, value).shape, dtype=bool)
        for column, table in zip(case.people.columns, self.tables, strict=True):
            is_excluded |= table[column.rows[row], value]
        return is_excluded


def learn_exclusions(case: BucketCase) -> Exclusions:
    """From the release alone; the original is only asked how many are true."""
    tables = tuple(np.zeros((column.n_cells, case.n_values), dtype=bool) for column in case.people.columns)
    frequent, value = _frequent_values(case)
    buckets = Buckets.of(case.row_bucket, case.st_bucket, value, case.st_expected)
    chosen, scores = _scores(case, buckets.counts[: len(frequent)].max(initial=0.0) / len(case.row_bucket))
    if not scores:
        return Exclusions(tables=tables, n_true=0)
    sums = ScoreSums.of(buckets, scores)
    estimate, variance = Regression(geometry=Geometry.of(buckets)).estimate_values(sums)
    expected = np.outer(sums.total, buckets.counts) / buckets.counts.sum()
    tested = expected >= _ENOUGH
    error = float(ndtri(1 - _SIGNIFICANCE / max(int(tested.sum()), 1))) * np.sqrt(variance)
    is_excluded = (tested & (estimate + error < _EXCLUDED * expected))[:, : len(frequent)]
    for s, (column, code) in enumerate(chosen):
        tables[column][code, frequent] = is_excluded[s]
    return Exclusions(tables=tables, n_true=_n_true(case, tables))


def _frequent_values(case: BucketCase) -> tuple[Ints, Ints]:
    """The values that are looked at, and each entry's number among them; one more for all the others."""
    counts = np.bincount(case.st_value, case.st_expected, case.n_values)
    occurring = np.flatnonzero(counts)
    frequent = np.sort(occurring[np.argsort(-counts[occurring], kind="stable")][:_MOST_VALUES])
    place = np.full(case.n_values, len(frequent))
    place[frequent] = np.arange(len(frequent))
    return frequent, place[case.st_value]


def _scores(case: BucketCase, share: float) -> tuple[list[tuple[int, int]], list[Score]]:
    """(column, cell) and its rows, where so many have it that the commonest value could be missed."""
    chosen, scores = [], []
    for column in usable_columns(case):
        codes = case.people.columns[column].rows
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=case.people.columns[column].n_cells))
        for code, rows in enumerate(np.split(order, ends[:-1])):
            if len(rows) * share >= _ENOUGH:
                chosen.append((column, code))
                scores.append(Score(rows=np.sort(rows)))
    return chosen, scores


def _n_true(case: BucketCase, tables: tuple[Bools, ...]) -> int:
    n_true = 0
    for column, table in zip(case.people.columns, tables, strict=True):
        joint = np.bincount(column.people * case.n_values + case.value, minlength=table.size)
        joint = joint.reshape(table.shape)
        expected = np.outer(joint.sum(axis=1), case.frequency)
        n_true += int((table & (joint < _EXCLUDED * expected)).sum())
    return n_true


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
        advice="drop or coarsen the quasi-identifiers that exclude values" if exclusions.n else None,
    )
