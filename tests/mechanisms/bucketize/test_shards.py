"""Groups of buckets that tasks make: their loads and numbers beside the whole plan, bucket by bucket."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.shards import BucketGroups, QitGroups, StGroups, _by_bucket
from dalenius.mechanisms.sharding import Census
from dalenius.randomness import Randomness
from dalenius.tables.histogram import Histogram
from tests.mechanisms.bucketize.problems import bucket_plans, deal_by_hand

VALUES = Histogram.of(("ill",), Counter({("a",): 6, ("b",): 4, ("c",): 2}))
SCHEMA = pa.schema([("age", pa.int64()), ("ill", pa.string())])
PLAN = BucketPlan(method="x", sizes=(3,), n_buckets=(4,), loads=((6,), (4,), (2,)), lower_bound=None)


@given(bucket_plans(), st.integers(1, 6), st.integers(0, 20))
def test_a_group_has_every_kth_bucket_of_each_size(plan: BucketPlan, n_groups: int, seed: int) -> None:
    groups = BucketGroups.cut(plan, n_groups, Randomness.seeded(seed))
    dealt, loads = deal_by_hand(plan), groups.loads()
    assert sorted(groups.order.tolist()) == list(range(n_groups))
    first_number, total = 1, 0
    for group in range(n_groups):
        own: list[list[int]] = []
        begin = 0
        for b in plan.n_buckets:
            own += dealt[begin + int(groups.order[group]) : begin + b : n_groups]
            begin += b
        held = Counter(code for bucket in own for code in bucket)
        assert loads[:, group].tolist() == [held[code] for code in range(len(plan.loads))]
        total += len(own)
        if own:
            layout = groups.layout(group)
            assert sorted(layout.numbers.tolist()) == list(range(first_number, first_number + len(own)))
            first_number += len(own)
            assert sorted(map(sorted, deal_by_hand(layout.plan))) == sorted(map(sorted, own))
    assert total == sum(plan.n_buckets)


def qit_groups(counts: np.ndarray, code_of: list[int], n_groups: int = 2) -> QitGroups:
    return QitGroups(
        groups=BucketGroups.cut(PLAN, n_groups, Randomness.seeded(3)),
        census=Census(counts=counts, group_rows=6),
        encoder=VALUES.encoder(SCHEMA),
        code_of=np.array(code_of, dtype=np.int32),
        quasi=("age",),
        schema=SCHEMA,
    )


def test_what_is_not_planned_is_withheld() -> None:
    """8, 5 and 3 records of which 6, 4 and none are planned: the last column takes the rest."""
    groups = qit_groups(np.array([[5, 3, 1], [3, 2, 2]]), [0, 1, -1])
    total = groups.total()
    assert total.sum(axis=1).tolist() == [8, 5, 3]
    assert total[:, -1].tolist() == [2, 1, 3]
    assert total[:2, :-1].sum(axis=1).tolist() == [6, 4]
    assert groups.wire.names == ["age", "code"]
    assert groups.shards().n_records == 12


def test_who_is_withheld_is_sent_to_no_group() -> None:
    groups = qit_groups(np.array([[5, 3, 1], [3, 2, 2]]), [0, 1, -1])
    rows = pa.record_batch({"age": list(range(9)), "ill": ["a"] * 5 + ["b"] * 3 + ["c"]}, schema=SCHEMA)
    ((sent, kept),) = groups.scatter(0, iter([rows]))
    assert sent.max() < 2
    assert len(sent) == kept.num_rows < 9
    assert kept.column("code").to_pylist().count(-1) == 0


def test_partitions_send_every_record_once_and_groups_fill_their_buckets() -> None:
    """Twelve people in two partitions; every planned one arrives, in a bucket that lists their value."""
    ill = np.array(list("aaaaaabbbbcc"))
    ages = np.arange(12)
    parts = [np.arange(0, 12, 2), np.arange(1, 12, 2)]
    names = [value[0] for value in VALUES.values]
    counts = np.array([[int((ill[own] == name).sum()) for name in names] for own in parts])
    groups = qit_groups(counts, [0, 1, 2])
    arrived: dict[int, list[pa.RecordBatch]] = {0: [], 1: []}
    for number, own in enumerate(parts):
        batches = [
            pa.record_batch({"age": ages[half], "ill": ill[half]}, schema=SCHEMA) for half in np.split(own, 2)
        ]
        for home, rows in groups.scatter(number, iter(batches)):
            for group in (0, 1):
                arrived[group].append(rows.filter(pa.array(home == group)))
    st_groups = StGroups(groups=groups.groups, encoder=VALUES.encoder(SCHEMA))
    seen: list[int] = []
    for group, batches in arrived.items():
        piece = groups.gather(group, pa.Table.from_batches(batches, schema=groups.wire))
        listed = st_groups.gather(group, pa.table({})).rows
        assert piece.n_records == piece.rows.num_rows
        rows = piece.rows.to_pydict()
        assert rows["bucket"] == sorted(rows["bucket"])
        held = Counter((b, ill[age]) for b, age in zip(rows["bucket"], rows["age"], strict=True))
        stated = {
            (b, v): n
            for b, v, n in zip(*(listed[c].to_pylist() for c in ("bucket", "ill", "count")), strict=True)
        }
        assert held == stated
        seen += rows["age"]
    assert sorted(seen) == list(range(12))


def test_records_of_a_bucket_come_in_any_order() -> None:
    """By bucket, and within one in each of the six orders about as often."""
    stream = np.random.default_rng(5)
    buckets = np.array([2, 1, 2, 1, 2])
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(600):
        order = _by_bucket(buckets, stream)
        assert buckets[order].tolist() == [1, 1, 2, 2, 2]
        seen[tuple(order[2:].tolist())] += 1
    assert len(seen) == 6
    assert min(seen.values()) > 50


def test_a_census_says_how_many_groups_there_are() -> None:
    census = Census(counts=np.array([[3, 4], [5, 0]]), group_rows=5)
    assert census.n_rows == 12
    assert [census.n_groups(n) for n in (0, 1, 5, 6, 12)] == [1, 1, 1, 2, 3]


@pytest.mark.parametrize("n_groups", [1, 3, 9])
def test_more_groups_than_buckets_leave_some_empty(n_groups: int) -> None:
    groups = BucketGroups.cut(PLAN, n_groups, Randomness.seeded(1))
    assert groups.loads().sum() == 12
    assert int((groups.loads().sum(axis=0) > 0).sum()) == min(n_groups, 4)
