"""What buckets with fakes really hold, in expectation, and manifests that say what cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dalenius.errors import ReleaseCorrupt
from dalenius.mechanisms.bucketize.fakes import estimate
from dalenius.mechanisms.bucketize.fakes.estimate import PublishedFakes
from dalenius.plain import Stated
from tests.mechanisms.bucketize.fakes.enumeration import LAW, brute_joint

N_BUCKETS = 1_000


def stated(**change: Any) -> dict[str, Any]:
    law = {"size": 3, "counts": [10] * 6, "real": LAW.real.tolist(), "fake": LAW.fake.tolist()}
    return {
        "per_bucket": 2,
        "posterior": 0.5,
        "posterior_without_table": 0.4,
        "values": [[name] for name in "abcdef"],
        "sizes": [{**law, **change.pop("size", {})}],
        **change,
    }


def read(**change: Any) -> PublishedFakes:
    return PublishedFakes.of(Stated.of(stated(**change), "parameters.fakes"), 1)


def test_a_manifest_is_read_law_by_law() -> None:
    fakes = read(size={"real": [None, 2, 1, 1, 0.5, 0.1]})
    assert (fakes.n_fakes, fakes.posterior, fakes.posterior_without_table) == (2, 0.5, 0.4)
    assert fakes.laws[0].size == 3
    assert fakes.laws[0].n_fakes == 2
    assert np.isinf(fakes.laws[0].real[0])
    assert fakes.laws[0].fake.tolist() == LAW.fake.tolist()
    assert fakes.counts[0].tolist() == [10] * 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": [["a"], ["b"], ["a"], ["d"], ["e"], ["f"]]}, "lists a value of the fakes' domain twice"),
        ({"per_bucket": 0}, "per_bucket"),
        ({"per_bucket": 7}, "per_bucket"),
        ({"posterior": 1.5}, "posterior"),
        ({"posterior_without_table": -0.1}, "posterior_without_table"),
        ({"values": [["a", "b"]] * 6}, "values"),
        ({"size": {"size": 0}}, "size"),
        ({"size": {"counts": [1] * 5}}, "has 5 numbers for 6 values"),
        ({"size": {"counts": [1, 1, 1, 1, 1, -1]}}, "counts"),
        ({"size": {"real": [1.0] * 7}}, "has 7 numbers for 6 values"),
        ({"size": {"real": [1.0] * 5 + [-1.0]}}, "real"),
        ({"size": {"fake": ["x"] * 6}}, "fake"),
    ],
)
def test_what_a_manifest_cannot_say_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ReleaseCorrupt, match=message):
        read(**change)


def test_values_are_found_by_their_cells_in_any_order() -> None:
    fakes = read(values=[["a"], [None], ["c"], ["d"], ["e"], ["f"]])
    assert fakes.find([("c",), (None,), ("x",), ("a",)]).tolist() == [2, 1, -1, 0]
    assert fakes.codes_of([("f",), ("a",)]).tolist() == [5, 0]
    with pytest.raises(ReleaseCorrupt, match="values that the manifest's fakes do not know"):
        fakes.codes_of([("x",)])


def every_bucket() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Buckets in the exact proportions of the law: what is published, what is real, how many of each."""
    listed, real, share = [], [], []
    for (contents, fakes), p in brute_joint(LAW, np.ones(6, dtype=int)).items():
        listed.append([k + (x in fakes) for x, k in enumerate(contents)])
        real.append(contents)
        share.append(p)
    return np.array(listed), np.array(real), np.array(share)


@pytest.mark.parametrize("at_once", [1, 3, 20_000])
def test_expected_counts_are_the_published_ones_less_the_chance_of_a_fake(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the counts that the law itself expects nothing is to be scaled: brute force, bucket by bucket."""
    monkeypatch.setattr(estimate, "_BUCKETS_AT_ONCE", at_once)
    listed, real, share = every_bucket()
    different, place = np.unique(listed, axis=0, return_inverse=True)
    place = place.ravel()
    chance = np.bincount(place, share)
    held = np.stack([np.bincount(place, share * real[:, x]) for x in range(6)], axis=1) / chance[:, None]
    # each published content as often as it comes, so that the values' records are what the law expects
    n = np.maximum(np.rint(chance * N_BUCKETS), 1).astype(int)
    rows = np.repeat(np.arange(len(different)), n)
    bucket, value = np.nonzero(different[rows])
    counts = [max(round(c), 0) for c in held[rows].sum(axis=0)]
    fakes = read(size={"counts": counts})
    found = fakes.expected_counts(bucket, value, different[rows][bucket, value], np.full(len(rows), 3))
    assert found == pytest.approx(held[rows][bucket, value], abs=0.01)
    assert np.bincount(bucket, found) == pytest.approx(np.full(len(rows), 3.0), rel=1e-6)


def test_buckets_of_a_size_without_a_law_keep_their_counts() -> None:
    fakes = read()
    bucket, value = np.array([0, 0, 0]), np.array([0, 1, 2])
    found = fakes.expected_counts(bucket, value, np.array([2, 1, 1]), np.array([4]))
    assert found.tolist() == [2.0, 1.0, 1.0]


def test_scaling_meets_the_people_of_buckets_and_the_records_of_values() -> None:
    """Two buckets of 3 and three values with 3, 2 and 1 records: both sums at once."""
    bucket, value = np.repeat([0, 1], 3), np.tile([0, 1, 2], 2)
    start = np.array([1.0, 1.0, 1.0, 2.0, 1.0, 0.5])
    found = estimate._scale(start, bucket, value, 3, np.array([3, 2, 1]))
    assert np.bincount(bucket, found) == pytest.approx([3, 3])
    assert np.bincount(value, found) == pytest.approx([3, 2, 1])
    ratio = (start[0] * start[4]) / (start[1] * start[3])  # odds ratios are kept
    assert (found[0] * found[4]) / (found[1] * found[3]) == pytest.approx(ratio)


def test_scaling_gets_there_where_entries_must_be_fakes() -> None:
    """Values in one or two buckets: scaling by turns alone was off by five people in a hundred."""
    stream = np.random.default_rng(1)
    n_buckets, size = 275, 4
    people = stream.permutation(n_buckets * size).reshape(n_buckets, size)  # everybody has another value
    fakes = stream.permutation(n_buckets * size)[:n_buckets]
    fakes = np.where((people == fakes[:, None]).any(axis=1), np.roll(people[:, 0], 1), fakes)
    bucket = np.repeat(np.arange(n_buckets), size + 1)
    value = np.column_stack([people, fakes]).ravel()
    counts = np.ones(n_buckets * size, dtype=np.int64)
    start = np.full(len(value), size / (size + 1))
    found = estimate._scale(start, bucket, value, size, counts)
    assert np.bincount(bucket, found) == pytest.approx(np.full(n_buckets, size), abs=1e-9)
    assert np.bincount(value, found) == pytest.approx(counts, abs=1e-6)
    assert found.min() >= 0
