"""How quasi-identifiers and values go together, learnt from a release alone.

Negative association: which quasi-identifier all but excludes which value, with significance. The regression
of the buckets' cells on the buckets' values is unbiased whatever the data (it is one of `ask`'s estimators).
A value is excluded where its count is below a fifth of the expected, error added.

deFinetti: learn from the buckets, and apply it inside them. Kifer's attack ("Attacks on privacy and
deFinetti's theorem", SIGMOD 2009), as expectation maximisation of a naive Bayes model over the hidden
matchings: beliefs about each row start from its bucket, the columns' distributions given the value are learnt
from the beliefs, and beliefs are renewed from them. Within a bucket beliefs are kept consistent by scaling: a
row has one value, a value as many rows as the bucket lists. A tenth of the buckets is left out of the
learning, so that there are people whose buckets it did not see.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from dalenius.arrays import Bools, Floats, Int32s, Ints
from dalenius.mechanisms.bucketize.attacks.case import (
    BucketCase,
    RowPairs,
    success_by_profile,
    usable_columns,
)
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.regression import Geometry, Regression
from dalenius.question.targets import Score
from dalenius.threats.result import AttackResult, Threat

_EXCLUDED = 0.2
"""A value counts as excluded where it is less than this part as common as in the whole table."""
_SIGNIFICANCE = 0.01
"""Of all exclusions together (Bonferroni): fewer than one release in a hundred has a false one."""
_ENOUGH = 20.0
"""How many records must be expected before a lack of them says anything."""
_MOST_VALUES = 500
"""Of more, the rarest are taken together, and nothing is learnt about them."""
NEGATIVE_ASSOCIATION = Threat(
    knows="a person's quasi-identifiers, and what the release tells of how they go with sensitive values",
    wants="the person's sensitive value, by excluding what hardly occurs with the quasi-identifiers",
    covered=False,
)
_DOUBT = 1e-6
"""The belief that is left to an excluded value."""
DEFINETTI = Threat(
    knows="everybody's quasi-identifiers and the whole release; nothing about any sensitive value",
    wants="a person's sensitive value, from correlations that the release itself shows",
    covered=False,
)
_ROUNDS = 12
_SCALINGS = 4
_SMOOTHING = 1.0
_HELD_OUT = 0.1
_CELLS_AT_ONCE = 8_000_000


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


def attack_negative_association(case: BucketCase, pairs: RowPairs, exclusions: Exclusions) -> AttackResult:
    """Exclude, and guess the commonest of what is left in the person's bucket."""
    people = pairs.people(case)
    alone, _ = success_by_profile(case, pairs.row, pairs.value, pairs.share, people)
    is_excluded = exclusions.of_rows(case, pairs.row, pairs.value)
    belief = np.where(is_excluded, _DOUBT, 1.0) * pairs.share
    successes, trials = success_by_profile(case, pairs.row, pairs.value, belief, people)
    return case.make_result(
        "negative association",
        NEGATIVE_ASSOCIATION,
        successes=successes,
        trials=trials,
        control=alone / max(trials, 1),
        n_failed=case.n_people - trials,
        detail={"exclusions": exclusions.n, "exclusions_true": exclusions.n_true},
        advice="drop or coarsen the quasi-identifiers that exclude values" if exclusions.n else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NaiveBayes:
    """The columns' distributions given the value, as logarithms: one table (cells × values) a column."""

    columns: tuple[int, ...]
    tables: tuple[Floats, ...]

    def log_likelihood(self, cells: list[Int32s]) -> Floats:
        """Of each pair's cells (as `cells_of` numbers them), given its value."""
        total = np.zeros(len(cells[0]) if cells else 0)
        for table, cell in zip(self.tables, cells, strict=True):
            total += table.ravel()[cell]
        return total


def attack_definetti(case: BucketCase, pairs: RowPairs, stream: np.random.Generator) -> AttackResult:
    """Beliefs about everybody; the control: people of buckets that were left out of the learning."""
    held_out = stream.random(case.n_buckets) < _HELD_OUT
    model = train(case, pairs.within(~held_out))
    belief = believe(case, pairs, model)
    people = pairs.people(case)
    successes, trials = success_by_profile(case, pairs.row, pairs.value, belief, people)
    alone, _ = success_by_profile(case, pairs.row, pairs.value, pairs.share, people)
    return case.make_result(
        "deFinetti",
        DEFINETTI,
        successes=successes,
        trials=trials,
        control=_control(case, model, held_out, stream),
        n_failed=case.n_people - trials,
        detail={"linking_by_profile": alone / max(trials, 1), "rounds": _ROUNDS},
        advice="no threshold stops this: coarsen or drop the quasi-identifiers that go with the "
        "sensitive value, or use perturb or alpha-beta"
        if successes > 1.1 * max(alone, 1)
        else None,
    )


def train(case: BucketCase, pairs: RowPairs) -> NaiveBayes:
    """The model that the pairs' buckets teach."""
    columns = tuple(usable_columns(case))
    cells = [cells_of(case, pairs, column) for column in columns]
    belief = pairs.share
    model = NaiveBayes(columns=(), tables=())
    for _ in range(_ROUNDS if columns and len(pairs.row) else 0):
        tables = tuple(_learn(case, cell, belief, c) for c, cell in zip(columns, cells, strict=True))
        model = NaiveBayes(columns=columns, tables=tables)
        belief = _scale(case, pairs, model.log_likelihood(cells))
    return model


def believe(case: BucketCase, pairs: RowPairs, model: NaiveBayes) -> Floats:
    """What a model makes of the pairs."""
    if not model.columns:
        return pairs.share
    return _scale(case, pairs, model.log_likelihood([cells_of(case, pairs, c) for c in model.columns]))


def cells_of(case: BucketCase, pairs: RowPairs, column: int) -> Int32s:
    """The place of each pair in a table of a column's cells × values."""
    code = case.people.columns[column].rows[pairs.row]
    return np.asarray(code * case.n_values + pairs.value, dtype=np.int32)


def _learn(case: BucketCase, cell: Int32s, belief: Floats, column: int) -> Floats:
    shape = case.people.columns[column].n_cells, case.n_values
    counts = np.bincount(cell, belief, shape[0] * shape[1]).reshape(shape)
    # towards the column's own distribution, so that a value that is hardly seen says nothing
    prior = counts.sum(axis=1, keepdims=True) / max(counts.sum(), 1.0)
    smoothed = counts + _SMOOTHING * shape[0] * np.maximum(prior, 1e-12)
    return np.asarray(np.log(smoothed / smoothed.sum(axis=0, keepdims=True)))


def _scale(case: BucketCase, pairs: RowPairs, evidence: Floats) -> Floats:
    """Beliefs ∝ share · likelihood, scaled to one value a row and the bucket's count a value."""
    starts = np.flatnonzero(np.diff(pairs.row, prepend=-1))  # pairs are ordered by row
    lengths = np.diff(starts, append=len(pairs.row))
    highest = np.maximum.reduceat(evidence, starts)
    belief: Floats = pairs.share * np.exp(evidence - np.repeat(highest, lengths))
    target = case.st_expected
    for _ in range(_SCALINGS):
        belief *= (target / np.maximum(np.bincount(pairs.entry, belief, len(target)), 1e-300))[pairs.entry]
        belief /= np.repeat(np.maximum(np.add.reduceat(belief, starts), 1e-300), lengths)
    return belief


def _control(
    case: BucketCase, model: NaiveBayes, held_out: Bools, stream: np.random.Generator
) -> float | None:
    """How well the model guesses people whose buckets it never saw, from the public histogram.

    A row stands for each person of its profile in equal parts.
    """
    rows = np.flatnonzero(held_out[case.row_bucket] & np.isin(case.people.row_profile, case.people.profile))
    if not len(rows) or not model.columns:
        return None
    rows = stream.permutation(rows)[: max(1, _CELLS_AT_ONCE // case.n_values)]
    score = np.tile(np.log(np.maximum(case.frequency, 1e-12)), (len(rows), 1))
    for column, table in zip(model.columns, model.tables, strict=True):
        score += table[case.people.columns[column].rows[rows]]
    keys, counts = np.unique(case.people.profile * case.n_values + case.value, return_counts=True)
    wanted = case.people.row_profile[rows] * case.n_values + score.argmax(axis=1)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    right = np.where(keys[place] == wanted, counts[place], 0)
    return float((right / np.bincount(case.people.profile)[case.people.row_profile[rows]]).mean())
