"""A release as arrays: types, sums by bucket and possible ranges beside loops over people."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.mechanisms.bucketize.estimate import buckets as module
from dalenius.mechanisms.bucketize.estimate import possible
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.possible import possible_range, trivial_range
from dalenius.question.targets import Score, Targets
from tests.mechanisms.bucketize.estimate.tables import People, people


@given(people())
def test_buckets_of_one_type_hold_the_same(table: People) -> None:
    found, held = table.release(), table.contents
    for one, two in product(range(len(held)), repeat=2):
        assert (found.type_of[one] == found.type_of[two]) == (held[one].tolist() == held[two].tolist())
    dense = found.composition.to_dense()
    assert dense[found.type_of].tolist() == held.tolist()
    assert found.copies.tolist() == np.bincount(found.type_of).tolist()
    assert found.size.tolist() == held.sum(axis=1).tolist()
    assert found.type_size[found.type_of].tolist() == found.size.tolist()
    assert found.counts.tolist() == held.sum(axis=0).tolist()
    assert found.n_rows == len(table.bucket)


def test_contents_that_differ_by_parts_of_a_person_are_of_different_types() -> None:
    """Among fakes contents are expectations; their whole parts alone would make these three alike."""
    bucket, value = np.repeat([0, 1, 2], 2), np.tile([0, 1], 3)
    found = Buckets.of(bucket, bucket, value, np.array([0.5, 1.5, 0.7, 1.3, 0.5, 1.5]))
    assert found.composition.to_dense()[found.type_of].ravel().tolist() == [0.5, 1.5, 0.7, 1.3, 0.5, 1.5]
    assert found.counts == pytest.approx([1.7, 4.3])


@st.composite
def scored(draw: st.DrawFn) -> tuple[People, list[Score]]:
    table = draw(people())
    n = len(table.bucket)
    scores = []
    for _ in range(draw(st.integers(1, 3))):
        rows = np.array(sorted(draw(st.sets(st.integers(0, n - 1)))), dtype=np.int64)
        numbers = draw(st.lists(st.integers(-3, 3), min_size=len(rows), max_size=len(rows)))
        values = np.array(numbers, dtype=float) if draw(st.booleans()) else None
        scores.append(Score(rows=rows, values=values))
    return table, scores


@given(scored(), st.sampled_from([1, 10**6]))
def test_sums_in_buckets_are_added_person_by_person(case: tuple[People, list[Score]], at_once: int) -> None:
    table, scores = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CELLS_AT_ONCE", at_once)
        sums = ScoreSums.of(table.release(), scores)
    held = table.contents
    dense = np.stack([table.score(score.rows, score.values) for score in scores])
    by_bucket = np.stack([np.bincount(table.bucket, row, len(held)) for row in dense])
    assert sums.sums.to_dense() == pytest.approx(by_bucket)
    assert sums.total == pytest.approx(dense.sum(axis=1))
    assert sums.squares == pytest.approx((dense**2).sum(axis=1))
    assert sums.variance == pytest.approx(dense.var(axis=1), abs=1e-12)
    # Anatomy's estimate of a value's total: Σ_g c(g,z)·y_g/|g|
    anatomy = held.T @ (by_bucket / held.sum(axis=1)).T
    assert sums.by_value == pytest.approx(anatomy)
    assert sums.is_count.tolist() == [score.values is None for score in scores]
    for i, j in product(range(len(scores)), repeat=2):
        expected = np.mean(dense[i] * dense[j]) - dense[i].mean() * dense[j].mean()
        assert sums.covariance(i, j) == pytest.approx(expected, abs=1e-12)
        where, found = sums.bucket_products(i, j)
        products = np.zeros(len(held))
        products[where] = found
        assert products == pytest.approx(np.bincount(table.bucket, dense[i] * dense[j], len(held)))


def test_few_rows_of_many_buckets_are_summed_alike() -> None:
    """A score of one row in a hundred buckets is not spread over all of them; two ways, one answer."""
    table = People(bucket=np.repeat(np.arange(100), 2), value=np.tile([0, 1], 100))
    few, many = Score(rows=np.array([7, 6, 150])), Score(rows=np.arange(60), values=np.arange(60.0))
    sums = ScoreSums.of(table.release(), [few, many])
    assert [part.tolist() for part in sums.in_buckets(0)] == [[3, 75], [2.0, 1.0]]
    where, found = sums.in_buckets(1)
    assert where.tolist() == list(range(30))
    assert found.tolist() == [4.0 * g + 1 for g in range(30)]


@given(people(), st.data())
@settings(max_examples=60)
def test_what_a_total_can_be_is_the_least_and_the_most_of_all_matchings(
    table: People, data: st.DataObject
) -> None:
    n = len(table.bucket)
    if n > 8:
        return
    numbers = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n)), dtype=float)
    chosen = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=3, max_size=3)))
    homes = [np.flatnonzero(table.bucket == g) for g in range(table.bucket.max() + 1)]
    totals = []
    for orders in product(*(set(permutations(table.value[own].tolist())) for own in homes)):
        values = np.empty(n, dtype=int)
        for own, order in zip(homes, orders, strict=True):
            values[own] = order
        totals.append((float(numbers @ chosen[values]), float(chosen[values].sum())))
    scores = [Score(rows=np.arange(n), values=numbers), Score(rows=np.arange(n))]
    targets = Targets.of([[(0, chosen)], [(1, chosen)], [(0, chosen), (1, chosen)]])
    for at_once in (1, 10**6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_CELLS_AT_ONCE", at_once)
            low, high = possible_range(ScoreSums.of(table.release(), scores), targets)
        for k in (0, 1):
            each = [total[k] for total in totals]
            assert (low[k], high[k]) == pytest.approx((min(each), max(each)))
        # of two terms together the ranges are added: the truth may be narrower, never wider
        assert low[2] <= min(sum(total) for total in totals) + 1e-9
        assert high[2] >= max(sum(total) for total in totals) - 1e-9


def test_where_nothing_is_known_everybody_counts_or_nobody() -> None:
    table = People(bucket=np.array([0, 0, 1]), value=np.array([0, 1, 0]))
    scores = [Score(rows=np.array([0, 2])), Score(rows=np.arange(3), values=np.array([5.0, -2.0, 1.0]))]
    targets = Targets.of([[(0, np.array([1.0, 0.0]))], [(1, np.array([0.0, 1.0]))], [(1, np.full(2, 0.5))]])
    low, high = trivial_range(ScoreSums.of(table.release(), scores), targets)
    assert low.tolist() == [0.0, -2.0, -np.inf]
    assert high.tolist() == [2.0, 6.0, np.inf]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-3, 3)), min_size=1, max_size=9))
def test_ranks_count_who_has_less_and_who_has_more_in_the_bucket(pairs: list[tuple[int, int]]) -> None:
    home, values = (np.array(column) for column in zip(*pairs, strict=True))
    first, last = possible._ranks(home, values.astype(float))
    for g in set(home.tolist()):
        own = np.flatnonzero(home == g)
        assert sorted(first[own].tolist()) == sorted(last[own].tolist()) == list(range(len(own)))
        by_rank = own[np.argsort(first[own])]
        assert values[by_rank].tolist() == sorted(values[own].tolist())
        assert (first[own] + last[own] == len(own) - 1).all()


def test_no_scores_have_no_sums() -> None:
    table = People(bucket=np.array([0, 0]), value=np.array([0, 1]))
    sums = ScoreSums.of(table.release(), [])
    assert sums.by_value.shape == (2, 0)
    assert sums.total.tolist() == []
