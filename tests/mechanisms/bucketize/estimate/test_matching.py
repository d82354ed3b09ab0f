"""Places of a matching beside lists, and scaling beside all matchings."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.mechanisms.bucketize.estimate import matching
from dalenius.mechanisms.bucketize.estimate.matching import Places, is_feasible
from tests.mechanisms.bucketize.estimate.tables import People, people, scale_dense


@given(people(), st.data())
def test_every_row_has_an_entry_for_each_value_of_its_bucket(table: People, data: st.DataObject) -> None:
    held = table.contents
    n_buckets = len(held)
    chosen = data.draw(st.none() | st.sets(st.integers(0, n_buckets - 1), min_size=1))
    places = Places.of(table.release(), None if chosen is None else np.array(sorted(chosen)))
    wanted = set(range(n_buckets)) if chosen is None else chosen

    def shape(g: int) -> tuple[int, int]:
        return int(held[g].sum()), int((held[g] > 0).sum())

    own_buckets = sorted(wanted, key=lambda g: (shape(g), g))
    by_hand = [row for g in own_buckets for row in range(len(table.bucket)) if table.bucket[row] == g]
    assert places.rows.tolist() == by_hand
    slots = [(g, z) for g in own_buckets for z in np.flatnonzero(held[g]).tolist()]
    assert places.held.tolist() == [held[g, z] for g, z in slots]
    assert places.value.tolist() == [z for _, z in slots]
    assert places.n_values == held.shape[1]
    assert_blocks_are_buckets(table, places)
    for part in places.split(3):
        assert_blocks_are_buckets(table, part)
        assert len(part.rows) <= max(3, *(int(held[g].sum()) for g in wanted))
    assert [row for part in places.split(3) for row in part.rows.tolist()] == by_hand


def assert_blocks_are_buckets(table: People, places: Places) -> None:
    """The people and the values of every place of a block are those of one bucket, also in pieces."""
    n_people = 0
    for block in places.blocks:
        for piece in (block, *(block.part(k, k + 1) for k in range(block.shape[0]))):
            people, values = piece.by_person(places.rows), piece.by_slot(places.value)
            assert (people.shape, values.shape) == (piece.shape[1::-1], piece.shape[::-2])
            for own, listed in zip(people.T, values.T, strict=True):
                (g,) = set(table.bucket[own].tolist())
                assert own.tolist() == np.flatnonzero(table.bucket == g).tolist()
                assert listed.tolist() == np.flatnonzero(table.contents[g]).tolist()
                assert piece.power == (len(own) / (len(own) - 1) if len(own) > 1 else 1)
        n_people += block.shape[0] * block.shape[1]
    assert n_people == len(places.rows)


def likely(logs: np.ndarray, values: list[int]) -> np.ndarray:
    """People × values, over all matchings of one bucket."""
    found = np.zeros_like(logs)
    for order in permutations(values):
        found[np.arange(len(values)), order] += np.exp(logs[np.arange(len(values)), order].sum())
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def scale(table: People, logs: np.ndarray, rounds: int = 3_000) -> np.ndarray:
    places = Places.of(table.release())
    return scale_dense(places, logs, np.ones(len(places.held)), rounds, 1e-13)


@pytest.mark.parametrize("strength", [0.1, 1.0, 5.0, 40.0])
def test_pairs_are_matched_exactly_however_strong_the_effects(strength: float) -> None:
    table = People(bucket=np.repeat([0, 1, 2], 2), value=np.array([0, 1, 1, 2, 2, 2]))
    logs = strength * np.random.default_rng(1).normal(size=(6, 3))
    found = scale(table, logs)
    for g in range(3):
        own = np.flatnonzero(table.bucket == g)
        assert found[own] == pytest.approx(likely(logs[own], table.value[own].tolist()), abs=1e-3)


def test_nobody_to_tell_apart_is_a_uniform_matching() -> None:
    """The same log p for all people of a bucket, whatever it is by value: the shares of the bucket."""
    table = People(bucket=np.zeros(5, dtype=int), value=np.array([0, 0, 1, 2, 2]))
    found = scale(table, np.tile([3.0, -7.0, 0.5], (5, 1)))
    assert found == pytest.approx(np.tile([0.4, 0.2, 0.4], (5, 1)))


def test_people_alone_have_their_value() -> None:
    table = People(bucket=np.arange(3), value=np.array([2, 0, 1]))
    found = scale(table, np.random.default_rng(2).normal(size=(3, 3)) * 9)
    assert found.tolist() == np.eye(3)[[2, 0, 1]].tolist()


def test_what_is_next_to_impossible_leaves_numbers() -> None:
    table = People(bucket=np.zeros(3, dtype=int), value=np.array([0, 1, 2]))
    logs = np.array([[0.0, -1e6, -1e6], [0.0, 0.0, -1e6], [0.0, 0.0, 0.0]])
    found = scale(table, logs)
    assert np.isfinite(found).all()
    assert np.diag(found) == pytest.approx(1, abs=1e-3)
    assert found.sum(axis=1) == pytest.approx(1)


@given(people(), st.integers(0, 99))
def test_people_always_add_up_and_values_after_enough_rounds(table: People, seed: int) -> None:
    logs = np.random.default_rng(seed).normal(size=(len(table.bucket), 3))
    assert scale(table, logs, rounds=1).sum(axis=1) == pytest.approx(1)
    found = scale(table, logs)
    for g, held in enumerate(table.contents):
        assert found[table.bucket == g].sum(axis=0) == pytest.approx(held, abs=1e-6)


def test_scaling_goes_on_where_it_ended() -> None:
    table = People(bucket=np.repeat([0, 1], 4), value=np.array([0, 1, 1, 2, 0, 0, 1, 2]))
    places = Places.of(table.release())
    logs = np.random.default_rng(3).normal(size=(8, 3))
    once, twice = np.ones(len(places.held)), np.ones(len(places.held))
    at_once = scale_dense(places, logs, once, 41, 0.0)
    scale_dense(places, logs, twice, 21, 0.0)
    assert scale_dense(places, logs, twice, 21, 0.0) == pytest.approx(at_once)
    assert twice == pytest.approx(once)


def test_buckets_that_add_up_are_left_alone_and_the_others_go_on() -> None:
    """One bucket is uniform from the start, one needs many rounds: both end as if alone."""
    table = People(bucket=np.repeat([0, 1], 4), value=np.tile([0, 1, 2, 2], 2))
    logs = np.zeros((8, 3))
    logs[4:] = 3 * np.random.default_rng(4).normal(size=(4, 3))
    found = scale(table, logs)
    alone = scale(People(bucket=np.zeros(4, dtype=int), value=np.array([0, 1, 2, 2])), logs[4:])
    assert found[:4] == pytest.approx(np.tile([0.25, 0.25, 0.5], (4, 1)))
    assert found[4:] == pytest.approx(alone)
    assert found[4:].sum(axis=0) == pytest.approx([1, 1, 2], abs=1e-6)
    assert np.abs(scale(table, logs, rounds=4)[4:] - alone).max() > 1e-3


@given(people(), st.integers(0, 99))
def test_the_value_of_a_scaling_has_its_weights_as_gradient(table: People, seed: int) -> None:
    """The dual of the scaling: by log p of every entry, also before values add up."""
    rng = np.random.default_rng(seed)
    places = Places.of(table.release())
    block = places.blocks[-1]
    held = block.by_slot(places.held)
    logs, moved = (rng.normal(size=(block.shape[1], block.shape[2], block.shape[0])) for _ in range(2))
    start = np.exp(0.1 * rng.normal(size=len(places.held)))

    def value(step: float) -> float:
        return block.scale(logs + step * moved, held, start.copy(), 1, 0.0)[1]

    weight, _ = block.scale(logs.copy(), held, start.copy(), 1, 0.0)
    assert (value(1e-4) - value(-1e-4)) / 2e-4 == pytest.approx(float((weight * moved).sum()), abs=1e-5)


def test_a_few_rounds_from_elsewhere_say_hardly_more_of_the_likelihood_than_there_is() -> None:
    """Where the scaling is far off its value is too high, and a search takes such a place for the best."""
    rng, n, size = np.random.default_rng(1), 400, 4  # four people and a fake, five values each held once
    block = matching.Block(
        people=slice(0, n * size), slots=slice(0, n * 5), shape=(n, size, 5), power=5 / size
    )
    logs = np.concatenate([10 * rng.normal(size=(size, 5, n)), 3 * rng.normal(size=(1, 5, n))])
    factors = np.ones(n * 5)
    block.scale(np.concatenate([-logs[:size], logs[size:]]), np.ones((5, n)), factors, 40, 1e-4)
    found, best = (
        block.scale(logs.copy(), np.ones((5, n)), factors.copy(), rounds, 1e-4)[1] for rounds in (8, 20_000)
    )
    assert 0 <= found - best < 20


def test_releases_that_would_take_minutes_are_not_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    table = People(bucket=np.repeat([0, 1], 3), value=np.array([0, 1, 2, 0, 1, 2]))
    assert is_feasible(table.release())
    monkeypatch.setattr(matching, "_MOST_TO_MATCH", 18)
    assert is_feasible(table.release())
    monkeypatch.setattr(matching, "_MOST_TO_MATCH", 17)
    assert not is_feasible(table.release())
    monkeypatch.setattr(matching, "_MOST_TO_MATCH", 18)
    monkeypatch.setattr(matching, "MOST_VALUES", 2)
    assert not is_feasible(table.release())


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4)), max_size=8))
def test_ranges_are_listed_one_after_the_other(pairs: list[tuple[int, int]]) -> None:
    first, width = (np.array([pair[k] for pair in pairs], dtype=np.int64) for k in (0, 1))
    begin, offset = matching._ranges(first, width)
    listed = [(f, i) for f, w in pairs for i in range(w)]
    assert list(zip(begin.tolist(), offset.tolist(), strict=True)) == listed
