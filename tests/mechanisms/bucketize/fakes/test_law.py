"""The laws of contents and of fakes, number by number beside enumeration."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.errors import ReleaseCorrupt
from dalenius.mechanisms.bucketize.fakes import law as laws
from dalenius.mechanisms.bucketize.fakes.law import (
    FakeLaw,
    content_weights,
    counting_success,
    expect_fakes,
    fit_to_counts,
    last_success,
    last_trials,
    likeliest_is_first,
    symmetric_polynomials,
)
from tests.mechanisms.bucketize.fakes.enumeration import LAW, brute_contents, brute_joint

weights = st.lists(st.floats(0.05, 8), min_size=4, max_size=6)


@given(weights, st.integers(0, 4))
def test_symmetric_polynomials_are_sums_over_all_subsets(values: list[float], degree: int) -> None:
    found = symmetric_polynomials(np.array([values, values[::-1]]), degree)
    for k in range(degree + 1):
        total = sum(math.prod(own) for own in combinations(values, k))
        assert found[:, k] == pytest.approx([total, total])


@given(weights, st.integers(1, 3), st.data())
@settings(max_examples=60)
def test_expected_counts_are_those_of_every_content(
    values: list[float], places: int, data: st.DataObject
) -> None:
    capacity = [data.draw(st.integers(1, 3)) for _ in values]
    law = brute_contents(np.array(values), np.array(capacity), places)
    expected = sum(p * np.array(c) for c, p in law.items())
    found = laws._expect_counts(np.array(values), np.array(capacity), places)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("values", [(1, 1), (2, 1), (7, 1), (5, 2, 1), (7, 0.1, 0.1, 0.1), (3, 3, 1, 0.2)])
@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_weights_are_found_again_from_the_counts_that_they_give(
    values: tuple[float, ...], limit: int, size: int
) -> None:
    """The map from weights (up to a factor) to expected counts is one to one, for two values as for many."""
    if size >= limit * len(values):
        return  # every content is the same
    capacity = np.full(len(values), limit)
    law = brute_contents(np.array(values), capacity, size)
    mean = np.array(sum(p * np.array(c) for c, p in law.items()))
    found = content_weights(mean, capacity, size)
    assert found / found[0] == pytest.approx(np.array(values) / values[0], rel=1e-6)


def test_too_few_values_that_could_be_fakes_are_a_damaged_release() -> None:
    for counts in ([3, 2, 0, 0, 0, 0], [2, 2, 1, 0, 0, 0]):
        with pytest.raises(ReleaseCorrupt, match="fewer than 2 values that could be its fakes"):
            LAW.fake_probability(np.array([counts]))


def test_weights_of_values_that_must_or_cannot_be_in_a_bucket() -> None:
    """The first fills its capacity of 2 everywhere, the last is nowhere; two share what is left of 3."""
    found = content_weights(np.array([2.0, 0.5, 0.5, 0.0]), np.array([2, 1, 1, 1]), 3)
    assert found.tolist() == [np.inf, 1.0, 1.0, 0.0]
    assert content_weights(np.array([1.0, 1.0, 0.0]), np.array([1, 1, 1]), 2).tolist() == [np.inf, np.inf, 0]
    # 2 : 1 of single places are odds of 2 : 1 when one of them is drawn, and no other ones fit
    one = content_weights(np.array([2 / 3, 1 / 3]), np.array([1, 1]), 1)
    assert one[0] / one[1] == pytest.approx(2)


def brute_inclusion(law: FakeLaw, absent: list[int]) -> np.ndarray:
    sets = list(combinations(absent, law.n_fakes))
    chances = np.array([math.prod(law.fake[x] for x in own) for own in sets])
    found = np.zeros(len(law.fake))
    for own, chance in zip(sets, chances / chances.sum(), strict=True):
        found[list(own)] += chance
    return found


@pytest.mark.parametrize("n_fakes", [1, 2, 3])
@pytest.mark.parametrize("absent", [(0, 1, 2, 3, 4, 5), (0, 2, 3, 5), (1, 2, 4)])
def test_how_likely_a_value_is_a_fake_is_summed_over_all_sets(n_fakes: int, absent: tuple[int, ...]) -> None:
    law = replace(LAW, n_fakes=n_fakes)
    mask = np.isin(np.arange(6), absent)
    brute = brute_inclusion(law, list(absent))
    assert law.inclusion(mask[None, :])[0] == pytest.approx(brute)
    assert brute.sum() == pytest.approx(n_fakes)
    assert expect_fakes(law, np.tile(mask, (3, 1))) == pytest.approx(3 * brute)


def test_what_is_done_in_parts_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = np.random.default_rng(1).random((40, 6)) < 0.8
    absent[:, :3] = True
    counts = np.where(absent, 0, 1)
    counts[:, 3] = np.maximum(counts[:, 3], 1)
    published = counts.copy()
    published[:, [0, 1]] = 1
    whole = (expect_fakes(LAW, absent), LAW.fake_probability(published))
    monkeypatch.setattr(laws, "_CELLS_AT_ONCE", 13)
    monkeypatch.setattr(laws, "_FLOATS_AT_ONCE", 50)
    assert expect_fakes(LAW, absent) == pytest.approx(whole[0])
    assert LAW.fake_probability(published) == pytest.approx(whole[1])
    drawn = LAW.draw(absent, np.random.default_rng(2))
    assert drawn.shape == (40, 2)
    assert absent[np.arange(40)[:, None], drawn].all()
    assert (drawn[:, 0] != drawn[:, 1]).all()


def test_where_only_so_many_values_can_be_fakes_they_are() -> None:
    absent = np.array([[True, False, True, False, False, False]] * 20)
    drawn = LAW.draw(absent, np.random.default_rng(3))
    assert (drawn == [0, 2]).all()
    never = replace(LAW, fake=np.array([0.0, 1.0, 1.0, 0.0, 0.0, 0.0]))
    assert (never.draw(np.ones((20, 6), dtype=bool), np.random.default_rng(3)) == [1, 2]).all()
    assert LAW.draw(np.zeros((0, 6), dtype=bool), np.random.default_rng(3)).shape == (0, 2)


def test_a_known_persons_value_is_no_fake() -> None:
    """Of five single entries with two fakes, one is known to be somebody's: sets of the other four only."""
    published = np.array([1, 1, 1, 1, 1, 0])
    known = np.array([0, 1, 0, 0, 0, 0])
    mass, total = np.zeros(6), 0.0
    for (contents, fakes), p in brute_joint(LAW, np.ones(6, dtype=int)).items():
        listed = [k + (x in fakes) for x, k in enumerate(contents)]
        if listed == published.tolist() and 1 not in fakes:
            mass[list(fakes)] += p
            total += p
    found = LAW.fake_probability(published[None, :], known[None, :])[0]
    assert found == pytest.approx(mass / total)
    assert found[1] == 0


def test_entries_that_are_surely_real_or_surely_fake() -> None:
    law = FakeLaw(
        size=3,
        n_fakes=1,
        real=np.array([np.inf, 1.0, 1.0, 0.0, 1.0]),
        fake=np.array([1.0, 1.0, 1.0, 1.0, 0.0]),
    )
    found = law.fake_probability(np.array([[1, 1, 0, 1, 1], [1, 2, 1, 0, 0], [1, 1, 1, 0, 1]]))
    assert found[0] == pytest.approx([0, 0, 0, 1, 0], abs=1e-9)  # value 3 is never anybody's
    assert found[1] == pytest.approx([0, 0, 1, 0, 0])  # two of value 1, and value 0 is in every bucket
    assert found[2] == pytest.approx([0, 0.5, 0.5, 0, 0])  # value 4 is never a fake
    assert replace(law, n_fakes=0).fake_probability(np.ones((1, 5), dtype=int)).sum() == 0


def test_a_value_that_another_has_too_is_the_last_persons() -> None:
    """Values that are left over although one of them is known: a fake would not be there."""
    known = np.array([[1, 1, 0, 0, 0, 0]])
    for left, certain in (((1, 2, 3), [1.0, 0.0, 0.0]), ((2, 1, 3), [0.0, 1.0, 0.0])):
        assert LAW.last_posterior(known, np.array([left]))[0].tolist() == certain
    never = replace(LAW, fake=np.where(np.arange(6) == 2, 0.0, LAW.fake))  # value 2 is never a fake
    assert never.last_posterior(known, np.array([[3, 4, 2]]))[0].tolist() == [0.0, 0.0, 1.0]


def test_trials_take_one_person_of_each_value_out() -> None:
    contents = np.array([[2, 1, 0], [0, 0, 3]])
    known, left, share = last_trials(contents, np.array([[2], [1]]))
    assert known.tolist() == [[1, 1, 0], [2, 0, 0], [0, 0, 2]]
    assert left.tolist() == [[0, 2], [1, 2], [2, 1]]
    assert share == pytest.approx([2 / 3, 1 / 3, 1])


def test_several_values_that_are_equally_likely_are_guessed_among() -> None:
    posterior = np.array([[0.5, 0.3, 0.2], [0.4, 0.4, 0.2], [0.2, 0.5, 0.3], [1 / 3, 1 / 3, 1 / 3]])
    assert likeliest_is_first(posterior) == pytest.approx([1, 1 / 2, 0, 1 / 3])


def test_the_success_on_one_bucket_is_averaged_over_its_people() -> None:
    """Exact Bayes beside it: for each person of each content and set of fakes, weighted by their chance."""
    right = chance_of_all = largest = 0.0
    for (contents, fakes), p in brute_joint(LAW, np.ones(6, dtype=int)).items():
        found, surest = last_success(LAW, np.array([contents]), np.array([fakes]))
        right += p * found
        chance_of_all += p
        largest = max(largest, surest)
    joint: dict[tuple[tuple[int, ...], tuple[int, ...]], np.ndarray] = {}
    for (contents, fakes), p in brute_joint(LAW, np.ones(6, dtype=int)).items():
        for x in np.flatnonzero(contents).tolist():
            others = tuple(y for y in np.flatnonzero(contents).tolist() if y != x)
            seen = (others, tuple(sorted((x, *fakes))))
            joint.setdefault(seen, np.zeros(6))[x] += p / LAW.size
    assert chance_of_all == pytest.approx(1)
    assert right == pytest.approx(sum(mass.max() for mass in joint.values()))
    assert largest == pytest.approx(max(mass.max() / mass.sum() for mass in joint.values()))


def test_a_law_fitted_to_counts_expects_them() -> None:
    rng = np.random.default_rng(5)
    contents = np.array([rng.permutation([1, 1, 1, 0, 0, 0]) for _ in range(60)])
    fakes = replace(LAW, fake=np.ones(6)).draw(contents == 0, rng)
    fitted = fit_to_counts(LAW, contents, fakes)
    seen = np.bincount(fakes.ravel(), minlength=6)
    before = np.abs(expect_fakes(LAW, contents == 0) - seen)
    after = np.abs(expect_fakes(fitted, contents == 0) - seen)
    assert before.max() > 10
    assert after.max() < 2


def test_who_counts_a_value_that_no_bucket_has_a_fake_of_is_certain() -> None:
    """Fakes of values 3, 4 and 5 only: whoever is left with one of the others knows it."""
    contents = np.array([[1, 1, 1, 0, 0, 0]] * 30)
    fakes = np.array([[3, 4], [4, 5], [3, 5]] * 10)
    counted = fit_to_counts(LAW, contents, fakes)
    known, left, _ = last_trials(contents, fakes)
    posterior = counted.last_posterior(known, left)
    assert posterior[:, 0] == pytest.approx(1)
    assert LAW.last_posterior(known, left)[:, 0].max() < 0.99


def test_who_counts_fakes_that_look_real_is_right_by_chance_alone() -> None:
    rng = np.random.default_rng(6)
    contents = np.array([rng.permutation([1, 1, 1, 0, 0, 0]) for _ in range(300)])
    right, largest = counting_success(LAW, contents, np.random.default_rng(7))
    assert (right, largest) == counting_success(LAW, contents, np.random.default_rng(7))
    assert 0 < right < largest <= 1
    plain = replace(LAW, real=np.ones(6), fake=np.ones(6))
    equal = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]] * 150)
    assert counting_success(plain, equal, rng)[0] == pytest.approx(1 / 3, abs=0.06)
