"""deFinetti: learn how quasi-identifiers and values go together from the buckets, and apply it inside them.

Kifer's attack ("Attacks on privacy and deFinetti's theorem", SIGMOD 2009), as expectation maximisation of a
naive Bayes model over the hidden matchings: beliefs about each row start from its bucket, the columns'
distributions given the value are learnt from the beliefs, and beliefs are renewed from them. Within a
bucket beliefs are kept consistent by scaling: a row has one value, a value as many rows as the bucket lists.
A tenth of the buckets is left out of the learning, so that there are people whose buckets it did not see.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Bools, Floats, Int32s
from dalenius.mechanisms.bucketize.attacks.case import (
    BucketCase,
    RowPairs,
    success_by_profile,
    usable_columns,
)
from dalenius.threats.result import AttackResult, Threat, measured

THREAT = Threat(
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
    return measured(
        "deFinetti",
        THREAT,
        successes=successes,
        trials=trials,
        baseline=float(case.frequency.max()),
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
