"""The check of published buckets, on tables of a few rows: each rule has a table that breaks it alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dalenius.mechanisms.base import Check
from dalenius.mechanisms.bucketize.check import _count_different, _count_malformed, check_buckets
from dalenius.mechanisms.bucketize.published import read_entries
from dalenius.release.manifest import Manifest
from dalenius.sql import connect_shared

KEPT = Path(__file__).parents[2] / "releases" / "bucketize" / "manifest.json"
PEOPLE = [1, 1, 2, 2, 2]
ENTRIES = [(1, "a", 1), (1, "b", 1), (2, "a", 1), (2, "b", 1), (2, "c", 1)]


def fakes(n_fakes: int) -> dict[str, Any]:
    law = {"counts": [1, 1, 1], "real": [1.0] * 3, "fake": [1.0] * 3}
    return {
        "per_bucket": n_fakes,
        "posterior": 0.5,
        "posterior_without_table": 0.5,
        "values": [["a"], ["b"], ["c"]],
        "sizes": [{"size": 2, **law}],
    }


def failed(*args: Any, **kwargs: Any) -> list[str]:
    return [check.name for check in checked(*args, **kwargs) if not check.ok]


def checked(
    people: Sequence[int | None],
    entries: Sequence[tuple[int | None, str | int | None, int | None]],
    *,
    l: int = 2,  # noqa: E741
    promise: dict[str, Any] | None = None,
    n_fakes: int = 0,
    published: int | None = None,
    dates: tuple[int, int] | None = None,
) -> list[Check]:
    data = json.loads(KEPT.read_text())
    data["columns"] = [
        {"name": "age", "role": "quasi", "type": "int64"},
        {"name": "ill", "role": "sensitive", "type": "string"},
    ]
    data["promise"] = promise or {"kind": "l-diversity", "l": l}
    data["parameters"] = {"fakes": fakes(n_fakes)} if n_fakes else {}
    if dates:
        data["parameters"]["dates"] = {"last_bucket": dates[0], "absent": dates[1]}
        data["series"] = {"id": "s", "kind": "dates", "index": 2, "of": None}
    data["rows"] = {"published": len(people) if published is None else published, "suppressed": 0}
    bucket, ill, n = zip(*entries, strict=True)
    with connect_shared() as connection:
        qit = {"age": pa.array([30] * len(people)), "bucket": pa.array(people, pa.int64())}
        st = {
            "bucket": pa.array(bucket, pa.int64()),
            "ill": pa.array(ill, pa.int64() if isinstance(ill[0], int) else pa.string()),
            "count": pa.array(n, pa.int64()),
        }
        connection.register("qit", pa.table(qit))
        connection.register("st", pa.table(st))
        return list(check_buckets(connection, Manifest.from_dict(data)))


def test_what_is_right_passes() -> None:
    assert failed(PEOPLE, ENTRIES) == []


def test_counts_that_only_add_up_are_found() -> None:
    """Three of one value and minus one of another are as many as the people, and nobody can be so."""
    assert "sensitive table" in failed([1, 1], [(1, "a", 3), (1, "b", -1)], l=1)
    assert failed([1, 1], [(1, "a", 2), (1, "b", 0)], l=1) == ["sensitive table"]
    assert failed([1, 1], [(1, "a", 2), (1, "b", None)], l=1) == ["sensitive table"]


def test_a_value_is_counted_once_a_bucket() -> None:
    assert failed([1, 1], [(1, "a", 1), (1, "a", 1)], l=2) == ["sensitive table"]
    apart = [(1, "a", 1), (2, "a", 1), (2, "b", 1), (2, "c", 1), (1, "b", 1)]
    assert "sensitive table" in failed(PEOPLE, apart)


@pytest.mark.parametrize("people", [[1, 1, 2, 2], [1, 1, 2, 2, 2, 2], [1, 2, 2, 2, 2], [1, 1, 2, 2, 3]])
def test_every_bucket_has_as_many_values_as_people(people: list[int]) -> None:
    assert "bucket sizes" in failed(people, ENTRIES)


@pytest.mark.parametrize("strange", [None, 0, -1, 9])
def test_strange_numbers_of_buckets_are_found(strange: int | None) -> None:
    assert "bucket sizes" in failed([*PEOPLE[:-1], strange], ENTRIES)
    assert "bucket sizes" in failed(PEOPLE, [*ENTRIES[:-1], (strange, "c", 1)])


def test_with_fakes_there_are_exactly_so_many_more() -> None:
    with_one = [(1, "a", 1), (1, "b", 1), (1, "c", 1)]
    assert failed([1, 1], with_one, n_fakes=1) == []
    assert "bucket sizes" in failed([1, 1], with_one, n_fakes=2)
    assert "bucket sizes" in failed([1, 1], with_one[:2], n_fakes=1)
    assert "bucket sizes" in failed([1, 1], with_one)


def test_thresholds_are_of_the_people_and_not_of_the_fakes() -> None:
    """Two of four values are one half, and two of three people are not."""
    entries = [(1, "a", 2), (1, "b", 1), (1, "c", 1)]
    assert failed([1, 1, 1], entries, n_fakes=1) == ["promise"]
    assert failed([1, 1, 1, 1], entries) == []


def test_a_threshold_is_kept_exactly() -> None:
    """29 of 100 is within 0.29, and 0.29 × 100 is below 29 in floats."""
    promise = {
        "kind": "f-privacy",
        "thresholds": [{"value": ["a"], "at_most": "29/100"}, {"value": ["b"], "at_most": "1"}],
    }
    assert failed([1] * 100, [(1, "a", 29), (1, "b", 71)], promise=promise) == []
    assert failed([1] * 100, [(1, "a", 30), (1, "b", 70)], promise=promise) == ["promise"]


def test_a_value_without_a_threshold_is_broken() -> None:
    promise = {"kind": "f-privacy", "thresholds": [{"value": ["a"], "at_most": "1"}]}
    assert failed([1, 1], [(1, "a", 1), (1, None, 1)], promise=promise) == ["promise"]


def test_a_fake_from_outside_the_domain_is_found() -> None:
    assert failed([1, 1], [(1, "a", 1), (1, "b", 1), (1, "x", 1)], n_fakes=1) == ["fakes"]


@pytest.mark.parametrize("stated", [4, 6])
def test_the_manifest_counts_the_records(stated: int) -> None:
    assert failed(PEOPLE, ENTRIES, published=stated) == ["records"]


@pytest.mark.parametrize(
    "entries",
    [
        [(1, "a", 1), (1, "a", 1), (1, "b", 0)],
        [(1, "a", 1), (1, "a", 2), (1, "b", -1)],
        [(2, "a", 1), (2, "b", 1), (1, "a", 1), (1, "a", 1)],
        [(2, "a", 1), (2, "b", 1), (1, "a", 2), (1, "b", 0)],
    ],
)
def test_two_mistakes_do_not_make_up_for_each_other(entries: list[tuple[int, str, int]]) -> None:
    """A value that is repeated, one out of order and one that counts nobody are three mistakes."""
    people = [bucket for bucket, _, n in entries for _ in range(n)]
    assert "sensitive table" in failed(people, entries, l=1)


def test_a_bucket_that_goes_on_in_another_batch_is_out_of_order() -> None:
    table = pa.table({"bucket": [3, 3], "ill": ["a", "b"], "count": [1, 1]})
    with connect_shared() as connection:
        connection.register("st", table)
        (entries,) = read_entries(connection, ("ill",), "TRUE")
    assert [_count_malformed(entries, last) for last in (2, 3, 4)] == [0, 1, 1]


def test_buckets_need_not_begin_at_one() -> None:
    assert failed([2, 2], [(2, "a", 1), (2, "b", 1)]) == []


@pytest.mark.parametrize("window", [1, 2, 3])
def test_a_window_of_buckets_is_checked_like_the_whole(monkeypatch: pytest.MonkeyPatch, window: int) -> None:
    monkeypatch.setattr("dalenius.mechanisms.bucketize.check._WINDOW", window)
    people, entries = [*PEOPLE, 3, 3, 4, 4], [*ENTRIES, (3, "a", 1), (3, "b", 1), (4, "b", 1), (4, "c", 1)]
    assert failed(people, entries) == []
    for bucket in (1, 2, 3, 4):
        assert failed([*people, bucket], entries) == ["bucket sizes"]
        broken = [(*entry[:2], 2) if entry[0] == bucket else entry for entry in entries]
        many = [one for one in people for _ in range(2 if one == bucket else 1)]
        assert failed(many, broken, l=3)[-1] == "promise"


def test_different_keys_are_counted_however_few_there_are() -> None:
    assert _count_different(np.array([5, 5, 10**9, 7])) == 3
    assert _count_different(np.array([5, 5, 6, 7])) == 3


def test_groups_are_a_share_of_the_people_and_not_of_the_fakes() -> None:
    """Two of four values are one half, and two of three people are not."""
    promise = {
        "kind": "f-privacy",
        "thresholds": [{"value": [v], "at_most": "1"} for v in "abc"],
        "groups": [{"name": "g", "values": [["a"], ["b"]], "at_most": "1/2"}],
    }
    entries = [(1, "a", 1), (1, "b", 1), (1, "c", 2)]
    assert failed([1] * 4, entries, promise=promise) == []
    assert failed([1] * 3, entries, promise=promise, n_fakes=1) == ["promise on groups"]


def test_values_of_people_who_have_left_are_as_many_as_is_said() -> None:
    """Somebody of bucket 1 has left: one more value than people, and somebody is still there."""
    left = [1, 2, 2, 2]
    assert failed(left, ENTRIES, dates=(2, 1)) == []
    assert failed(PEOPLE, ENTRIES, dates=(2, 0)) == []
    for absent in (0, 2):
        (sizes,) = (check for check in checked(left, ENTRIES, dates=(2, absent)) if not check.ok)
        assert sizes.name == "bucket sizes"
        assert f"1 values are of people who have left, and the manifest says {absent}" in sizes.detail


@pytest.mark.parametrize(
    ("people", "absent"), [([2, 2, 2], 2), ([1, 1, 1, 2, 2], 0), ([1, 1, 2, 2, 2, 2], 0)]
)
def test_no_bucket_has_fewer_values_than_people_or_nobody(people: list[int], absent: int) -> None:
    (sizes,) = (check for check in checked(people, ENTRIES, dates=(2, absent)) if not check.ok)
    assert sizes.detail == "1 buckets have fewer sensitive values than people, or nobody"


@pytest.mark.parametrize("last", [1, 2, 3])
def test_the_last_number_of_a_bucket_is_of_all_dates(last: int) -> None:
    """Numbers of buckets that everybody has left are not used again: there may be more than people."""
    entries = [(2, "a", 1), (2, "b", 1)]
    assert failed([2, 2], entries, dates=(last, 0)) == ([] if last > 1 else ["bucket sizes"])
    assert ("bucket sizes" in failed([3, 3], [(3, "a", 1), (3, "b", 1)], dates=(last, 0))) == (last < 3)


def test_near_numbers_are_counted_together() -> None:
    """100 and 105 are within 10 % of each other: together they may be half of a bucket, and not more."""
    promise = {"kind": "proximity", "within": "10%", "at_most": "1/2"}
    assert failed([1] * 4, [(1, 100, 1), (1, 105, 1), (1, 200, 2)], promise=promise) == []
    (near,) = (
        check
        for check in checked([1] * 4, [(1, 100, 1), (1, 105, 2), (1, 200, 1)], promise=promise)
        if not check.ok
    )
    assert near.detail.startswith("values within 10 % of one number are above 0.5 of a bucket ")
    many = [1] * 4 + [2] * 6
    two = [(1, 100, 1), (1, 105, 1), (1, 200, 2), (2, 100, 2), (2, 105, 1), (2, 300, 3)]
    assert failed(many, two, promise=promise) == []
    assert failed(many[:-1], [*two[:-1], (2, 300, 2)], promise=promise) == ["promise on near numbers"]


def test_near_numbers_are_a_share_of_the_people_and_not_of_the_fakes() -> None:
    """Two near ones are half of four values, and more of three people."""
    promise = {"kind": "proximity", "within": "10%", "at_most": "1/2"}
    entries = [(1, 100, 1), (1, 105, 1), (1, 200, 1), (1, 300, 1)]
    assert failed([1] * 4, entries, promise=promise) == []
    assert "promise on near numbers" in failed([1] * 3, entries, promise=promise, n_fakes=1)


def test_buckets_of_dates_may_have_any_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of them are gone after many dates: only the ranges that hold one are looked at."""
    monkeypatch.setattr("dalenius.mechanisms.bucketize.check._WINDOW", 2)
    far = 2**40
    entries = [(3, "a", 1), (3, "b", 1), (far, "a", 1), (far, "b", 1)]
    assert failed([3, 3, far, far], entries, dates=(far, 0)) == []
    assert failed([3, 3, far, far], [*entries[:-1], (far, "a", 1)], dates=(far, 0)) == ["sensitive table"]
    assert "bucket sizes" in failed([3, 3, far, far, far + 1], entries, dates=(far, 0))
    assert "bucket sizes" in failed([3, 3], entries, dates=(far, 0))


def test_near_texts_are_no_numbers() -> None:
    promise = {"kind": "proximity", "within": "10%", "at_most": "1/2"}
    (near,) = (check for check in checked(PEOPLE, ENTRIES, promise=promise) if not check.ok)
    assert near.detail == "the sensitive column does not hold numbers"
