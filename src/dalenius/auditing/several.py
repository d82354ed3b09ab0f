"""Several releases about the same people: what their intersection tells, and whether they share coins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.bucketize.attacks.case import BucketCase
from dalenius.mechanisms.perturb.attacks.case import PerturbCase
from dalenius.threats.interval import bernstein_limit
from dalenius.threats.result import AttackResult, against_chance, measured
from dalenius.threats.threat import COINS, SAME_COINS, Threat

THREAT = Threat(
    knows="two releases about the same people, and everybody's quasi-identifiers",
    wants="a person's sensitive value, from both together",
    covered=False,
)
_MOST_PEOPLE = 200_000
_MOST_CELLS = 16_000_000
"""Of people, and of people × values; of more, evenly spaced people are looked at."""
_AGAIN = (
    "do not publish independent releases of one table: publish once, or use views that are planned together"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linked:
    """The people whose row is known in both releases."""

    truth: Ints
    first: Ints
    second: Ints
    """Row numbers in each release."""
    n_failed: int


def link(one: BucketCase | PerturbCase, two: BucketCase | PerturbCase) -> Linked:
    """People whose quasi-identifiers are unique; both cases are of the same original."""
    first, second = _row_of_person(one), _row_of_person(two)
    both = np.flatnonzero((first >= 0) & (second >= 0))
    most = max(1, min(_MOST_PEOPLE, _MOST_CELLS // one.n_values))
    both = both[:: len(both) // most + 1]
    return Linked(
        truth=one.value[both], first=first[both], second=second[both], n_failed=len(first) - len(both)
    )


def attack_two_bucketizations(one: BucketCase, two: BucketCase) -> list[AttackResult]:
    """Guess the value that both buckets have, weighed by how often each has it: c₁(x)·c₂(x)/o_x."""
    people = link(one, two)
    shares = _shares_of_both(one, two, people)
    success, alone = _right(shares, people.truth), _right(_dense(one, people.first), people.truth)
    together = measured(
        "two releases",
        THREAT,
        successes=success,
        trials=len(people.truth),
        baseline=float(one.frequency.max()),
        control=alone / max(len(people.truth), 1),
        n_failed=people.n_failed,
        recommendation=_AGAIN,
    )
    return [together, _bucket_mates(one, two, people)]


def attack_two_perturbations(one: PerturbCase, two: PerturbCase) -> list[AttackResult]:
    """Multiply the evidence of both published values; see whether the coins agree more than they should."""
    people = link(one, two)
    first, second = _likelihood(one, people.first), _likelihood(two, people.second)
    prior = one.counts / max(one.counts.sum(), 1)
    success = _right(first * second * prior, people.truth)
    together = measured(
        "two releases",
        THREAT,
        successes=success,
        trials=len(people.truth),
        baseline=float(prior.max()),
        control=_right(first * prior, people.truth) / max(len(people.truth), 1),
        n_failed=people.n_failed,
        recommendation=_AGAIN,
    )
    agree = (one.row_value[people.first] == two.row_value[people.second]).astype(np.float64)
    expected = _expected_agreement(one, two, people)
    return [together, _coins(float(agree.sum()), float(expected.sum()), len(agree), people.n_failed)]


def _row_of_person(case: BucketCase | PerturbCase) -> Ints:
    """The published row of each person; −1 where the profile is shared or absent."""
    n_profiles = int(max(case.profile.max(), case.row_profile.max())) + 1
    row = np.full(n_profiles, -1)
    row[case.row_profile] = np.arange(len(case.row_profile))
    once = (np.bincount(case.profile, minlength=n_profiles) == 1) & (
        np.bincount(case.row_profile, minlength=n_profiles) == 1
    )
    return np.where(once, row, -1)[case.profile]


def _dense(case: BucketCase, rows: Ints) -> Floats:
    """Rows × values: the shares of the rows' buckets."""
    table = sp.csr_array(
        (case.st_expected, (case.st_bucket, case.st_value)), shape=(case.n_buckets, case.n_values)
    )
    shares = table[case.row_bucket[rows]].toarray()
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _shares_of_both(one: BucketCase, two: BucketCase, people: Linked) -> Floats:
    renumber = _same_values(one, two)
    second = _dense(two, people.second)
    second = np.where(renumber >= 0, second[:, renumber], 0.0)
    return np.asarray(_dense(one, people.first) * second / np.maximum(one.frequency, 1e-12))


def _same_values(one: BucketCase, two: BucketCase) -> Ints:
    """The number in the second case of each value of the first; −1 where it has none."""
    number = {label: code for code, label in enumerate(two.labels)}
    return np.array([number.get(label, -1) for label in one.labels])


def _right(belief: Floats, truth: Ints) -> float:
    """Expected successes of guessing the likeliest; equals share."""
    is_best = belief >= belief.max(axis=1, keepdims=True) * (1 - 1e-12)
    rows = np.arange(len(truth))
    return float((is_best[rows, truth] / is_best.sum(axis=1)).sum())


def _likelihood(case: PerturbCase, rows: Ints) -> Floats:
    """Rows × values: Pr[part, published value | value], up to a factor."""
    result = case.part_counts[case.row_part[rows]] / np.maximum(case.part_counts.sum(axis=0), 1e-12)
    gamma = np.array([float(channel.gamma) for channel in case.channels])
    replacement = np.array([float(channel.replacement) for channel in case.channels])
    result = result * replacement[case.row_part[rows], None]
    result[np.arange(len(rows)), case.row_value[rows]] *= gamma[case.row_part[rows]]
    return np.asarray(result)


def _expected_agreement(one: PerturbCase, two: PerturbCase, people: Linked) -> Floats:
    """Pr[both publish the same value] of each person, given the value and both parts."""
    total = np.zeros(len(people.truth))
    for i, a in enumerate(one.channels):
        for j, b in enumerate(two.channels):
            mine = (one.row_part[people.first] == i) & (two.row_part[people.second] == j)
            n_shared = len(set(a.codes) & set(b.codes))
            q = float(a.replacement * b.replacement)
            total[mine] = float(a.diagonal * b.diagonal) + (n_shared - 1) * q
    return total


def _bucket_mates(one: BucketCase, two: BucketCase, people: Linked) -> AttackResult:
    """Pairs that share a bucket in one release share one in the other only by chance, given their values."""
    first, second = one.row_bucket[people.first], two.row_bucket[people.second]
    order = np.lexsort((second, first))
    pair = first[order][1:] == first[order][:-1]
    also = (second[order][1:] == second[order][:-1]) & pair
    together = _pairs_by_value(first, people.truth, one)
    chance = _chance_together(two)
    renumber = _same_values(one, two)
    chance = np.where((renumber >= 0)[:, None] & (renumber >= 0), chance[np.ix_(renumber, renumber)], 0.0)
    return _coins(float(also.sum()), float((together * chance).sum()), int(pair.sum()), 0)


def _pairs_by_value(bucket: Ints, value: Ints, case: BucketCase) -> Floats:
    """Values × values: how many pairs of people of one bucket have them, half of each in both its cells."""
    shape = (case.n_buckets, case.n_values)
    held = sp.csr_array((np.ones(len(bucket)), (bucket, value)), shape=shape)
    held.sum_duplicates()
    pairs = (held.T @ held).toarray()
    np.fill_diagonal(pairs, pairs.diagonal() - np.bincount(value, minlength=case.n_values))
    return np.asarray(pairs / 2)


def _chance_together(case: BucketCase) -> Floats:
    """Values × values: how likely random dealing brings a person of one and one of the other together.

    Σ_g c(g,x)·c(g,y)/(o_x·o_y); thresholds that differ keep some values together and others apart.
    """
    held = sp.csr_array(
        (case.st_expected, (case.st_bucket, case.st_value)), shape=(case.n_buckets, case.n_values)
    )
    counts = np.asarray(held.sum(axis=0), dtype=np.float64)
    together = (held.T @ held).toarray()
    np.fill_diagonal(together, together.diagonal() - counts)
    ways = np.outer(counts, counts)
    np.fill_diagonal(ways, counts * (counts - 1))
    return np.asarray(np.clip(together / np.maximum(ways, 1e-300), 0.0, 1.0) * (ways > 0))


def _coins(hits: float, expected: float, trials: int, n_failed: int) -> AttackResult:
    return against_chance(
        "shared coins",
        COINS,
        hits=hits,
        trials=trials,
        expected=expected,
        limit=expected + bernstein_limit(2 * expected, 2.0),
        n_failed=n_failed,
        recommendation=SAME_COINS,
    )
