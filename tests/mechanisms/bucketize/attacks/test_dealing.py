"""Laws of dealing and numbering, beside all choices and all numberings of a few buckets."""

from __future__ import annotations

from itertools import combinations, permutations, product

import numpy as np
import pytest

from dalenius.mechanisms.bucketize.attacks import dealing
from dalenius.mechanisms.bucketize.attacks.dealing import (
    DealtRecords,
    attack_law_of_dealing,
    attack_law_of_numbers,
)
from tests.mechanisms.bucketize.attacks.cases import make_case


@pytest.mark.parametrize("n", [2, 5, 7])
def test_an_overlap_has_the_mean_and_variance_of_all_choices(n: int) -> None:
    """Of n things the first `one` have something; every choice of `two` of them is as likely."""
    for one, two in product(range(n + 1), repeat=2):
        found = dealing._overlap("x", np.zeros(1), np.array([one]), np.array([two]), np.array([n]), ["a"])
        overlaps = [sum(thing < one for thing in chosen) for chosen in combinations(range(n), two)]
        assert found.expected[0] == pytest.approx(np.mean(overlaps))
        assert found.variance[0] == pytest.approx(np.var(overlaps))
        assert found.trials[0] == max(overlaps)


def test_neighbouring_numbers_are_counted_over_all_numberings() -> None:
    """Five buckets, three of which have a property: how often both buckets of a pair have it."""
    has = [True, True, True, False, False]
    counts = []
    for order in permutations(range(5)):
        bucket = np.array([place for place, b in enumerate(order) if has[b]])
        counts.append(dealing._neighbouring_numbers(5, bucket, np.zeros(len(bucket), dtype=int), ["x"]))
    # pairs (0, 1) and (2, 3); the fifth number has no neighbour
    assert np.mean([c.observed[0] for c in counts]) == pytest.approx(2 * (3 / 5) * (2 / 4))
    # given how many of each side have it, the stated expectation is right: on average it is the same
    assert np.mean([c.expected[0] for c in counts]) == pytest.approx(2 * (3 / 5) * (2 / 4))
    by_sides: dict[tuple[float, float], list[tuple[float, float, float]]] = {}
    for order, c in zip(permutations(range(5)), counts, strict=True):
        sides = (sum(has[b] for b in order[0:4:2]), sum(has[b] for b in order[1:4:2]))
        by_sides.setdefault(sides, []).append((c.observed[0], c.expected[0], c.variance[0]))
    for found in by_sides.values():
        observed, expected, variance = (np.array(part) for part in zip(*found, strict=True))
        assert observed.mean() == pytest.approx(expected[0])
        assert observed.var() == pytest.approx(variance[0])


def test_entries_with_more_of_a_value_than_the_least_bucket() -> None:
    """Value 0 is in every bucket, once at least: only twice is more. Value 1 is not: once is."""
    case = make_case([0, 0, 1, 0, 1, 0, 2], [0, 0, 0, 1, 1, 2, 2])
    more = dealing._more_than_least(case)
    listed = {(int(b), int(v)): bool(m) for b, v, m in zip(case.st_bucket, case.st_value, more, strict=True)}
    assert listed == {(0, 0): True, (0, 1): True, (1, 0): False, (1, 1): True, (2, 0): False, (2, 2): True}


def test_the_contents_that_tell_buckets_apart_come_first() -> None:
    """Value 1 is in two of four buckets, value 2 in one, value 0 in all of them alike."""
    case = make_case([0, 0, 0, 0, 1, 1, 2], [0, 1, 2, 3, 0, 1, 2])
    holds = dealing._contents(case)
    assert holds.shape == (4, 2)
    assert holds.T.tolist() == [[True, True, False, False], [False, False, True, False]]


def dealt(values: list[int], bucket: list[int], **more: object) -> DealtRecords:
    return DealtRecords(make_case(values, bucket, **more))  # type: ignore[arg-type]


def test_kinds_are_values_and_in_regions_values_by_region() -> None:
    one = dealt([0, 1, 0, 1], [0, 0, 1, 1])
    assert one.n_kinds == 2
    assert [one.kind_label(k) for k in range(2)] == ["v0", "v1"]
    two = dealt([0, 1, 0, 1], [0, 0, 1, 1], region=[0, 1])
    assert two.n_kinds == 4
    assert [two.kind_label(k) for k in range(4)] == [
        "v0 in region 1",
        "v1 in region 1",
        "v0 in region 2",
        "v1 in region 2",
    ]


def test_records_are_taken_in_the_sources_order_within_their_kind() -> None:
    """Published in another order; the source has value 0 at places 0, 2, 5 and value 1 at 1, 3, 4."""
    own = dealt([0, 1, 0, 1, 1, 0], [0, 0, 1, 1, 2, 2], order=[5, 3, 1, 0, 2, 4])
    assert own.position[own.in_source].tolist() == [0, 2, 5, 1, 3, 4]
    assert own.quarter.tolist() == [2 * 4 // 3, 1 * 4 // 3, 0, 0, 1 * 4 // 3, 2 * 4 // 3]


def test_sizes_are_numbered_from_the_smallest() -> None:
    own = dealt([0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 2, 2])
    assert own.size_class.tolist() == [2, 2, 2, 0, 1, 1]


def test_half_of_the_kinds_are_given_and_the_rest_follow() -> None:
    """By size 0, 1, 2, 3, by Thue and Morse 0 1 1 0: the first and the last are given."""
    own = dealt([0] * 4 + [1] * 3 + [2] * 2 + [3], [row % 4 for row in range(10)])
    given, others = dealing._two_sides(own)
    assert (given.tolist(), others.tolist()) == ([0, 3], [1, 2])


def test_records_of_the_same_rank_are_compared_from_both_ends() -> None:
    own = dealt([0, 0, 0, 0, 1, 1], [0, 1, 2, 3, 0, 1])
    found = {how: (a.tolist(), b.tolist()) for how, a, b in dealing._same_ranks(own)}
    # the two records of value 1 beside the first two of value 0, the last two, and two evenly apart
    positions = {how: (own.position[a].tolist(), own.position[b].tolist()) for how, (a, b) in found.items()}
    assert positions["of the same rank"] == ([4, 5], [0, 1])
    assert positions["of the same rank from the end"] == ([5, 4], [3, 2])
    assert positions["as far through the source"] == ([4, 5], [0, 2])


def test_a_kinds_buckets_are_told_apart_by_the_values_that_halve_them() -> None:
    """Value 0 in four buckets, two of which hold value 1 and one value 2."""
    own = dealt([0, 0, 0, 0, 1, 1, 2], [0, 1, 2, 3, 0, 1, 2])
    of_value_0 = own.classes[np.flatnonzero(own.kind == 0)]
    by_bucket = dict(zip(own.bucket[own.kind == 0].tolist(), of_value_0.tolist(), strict=True))
    assert by_bucket[0] == by_bucket[1]
    assert len({by_bucket[0], by_bucket[2], by_bucket[3]}) == 3


def shuffled(seed: int, n_buckets: int = 300, n_values: int = 4) -> tuple[list[int], list[int]]:
    rng = np.random.default_rng(seed)
    values = [v for v in range(n_values) for _ in range(n_buckets)]
    bucket = [int(b) for _ in range(n_values) for b in rng.permutation(n_buckets)]
    order = rng.permutation(len(values))
    return [values[i] for i in order], [bucket[i] for i in order]


def test_a_random_dealing_passes_and_one_by_age_does_not() -> None:
    values, bucket = shuffled(4)
    rng = np.random.default_rng(5)
    ages = rng.permutation(len(values)).tolist()
    assert attack_law_of_dealing(make_case(values, bucket, quasi={"age": ages})).holds
    # ages that follow the number of the bucket
    by_bucket = [b * 10 + int(rng.integers(10)) for b in bucket]
    uid = list(range(len(values)))
    found = attack_law_of_dealing(make_case(values, bucket, quasi={"age": by_bucket, "uid": uid}))
    assert found.holds is False


def test_numbers_by_size_or_contents_are_noticed_and_random_ones_are_not() -> None:
    rng = np.random.default_rng(6)
    sizes = np.sort(rng.integers(1, 4, size=200))
    by_size = np.repeat(np.arange(200), sizes)
    values = rng.integers(3, size=len(by_size)).tolist()
    values[:3] = [0, 1, 2]
    assert attack_law_of_numbers(make_case(values, by_size.tolist())).holds is False
    renumbered = rng.permutation(200)[by_size].tolist()
    order = rng.permutation(len(values))
    mixed = make_case([values[i] for i in order], [renumbered[i] for i in order])
    assert attack_law_of_numbers(mixed).holds
