"""What two releases about the same people tell together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dalenius.threats import original
from dalenius.threats.original import People, expect_right, link, shared_coins, two_releases


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
