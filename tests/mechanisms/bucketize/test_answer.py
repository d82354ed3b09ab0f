"""Batches asked as one: which values and buckets they share, and means that are known."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dalenius.errors import ReleaseCorrupt
from dalenius.mechanisms.bucketize import answer
from dalenius.mechanisms.bucketize.answer import BucketizedRows, JoinedBatches
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets
from dalenius.question.targets import Score, Targets
from dalenius.tables.columns import CodedTable


def batch(ages: list[int], ill: list[str], bucket: list[int], column: str = "ill") -> BucketizedRows:
    """A release of people in buckets, as it is read."""
    values = sorted(set(ill))
    held = np.zeros((max(bucket) + 1, len(values)), dtype=np.int64)
    np.add.at(held, (bucket, [values.index(v) for v in ill]), 1)
    g, z = np.nonzero(held)
    return BucketizedRows(
        rows=CodedTable.of(pa.table({"age": ages})),
        sensitive=CodedTable.of(pa.table({column: values})),
        buckets=Buckets.of(np.array(bucket), g, z, held[g, z]),
    )


ONE = batch([30, 31, 32, 33], ["a", "b", "a", "c"], [0, 0, 1, 1])
TWO = batch([60, 61, 62], ["b", "c", "c"], [0, 0, 0])


def value_of(joined: JoinedBatches) -> list[str]:
    return [str(cell) for cell in joined.together.sensitive.columns["ill"].decode().to_pylist()]


def test_batches_have_the_buckets_of_all_and_the_values_that_they_share() -> None:
    joined = JoinedBatches.of([ONE, TWO])
    together, names = joined.together, value_of(joined)
    assert sorted(names) == ["a", "b", "c"]
    assert joined.batch_of_row.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert joined.batch_of_bucket.tolist() == [0, 0, 1]
    assert together.buckets.row_bucket.tolist() == [0, 0, 1, 1, 2, 2, 2]
    contents = together.buckets.composition.to_dense()[together.buckets.type_of]
    by_name = {name: contents[:, code].tolist() for code, name in enumerate(names)}
    assert by_name == {"a": [1, 1, 0], "b": [1, 0, 1], "c": [0, 1, 2]}
    counts = {name: joined.counts[:, code].tolist() for code, name in enumerate(names)}
    assert counts == {"a": [2, 0], "b": [1, 1], "c": [1, 2]}
    assert together.rows.columns["age"].decode().to_pylist() == [30, 31, 32, 33, 60, 61, 62]


def test_batches_of_other_columns_are_a_damaged_series() -> None:
    other = batch([60, 61], ["x", "y"], [0, 0], column="disease")
    with pytest.raises(ReleaseCorrupt, match="do not have the same columns"):
        JoinedBatches.of([ONE, other])


def test_anatomy_of_all_batches_is_the_sum_of_the_batches() -> None:
    """Ages by value: each batch's Anatomy alone, added up, against all buckets around their means."""
    joined = JoinedBatches.of([ONE, TWO])
    names = value_of(joined)
    ages = np.array([30.0, 31, 32, 33, 60, 61, 62])
    every = Score(rows=np.arange(7), values=ages)
    targets = Targets.of([[(0, np.eye(3)[code])] for code in range(3)])
    found = joined._estimator("anatomy").estimation([every]).estimate(targets).estimate
    # first batch: buckets of 30 + 31 and of 32 + 33, half of each for its values; second: 183 in thirds
    by_hand = {"a": 61 / 2 + 65 / 2, "b": 61 / 2 + 183 / 3, "c": 65 / 2 + 2 * 183 / 3}
    assert dict(zip(names, found.tolist(), strict=True)) == pytest.approx(by_hand)


def test_the_known_part_is_the_batches_means_times_their_counts() -> None:
    joined = JoinedBatches.of([ONE, TWO])
    estimator = joined._estimator("shrinkage")
    assert isinstance(estimator, answer._CentredEstimator)
    score = Score(rows=np.array([0, 1, 4]))
    assert estimator._means(score).tolist() == pytest.approx([2 / 4, 1 / 3])
    (centred,) = estimator._centre([score], np.array([[0.5, 1 / 3]]))
    assert centred.values is not None
    assert centred.values == pytest.approx([0.5, 0.5, -0.5, -0.5, 2 / 3, -1 / 3, -1 / 3])
    known = estimator.estimation([score]).known[0]
    names = value_of(joined)
    assert dict(zip(names, known.tolist(), strict=True)) == pytest.approx(
        {"a": 2 * 0.5, "b": 0.5 + 1 / 3, "c": 0.5 + 2 / 3}
    )
    assert "around each batch's own mean" in estimator.assumption
    everybody = Targets.of([[(0, np.ones(3))]])
    assert estimator.estimation([score]).estimate(everybody).estimate[0] == pytest.approx(3.0)


def test_regions_of_batches_are_numbered_on() -> None:
    one = BucketizedRows(
        rows=ONE.rows, sensitive=ONE.sensitive, buckets=ONE.buckets, region_of_bucket=np.array([1, 0])
    )
    assert answer._regions_of([one, TWO, one]).tolist() == [1, 0, 2, 4, 3]


def test_few_people_and_fakes_of_unknown_places_are_not_matched() -> None:
    assert not ONE.can_match
    many = batch(list(range(1_000)), ["a", "b"] * 500, [row // 2 for row in range(1_000)])
    assert many.can_match
    hidden = BucketizedRows(rows=many.rows, sensitive=many.sensitive, buckets=many.buckets, has_fakes=True)
    assert not hidden.can_match
    assert hidden.estimator("matching").made.name == "shrinkage"
    assert "fakes are taken off" in hidden.estimator("anatomy").assumption


def test_what_was_read_is_told() -> None:
    assert ONE.summary() == (
        "qit: 4 rows in 2 buckets of 2 to 2 people (2 different contents); "
        "st: 3 sensitive values; weight of a pair (row, value): count/|bucket|"
    )


def test_with_fakes_contents_set_no_limits() -> None:
    hidden = BucketizedRows(rows=ONE.rows, sensitive=ONE.sensitive, buckets=ONE.buckets, has_fakes=True)
    score, targets = Score(rows=np.array([0, 1])), Targets.of([[(0, np.array([1.0, 0.0, 0.0]))]])
    ranges = [rows.estimator("anatomy").estimation([score]).possible_range(targets) for rows in (ONE, hidden)]
    # of the first bucket one person has a; with a fake among its values it may be nobody or both
    assert [(low[0], high[0]) for low, high in ranges] == [(1.0, 1.0), (0.0, 2.0)]
