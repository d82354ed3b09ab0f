"""deFinetti: learn how quasi-identifiers and values go together from the buckets, and apply it inside them.

Kifer's attack ("Attacks on privacy and deFinetti's theorem", SIGMOD 2009), as expectation maximisation of a
naive Bayes model over the hidden matchings: beliefs about each row start from its bucket, the columns'
distributions given the value are learnt from the beliefs, and beliefs are renewed from them. Within a
bucket beliefs are kept consistent by scaling: a row has one value, a value as many rows as the bucket lists.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.attacks.bucket_case import BucketCase, Floats, success_by_profile
from dalenius.attacks.original import Ints
from dalenius.attacks.pairs import RowPairs, usable_columns
from dalenius.attacks.result import AttackResult, measured
from dalenius.attacks.threat import Threat

THREAT = Threat(
    knows="everybody's quasi-identifiers and the whole release; nothing about any sensitive value",
    wants="a person's sensitive value, from correlations that the release itself shows",
    covered=False,
)
_ROUNDS = 12
_SCALINGS = 4
_SMOOTHING = 1.0
_HELD_OUT = 0.1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NaiveBayes:
    """The columns' distributions given the value, as logarithms: one table (cells × values) a column."""

    columns: tuple[int, ...]
    tables: tuple[Floats, ...]

    def log_likelihood(self, codes: list[Ints], row: Ints, value: Ints) -> Floats:
        """Of each row's cells, given each value."""
        total = np.zeros(len(row))
        for column, table in zip(self.columns, self.tables, strict=True):
            total += table[codes[column][row], value]
        return total


def attack_definetti(case: BucketCase, pairs: RowPairs, stream: np.random.Generator) -> AttackResult:
    """Beliefs from all buckets; the control: people of buckets that were left out of a second training."""
    _, belief = train(case, pairs)
    people = pairs.people(case)
    successes, trials = success_by_profile(case, pairs.row, pairs.value, belief, people)
    alone, _ = success_by_profile(case, pairs.row, pairs.value, pairs.share, people)
    held_out = stream.random(case.n_buckets) < _HELD_OUT
    model, _ = train(case, RowPairs.of(case, pairs.is_used & ~held_out))
    return measured(
        "deFinetti",
        THREAT,
        successes=successes,
        trials=trials,
        baseline=float(case.frequency.max()),
        control=_control(case, model, held_out),
        n_failed=case.n_people - trials,
        detail={"linking_by_profile": alone / max(trials, 1), "rounds": _ROUNDS},
        recommendation="no threshold stops this: coarsen or drop the quasi-identifiers that go with the "
        "sensitive value, or use perturb or alpha-beta"
        if successes > 1.1 * max(alone, 1)
        else None,
    )


def train(case: BucketCase, pairs: RowPairs) -> tuple[NaiveBayes, Floats]:
    """The model, and the belief of each pair."""
    codes = [column.codes[1] for column in case.columns]
    columns = usable_columns(case)
    cell = np.unique(pairs.bucket * case.n_values + pairs.value, return_inverse=True)[1].ravel()
    target: Floats = np.asarray(np.bincount(cell, pairs.share), dtype=np.float64)
    belief = pairs.share
    model = NaiveBayes(columns=(), tables=())
    for _ in range(_ROUNDS if columns else 0):
        tables = tuple(_learn(case, codes[c][pairs.row], pairs.value, belief, c) for c in columns)
        model = NaiveBayes(columns=tuple(columns), tables=tables)
        evidence = model.log_likelihood(codes, pairs.row, pairs.value)
        belief = _scale(pairs, evidence, cell, target, len(case.row_bucket))
    return model, belief


def _learn(case: BucketCase, code: Ints, value: Ints, belief: Floats, column: int) -> Floats:
    shape = case.columns[column].n_values, case.n_values
    counts = np.bincount(code * shape[1] + value, belief, shape[0] * shape[1]).reshape(shape)
    # towards the column's own distribution, so that a value that is hardly seen says nothing
    prior = counts.sum(axis=1, keepdims=True) / max(counts.sum(), 1.0)
    smoothed = counts + _SMOOTHING * shape[0] * np.maximum(prior, 1e-12)
    return np.asarray(np.log(smoothed / smoothed.sum(axis=0, keepdims=True)))


def _scale(pairs: RowPairs, evidence: Floats, cell: Ints, target: Floats, n_rows: int) -> Floats:
    """Beliefs ∝ share · likelihood, scaled to one value a row and the bucket's count a value."""
    highest = np.full(n_rows, -np.inf)
    np.maximum.at(highest, pairs.row, evidence)
    belief: Floats = pairs.share * np.exp(evidence - highest[pairs.row])
    for _ in range(_SCALINGS):
        belief *= (target / np.maximum(np.bincount(cell, belief, len(target)), 1e-300))[cell]
        belief /= np.maximum(np.bincount(pairs.row, belief, n_rows), 1e-300)[pairs.row]
    return belief


def _control(case: BucketCase, model: NaiveBayes, held_out: NDArray[np.bool_]) -> float | None:
    """How well the model guesses people whose buckets it never saw, from the public histogram.

    A row stands for each person of its profile in equal parts.
    """
    rows = np.flatnonzero(held_out[case.row_bucket] & np.isin(case.row_profile, case.profile))
    if not len(rows) or not model.columns:
        return None
    score = np.tile(np.log(np.maximum(case.frequency, 1e-12)), (len(rows), 1))
    for column, table in zip(model.columns, model.tables, strict=True):
        score += table[case.columns[column].codes[1][rows]]
    keys, counts = np.unique(case.profile * case.n_values + case.value, return_counts=True)
    wanted = case.row_profile[rows] * case.n_values + score.argmax(axis=1)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    right = np.where(keys[place] == wanted, counts[place], 0)
    return float((right / np.bincount(case.profile)[case.row_profile[rows]]).mean())
