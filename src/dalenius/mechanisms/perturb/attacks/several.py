"""Two perturbations of the same people: what both values tell together, and whether they share coins."""

from __future__ import annotations

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.perturb.attacks.case import PerturbCase
from dalenius.threats.result import AttackResult
from dalenius.threats.several import Linked, expect_right, link, shared_coins, two_releases


def attack_two_perturbations(one: PerturbCase, two: PerturbCase) -> list[AttackResult]:
    """Multiply the evidence of both published values; see whether the coins agree more than they should."""
    people = link(one.people, two.people, one.value, one.n_values)
    first, second = _likelihood(one, people.first), _likelihood(two, people.second)
    prior = one.counts / max(one.counts.sum(), 1)
    together = two_releases(
        people,
        right=expect_right(first * second * prior, people.truth),
        right_alone=expect_right(first * prior, people.truth),
        baseline=float(prior.max()),
    )
    agree = (one.row_value[people.first] == two.row_value[people.second]).astype(np.float64)
    expected = _expected_agreement(one, two, people)
    coins = shared_coins(float(agree.sum()), float(expected.sum()), len(agree), people.n_failed)
    return [together, coins]


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
