"""Plans of regions: merged, printed, and laid out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.plan.methods import plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.mechanisms.bucketize.regions.cut import Cut, Grid, NumberCells, RegionTree
from dalenius.mechanisms.bucketize.regions.plan import (
    RegionCoder,
    RegionLayout,
    RegionsPlan,
    plan_regions,
    problem_of_region,
    show_condition,
)
from dalenius.randomness import Randomness
from dalenius.tables.histogram import Histogram

COUNTS = np.array([[4, 4, 0], [3, 0, 3]])
"""Two regions of three values; each lacks one."""
PROBLEM = BucketProblem(counts=(7, 4, 3), thresholds=(Fraction(1, 2),) * 3, max_bucket=8)
GRID = Grid(columns=(NumberCells(column="age", ends=np.array([30.0]), has_null=False),))
TREE = RegionTree(grid=GRID, cuts=((0, Cut(column=0, last=1), 1, 2),), leaves=(1, 2))


def planned() -> RegionsPlan:
    return plan_regions(TREE, COUNTS, PROBLEM, plan_buckets(PROBLEM), 6)


def test_a_regions_problem_has_the_values_that_occur_and_the_tables_thresholds() -> None:
    problem = replace(PROBLEM, thresholds=(Fraction(1, 2), Fraction(3, 5), Fraction(2, 3)))
    own = problem_of_region(problem, COUNTS[1])
    assert (own.counts, own.thresholds) == ((3, 3), (Fraction(1, 2), Fraction(2, 3)))
    assert own.max_bucket == 8


def test_the_merged_plan_is_the_sum_of_the_regions() -> None:
    plan = planned()
    merged = plan.merged()
    merged.check(PROBLEM)
    assert plan.rows == [8, 6]
    assert merged.loss == sum(own.loss for own in plan.plans)
    assert merged.lower_bound == sum(own.lower_bound or 0 for own in plan.plans)
    assert [sum(row) for row in merged.loads] == [7, 4, 3]
    # pairs of both values of each region: 4 and 3 buckets of 2
    assert (merged.sizes, merged.n_buckets) == ((2,), (7,))


def test_a_bound_that_one_region_lacks_is_none_for_all() -> None:
    plan = planned()
    assert replace(plan, plans=(plan.plans[0], replace(plan.plans[1], lower_bound=None))).merged().gap is None


def test_sizes_of_different_regions_are_kept_apart_and_in_order() -> None:
    one = BucketPlan(method="x", sizes=(2, 4), n_buckets=(2, 1), loads=((2, 2), (2, 2)), lower_bound=0)
    two = BucketPlan(method="x", sizes=(3,), n_buckets=(2,), loads=((3,), (3,)), lower_bound=0)
    merged = replace(planned(), plans=(one, two)).merged()
    assert (merged.sizes, merged.n_buckets) == ((2, 3, 4), (2, 2, 1))
    assert merged.loads == ((2, 3, 2), (2, 0, 2), (0, 3, 0))


def test_what_is_printed_and_stated_of_regions() -> None:
    plan = planned()
    lines = str(plan).splitlines()
    assert lines[0].startswith("2 regions of 6 to 8 rows (at least 6); MSE 0.5385 inside them")
    assert lines[1].split(maxsplit=2) == ["8", "rows", "age ≤ 30"]
    assert lines[2].split(maxsplit=2) == ["6", "rows", "30 < age"]
    assert plan.to_summary()["rows"] == [8, 6]
    assert plan.to_summary()["count"] == 2
    assert plan.to_manifest() == [
        {"rows": 8, "buckets": 4, "where": [{"column": "age", "at_most": 30, "null": False}]},
        {"rows": 6, "buckets": 3, "where": [{"column": "age", "above": 30, "null": False}]},
    ]
    alone = plan_regions(
        RegionTree(grid=GRID), COUNTS.sum(axis=0)[None, :], PROBLEM, plan_buckets(PROBLEM), 6
    )
    assert alone.plans == (alone.without,)
    assert str(alone).startswith("1 region: no cut is sure to keep every threshold; MSE")


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ({"column": "age", "above": 30, "null": False}, "30 < age"),
        ({"column": "age", "at_most": 40, "null": True}, "age ≤ 40 or NULL"),
        ({"column": "age", "above": 1, "at_most": 2, "null": True}, "1 < age ≤ 2 or NULL"),
        ({"column": "sex", "in": [None]}, "sex in NULL"),
        ({"column": "job", "in": list("abcd")}, "job in a, b, c, d"),
        ({"column": "job", "in": list("abcdef")}, "job in a, b, c, d and 2 more"),
    ],
)
def test_conditions_in_words(condition: dict[str, Any], words: str) -> None:
    assert show_condition(condition) == words


def test_long_lists_of_regions_are_cut_short() -> None:
    plan = planned()
    cuts = tuple((2 * i, Cut(column=0, last=1), 2 * i + 1, 2 * i + 2) for i in range(14))
    leaves = (*range(1, 28, 2), 28)
    many = replace(
        plan,
        tree=RegionTree(grid=GRID, cuts=cuts, leaves=leaves),
        plans=plan.plans * 7 + plan.plans[:1],
        counts=np.tile(COUNTS, (8, 1))[:15],
    )
    lines = str(many).splitlines()
    assert len(lines) == 1 + 12 + 1
    assert lines[-1].strip() == "… and 3 more (--json lists them all)"


def test_places_of_all_regions_are_what_is_published() -> None:
    layout = RegionLayout.shuffled(planned(), Randomness.seeded(2))
    assert layout.n_places == [4, 4, 0, 3, 0, 3]
    assert layout.n_buckets == 7
    placed: Counter[tuple[int, int]] = Counter()
    for code in range(6):
        places = layout.places(code)
        assert len(places) == layout.n_places[code]
        placed.update((bucket, code % 3) for bucket in places.tolist())
    listed = {
        (bucket, code): count
        for part in layout.contents()
        for bucket, code, count in zip(*(column.tolist() for column in part), strict=True)
    }
    assert listed == placed
    assert sorted({bucket for bucket, _ in listed}) == list(range(1, 8))
    first = set(layout.places(1).tolist())  # value 1 is in the first region alone, value 2 in the second
    assert first.isdisjoint(layout.places(5).tolist())


def test_a_rows_code_is_its_region_and_value() -> None:
    histogram = Histogram.of(("ill",), Counter({("a",): 7, ("b",): 4, ("c",): 3}))
    schema = pa.schema([("age", pa.int64()), ("ill", pa.string())])
    encoder = histogram.encoder(schema)
    coder = RegionCoder(tree=TREE, encoder=encoder)
    batch = pa.record_batch({"age": [20, 31, 30], "ill": ["b", "a", "c"]}, schema=schema)
    codes = encoder.encode(batch)
    assert coder.encode(batch).tolist() == [codes[0], 3 + codes[1], codes[2]]
