"""The steps of the searches beside plain ones that try everything, on small tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.arrays import Ints
from dalenius.mechanisms.perturb.plan import improvers, lockstep, moves
from dalenius.mechanisms.perturb.plan.improvers import add_groups, best_set_partition, regroup, remix
from dalenius.mechanisms.perturb.plan.layout import LayoutMeasure, Objective
from dalenius.mechanisms.perturb.plan.lockstep import improve_by_moves
from dalenius.mechanisms.perturb.plan.moves import Moves, _MovedParts, improve_plainly
from dalenius.mechanisms.perturb.plan.starts import (
    band_partitions,
    cuthill_mckee_order,
    initial_groups,
    split_band,
)
from tests.mechanisms.perturb.histograms import EXAMPLE, array

TOLERANCE = 1 + 1e-9


@st.composite
def tables(draw: st.DrawFn) -> tuple[Ints, Objective]:
    """Counts of which some need no protection, both measures, and parts that must not be too small."""
    counts = draw(st.lists(st.integers(1, 40), min_size=3, max_size=9))
    n_free = draw(st.integers(0, len(counts) - 2))
    protected = np.array([True] * (len(counts) - n_free) + [False] * n_free)
    top = Fraction(max(counts[: len(counts) - n_free]), sum(counts))
    rho2 = top + (1 - top) * draw(st.sampled_from([Fraction(1, 10), Fraction(1, 2)]))
    measure = draw(st.sampled_from(LayoutMeasure))
    least_top = draw(st.sampled_from([1, 1, 3]))
    objective = Objective(protected=protected, rho2=float(rho2), measure=measure, least_top=least_top)
    return array(counts), objective


@st.composite
def partitions(draw: st.DrawFn) -> tuple[Ints, Objective]:
    """Two or three parts, each of which is one that may be."""
    counts, objective = draw(tables())
    n_parts = draw(st.integers(2, 3))
    shares = [draw(st.lists(st.integers(0, 6), min_size=n_parts, max_size=n_parts)) for _ in counts]
    quotas = np.array(shares, dtype=np.int64).T
    quotas[0] += counts
    quotas[1:, :2] += objective.least_top
    protected = replace(objective, rho2=0.999)
    return quotas, protected


def plain_cost(part: Ints, objective: Objective) -> float:
    """√n·c or its square, with c = (m − 1 + γ)/(γ − 1) and γ from the top protected share."""
    n_rows, top = int(part.sum()), int(part[objective.protected].max(initial=0))
    if not n_rows:
        return 0.0
    rho1, rho2 = Fraction(top, n_rows), Fraction(objective.rho2)
    if top < objective.least_top or rho1 >= rho2:
        return math.inf
    gamma = rho2 * (1 - rho1) / (rho1 * (1 - rho2))
    cost = math.sqrt(n_rows) * float((int(np.count_nonzero(part)) - 1 + gamma) / (gamma - 1))
    return cost if objective.measure is LayoutMeasure.EPSILON else cost**2


@given(partitions())
@settings(deadline=None, max_examples=30)
def test_a_partition_costs_what_the_definition_says(found: tuple[Ints, Objective]) -> None:
    quotas, objective = found
    quotas = np.concatenate([quotas, np.zeros_like(quotas[:1])])  # and of no rows: nothing
    costs = [plain_cost(part, objective) for part in quotas]
    assert objective.of_parts(quotas) == pytest.approx(costs)
    assert objective.total(quotas) == pytest.approx(sum(costs))


def plain_amounts(quotas: Ints, source: int, target: int, value: int, objective: Objective) -> list[int]:
    """All; as much as fills the target up to its top; as much as lowers the source's top; half."""
    tops = [max(int(q) for q, p in zip(part, objective.protected, strict=True) if p) for part in quotas]
    others = [int(q) for v, q in enumerate(quotas[source]) if objective.protected[v] and v != value]
    here, there = int(quotas[source, value]), int(quotas[target, value])
    lowered = max(others) if objective.protected[value] else tops[source]
    return [here, min(max(tops[target] - there, 0), here), max(here - lowered, 0), here // 2]


def plain_moves(quotas: Ints, objective: Objective) -> Iterator[tuple[int, int, int, int, int, float]]:
    """(kind of amount, source, target, value, amount, change of the cost) of every move."""
    before = sum(plain_cost(part, objective) for part in quotas)
    for source in range(len(quotas)):
        for target in range(len(quotas)):
            for value in range(quotas.shape[1]):
                amounts = plain_amounts(quotas, source, target, value, objective) if source != target else []
                for kind, amount in enumerate(amounts):
                    moved = quotas.copy()
                    moved[source, value] -= amount
                    moved[target, value] += amount
                    after = sum(plain_cost(part, objective) for part in moved)
                    yield kind, source, target, value, amount, after - before


@given(partitions())
@settings(deadline=None, max_examples=12)
def test_moves_change_the_cost_by_what_they_are_said_to(found: tuple[Ints, Objective]) -> None:
    """Of all four amounts, for every value and every two parts; and the best one is taken, or none."""
    quotas, objective = found
    parts = _MovedParts.of(quotas, objective)
    moves = list(plain_moves(quotas, objective))
    scale = 1e-9 * objective.total(quotas)
    for kind, source, target, value, amount, change in moves:
        one, other = np.array([source]), np.array([target])
        amounts = parts.amounts(one, other)
        assert amounts[kind, 0, value] == amount
        found_change = parts.cost_changes(amounts, one, other, objective)[kind, 0, value]
        assert found_change == pytest.approx(change, abs=scale)
    best = Moves.of(quotas, objective).best(objective)
    least = min(change for *_, change in moves)
    if best is None:
        assert least >= -scale
        return
    moved, (source, target) = best
    assert objective.total(moved) <= objective.total(quotas) + least + scale
    untouched = [part for part in range(len(quotas)) if part not in (source, target)]
    assert (moved[untouched] == quotas[untouched]).all()
    assert (moved.sum(axis=0) == quotas.sum(axis=0)).all()


@given(partitions())
@settings(deadline=None, max_examples=12)
def test_after_all_moves_none_is_left_that_helps(found: tuple[Ints, Objective]) -> None:
    quotas, objective = found
    better = improve_by_moves(quotas, objective)
    assert (better.sum(axis=1) > 0).all()
    assert (better.sum(axis=0) == quotas.sum(axis=0)).all()
    if len(better) > 1:
        least = min(change for *_, change in plain_moves(better, objective))
        assert least >= -1e-9 * objective.total(better)


def plain_splits(part: Ints, objective: Objective) -> Iterator[tuple[float, Ints]]:
    """Every head and tail: a cut in the ranks, fillers from the commonest, the unprotected on either side.

    A filler that gives all that it has counts as a value of the head all the same, as the search does it.
    """
    protected = np.where(objective.protected, part, 0)
    free = part - protected
    ranked = [int(v) for v in np.argsort(-protected, kind="stable") if protected[v]]
    for tail_free in [0 * free, free][: 1 + bool(free.any())]:
        for cut in range(1, len(ranked)):
            fill = protected[ranked[cut]]
            for n_fillers in range(min(cut, 32) + 1):
                tail = tail_free.copy()
                tail[ranked[cut:]] = protected[ranked[cut:]]
                tail[ranked[:n_fillers]] = fill
                head = part - tail
                if not head.any():
                    continue
                emptied = sum(head[v] == 0 for v in ranked[:n_fillers])
                costs = [
                    objective.of_shape(
                        array([one.sum()]),
                        array([np.count_nonzero(one) + more]),
                        array([one[objective.protected].max()]),
                    )[0]
                    for one, more in ((head, emptied), (tail, 0))
                ]
                yield sum(costs), np.stack((head, tail))


@given(tables())
@settings(deadline=None, max_examples=30)
def test_a_band_is_split_the_best_of_all_ways(table: tuple[Ints, Objective]) -> None:
    counts, objective = table
    splits = [split for split in plain_splits(counts, objective) if math.isfinite(split[0])]
    found = split_band(counts, objective)
    if not splits:
        assert found is None
        return
    assert found is not None
    least = min(cost for cost, _ in splits)
    assert any((found == split).all() for cost, split in splits if cost <= least * TOLERANCE)


def test_nothing_is_split_that_has_one_value_to_protect() -> None:
    objective = Objective(protected=np.array([True, False, False]), rho2=0.9)
    assert split_band(array([5, 5, 5]), objective) is None


def plain_bands(counts: Ints, objective: Objective) -> list[float]:
    """The costs of the chain: always the part whose split adds least is split, six bands in any case."""
    parts: list[Ints] = [counts]
    costs: list[float] = []
    while True:
        changes = []
        for part in parts:
            halves = split_band(part, objective)
            split = math.inf if halves is None else objective.total(halves)
            changes.append((split - objective.total(part[None]), halves))
        change, halves = min(changes, key=lambda one: one[0])
        if halves is None or (change >= 0 and len(parts) >= 6):
            return costs
        number = [one[0] for one in changes].index(change)
        parts = [part for place, part in enumerate(parts) if place != number] + list(halves)
        costs.append(objective.total(np.stack(parts)))


@pytest.mark.parametrize("measure", LayoutMeasure)
@pytest.mark.parametrize("counts", [EXAMPLE, [50, 40, 31, 30, 22, 15, 9, 9, 5, 4, 3, 2, 2, 1, 1], [7, 7, 7]])
def test_bands_are_the_cheapest_of_the_chain(counts: list[int], measure: LayoutMeasure) -> None:
    objective = Objective(protected=np.ones(len(counts), dtype=bool), rho2=0.6, measure=measure)
    chain = plain_bands(array(counts), objective)
    for n_best in (1, 3, 99):
        found = band_partitions(array(counts), objective, n_best)
        assert [objective.total(one) for one in found] == pytest.approx(sorted(chain)[:n_best])
        assert all((one.sum(axis=0) == counts).all() for one in found)


@given(tables())
@settings(deadline=None, max_examples=25)
def test_unprotected_records_are_dealt_one_after_the_other(table: tuple[Ints, Objective]) -> None:
    """Commonest value first, to each group its share rounded down, and the rest to the last."""
    counts, objective = table
    free = np.where(objective.protected, 0, counts)
    groups = initial_groups(counts, objective.protected)[0]
    sizes = groups[:, objective.protected].sum(axis=1).tolist()
    n_free = int(free.sum())
    records = [int(v) for v in np.argsort(-free, kind="stable") for _ in range(free[v])]
    shares = [size * n_free // sum(sizes) for size in sizes]
    shares[-1] += n_free - sum(shares)
    for group, share in zip(groups, shares, strict=True):
        taken, records = records[:share], records[share:]
        expected = np.bincount(taken, minlength=len(counts))
        assert (np.where(objective.protected, 0, group) == expected).all()


def plain_cuthill_mckee(adjacent: np.ndarray, sizes: list[int], start: int | None) -> list[int]:
    degrees = [int(row.sum()) for row in adjacent]
    left = sorted(range(len(sizes)), key=lambda g: (degrees[g], sizes[g], g))
    order: list[int] = []
    while left:
        queue = [left[0] if start is None or start not in left else start]
        left.remove(queue[0])
        while queue:
            first = queue.pop(0)
            order.append(first)
            near = sorted((g for g in left if adjacent[first, g]), key=lambda g: (degrees[g], g))
            left = [g for g in left if g not in near]
            queue += near
    return order[::-1]


@given(st.integers(1, 9), st.randoms(use_true_random=False), st.booleans())
@settings(deadline=None, max_examples=30)
def test_the_order_is_breadth_first_by_degrees_and_reversed(n: int, random: object, starts: bool) -> None:
    adjacent = np.zeros((n, n), dtype=bool)
    for one, other in combinations(range(n), 2):
        adjacent[one, other] = adjacent[other, one] = random.random() < 0.3  # type: ignore[attr-defined]
    sizes = [random.randrange(1, 4) for _ in range(n)]  # type: ignore[attr-defined]
    start = random.randrange(n) if starts else None  # type: ignore[attr-defined]
    found = cuthill_mckee_order(adjacent, array(sizes), start)
    assert found.tolist() == plain_cuthill_mckee(adjacent, sizes, start)


@given(tables())
@settings(deadline=None, max_examples=30)
def test_no_group_is_better_off_in_another_part(table: tuple[Ints, Objective]) -> None:
    """Nor alone, nor are two parts together, once groups were moved."""
    counts, objective = table
    groups = initial_groups(counts, objective.protected)[0]
    labels = regroup(groups, np.zeros(len(groups), dtype=np.int64), objective)
    cost = sum(plain_cost(groups[labels == label].sum(axis=0), objective) for label in set(labels.tolist()))
    for group in range(len(groups)):
        for label in range(int(labels.max()) + 2):
            other = labels.copy()
            other[group] = label
            moved = sum(
                plain_cost(groups[other == one].sum(axis=0), objective) for one in set(other.tolist())
            )
            assert moved >= cost - 1e-6 * cost


@given(partitions())
@settings(deadline=None, max_examples=6)
def test_a_remixed_partition_has_no_better_mixture(found: tuple[Ints, Objective]) -> None:
    """A part split, two joined, or two split anew, and moves after that."""
    quotas, objective = found
    better = remix(quotas, objective)
    assert (better.sum(axis=0) == quotas.sum(axis=0)).all()
    assert objective.total(better) <= objective.total(quotas)
    mixtures = []
    for replaced in [(i,) for i in range(len(better))] + list(combinations(range(len(better)), 2)):
        rest = [part for place, part in enumerate(better) if place not in replaced]
        whole = better[list(replaced)].sum(axis=0)
        halves = split_band(whole, objective)
        mixtures += [np.stack([*rest, whole])] + ([] if halves is None else [np.stack([*rest, *halves])])
    for mixture in mixtures:
        assert objective.total(improve_by_moves(mixture, objective)) >= objective.total(better) / TOLERANCE


def test_groups_with_the_same_label_are_one_part_in_the_order_of_the_labels() -> None:
    groups = np.array([[1, 0, 0], [0, 2, 3], [4, 0, 5], [0, 0, 1]])
    assert add_groups(groups, np.array([2, 0, 2, 5])).tolist() == [[0, 2, 3], [5, 0, 5], [0, 0, 1]]
    assert add_groups(groups[:1], np.array([0])).tolist() == [[1, 0, 0]]


@given(tables())
@settings(deadline=None, max_examples=20)
def test_the_parts_of_the_best_merge_are_numbered_one_after_the_other(table: tuple[Ints, Objective]) -> None:
    counts, objective = table
    labels = best_set_partition(initial_groups(counts, objective.protected)[0], objective)
    if labels is not None:
        assert sorted(set(labels.tolist())) == list(range(int(labels.max()) + 1))


def test_searches_that_would_take_long_are_left_out_from_their_limits_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two parts of three values, which moves improve: at a limit everything is tried, beyond it nothing."""
    quotas = np.array([[30, 1, 20], [2, 25, 20]])
    objective = Objective(protected=np.array([True, True, True]), rho2=0.9)
    for improve in (improve_by_moves, improve_plainly):
        for each in (lockstep, moves):
            monkeypatch.setattr(each, "MOST_CELLS", 2**2 * 3)
        assert objective.total(improve(quotas, objective)) < objective.total(quotas)
        for each in (lockstep, moves):
            monkeypatch.setattr(each, "MOST_CELLS", 2**2 * 3 - 1)
        assert improve(quotas, objective) is quotas
    monkeypatch.undo()
    groups, apart = np.array([[9, 9, 0], [9, 9, 0]]), np.array([0, 1])
    monkeypatch.setattr(improvers, "_MOST_SWEEP_CELLS", 2 * 6)
    assert len(set(regroup(groups, apart, objective).tolist())) == 1
    monkeypatch.setattr(improvers, "_MOST_SWEEP_CELLS", 2 * 6 - 1)
    assert regroup(groups, apart, objective) is apart
    for limits in ({"MOST_EXACT_GROUPS": 2}, {"_MOST_SUBSET_CELLS": 3 << 2}):
        for name, limit in limits.items():
            with monkeypatch.context() as patch:
                patch.setattr(improvers, name, limit)
                assert best_set_partition(groups, objective) is not None
                patch.setattr(improvers, name, limit - 1)
                assert best_set_partition(groups, objective) is None
    monkeypatch.setattr(improvers, "_MOST_REMIXED_CELLS", 2**4 * 3)
    assert objective.total(remix(quotas, objective)) < objective.total(quotas)
    monkeypatch.setattr(improvers, "_MOST_REMIXED_CELLS", 2**4 * 3 - 1)
    assert remix(quotas, objective) is quotas
