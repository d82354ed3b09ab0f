"""The tree of groups: what it lets through against recursion, and its flow against every way to load it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.mechanisms.bucketize.plan.groups import GroupTree
from dalenius.mechanisms.bucketize.plan.integer import CutSource
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem, Run, ValueClasses


def run(begin: int, end: int, threshold: str = "1/2") -> Run:
    return Run(begin=begin, end=end, threshold=Fraction(threshold))


NESTED = (run(0, 1, "1/4"), run(2, 3, "1/3"), run(0, 2), run(0, 4, "3/4"))
FAMILIES = [NESTED, (run(1, 3),), (run(0, 2), run(2, 5, "2/3")), (run(3, 4), run(2, 5), run(1, 5), run(0, 5))]


def tree_of(groups: tuple[Run, ...], sizes: tuple[int, ...] = (4, 6)) -> GroupTree:
    """Five values, each a class of its own: their counts differ."""
    problem = BucketProblem(
        counts=(1, 2, 3, 4, 5), thresholds=(Fraction(1),) * 5, max_bucket=15, groups=groups
    )
    tree = GroupTree.of(groups, ValueClasses.of(problem), sizes)
    assert tree is not None
    return tree


def test_the_parent_of_a_group_is_the_next_one_outwards() -> None:
    assert tree_of(NESTED).parent == (2, 3, 3, -1)
    assert tree_of((run(0, 2), run(2, 5))).parent == (-1, -1)
    assert tree_of(FAMILIES[3]).parent == (1, 2, 3, -1)
    assert tree_of(NESTED).inner.tolist() == [0, 2, 1, 3, -1]


def test_capacities_are_rounded_down_exactly() -> None:
    """1/4, 1/3, 1/2 and 3/4 of 4 are 1, 1, 2 and 3; of 6 they are 1, 2, 3 and 4."""
    tree = tree_of(NESTED)
    assert tree.capacity.tolist() == [[1, 1], [1, 2], [2, 3], [3, 4]]
    assert tree.by_size.tolist() == [[1, 1, 2, 3], [1, 2, 3, 4]]
    assert (
        GroupTree.of(
            (), ValueClasses.of(BucketProblem(counts=(1,), thresholds=(Fraction(1),), max_bucket=1)), (1,)
        )
        is None
    )


def let_through(groups: tuple[Run, ...], held: list[int], limits: list[int]) -> tuple[int, list[bool]]:
    """What a group takes is what its parts let through, up to its limit; by recursion over runs."""

    def parts(begin: int, end: int, below: int) -> tuple[int, list[int]]:
        """The total of the values begin..end, and the outermost groups among the first `below` in it."""
        total, value, inside = 0, begin, []
        while value < end:
            outer = [g for g in range(below) if groups[g].begin <= value < groups[g].end]
            if outer:
                g = max(outer)
                total += take(g)
                inside.append(g)
                value = groups[g].end
            else:
                total += held[value]
                value += 1
        return total, inside

    def take(g: int) -> int:
        return min(limits[g], parts(groups[g].begin, groups[g].end, g)[0])

    is_full = [limits[g] <= parts(groups[g].begin, groups[g].end, g)[0] for g in range(len(groups))]
    below_full = [
        any(is_full[g] and group.begin <= value < group.end for g, group in enumerate(groups))
        for value in range(len(held))
    ]
    return parts(0, len(held), len(groups))[0], below_full


@given(
    groups=st.sampled_from(FAMILIES),
    held=st.lists(st.lists(st.integers(0, 5), min_size=5, max_size=5), min_size=1, max_size=3),
    data=st.data(),
)
def test_what_is_left_under_the_limits_is_what_recursion_lets_through(
    groups: tuple[Run, ...], held: list[list[int]], data: st.DataObject
) -> None:
    n = len(groups)
    limits = [data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)) for _ in held]
    totals, full = tree_of(groups).narrow(np.array(held, dtype=float), np.array(limits, dtype=float))
    for row, (own, most) in enumerate(zip(held, limits, strict=True)):
        total, below_full = let_through(groups, own, most)
        assert totals[row] == total
        assert full[row].tolist() == below_full


def all_loads(
    counts: list[int], limits: np.ndarray, groups: tuple[Run, ...], group_limits: np.ndarray, slots: list[int]
) -> list[tuple[tuple[int, ...], ...]]:
    """Every way to load values × sizes within all limits."""
    rows = [
        [row for row in product(*(range(int(limit) + 1) for limit in limits[value])) if sum(row) == count]
        for value, count in enumerate(counts)
    ]
    return [
        loads
        for loads in product(*rows)
        if [sum(column) for column in zip(*loads, strict=True)] == slots
        and all(
            sum(loads[value][j] for value in range(group.begin, group.end)) <= group_limits[g, j]
            for g, group in enumerate(groups)
            for j in range(len(slots))
        )
    ]


@pytest.mark.parametrize(
    "groups",
    [(run(0, 2, "1/3"),), (run(0, 2, "1/2"),), (run(1, 2, "1/3"), run(0, 2, "2/3")), (run(1, 3, "1/2"),)],
)
@pytest.mark.parametrize("counts", [[2, 3, 4], [1, 3, 2], [4, 1, 3]])
def test_the_flow_through_groups_finds_loads_iff_there_are_any(
    groups: tuple[Run, ...], counts: list[int]
) -> None:
    """Settings of sizes 2 and 3; where there are none the classes named need more than there is room for."""
    sizes, n_rows = (2, 3), sum(counts)
    problem = BucketProblem(
        counts=tuple(counts), thresholds=(Fraction(2, 3),) * 3, max_bucket=3, groups=groups
    )
    classes = ValueClasses.of(problem)
    tree = GroupTree.of(groups, classes, sizes)
    assert tree is not None
    source = CutSource.of(classes, sizes, tree)
    seen = set()
    for large in range(n_rows // 3 + 1):
        small, odd = divmod(n_rows - 3 * large, 2)
        if odd:
            continue
        used = np.flatnonzero([small, large])
        b = np.array([small, large])[used]
        limits, slots = source.capacity[:, used] * b, source.sizes[used] * b
        found = tree.assign(classes.totals, limits, used, b, slots)
        own = limits[classes.class_of]
        possible = all_loads(counts, own, groups, tree.capacity[:, used] * b, slots.tolist())
        seen.add(bool(possible))
        if possible:
            assert tuple(map(tuple, found[classes.class_of].tolist())) in possible
        else:
            assert found.dtype == np.bool_
            cut = source.cuts(np.asarray(found[None, :], dtype=np.bool_))
            assert int(cut.coefficients[0][used] @ b) < int(cut.needs[0])
    assert seen
