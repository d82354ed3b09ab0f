"""People found again by their quasi-identifiers, against the definition, person by person.

What two releases about the same people tell together.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InputError
from dalenius.threats import original
from dalenius.threats.original import (
    CommonCodes,
    People,
    expect_right,
    known_values,
    link,
    shared_coins,
    two_releases,
)

ROWS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["F", "M", None])), min_size=1, max_size=12)


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=30)
)
def test_profiles_are_equal_rows_and_known_values_are_those_that_all_share(
    rows: list[tuple[int, int, int]],
) -> None:
    table = pa.table({"a": [r[0] for r in rows], "b": [r[1] for r in rows]})
    (profile,) = CommonCodes.of(["a", "b"], [table]).of_rows(["a", "b"])
    value = np.array([r[2] for r in rows])
    known = known_values(profile, value, int(profile.max()) + 1)[profile]
    for i, one in enumerate(rows):
        same = {r[2] for r in rows if r[:2] == one[:2]}
        assert known[i] == (one[2] if len(same) == 1 else -1)
        assert all((profile[i] == profile[j]) == (one[:2] == r[:2]) for j, r in enumerate(rows))


def quasi(rows: list[tuple[int, str | None]]) -> pa.Table:
    ages, sexes = zip(*rows, strict=True)
    return pa.table({"age": pa.array(ages, pa.int64()), "sex": pa.array(sexes, pa.string())})


@given(original=ROWS, published=ROWS)
def test_a_row_is_known_by_what_only_one_person_has(
    original: list[tuple[int, str | None]], published: list[tuple[int, str | None]]
) -> None:
    value = np.arange(len(original)) % 2
    if not set(original) & set(published):
        with pytest.raises(InputError, match="no published row"):
            People.find(quasi(original), quasi(published), ["age", "sex"])
        return
    people = People.find(quasi(original), quasi(published), ["age", "sex"])
    for row, cells in enumerate(published):
        same = [person for person, theirs in enumerate(original) if theirs == cells]
        values = {int(value[person]) for person in same}
        assert people.value_of_row(value)[row] == (values.pop() if len(values) == 1 else -1)
        assert people.position_of_row()[row] == (same[0] if len(same) == 1 else -1)
    for person, cells in enumerate(original):
        rows = [row for row, theirs in enumerate(published) if theirs == cells]
        is_known = len(rows) == 1 and original.count(cells) == 1
        assert people.row_of_person()[person] == (rows[0] if is_known else -1)


def test_without_quasi_identifiers_everybody_is_like_everybody_else() -> None:
    people = People.find(quasi([(1, "F"), (2, "M")]), quasi([(3, None)] * 3), [])
    assert people.n_profiles == 1
    assert people.position_of_row().tolist() == [-1] * 3
    assert people.value_of_row(np.array([7, 7])).tolist() == [7] * 3


def numbered(rows: list[int]) -> pa.Table:
    return pa.table({"uid": rows})


def test_people_are_linked_where_both_releases_show_them_once() -> None:
    original = numbered([10, 11, 12, 13])
    one, two = (
        People.find(original, numbered(rows), ["uid"]) for rows in ([13, 10, 11, 11], [12, 11, 10, 13])
    )
    linked = link(one, two, np.array([5, 6, 7, 8]), n_values=9)
    assert linked.truth.tolist() == [5, 8]
    assert (linked.first.tolist(), linked.second.tolist()) == ([1, 0], [2, 3])
    assert linked.n_failed == 2


def test_of_too_many_people_evenly_spaced_ones_are_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(original, "_MOST_PEOPLE", 10)
    table = numbered(list(range(100)))
    people = People.find(table, table, ["uid"])
    linked = link(people, people, np.arange(100), n_values=100)
    assert len(linked.truth) <= 10
    assert len(set(np.diff(linked.truth))) == 1


def test_equal_beliefs_share_a_guess() -> None:
    beliefs = np.array([[0.5, 0.5, 0.0], [0.2, 0.7, 0.1], [0.2, 0.7, 0.1]])
    assert expect_right(beliefs, np.array([0, 1, 2])) == pytest.approx(1.5)


def test_the_control_is_the_first_release_alone() -> None:
    table = numbered([1, 2])
    people = People.find(table, table, ["uid"])
    found = two_releases(link(people, people, np.array([0, 1]), 2), right=2.0, right_alone=1.0, baseline=0.5)
    assert (found.success, found.control, found.baseline, found.holds) == (1.0, 0.5, 0.5, None)
    assert found.recommendation is not None


@pytest.mark.parametrize(("hits", "is_by_chance"), [(100, True), (400, False)])
def test_agreement_beyond_chance_means_the_same_coins(hits: int, is_by_chance: bool) -> None:
    found = shared_coins(hits, expected=100.0, trials=1_000)
    assert found.holds is is_by_chance
    assert (found.recommendation is None) is is_by_chance
    assert found.baseline == pytest.approx(0.1)
