"""Phase 1 keeps lemmas 1 and 2."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given

from dalenius.arrays import Ints
from dalenius.mechanisms.perturb.plan import starts as balancing
from dalenius.mechanisms.perturb.plan.starts import balancing_level, initial_groups, largest_step
from dalenius.reproduce.census import occ_like
from tests.mechanisms.perturb.histograms import EXAMPLE, array, counts_lists, histograms_with_unprotected


def groups_of(counts: object) -> Ints:
    return initial_groups(array(counts), np.ones(len(array(counts)), dtype=bool))[0]


def test_example_2() -> None:
    assert balancing_level(array(EXAMPLE)) == 3
    assert groups_of(EXAMPLE).tolist() == [
        [6, 6, 6, 0, 0, 0, 0, 0, 0, 0],
        [4, 0, 0, 4, 4, 0, 0, 0, 0, 0],
        [2, 2, 0, 0, 0, 2, 0, 0, 0, 0],
        [0, 0, 0, 1, 0, 1, 1, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 1, 1, 1],
    ]


@pytest.mark.parametrize(("n_rows", "paper"), [(100_000, 17), (200_000, 18), (300_000, 19), (500_000, 20)])
def test_the_number_of_groups_is_near_table_3(n_rows: int, paper: int) -> None:
    counts = array(occ_like(n_rows))
    assert abs(initial_groups(counts, np.ones(50, dtype=bool))[1] - paper) <= 3


@given(counts_lists)
def test_lemma_1_groups_and_remainders_are_balanced(counts: list[int]) -> None:
    beta, left = balancing_level(array(counts)), array(counts)
    for group in groups_of(counts):
        assert beta * group.max() <= group.sum()
        left = left - group
        assert (left >= 0).all()
        assert beta * left.max() <= left.sum()
    assert not left.any()


@given(counts_lists)
def test_lemma_1_the_step_is_the_largest_possible(counts: list[int]) -> None:
    beta, total = balancing_level(array(counts)), sum(counts)
    ranked = [*sorted(counts, reverse=True), 0]
    step = largest_step(total, beta, ranked[0], ranked[beta - 1], ranked[beta])
    possible = [
        v for v in range(ranked[beta - 1] + 1) if beta * max(ranked[0] - v, ranked[beta]) <= total - beta * v
    ]
    assert step == max(possible)


@given(histograms_with_unprotected())
def test_lemma_2_with_unprotected_values(histogram: tuple[Ints, np.ndarray]) -> None:
    counts, protected = histogram
    alone = groups_of(np.where(protected, counts, 0))
    top, n_protected = int(counts[protected].max()), int(counts[protected].sum())
    beta, beta_protected = int(counts.sum()) // top, n_protected // top
    assume(beta_protected > 1)
    factor = 1 / (1 - Fraction(1, beta_protected))
    groups = initial_groups(counts, protected)[0]
    np.testing.assert_array_equal(groups.sum(axis=0), counts)
    np.testing.assert_array_equal(groups[:, protected], alone[:, protected])
    for group, before in zip(groups, alone, strict=True):
        is_whole = int(before.sum()) * int(counts[~protected].sum()) % n_protected == 0
        bound = factor / beta if is_whole else factor / (beta - factor)
        assert Fraction(int(group[protected].max()), int(group.sum())) <= bound


@given(counts_lists)
def test_joining_neighbours_keeps_the_balance(counts: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(balancing, "MOST_GROUPS", 2)
        groups, n_groups = initial_groups(array(counts), np.ones(len(counts), dtype=bool))
    assert len(groups) <= min(2, n_groups)
    assert groups.sum(axis=0).tolist() == counts
    assert all(balancing_level(array(counts)) * group.max() <= group.sum() for group in groups)


@given(counts_lists)
def test_each_group_takes_as_much_as_leaves_the_rest_balanced(counts: list[int]) -> None:
    """So many of each of the commonest values; where that is nothing, all that is left."""
    beta, left = balancing_level(array(counts)), array(counts)
    for group in groups_of(counts):
        ranked = np.argsort(-left, kind="stable")[:beta]
        takes = [
            step
            for step in range(int(left[ranked].min()) + 1)
            if (rest := left - step * np.isin(np.arange(len(left)), ranked)).max() * beta <= rest.sum()
        ]
        step = max(takes)
        expected = step * np.isin(np.arange(len(left)), ranked) if step else left
        assert group.tolist() == expected.tolist()
        left = left - group
