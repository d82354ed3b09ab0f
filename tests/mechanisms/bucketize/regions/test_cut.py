"""Cells, cuts and regions beside loops over people and every way that values could fall."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.errors import InternalError
from dalenius.mechanisms.bucketize.regions import cut as module
from dalenius.mechanisms.bucketize.regions.cut import (
    Cut,
    CutRule,
    Grid,
    NumberCells,
    RegionTree,
    TextCells,
    first_cells,
    spreads,
)
from tests.mechanisms.bucketize.memory_scan import grown

HALF = Fraction(1, 2)


def satisfies(cell: Any, condition: dict[str, Any]) -> bool:
    """A condition as the manifest states it, on one cell."""
    if not condition:
        return True
    if "in" in condition:
        return (None if cell is None else str(cell)) in condition["in"]
    if cell is None:
        return bool(condition["null"])
    above = "above" not in condition or cell > condition["above"]
    return above and ("at_most" not in condition or cell <= condition["at_most"])


@given(
    st.lists(st.none() | st.integers(-5, 5), min_size=1, max_size=12),
    st.sets(st.integers(-5, 5), max_size=4),
)
def test_a_number_is_in_the_range_that_ends_at_or_after_it(cells: list[int | None], ends: set[int]) -> None:
    ranges = NumberCells(column="n", ends=np.array(sorted(ends), dtype=float), has_null=None in cells)
    found = ranges.encode(pa.array(cells, pa.int64())).tolist()
    by_hand = [0 if c is None else 1 + sum(end < c for end in ends) for c in cells]
    assert found == by_hand
    assert ranges.n_cells == len(ends) + 2
    for first, last in product(range(ranges.n_cells), repeat=2):
        if first <= last:
            condition = ranges.condition(first, last)
            inside = [first <= cell <= last for cell in found]
            assert inside == [satisfies(cell, condition) for cell in cells]


def test_ends_are_whole_numbers_where_they_are_whole() -> None:
    ranges = NumberCells(column="n", ends=np.array([1.0, 2.5]), has_null=False)
    assert ranges.condition(2, 2) == {"column": "n", "above": 1, "at_most": 2.5, "null": False}
    assert ranges.condition(1, 1) == {"column": "n", "at_most": 1, "null": False}
    assert ranges.condition(3, 3) == {"column": "n", "above": 2.5, "null": False}
    assert isinstance(ranges.condition(2, 2)["above"], int)


@given(st.lists(st.integers(0, 9), min_size=4, max_size=4))
def test_texts_are_ordered_by_how_many_have_them(counts: list[int]) -> None:
    values = pa.array(["a", "b", "c", None])
    cells = TextCells(column="t", values=values, cell_of=np.arange(4)).ordered(np.array(counts))
    order = sorted(range(4), key=lambda i: (-counts[i], i))
    assert cells.encode(values).tolist() == [order.index(i) for i in range(4)]
    for first, last in product(range(4), repeat=2):
        if first <= last:
            condition = cells.condition(first, last)
            inside = {values[i].as_py() for i in order[first : last + 1]}
            assert {v for v in values.to_pylist() if satisfies(v, condition)} == inside
            assert (condition == {}) == (first == 0 and last == 3)


def test_a_text_that_was_not_there_before_stops_everything() -> None:
    cells = first_cells("t", pa.array(["a", "b"]))
    assert cells is not None
    with pytest.raises(InternalError, match="a quasi-identifier is new"):
        cells.encode(pa.array(["a", "x"]))


def test_numbers_are_grouped_before_they_are_counted_and_texts_are_not() -> None:
    many = first_cells("n", pa.array(range(1_000)))
    assert isinstance(many, NumberCells)
    # every fourth number ends a range: ⌈1000/256⌉ = 4, and the last range has no end
    assert many.ends.tolist() == list(range(3, 999, 4))
    assert first_cells("t", pa.array([f"{i:03}" for i in range(256)])) is not None
    assert first_cells("t", pa.array([f"{i:03}" for i in range(257)])) is None
    few = first_cells("n", pa.array([2.5, 1.0, float("nan"), None, 7.0]))
    assert isinstance(few, NumberCells)
    assert few.ends.tolist() == [1.0, 2.5]
    assert few.has_null


def test_few_ranges_stay_and_many_hold_about_as_many_people() -> None:
    few = NumberCells(column="n", ends=np.arange(15.0), has_null=False)
    assert few.ordered(np.ones(17, dtype=np.int64)) is few
    many = NumberCells(column="n", ends=np.arange(99.0), has_null=False)
    counts = np.concatenate([[3], np.repeat([1, 9], 50)])  # 3 without a number, then 50 rare and 50 common
    ordered = many.ordered(counts)
    assert len(ordered.ends) <= 16
    edges = [0, *(int(end) + 1 for end in ordered.ends), 100]
    held = [int(counts[1:][a:b].sum()) for a, b in pairwise(edges)]
    assert sum(held) == 500
    assert max(held) <= 2 * 500 / 16


def test_a_grid_numbers_the_cells_of_all_columns() -> None:
    grid = Grid(
        columns=(
            NumberCells(column="n", ends=np.array([5.0]), has_null=False),
            TextCells(column="t", values=pa.array(["x", "y"]), cell_of=np.array([1, 0])),
        )
    )
    assert grid.offsets.tolist() == [0, 3, 5]
    batch = pa.record_batch({"t": ["x", "y", "x"], "n": [5, 6, None]})
    assert grid.encode(batch).tolist() == [[1, 2, 0], [1, 0, 1]]
    assert grid.conditions([0, 0], [2, 1]) == []
    assert grid.conditions([0, 1], [2, 1]) == [{"column": "t", "in": ["x"]}]
    assert Grid(columns=()).encode(batch).shape == (0, 3)


def rule(**change: Any) -> CutRule:
    fields: dict[str, Any] = {
        "thresholds": (HALF, Fraction(1)),
        "max_bucket": 4,
        "least_rows": 1,
        "offsets": np.array([0, 4]),
        "spread": np.array([0.75]),
    }
    return CutRule(**{**fields, **change})


def agreeing(cells: list[int]) -> Fraction:
    """How often two people of a part, drawn with replacement, agree in the column; by pairs."""
    people = [cell for cell, n in enumerate(cells) for _ in range(n)]
    if not people:
        return Fraction(0)
    return Fraction(sum(a == b for a, b in product(people, repeat=2)), len(people) ** 2)


@given(
    cells=st.lists(st.integers(0, 4), min_size=4, max_size=4).filter(lambda c: sum(c) > 0),
    least=st.integers(1, 4),
)
def test_the_gain_of_a_cut_is_how_much_more_often_neighbours_agree(cells: list[int], least: int) -> None:
    """Two people of one half against two of the region, as a part of how often the table's people differ."""
    rows = sum(cells)
    gains, column, last, left = rule(least_rows=least).candidates(np.array(cells), rows)
    possible = [
        cell
        for cell in range(3)
        if cells[cell] and min(sum(cells[: cell + 1]), sum(cells[cell + 1 :])) >= least
    ]
    assert last.tolist() == possible
    assert (column == 0).all()
    for gain, cell, n in zip(gains, last.tolist(), left.tolist(), strict=True):
        one, two = cells[: cell + 1], cells[cell + 1 :]
        assert n == sum(one)
        after = Fraction(sum(one), rows) * agreeing(one) + Fraction(sum(two), rows) * agreeing(two)
        assert gain == pytest.approx(float((after - agreeing(cells)) / Fraction(3, 4)))


def test_the_cut_with_the_largest_gain_is_taken_if_it_is_sure() -> None:
    columns = {"offsets": np.array([0, 2, 4]), "spread": np.array([0.5, 0.5])}
    own = rule(thresholds=(Fraction(1), Fraction(3, 4)), **columns)
    # the first column splits 6 : 2, the second 4 : 4, after which people of one half agree more often
    cells = np.array([6, 2, 4, 4])
    assert own.choose(cells, np.array([5, 3])) == Cut(column=1, last=0)
    # of four people all four could have the second value, of which a bucket of four may hold three
    assert own.choose(cells, np.array([4, 4])) is None
    # with one of it in all, 6 : 2 is sure as well, and still the lesser gain
    assert own.choose(cells, np.array([7, 1])) == Cut(column=1, last=0)
    # one person alone is too few where two must stay: the cut of the other column is taken
    two = rule(thresholds=(Fraction(1), Fraction(3, 4)), least_rows=2, **columns)
    assert two.choose(np.array([6, 2, 7, 1]), np.array([7, 1])) == Cut(column=0, last=0)
    assert rule(spread=np.zeros(0), offsets=np.array([0])).choose(np.zeros(0, dtype=int), cells) is None


@pytest.mark.parametrize("max_bucket", [2, 3, 4])
@pytest.mark.parametrize("threshold", ["1/2", "2/3", "1/3"])
def test_a_sure_half_is_one_that_even_buckets_keep_whatever_falls_into_it(
    max_bucket: int, threshold: str
) -> None:
    """b buckets of ⌊rows/b⌋ or one more; value i has at most min(o_i, rows) there, dealt one by one."""
    limit = Fraction(threshold)
    own = rule(thresholds=(limit,) * 2, max_bucket=max_bucket)
    for values in product(range(5), repeat=2):
        for rows in range(1, sum(values) + 1):
            keeps = False
            for size in range(1, min(max_bucket, rows) + 1):
                b = -(-rows // size)
                keeps |= all(-(-min(o, rows) // b) <= limit * (rows // b) // 1 for o in values if o)
            # ⌈o/b⌉ ≤ k and o ≤ k·b are the same
            assert own.is_sure(np.array(values), rows) == keeps, (values, rows)


def test_how_often_two_people_differ() -> None:
    """2 and 2 of four: half the pairs differ; all alike: none."""
    assert spreads(np.array([2, 2, 5, 0]), np.array([0, 2, 4])).tolist() == [0.5, 0.0]
    assert spreads(np.zeros(2, dtype=int), np.array([0, 2])).tolist() == [1.0]


TREE = RegionTree(
    grid=Grid(
        columns=(
            NumberCells(column="age", ends=np.array([30.0, 50.0]), has_null=True),
            TextCells(column="sex", values=pa.array(["f", "m"]), cell_of=np.array([0, 1])),
        )
    ),
    cuts=((0, Cut(column=0, last=1), 1, 2), (2, Cut(column=1, last=0), 3, 4)),
    leaves=(1, 3, 4),
)


def test_rows_fall_into_the_region_whose_conditions_they_satisfy() -> None:
    people = [(20, "f"), (30, "m"), (31, "f"), (60, "m"), (None, "m"), (50, "m")]
    batch = pa.record_batch({"age": pa.array([a for a, _ in people]), "sex": [s for _, s in people]})
    assert TREE.n_regions == 3
    assert TREE.regions(batch).tolist() == [0, 0, 1, 2, 0, 2]
    conditions = TREE.conditions()
    assert conditions[0] == [{"column": "age", "at_most": 30, "null": True}]
    assert conditions[1] == [{"column": "age", "above": 30, "null": False}, {"column": "sex", "in": ["f"]}]
    for (age, sex), region in zip(people, TREE.regions(batch).tolist(), strict=True):
        row = {"age": age, "sex": sex}
        holds = [all(satisfies(row[c["column"]], c) for c in own) for own in conditions]
        assert holds == [number == region for number in range(3)]


def test_cutting_a_leaf_puts_its_halves_in_its_place() -> None:
    tree, fresh = module._cut(TREE, [(1, Cut(column=1, last=0))])
    assert fresh == (5, 6)
    assert tree.leaves == (5, 6, 3, 4)
    same, none = module._cut(TREE, [])
    assert (same.leaves, none) == (TREE.leaves, ())


tables = st.integers(12, 30).flatmap(
    lambda n: st.fixed_dictionaries(
        {
            "age": st.lists(st.none() | st.integers(0, 5), min_size=n, max_size=n),
            "sex": st.lists(st.sampled_from(["f", "m"]), min_size=n, max_size=n),
            "value": st.lists(st.sampled_from(["a", "b", "c"]), min_size=n, max_size=n),
        }
    )
)


@given(tables)
@settings(max_examples=40)
def test_grown_regions_count_their_own_people(cells: dict[str, list[Any]]) -> None:
    """What was counted in scans, region by region, is what a loop over the rows counts."""
    schema = pa.schema([("age", "int64"), ("sex", "string"), ("value", "string")])
    table = pa.table(cells, schema=schema)
    thresholds = dict.fromkeys(("a", "b", "c"), Fraction(3, 4))
    tree, counts = grown(table, thresholds, least=3)
    region = tree.regions(table.combine_chunks().to_batches()[0]).tolist()
    values = [v for v, _ in sorted(Counter(cells["value"]).items(), key=lambda pair: (-pair[1], pair[0]))]
    by_hand = Counter(zip(region, cells["value"], strict=True))
    listed = {tuple(sorted(row)) for row in counts.tolist()}
    loops = [[by_hand[r, v] for v in values] for r in range(tree.n_regions)]
    assert {tuple(sorted(row)) for row in loops} == listed
    assert counts.sum() == len(region)
    assert len(tree.leaves) == len(tree.cuts) + 1


def test_regions_are_only_cut_where_enough_people_stay_on_both_sides() -> None:
    table = pa.table({"age": [row // 4 for row in range(40)], "value": ["a", "b"] * 20})
    thresholds = {"a": Fraction(1), "b": Fraction(1)}
    for least, n_regions in ((41, 1), (21, 1), (20, 2), (8, 5), (4, 10)):
        tree, counts = grown(table, thresholds, least=least)
        assert tree.n_regions == n_regions
        assert counts.sum(axis=1).min() >= min(least, 40)
