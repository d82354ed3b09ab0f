"""Applying a bucket plan: every record has one place, and which one is a uniformly random choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dalenius.errors import InternalError
from dalenius.mechanisms.bucketize import apply
from dalenius.mechanisms.bucketize.apply import Assigner, GivenLayout, Layout
from dalenius.mechanisms.bucketize.plan.methods import BucketPlan, plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.randomness import Randomness
from dalenius.tables.histogram import Histogram
from tests.chance import FALSE_ALARM
from tests.mechanisms.bucketize.problems import bucket_plans, deal_by_hand


def plan_for(counts: list[int], times: int = 2) -> BucketPlan:
    n = sum(counts)
    thresholds = tuple(min(Fraction(1), times * Fraction(count, n) + Fraction(1, 20)) for count in counts)
    problem = BucketProblem(counts=tuple(counts), thresholds=thresholds, max_bucket=50)
    return plan_buckets(problem, "optimal")


def assign(plan: BucketPlan, codes: np.ndarray, seed: int, n_batches: int = 1) -> tuple[Layout, np.ndarray]:
    randomness = Randomness.seeded(seed)
    layout = Layout.shuffled(plan, randomness)
    assigner = Assigner(layout, randomness)
    buckets = np.concatenate([assigner.assign(part) for part in np.array_split(codes, n_batches)])
    assigner.finish()
    return layout, buckets


@given(
    counts=st.lists(st.integers(1, 40), min_size=2, max_size=8),
    seed=st.integers(0, 99),
    n_batches=st.integers(1, 5),
)
def test_the_sensitive_table_is_what_the_assignment_gives(
    counts: list[int], seed: int, n_batches: int
) -> None:
    plan = plan_for(counts)
    codes = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts), dtype=np.int32), counts))
    layout, buckets = assign(plan, codes, seed, n_batches)
    assigned = Counter(zip(buckets.tolist(), codes.tolist(), strict=True))
    listed = {
        (bucket, code): count
        for batch in layout.contents()
        for bucket, code, count in zip(*(column.tolist() for column in batch), strict=True)
    }
    assert assigned == listed
    sizes = Counter(Counter(buckets.tolist()).values())
    assert sizes == dict(zip(plan.sizes, plan.n_buckets, strict=True))


def test_a_batch_too_many_and_a_batch_too_few_are_caught() -> None:
    plan = plan_for([4, 4, 4])
    codes = np.repeat(np.arange(3, dtype=np.int32), 4)
    with pytest.raises(InternalError, match="more records"):
        assign(plan, np.append(codes, np.int32(0)), 1)
    with pytest.raises(InternalError, match="fewer records"):
        assign(plan, codes[:-1], 1)


def partners(buckets: np.ndarray) -> tuple[int, ...]:
    """Which of value 1's three records shares a bucket with the first, second and third of value 0."""
    return tuple(int(np.flatnonzero(buckets[3:] == bucket)[0]) for bucket in buckets[:3])


def uniformity_p_value(seen: Counter[tuple[int, ...]]) -> float:
    return float(stats.chisquare([seen[order] for order in permutations(range(3))]).pvalue)


def test_every_matching_is_equally_likely_and_file_order_is_caught() -> None:
    plan = BucketPlan(method="one-size", sizes=(2,), n_buckets=(3,), loads=((3,), (3,)), lower_bound=None)
    codes = np.array([0, 0, 0, 1, 1, 1], dtype=np.int32)
    drawn, in_file_order = Counter[tuple[int, ...]](), Counter[tuple[int, ...]]()
    for seed in range(3_000):
        layout, buckets = assign(plan, codes, seed)
        drawn[partners(buckets)] += 1
        # the control: round-robin without the shuffle
        in_file_order[partners(np.concatenate([layout.places(0), layout.places(1)]))] += 1
    assert uniformity_p_value(drawn) > FALSE_ALARM
    assert uniformity_p_value(in_file_order) < FALSE_ALARM


@given(bucket_plans(), st.integers(0, 50))
def test_contents_are_the_dealt_buckets_under_their_numbers(plan: BucketPlan, seed: int) -> None:
    layout = Layout.shuffled(plan, Randomness.seeded(seed))
    by_hand = deal_by_hand(plan)
    assert sorted(layout.numbers.tolist()) == list(range(1, len(by_hand) + 1))
    entries = [
        (int(number), code, held.count(code))
        for number, held in zip(layout.numbers.tolist(), by_hand, strict=True)
        for code in sorted(set(held))
    ]
    listed = [entry for part in layout.contents() for entry in zip(*(c.tolist() for c in part), strict=True)]
    assert listed == sorted(entries)
    assert layout.n_places == [sum(row) for row in plan.loads]
    for value in range(len(plan.loads)):
        homes = Counter(layout.places(value).tolist())
        assert homes == {number: n for number, code, n in entries if code == value}


def test_people_whose_bucket_lists_one_value_are_counted_as_certain() -> None:
    """Bucket 1 lists one value, for three people; 2 and 3 list two; with a column that is alike in 3."""
    listed = (np.array([1, 2, 2, 3, 3]), np.array([0, 0, 1, 1, 2]), np.array([3, 1, 1, 2, 2]))
    assert apply.count_alike([listed], [], only_yes=False, n_fakes=0) == 3
    assert apply.count_alike([listed], [np.array([0, 1, 1])], only_yes=False, n_fakes=0) == 7


@pytest.mark.parametrize("per_batch", [1, 2, 5])
def test_contents_are_the_same_in_batches_of_any_size(
    per_batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_for([9, 7, 5, 3])
    layout = Layout.shuffled(plan, Randomness.seeded(2))
    whole = [np.concatenate(parts) for parts in zip(*layout.contents(), strict=True)]
    monkeypatch.setattr(apply, "_LISTED_AT_ONCE", per_batch)
    parts = list(Layout.shuffled(plan, Randomness.seeded(2)).contents())
    assert all(len(set(bucket.tolist())) <= per_batch for bucket, _, _ in parts)
    for one, many in zip(whole, zip(*parts, strict=True), strict=True):
        assert one.tolist() == np.concatenate(many).tolist()


@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(0, 99))
def test_keys_order_rows_by_bucket_and_by_nothing_else(buckets: list[int], seed: int) -> None:
    numbers = np.array(buckets, dtype=np.int64)
    keys = apply.random_within(numbers, 9, np.random.default_rng(seed))
    assert numbers[np.argsort(keys)].tolist() == sorted(buckets)
    assert (keys >= 0).all()
    again = apply.random_within(numbers, 9, np.random.default_rng(seed + 1))
    assert len(buckets) < 12 or not np.array_equal(keys, again)


def test_rows_of_one_bucket_come_in_every_order() -> None:
    seen = {
        tuple(np.argsort(apply.random_within(np.array([3, 3, 3]), 9, np.random.default_rng(seed))).tolist())
        for seed in range(200)
    }
    assert len(seen) == 6


def test_both_tables_are_written_from_the_same_places() -> None:
    """Six people, two values: every published row's value is one of its bucket's, as often as listed."""
    histogram = Histogram.of(("ill",), Counter({("a",): 3, ("b",): 3}))
    schema = pa.schema([("age", pa.int64()), ("ill", pa.string())])
    plan = BucketPlan(method="", sizes=(2,), n_buckets=(3,), loads=((3,), (3,)), lower_bound=None)
    randomness = Randomness.seeded(3)
    layout, encoder = Layout.shuffled(plan, randomness), histogram.encoder(schema)
    batches = [
        pa.record_batch({"age": [1, 2, 3], "ill": ["a", "b", "a"]}, schema=schema),
        pa.record_batch({"age": [4, 5, 6], "ill": ["b", "b", "a"]}, schema=schema),
    ]
    order = np.random.default_rng(4)
    keyed = apply.qit_rows(iter(batches), ("age",), encoder, Assigner(layout, randomness), order, "key")
    rows = pa.Table.from_batches(apply.with_buckets(keyed, layout.n_buckets, "key"))
    assert rows.column_names == ["age", "key", "bucket"]
    ill = dict(zip(range(1, 7), "ababba", strict=True))
    held = Counter(
        (b, ill[age]) for b, age in zip(rows["bucket"].to_pylist(), rows["age"].to_pylist(), strict=True)
    )
    listed = pa.Table.from_batches(apply.st_rows(layout, encoder)).to_pylist()
    assert held == {(row["bucket"], row["ill"]): row["count"] for row in listed}
    too_few = apply.qit_rows(iter(batches[:1]), ("age",), encoder, Assigner(layout, randomness), order, "key")
    with pytest.raises(InternalError, match="fewer records"):
        list(too_few)


class FarPlaces:
    """Two records of one value, in buckets with the highest of very many numbers."""

    def __init__(self, n_buckets: int) -> None:
        self.n_buckets, self.n_places = n_buckets, [2]

    def places(self, _: int) -> np.ndarray:
        return np.array([self.n_buckets, self.n_buckets - 1], dtype=np.int64)

    def contents(self) -> Iterator[apply.Entries]:
        yield from ()


@pytest.mark.parametrize("n_buckets", [2, 2**31 - 1, 2**31, 2**31 + 9, 2**40])
def test_numbers_of_buckets_of_any_size_are_kept_whole(n_buckets: int) -> None:
    assigner = Assigner(FarPlaces(n_buckets), Randomness.seeded(1))
    found = assigner.assign(np.zeros(2, dtype=np.int32))
    assert sorted(found.tolist()) == [n_buckets - 1, n_buckets]


def test_given_contents_are_published_under_random_numbers() -> None:
    """A bucket of values 0 and 1, and one of 0, 1 and 1, whichever of them is number 1."""
    plan = BucketPlan(
        method="optimal", sizes=(2, 3), n_buckets=(1, 1), loads=((1, 1), (1, 2), (0, 0)), lower_bound=None
    )
    contents, seen = [np.array([[0, 1]]), np.array([[0, 1, 1]])], set()
    for seed in range(20):
        layout = GivenLayout.shuffled(plan, contents, Randomness.seeded(seed))
        small, large = layout.numbers.tolist()
        ((bucket, code, count),) = layout.contents()
        found = dict(zip(zip(bucket.tolist(), code.tolist(), strict=True), count.tolist(), strict=True))
        assert found == {(small, 0): 1, (small, 1): 1, (large, 0): 1, (large, 1): 2}
        assert bucket.tolist() == sorted(bucket.tolist())
        places = [sorted(layout.places(value).tolist()) for value in range(3)]
        assert places == [[1, 2], sorted([small, large, large]), []]
        assert layout.n_places == [2, 3, 0]
        seen.add((small, large))
    assert seen == {(1, 2), (2, 1)}


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257])
def test_a_bucket_of_one_value_has_all_of_it(size: int) -> None:
    """The type of a count holds the size of the bucket itself."""
    codes = np.zeros((size, 3), dtype=np.uint8)
    codes[-1, 1] = 1
    found, counts, lengths = apply._run_lengths(codes)
    whole = [(0, size)]
    mixed = [(0, size - 1), (1, 1)] if size > 1 else [(1, 1)]
    assert list(zip(found.tolist(), counts.tolist(), strict=True)) == [*whole, *mixed, *whole]
    assert lengths.tolist() == [1, len(mixed), 1]
