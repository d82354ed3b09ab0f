"""Capacities are exact, sizes suffice, and bad input is refused."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InputError, PromiseNotMet
from dalenius.mechanisms.bucketize.plan.problem import (
    BucketProblem,
    NoSettingFits,
    Run,
    ThresholdsTooLow,
    ValueClasses,
    groups_above,
    least_size,
    record_bound,
    sizes_needed,
    violations,
)
from dalenius.mechanisms.bucketize.plan.sizes import candidate_sizes, largest_even_sizes
from tests.mechanisms.bucketize.problems import least_loss, problems, skewed


def test_a_capacity_on_the_boundary_is_not_lost_to_floating_point() -> None:
    problem = BucketProblem(counts=(1, 1), thresholds=(Fraction("0.29"), Fraction(1)), max_bucket=100)
    assert int(0.29 * 100) == 28  # what a float would give
    assert problem.capacity(100).tolist() == [29, 100]


@given(
    tops=st.lists(st.integers(1, 10**25), min_size=1, max_size=4),
    bottom=st.integers(10**25, 10**26),
    sizes=st.lists(st.integers(1, 5_000), min_size=1, max_size=4),
)
def test_capacities_equal_those_of_fractions_at_any_precision(
    tops: list[int], bottom: int, sizes: list[int]
) -> None:
    thresholds = tuple(Fraction(top, bottom) for top in tops)
    problem = BucketProblem(counts=(1,) * len(tops), thresholds=thresholds, max_bucket=5_000)
    expected = [[(t * s).__floor__() for s in sizes] for t in thresholds]
    assert problem.capacity_table(sizes).tolist() == expected


@pytest.mark.parametrize(
    ("counts", "thresholds", "max_bucket"),
    [
        ((), (), 5),
        ((1, 2), (Fraction(1),), 5),
        ((3, 0), (Fraction(1), Fraction(1)), 5),
        ((3,), (Fraction(0),), 5),
        ((3,), (Fraction(11, 10),), 5),
        ((3,), (Fraction(1),), 0),
        ((2**61,), (Fraction(1),), 50),
    ],
)
def test_bad_input_is_refused(
    counts: tuple[int, ...], thresholds: tuple[Fraction, ...], max_bucket: int
) -> None:
    with pytest.raises(InputError):
        BucketProblem(counts=counts, thresholds=thresholds, max_bucket=max_bucket)


def test_violations_are_exact_at_the_boundary() -> None:
    third = Fraction(1, 3)
    assert violations(BucketProblem(counts=(1, 2), thresholds=(third, Fraction(2, 3)), max_bucket=3)) == ()
    below = third - Fraction(1, 10**30)
    assert violations(BucketProblem(counts=(1, 2), thresholds=(below, Fraction(1)), max_bucket=3)) == (0,)
    assert ThresholdsTooLow((0,)).indices == (0,)
    assert issubclass(ThresholdsTooLow, PromiseNotMet)


@given(problems())
def test_the_record_bound_is_below_every_setting(problem: BucketProblem) -> None:
    best = least_loss(problem)
    assert best is None or record_bound(problem) <= best


def test_every_size_is_a_candidate_up_to_fifty() -> None:
    assert candidate_sizes(skewed(50, 300_000, 8)) == tuple(range(2, 51))


def test_large_buckets_are_searched_at_few_sizes() -> None:
    counts = (100, *([1_000] * 999))  # a value that may be one in a thousand
    problem = BucketProblem(counts=counts, thresholds=(Fraction(1, 1_000),) * 1_000, max_bucket=3_000)
    assert violations(problem) == tuple(range(1, 1_000))
    sizes = candidate_sizes(problem)
    assert {1_000, 1_001, 2_000, 2_001, 3_000} <= set(sizes)
    assert len(sizes) < 100
    assert len(candidate_sizes(skewed(3_200, 10**7, 8, max_bucket=2_000))) < 600


@given(st.integers(1, 30), st.integers(1, 60), st.integers(1, 60), st.integers(1, 60))
def test_the_least_size_is_what_trying_finds(count: int, rest: int, top: int, more: int) -> None:
    share, threshold = Fraction(count, count + rest), Fraction(top, top + more)
    if threshold < share:
        return
    problem = BucketProblem(
        counts=(count, rest), thresholds=(threshold, Fraction(1)), max_bucket=count + rest
    )
    sizes = range(1, count + rest + 1)
    tried = next(
        size for size in sizes if any(share <= Fraction(k, size) <= threshold for k in range(size + 1))
    )
    assert least_size(problem) == tried


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": (), "thresholds": ()}, "0 counts and 0 thresholds"),
        ({"counts": (1, 2)}, "2 counts and 1 thresholds: there must be as many of both"),
        ({"counts": (0,)}, "has no rows; leave values that do not occur out"),
        ({"thresholds": (Fraction(0),)}, r"outside \(0, 1\]"),
        ({"thresholds": (Fraction(-1, 2),)}, r"outside \(0, 1\]"),
        ({"thresholds": (1 + Fraction(1, 10**30),)}, r"outside \(0, 1\]"),
        ({"max_bucket": 0}, "max_bucket is 0; the smallest that means anything is 1"),
        ({"counts": (2**60,), "max_bucket": 4}, "pass 64-bit integers; use a smaller max_bucket"),
    ],
)
def test_a_refusal_says_what_is_wrong(change: dict[str, object], message: str) -> None:
    fine = BucketProblem(counts=(3,), thresholds=(Fraction(1),), max_bucket=5)
    with pytest.raises(InputError, match=message):
        replace(fine, **change)  # type: ignore[arg-type]


def test_the_largest_table_that_64_bits_hold_is_planned_for() -> None:
    BucketProblem(counts=(2**60 - 1,), thresholds=(Fraction(1),), max_bucket=4)
    with pytest.raises(InputError):
        BucketProblem(counts=(2**60,), thresholds=(Fraction(1),), max_bucket=4)


@given(st.fractions(Fraction(1, 200), 1, max_denominator=300))
def test_the_size_needed_is_the_first_that_may_hold_one(threshold: Fraction) -> None:
    first = next(size for size in range(1, 301) if threshold * size >= 1)
    assert sizes_needed([threshold]) == [first]


@given(problems())
def test_the_record_bound_is_summed_record_by_record(problem: BucketProblem) -> None:
    """(S−1)²/S for each record, S the first size that may hold one of its value."""
    total = Fraction(0)
    for count, threshold in zip(problem.counts, problem.thresholds, strict=True):
        size = next(s for s in range(1, 1_000) if threshold * s >= 1)
        total += count * Fraction((size - 1) ** 2, size)
    assert record_bound(problem) == ceil(total)


def test_sizes_end_with_the_table_and_with_max_bucket() -> None:
    problem = BucketProblem(counts=(4, 4), thresholds=(Fraction(1, 2),) * 2, max_bucket=50)
    assert (problem.smallest_size, problem.largest_size) == (2, 8)
    assert candidate_sizes(problem) == (2, 3, 4, 5, 6, 7, 8)
    assert candidate_sizes(replace(problem, max_bucket=3)) == (2, 3)
    assert candidate_sizes(replace(problem, max_bucket=1)) == ()
    wide = BucketProblem(counts=(50, 50), thresholds=(Fraction(1, 2),) * 2, max_bucket=64)
    assert candidate_sizes(wide) == tuple(range(2, 65))


def grows(thresholds: set[Fraction], size: int) -> bool:
    return any(t * size // 1 > t * (size - 1) // 1 for t in thresholds)


@pytest.mark.parametrize("thresholds", [("1/20", "1/30"), ("1/40", "3/100"), ("1/50",)])
def test_beyond_64_every_size_where_a_capacity_grows_is_searched(thresholds: tuple[str, ...]) -> None:
    """With a few thresholds no such size is left out, and each has its successor beside it."""
    shares = tuple(Fraction(t) for t in thresholds)
    problem = BucketProblem(counts=(4_500,) * len(shares), thresholds=shares, max_bucket=400)
    sizes = set(candidate_sizes(problem))
    wanted = {s for s in range(65, 401) if grows(set(shares), s)}
    assert wanted
    assert wanted <= sizes
    assert {s + 1 for s in wanted if s < 400} <= sizes
    assert set(range(problem.smallest_size, 65)) <= sizes
    assert max(sizes) <= 400


def test_beyond_64_nothing_else_is_searched_but_even_sizes() -> None:
    """Sizes where a capacity grows, their successors, and those of the fewest and the most even buckets."""
    shares = (Fraction(1, 70), Fraction(1, 3))
    problem = BucketProblem(counts=(10, 990), thresholds=shares, max_bucket=150, min_bucket=66)
    grown = {s for s in range(65, 151) if grows(set(shares), s)}
    buckets = [*range(7, 7 + 16), *range(15 - 16 + 1, 15 + 1)]  # 1,000 rows: 7 of up to 150, 15 of 66 or more
    evenly = {size for b in buckets if b > 0 for size in even(1_000, b)}
    wanted = {*grown, *(size + 1 for size in grown), *evenly}
    assert set(candidate_sizes(problem)) == {size for size in wanted if 66 <= size <= 150}


def test_where_a_capacity_grows_everywhere_a_size_is_never_far() -> None:
    """A value that is no secret may fill any bucket: too many sizes, of which some within 3 % are kept."""
    problem = BucketProblem(counts=(450, 8_550), thresholds=(Fraction(1, 20), Fraction(1)), max_bucket=9_000)
    sizes = candidate_sizes(problem)
    assert set(range(1, 65)) <= set(sizes)
    assert len(sizes) < 700
    large = [size for size in sizes if 64 <= size <= 120]
    assert all(b <= a * 1.04 + 1 for a, b in pairwise(large))


def test_the_threshold_of_a_group_makes_sizes_worth_searching() -> None:
    group = Run(begin=0, end=2, threshold=Fraction(7, 100))
    counts = (200, 200, 9_600)
    plain = BucketProblem(counts=counts, thresholds=(Fraction(1, 20),) * 3, max_bucket=300)
    grouped = replace(plain, groups=(group,))
    # 7/100 first allows 5, 6 and 7 records at ⌈500/7⌉ = 72, ⌈600/7⌉ = 86 and 100
    assert {72, 73, 86, 87, 100, 101} <= set(candidate_sizes(grouped))
    assert 72 not in candidate_sizes(plain)


@given(st.integers(1, 500), st.integers(1, 80))
def test_even_sizes_are_those_of_the_fewest_buckets_and_a_few_more(n_rows: int, large: int) -> None:
    fewest = min(b for b in range(1, n_rows + 1) if b * large >= n_rows)
    found = largest_even_sizes(n_rows, large)
    tried = {size for b in range(fewest, min(fewest + 16, n_rows + 1)) for size in even(n_rows, b)}
    assert found == tried
    assert max(found) <= large


def even(n_rows: int, n_buckets: int) -> set[int]:
    """The sizes of buckets that are filled one row after the other."""
    return {len(range(b, n_rows, n_buckets)) for b in range(n_buckets)}


def test_groups_above_their_threshold_are_found_exactly() -> None:
    problem = BucketProblem(
        counts=(1, 1, 1, 3),
        thresholds=(Fraction(1),) * 4,
        max_bucket=6,
        groups=(
            Run(begin=0, end=2, threshold=Fraction(1, 3)),  # 2 of 6 are 1/3
            Run(begin=0, end=3, threshold=Fraction(1, 2) - Fraction(1, 10**20)),  # 3 of 6 are 1/2
        ),
    )
    assert groups_above(problem) == (1,)
    assert Run(begin=0, end=3, threshold=Fraction(1)).holds(problem.groups[0])
    assert not problem.groups[0].holds(Run(begin=1, end=3, threshold=Fraction(1)))
    assert problem.groups[0].is_apart(Run(begin=2, end=4, threshold=Fraction(1)))
    assert not problem.groups[0].is_apart(Run(begin=1, end=4, threshold=Fraction(1)))


@given(
    counts=st.lists(st.integers(1, 3), min_size=1, max_size=7),
    tops=st.lists(st.sampled_from(["1/2", "2/3", "1"]), min_size=7, max_size=7),
    grouped=st.booleans(),
)
def test_classes_are_the_values_that_are_alike(counts: list[int], tops: list[str], grouped: bool) -> None:
    n = len(counts)
    groups = (Run(begin=0, end=1, threshold=Fraction(1)), Run(begin=0, end=n // 2, threshold=Fraction(1)))
    problem = BucketProblem(
        counts=tuple(counts),
        thresholds=tuple(map(Fraction, tops[:n])),
        max_bucket=9,
        groups=groups if grouped and n >= 2 else (),
    )
    alike: dict[tuple[int, Fraction, int], list[int]] = defaultdict(list)
    for value in range(n):
        inner = next((g for g, group in enumerate(problem.groups) if group.begin <= value < group.end), -1)
        alike[problem.counts[value], problem.thresholds[value], inner].append(value)
    classes = ValueClasses.of(problem)
    assert len(classes.totals) == len(alike)
    for (count, threshold, inner), members in alike.items():
        (number,) = {int(classes.class_of[value]) for value in members}
        assert classes.totals[number] == count * len(members)
        assert classes.n_members[number] == len(members)
        assert classes.thresholds[number] == threshold
        assert classes.inner[number] == inner
        assert sorted(classes.rank[members].tolist()) == list(range(len(members)))
        for j, size in enumerate((2, 3, 5)):
            most = min(len(members) * int(threshold * size), size)
            assert classes.capacity_table((2, 3, 5))[number, j] == most


def test_what_would_do_travels_with_the_refusal() -> None:
    error = NoSettingFits("nothing", needed=7, hint="more")
    assert (error.needed, error.hint, error.message) == (7, "more", "nothing")
    assert NoSettingFits("nothing").needed is None


def test_groups_are_planned_for_as_many_rows_as_32_bits_count() -> None:
    most = 2**31 - 1
    group = (Run(begin=0, end=1, threshold=Fraction(1)),)
    BucketProblem(counts=(1, most - 1), thresholds=(Fraction(1),) * 2, max_bucket=9, groups=group)
    with pytest.raises(InputError, match="groups of values are planned for up to 2147483647 rows"):
        BucketProblem(counts=(1, most), thresholds=(Fraction(1),) * 2, max_bucket=9, groups=group)
