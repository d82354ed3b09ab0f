"""Secrets that are numbers: uniform matchings by enumeration, effects that are found, intervals that hold."""

from __future__ import annotations

import tracemalloc
from itertools import permutations, product

import numpy as np
import pytest

from bench.number_coverage import _run
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.by_type import PlacesByType
from dalenius.mechanisms.bucketize.estimate.numbers import Numbers, Traits, Weighed, _uniform
from dalenius.mechanisms.bucketize.estimate.possible import possible_range
from dalenius.mechanisms.rows.effects import Quasi
from dalenius.question.targets import Score, Targets


def buckets_of(home: np.ndarray) -> Buckets:
    """Everybody has a value of their own."""
    return Buckets.of(home, home, np.arange(len(home)), np.ones(len(home), dtype=np.int64))


def weighed(buckets: Buckets, targets: Targets) -> Weighed:
    traits = Traits.of(np.arange(len(buckets.counts)).astype(float), buckets.counts)
    return Weighed.of(buckets, traits, targets)


def test_uniform_matchings_are_those_of_all_permutations() -> None:
    home = np.array([0, 0, 0, 1, 1, 1])
    scores = [np.array([1.0, 0, 0, 1, 1, 0]), np.array([2.0, -1, 0, 0, 3, 1])]
    weights = [np.array([5.0, 1, 2, 7, 7, 3]), np.array([0.0, 1, 1, 0, 1, 0])]
    sums = ScoreSums.of(buckets_of(home), [Score(rows=np.arange(6), values=s) for s in scores])
    both = [(0, weights[0]), (1, weights[1])]
    targets = Targets.of([both[:1], both[1:], both, both[::-1], [(1, -weights[0]), (0, weights[1])]])
    totals = []
    for one, two in product(permutations(range(3)), repeat=2):
        dealt = np.array([*one, *(k + 3 for k in two)])
        parts = [score @ weight[dealt] for score, weight in zip(scores, weights, strict=True)]
        crossed = scores[0] @ weights[1][dealt] - scores[1] @ weights[0][dealt]
        totals.append([*parts, sum(parts), sum(parts), crossed])
    mean, variance = _uniform(sums, weighed(sums.buckets, targets))
    assert mean == pytest.approx(np.mean(totals, axis=0))
    assert variance == pytest.approx(np.var(totals, axis=0))


def test_what_all_buckets_tell_is_known() -> None:
    rng = np.random.default_rng(1)
    home, numbers = rng.permutation(2_000) // 20, rng.normal(size=2_000)
    buckets, sex = buckets_of(home), rng.integers(0, 2, 2_000)
    made = Numbers.of(buckets, [Quasi(codes=sex)], numbers, None)
    sums = ScoreSums.of(buckets, [Score(rows=np.arange(2_000))])
    found = made.estimate(sums, Targets.of([[(0, numbers)], [(0, (numbers > 1).astype(float))]]))
    assert found.estimate == pytest.approx([numbers.sum(), (numbers > 1).sum()])
    assert found.std_error == pytest.approx([0.0, 0.0], abs=1e-4)


def test_intervals_hold_and_errors_are_smaller_than_anatomys() -> None:
    runs = [_run(4_000, 1.0, seed)[0] for seed in range(900, 906)]
    for kind in ("average", "count"):
        found = np.concatenate([run[kind] for run in runs])
        truth, estimate, anatomy, low, high = found[:, [0, 1, 2, 7, 8]].T
        assert ((low <= truth) & (truth <= high)).mean() > 0.9
        assert np.mean((estimate - truth) ** 2) < 0.6 * np.mean((anatomy - truth) ** 2)


def test_what_is_no_main_effect_is_larger_where_effects_are_strong_but_not_of_sums() -> None:
    n, rng = 3_000, np.random.default_rng(4)
    buckets, sex = buckets_of(rng.permutation(n) // 30), rng.integers(0, 2, n)
    age, noise = rng.integers(0, 30, n), rng.normal(size=n)
    columns = [Quasi(codes=sex), Quasi(codes=age, is_number=True)]
    for numbers, is_larger in ((2.0 * sex + 0.1 * age + 0.2 * noise, True), (noise, False)):
        made = Numbers.of(buckets, columns, numbers, None)
        above = (numbers > 1).astype(float)
        targets = Targets.of([[(0, numbers)], [(0, above)], [(0, numbers), (0, above)]])
        whole, part, both = made._bent(buckets, Weighed.of(buckets, made.traits, targets))
        assert whole == pytest.approx(0.0, abs=1e-9)
        assert part == pytest.approx(both)
        assert (part > 3) == is_larger


def test_nothing_grows_with_the_square_of_the_number_of_values() -> None:
    n = 30_000
    rng = np.random.default_rng(2)
    buckets, numbers = buckets_of(rng.permutation(n) // 50), rng.normal(size=n)
    sums = ScoreSums.of(buckets, [Score(rows=np.flatnonzero(rng.random(n) < 0.5))])
    tracemalloc.start()
    made = Numbers.of(buckets, [Quasi(codes=rng.integers(0, 8, n))], numbers, None)
    made.estimate(sums, Targets.of([[(0, numbers)]]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000 * n  # bytes; a number for each pair of values would be 8·n²


def test_groups_by_every_value_need_no_table_of_buckets_and_values() -> None:
    n_types, size, copies, n_values = 40, 10, 50, 400
    rng = np.random.default_rng(3)
    value = np.concatenate([np.tile(rng.permutation(n_values)[:size], copies) for _ in range(n_types)])
    home = np.arange(len(value)) // size
    buckets = Buckets.of(home, home, value, np.ones(len(value), dtype=np.int64))
    places = PlacesByType.of(buckets.row_bucket, buckets.type_of, buckets.composition)
    assert places is not None
    score = Score(rows=np.flatnonzero(rng.random(len(value)) < 0.5))
    targets = Targets.of([[(0, own)] for own in np.eye(n_values)])
    parts = (
        (possible_range, 2 * size),
        (lambda sums, targets: _uniform(sums, weighed(buckets, targets)), copies),
    )
    for part, most in parts:
        sums = ScoreSums.of(buckets, [score], None, places)
        sums.in_buckets(0)
        sums.numbers(0, range(len(places.parts)))  # kept in any case
        tracemalloc.start()
        part(sums, targets)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 * most * n_types * n_values  # bytes


def test_nulls_have_no_number() -> None:
    numbers = np.array([3.0, np.nan, 1.0, 2.0])
    traits = Traits.of(numbers, np.ones(4))
    assert traits.number[1] == 0
    assert traits.bin_of.tolist() == [2, 3, 0, 1]
