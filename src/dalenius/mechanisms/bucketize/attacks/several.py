"""Two bucketizations of the same people: what their intersection tells, and whether they share coins."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.bucketize.attacks.case import BucketCase
from dalenius.threats.result import AttackResult
from dalenius.threats.several import Linked, expect_right, link, shared_coins, two_releases


def attack_two_bucketizations(one: BucketCase, two: BucketCase) -> list[AttackResult]:
    """Guess the value that both buckets have, weighed by how often each has it: c₁(x)·c₂(x)/o_x."""
    people = link(one.people, two.people, one.value, one.n_values)
    together = two_releases(
        people,
        right=expect_right(_shares_of_both(one, two, people), people.truth),
        right_alone=expect_right(_dense(one, people.first), people.truth),
        baseline=float(one.frequency.max()),
    )
    return [together, _bucket_mates(one, two, people)]


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
    return shared_coins(float(also.sum()), float((together * chance).sum()), int(pair.sum()))


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
