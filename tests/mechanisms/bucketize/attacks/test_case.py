"""What an attacker sees of buckets, and how guesses are scored, beside loops over people."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.mechanisms.bucketize.attacks import case as module
from dalenius.mechanisms.bucketize.attacks.case import (
    RowPairs,
    draw_buckets,
    success_by_profile,
    usable_columns,
)
from tests.mechanisms.bucketize.attacks.cases import make_case

VALUES, BUCKET = [0, 1, 1, 2, 0, 2, 2], [0, 0, 0, 0, 1, 1, 1]


def test_sizes_frequencies_and_limits() -> None:
    case = make_case(VALUES, BUCKET)
    assert (case.n_people, case.n_values, case.n_buckets, case.n_fakes) == (7, 3, 2, 0)
    assert case.size.tolist() == [4, 3]
    assert case.frequency == pytest.approx([2 / 7, 2 / 7, 3 / 7])
    assert case.limits.tolist() == [1, 1, 1]
    assert make_case(VALUES, BUCKET, thresholds=[None, None, None]).limits.tolist() == [0, 0, 0]


def test_a_row_is_known_where_all_of_its_profile_have_one_value() -> None:
    """Two people of 30 with values 0 and 1; two of 40 both with 1: a row of 30 could be either."""
    case = make_case([0, 1, 1, 1, 2], [0, 0, 1, 1, 1], quasi={"age": [30, 30, 40, 40, 50]})
    assert case.row_truth().tolist() == [-1, -1, 1, 1, 2]
    assert case.known_buckets().tolist() == [False, True]


@st.composite
def beliefs(draw: st.DrawFn) -> tuple[list[int], list[int], list[int], list[list[int]]]:
    n = draw(st.integers(2, 7))
    ages = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    values = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    values[0] = 2
    order = draw(st.permutations(range(n)))
    table = draw(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=n, max_size=n))
    return ages, values, list(order), table


@given(beliefs(), st.data())
def test_people_of_one_profile_are_guessed_by_the_mean_of_their_rows(
    drawn: tuple[list[int], list[int], list[int], list[list[int]]], data: st.DataObject
) -> None:
    ages, values, order, table = drawn
    case = make_case(values, [0] * len(values), quasi={"age": ages}, order=order)
    # distinct beliefs, so that no tie decides
    dense = np.array(table) + np.arange(3 * len(values)).reshape(-1, 3) / 1000
    row, value = (part.ravel() for part in np.indices(dense.shape))
    among = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))))
    found = success_by_profile(case, row, value, dense.ravel(), among)
    total: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(3))
    for published, person in enumerate(order):
        total[ages[person]] += dense[published]
    right = [int(total[age].argmax()) == v for age, v in zip(ages, values, strict=True)]
    assert found == (sum(r for r, chosen in zip(right, among, strict=True) if chosen), among.sum())


@given(st.lists(st.booleans(), min_size=2, max_size=2))
def test_pairs_are_every_row_with_every_value_of_its_bucket(chosen: list[bool]) -> None:
    case = make_case(VALUES, BUCKET, order=[6, 0, 3, 5, 1, 2, 4])
    pairs = RowPairs.of(case, np.array(chosen))
    held = {(b, v): VALUES[4 * b : 4 * b + 4][: 4 - b].count(v) for b in (0, 1) for v in range(3)}
    by_hand = [
        (row, value, held[b, value] / (4 - b))
        for row, b in enumerate(case.row_bucket.tolist())
        if chosen[b]
        for value in range(3)
        if held[b, value]
    ]
    listed = list(zip(pairs.row.tolist(), pairs.value.tolist(), pairs.share.tolist(), strict=True))
    assert listed == by_hand
    assert pairs.bucket.tolist() == [int(case.row_bucket[row]) for row, _, _ in by_hand]
    assert (case.st_value[pairs.entry] == pairs.value).all()
    assert (case.st_bucket[pairs.entry] == pairs.bucket).all()
    some = pairs.within(np.array([True, False]))
    assert some.row.tolist() == [row for row, _, _ in by_hand if case.row_bucket[row] == 0]
    assert some.is_used.tolist() == [chosen[0], False]


def test_people_are_scored_whose_rows_are_all_looked_at() -> None:
    """Age 40 is in both buckets: with one of them left out nobody of 40 is scored."""
    case = make_case([0, 1, 1, 0], [0, 0, 1, 1], quasi={"age": [30, 40, 40, 50]})
    assert RowPairs.of(case, np.array([True, True])).people(case).tolist() == [True] * 4
    assert RowPairs.of(case, np.array([True, False])).people(case).tolist() == [True, False, False, False]


def test_buckets_are_drawn_as_far_as_pairs_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case(
        [0, 1] * 10, [row // 4 for row in range(20)]
    )  # five buckets of 4 people, 2 values: 8 pairs
    assert draw_buckets(case, np.random.default_rng(1)).all()
    for most, n_drawn in ((40, 5), (39, 4), (8, 1), (7, 0)):
        monkeypatch.setattr(module, "MOST_PAIRS", most)
        drawn = [draw_buckets(case, np.random.default_rng(seed)) for seed in range(20)]
        assert {int(chosen.sum()) for chosen in drawn} == {n_drawn}
        if n_drawn == 1:
            assert len({int(chosen.argmax()) for chosen in drawn}) > 2  # not always the same


def test_columns_of_one_value_or_of_nearly_as_many_as_people_teach_nothing() -> None:
    n = 60
    quasi = {"one": [1] * n, "few": [i % 3 for i in range(n)], "some": [i % 4 for i in range(n)]}
    case = make_case([0, 1] * 30, [i // 6 for i in range(n)], quasi={**quasi, "uid": list(range(n))})
    names = [case.people.columns[c].name for c in usable_columns(case)]
    assert names == ["few"]  # 60 // 20 = 3 cells at most
