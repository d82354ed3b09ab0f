"""The searches: the paper's example, brute force beside each, and never worse than the paper's procedure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dalenius.arrays import Ints
from dalenius.mechanisms.perturb.plan.improvers import (
    add_groups,
    best_set_partition,
    merge_runs,
    regroup,
)
from dalenius.mechanisms.perturb.plan.layout import Objective
from dalenius.mechanisms.perturb.plan.lockstep import improve_by_moves
from dalenius.mechanisms.perturb.plan.methods import paper_partition, search_partitions
from dalenius.mechanisms.perturb.plan.moves import Moves
from dalenius.mechanisms.perturb.plan.starts import (
    balancing_level,
    band_partitions,
    candidate_orders,
    initial_groups,
    paper_order,
    split_band,
)
from dalenius.reproduce.census import occ_like
from tests.mechanisms.perturb.histograms import (
    EXAMPLE,
    array,
    counts_lists,
    everything_protected,
    histograms_with_unprotected,
    kdd_occupations,
)

EXAMPLE_OBJECTIVE = everything_protected(10, Fraction(2, 3))
EXAMPLE_GROUPS = initial_groups(array(EXAMPLE), EXAMPLE_OBJECTIVE.protected)[0]


def set_partitions(n: int) -> Iterator[list[int]]:
    """Every partition of n things, as restricted growth strings."""
    for labels in product(*(range(i + 1) for i in range(n))):
        if all(label <= max(labels[:i], default=-1) + 1 for i, label in enumerate(labels)):
            yield list(labels)


def groups_and_objective(counts: list[int]) -> tuple[Ints, Objective]:
    top = Fraction(max(counts), sum(counts))
    objective = everything_protected(len(counts), (1 + top) / 2)
    return initial_groups(array(counts), objective.protected)[0], objective


def test_examples_3_and_4() -> None:
    order = paper_order(EXAMPLE_GROUPS)
    assert (order + 1).tolist() == [1, 3, 2, 4, 5]
    quotas = add_groups(EXAMPLE_GROUPS, merge_runs(EXAMPLE_GROUPS, [order], EXAMPLE_OBJECTIVE)[0])
    assert sorted(quotas.tolist(), reverse=True) == [
        [12, 8, 6, 4, 4, 2, 0, 0, 0, 0],
        [0, 0, 0, 1, 0, 1, 1, 1, 1, 1],
    ]
    assert EXAMPLE_OBJECTIVE.total(quotas) / sum(EXAMPLE) == pytest.approx(0.52577, abs=5e-6)


def test_the_other_tie_gives_the_paper_a_worse_optimum() -> None:
    (other,) = merge_runs(EXAMPLE_GROUPS, [array([3, 2, 1, 0, 4])], EXAMPLE_OBJECTIVE)
    assert EXAMPLE_OBJECTIVE.total(add_groups(EXAMPLE_GROUPS, other)) / sum(EXAMPLE) > 0.5258


@given(counts_lists)
@settings(deadline=None, max_examples=40)
def test_every_order_is_a_permutation(counts: list[int]) -> None:
    groups, _ = groups_and_objective(counts)
    for _, order in candidate_orders(groups):
        assert sorted(order.tolist()) == list(range(len(groups)))


@given(counts_lists)
@settings(deadline=None, max_examples=40)
def test_runs_equal_brute_force_over_all_cuts(counts: list[int]) -> None:
    groups, objective = groups_and_objective(counts)
    assume(len(groups) <= 9)
    orders = [paper_order(groups), np.arange(len(groups))]
    for order, labels in zip(orders, merge_runs(groups, orders, objective), strict=True):
        brute = min(
            objective.total(add_groups(groups[order], np.cumsum([0, *cuts])))
            for cuts in product((0, 1), repeat=len(groups) - 1)
        )
        assert objective.total(add_groups(groups, labels)) == pytest.approx(brute)


@given(counts_lists)
@settings(deadline=None, max_examples=25)
def test_the_exact_merge_equals_brute_force_over_all_set_partitions(counts: list[int]) -> None:
    groups, objective = groups_and_objective(counts)
    assume(len(groups) <= 7)
    exact = best_set_partition(groups, objective)
    assert exact is not None
    cost = objective.total(add_groups(groups, exact))
    brute = min(objective.total(add_groups(groups, array(labels))) for labels in set_partitions(len(groups)))
    assert cost == pytest.approx(brute)
    local = regroup(groups, merge_runs(groups, [paper_order(groups)], objective)[0], objective)
    assert cost <= objective.total(add_groups(groups, local)) * (1 + 1e-12)


def test_too_many_groups_are_left_to_the_other_searches() -> None:
    groups = initial_groups(array(occ_like(300_000)), np.ones(50, dtype=bool))[0]
    assert best_set_partition(groups, everything_protected(50, Fraction(1, 6))) is None


@given(counts_lists)
@settings(deadline=None, max_examples=40)
def test_theorem_3_the_papers_parts_are_as_balanced_as_the_table(counts: list[int]) -> None:
    groups, objective = groups_and_objective(counts)
    for quota in paper_partition(groups, objective).quotas:
        assert balancing_level(array(counts)) * quota.max() <= quota.sum()


@given(histograms_with_unprotected())
@settings(deadline=None, max_examples=60)
def test_theorem_5_bounds_the_parts_with_unprotected_values(histogram: tuple[Ints, np.ndarray]) -> None:
    counts, protected = histogram
    top = int(counts[protected].max())
    beta, beta_protected = int(counts.sum()) // top, int(counts[protected].sum()) // top
    assume(beta_protected > 1)
    factor = 1 / (1 - Fraction(1, beta_protected))
    assume(beta > factor)
    objective = Objective(protected=protected, rho2=(1 + top / counts.sum()) / 2)
    groups = initial_groups(counts, protected)[0]
    for quota in paper_partition(groups, objective).quotas:
        assert Fraction(int(quota[protected].max()), int(quota.sum())) <= factor / (beta - factor)


@given(counts_lists)
@settings(deadline=None, max_examples=30)
def test_moves_and_splits_keep_every_record_and_never_raise_the_cost(counts: list[int]) -> None:
    groups, objective = groups_and_objective(counts)
    halves = split_band(array(counts), objective)
    starts = [*band_partitions(array(counts), objective, 3), paper_partition(groups, objective).quotas]
    starts += [] if halves is None else [halves]
    for start in starts:
        better = improve_by_moves(start, objective)
        for quotas in (start, better):
            assert quotas.sum(axis=0).tolist() == counts
            assert (quotas >= 0).all()
        assert objective.total(better) <= objective.total(start)


@given(counts_lists)
@settings(deadline=None, max_examples=30)
def test_what_a_move_leaves_of_the_changes_is_what_all_moves_would_change(counts: list[int]) -> None:
    _, objective = groups_and_objective(counts)
    for start in band_partitions(array(counts), objective, 3):
        moves = Moves.of(start, objective)
        while (best := moves.best(objective)) is not None:
            if not objective.total(best[0]) < objective.total(moves.parts.quotas):
                break
            moves = moves.after(*best, objective)
            assert np.array_equal(moves.least, Moves.of(moves.parts.quotas, objective).least, equal_nan=True)


@given(array_of_parts=st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=1, max_size=4))
def test_the_cost_is_infinite_exactly_for_invalid_parts(array_of_parts: list[list[int]]) -> None:
    rho2, protected = Fraction(1, 3), np.array([True, True, True, False])
    costs = Objective(protected=protected, rho2=float(rho2)).of_parts(array(array_of_parts))
    for part, cost in zip(array_of_parts, costs, strict=True):
        top = Fraction(max(part[:3]), max(sum(part), 1))
        assert np.isinf(cost) == (sum(part) > 0 and not 0 < top < rho2)


@given(counts_lists)
@settings(deadline=None, max_examples=30)
def test_the_search_is_never_worse_than_the_paper_or_uniform_perturbation(counts: list[int]) -> None:
    _, objective = groups_and_objective(counts)
    found = search_partitions(array(counts), objective)
    assert found.best.quotas.sum(axis=0).tolist() == counts
    cost = objective.total(found.best.quotas)
    assert np.isfinite(cost)
    assert cost <= objective.total(found.paper.quotas)
    assert cost <= objective.total(array([counts]))


@given(counts_lists, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=20)
def test_relabelled_values_get_the_same_parts(counts: list[int], random: Random) -> None:
    _, objective = groups_and_objective(counts)
    shuffled = random.sample(counts, len(counts))
    one, other = (search_partitions(array(labelled), objective) for labelled in (counts, shuffled))
    assert other.best.quotas.sum(axis=0).tolist() == shuffled
    np.testing.assert_array_equal(np.sort(one.best.quotas, axis=1), np.sort(other.best.quotas, axis=1))
    np.testing.assert_array_equal(np.sort(one.paper.quotas, axis=1), np.sort(other.paper.quotas, axis=1))


@pytest.mark.parametrize("level", [6, 5, 4, 3])
@pytest.mark.parametrize("histogram", [lambda: occ_like(300_000), kdd_occupations], ids=["occ-like", "kdd"])
def test_the_bound_falls_by_a_fifth_on_occupations(histogram: Callable[[], list[int]], level: int) -> None:
    counts = histogram()
    objective = everything_protected(len(counts), Fraction(1, level))
    found = search_partitions(array(counts), objective)
    assert objective.total(found.best.quotas) < 0.8 * objective.total(found.paper.quotas)
