"""Linking: the attacker knows a person's bucket and guesses its commonest value."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dalenius.arrays import Bools, Ints
from dalenius.mechanisms.bucketize.attacks.case import BucketCase
from dalenius.tables.codes import number
from dalenius.threats.interval import clopper_pearson
from dalenius.threats.result import AttackResult, Threat, measured

THREAT = Threat(
    knows="everybody's quasi-identifiers, and so each person's bucket",
    wants="the person's sensitive value: the bucket's commonest, among equals the table's commonest",
    covered=True,
)


def attack_linking(case: BucketCase) -> AttackResult:
    """Success against the thresholds of the guessed values, and every bucket's posterior, exactly.

    A bucket whose people can be told apart is scored by the original. In the others the sensitive table is
    taken at its word: who guesses one value for a whole bucket is right as often as the bucket has it.
    """
    guess = commonest_value(case)
    known = case.known_buckets()
    truth = case.row_truth()
    right = np.bincount(case.row_bucket[truth == guess[case.row_bucket]], minlength=case.n_buckets)
    listed = _listed(case, guess)
    successes = np.where(known, right, np.minimum(listed, case.size))
    n_rows = len(case.row_bucket)
    limits = case.limits
    bound = float(limits[guess] @ case.size) / n_rows
    values, n_broken = _per_value(case, guess, successes)
    weights = np.bincount(guess, case.size, case.n_values) / n_rows
    result = measured(
        "linking",
        THREAT,
        successes=float(successes.sum()),
        trials=n_rows,
        baseline=float(case.frequency.max()),
        control=float(weights @ case.frequency),
        bound=bound,
        detail={
            "taken_at_its_word": int(case.size[~known].sum()),
            "values": values,
            "entries_above_threshold": n_broken,
            "largest_posterior": max((v["largest_posterior"] for v in values), default=0.0),
        },
        advice="the buckets do not keep the thresholds: publish again, and `dalenius verify` it",
    )
    return result if not n_broken else _broken(result)


def commonest_value(case: BucketCase) -> Ints:
    """The value that each bucket has most of; among equals the commonest in the table."""
    order = np.lexsort((case.frequency[case.st_value], case.st_count, case.st_bucket))
    last = np.append(np.flatnonzero(np.diff(case.st_bucket[order])), len(order) - 1)
    return np.asarray(case.st_value[order][last])


def _listed(case: BucketCase, guess: Ints) -> Ints:
    chosen = case.st_value == guess[case.st_bucket]
    return np.bincount(case.st_bucket[chosen], case.st_count[chosen], case.n_buckets).astype(np.int64)


def _per_value(case: BucketCase, guess: Ints, successes: Ints) -> tuple[list[dict[str, Any]], int]:
    """Calibration value by value; how many entries are above their threshold, in exact integers."""
    size = case.size
    share = np.minimum(case.st_count / np.maximum(size[case.st_bucket], 1), 1.0)
    highest = np.zeros(case.n_values)
    np.maximum.at(highest, case.st_value, share)
    trials = np.bincount(guess, size, case.n_values)
    right = np.bincount(guess, successes, case.n_values)
    above = np.bincount(case.st_value, _is_above(case, size), case.n_values).astype(np.int64)
    rows = []
    for code in np.unique(case.st_value):
        limit = case.thresholds[code]
        low, high = clopper_pearson(right[code], trials[code])
        rows.append(
            {
                "value": case.labels[code],
                "at_most": None if limit is None else float(limit),
                "largest_posterior": float(highest[code]),
                "entries_above_threshold": int(above[code]),
                "guessed": int(trials[code]),
                "right": float(right[code] / trials[code]) if trials[code] else None,
                "low": low,
                "high": high,
            }
        )
    return rows, int(above.sum())


def _is_above(case: BucketCase, size: Ints) -> Bools:
    """Whether each entry is above ⌊f′·|g|⌋, which is computed exactly for every value and size there is."""
    people = size[case.st_bucket]
    width = int(people.max(initial=0)) + 1
    place, keys = number(case.st_value * width + people)
    limits = [case.thresholds[key // width] for key in keys.tolist()]
    allowed = [
        -1 if limit is None else limit.numerator * (key % width) // limit.denominator
        for limit, key in zip(limits, keys.tolist(), strict=True)
    ]
    return np.asarray(case.st_count > np.array(allowed, dtype=np.int64)[place])


def _broken(result: AttackResult) -> AttackResult:
    return replace(
        result,
        holds=False,
        advice="entries of the sensitive table are above their threshold: publish again, and "
        "`dalenius verify` it",
    )
