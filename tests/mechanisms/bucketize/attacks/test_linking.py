"""What a bucket tells by itself, and two bucketizations together: by hand and by enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from dalenius.mechanisms.bucketize.attacks import linking
from dalenius.mechanisms.bucketize.attacks.linking import (
    attack_corruption,
    attack_linking,
    attack_linking_groups,
    attack_two_bucketizations,
    commonest_value,
)
from tests.mechanisms.bucketize.attacks.cases import make_case

VALUES = [0, 0, 1, 2, 1, 1, 2, 0]
BUCKET = [0, 0, 0, 0, 1, 1, 1, 2]
HALF = Fraction(1, 2)


def test_the_commonest_value_of_a_bucket_and_among_equals_the_tables() -> None:
    case = make_case([0, 1, 1, 2, 2, 2, 0], [0, 0, 1, 1, 2, 2, 2])
    # 0 or 1: equally common in the table, the later; 1 or 2: 2 is commoner in the table; 2 twice
    assert commonest_value(case).tolist()[1:] == [2, 2]
    assert commonest_value(case).tolist()[0] in (0, 1)
    assert case.frequency[0] == case.frequency[1]


def test_linking_counts_who_has_the_buckets_commonest_value() -> None:
    """2 of 4 in the first bucket, 2 of 3 in the second, and the one in the third: 5 of 8."""
    found = attack_linking(make_case(VALUES, BUCKET))
    assert found.success == pytest.approx(5 / 8)
    assert found.baseline == pytest.approx(3 / 8)
    assert found.bound == pytest.approx(1.0)
    assert found.n_trials == 8
    assert found.detail["taken_at_its_word"] == 0
    assert found.detail["largest_posterior"] == 1.0
    by_value = {row["value"]: row for row in found.detail["values"]}
    # value 0: a half of the first bucket and all of the third; guessed for 5 people, right for 3
    assert by_value["v0"]["largest_posterior"] == 1.0
    assert (by_value["v0"]["guessed"], by_value["v0"]["right"]) == (5, pytest.approx(3 / 5))
    assert by_value["v1"]["largest_posterior"] == pytest.approx(2 / 3)
    assert (by_value["v2"]["guessed"], by_value["v2"]["right"]) == (0, None)
    # guessing 0 for five and 1 for three from the histogram alone: 5·3/8 + 3·3/8 of 8
    assert found.control == pytest.approx(3 / 8)


def test_an_entry_above_its_threshold_is_broken_whatever_the_rest() -> None:
    thresholds = [Fraction(1), Fraction(2, 3), HALF]
    assert attack_linking(make_case(VALUES, BUCKET, thresholds=thresholds)).holds is not False
    below = [Fraction(1), Fraction(2, 3) - Fraction(1, 10**20), HALF]
    found = attack_linking(make_case(VALUES, BUCKET, thresholds=below))
    assert found.holds is False
    assert found.detail["entries_above_threshold"] == 1
    unknown = attack_linking(make_case(VALUES, BUCKET, thresholds=[Fraction(1), None, HALF]))
    assert unknown.detail["entries_above_threshold"] == 2  # nothing was promised for value 1
    assert unknown.holds is False


def test_people_who_cannot_be_told_apart_are_taken_at_the_tables_word() -> None:
    case = make_case([0, 0, 1, 2], [0, 0, 0, 0], quasi={"age": [30, 30, 30, 40]})
    found = attack_linking(case)
    assert found.detail["taken_at_its_word"] == 4
    assert found.success == pytest.approx(2 / 4)


def test_groups_are_guessed_by_what_a_bucket_has_most_of() -> None:
    """{1, 2} is 2 of 4, 3 of 3 and 0 of 1; {0} is 2 of 4, 0 of 3 and 1 of 1."""
    case = make_case(VALUES, BUCKET, groups=[({1, 2}, "3/4"), ({0}, "1/2")])
    found = attack_linking_groups(case)
    listed = {row["group"]: row for row in found.detail["groups"]}
    assert listed["g0"]["largest_posterior"] == 1.0
    assert listed["g0"]["buckets_above_threshold"] == 1
    assert listed["g1"]["buckets_above_threshold"] == 1
    assert found.success == pytest.approx((2 + 3 + 1) / 8)
    assert found.baseline == pytest.approx(5 / 8)
    assert found.bound == pytest.approx((0.75 * 4 + 0.75 * 3 + 0.5 * 1) / 8)
    assert found.holds is False
    loose = attack_linking_groups(make_case(VALUES, BUCKET, groups=[({1, 2}, "1")]))
    assert loose.detail["groups"][0]["buckets_above_threshold"] == 0


def success_by_enumeration(held: list[int], known: int) -> Fraction:
    """Over all orders of a bucket: the last `known` are known, the commonest of the rest is guessed."""
    orders = list(permutations(held))
    total = Fraction(0)
    for order in orders:
        left = order[: len(held) - known]
        total += Fraction(max(left.count(v) for v in set(left)), len(left))
    return total / len(orders)


def test_corruption_is_the_mean_over_all_others_that_could_be_known() -> None:
    held = [0, 0, 1, 2]
    n = 3_000  # buckets of the same contents: the mean over random orders nears that over all
    case = make_case(held * n, [b for b in range(n) for _ in held])
    found = attack_corruption(case, np.random.default_rng(1))
    curve = {row["known"]: row["success"] for row in found.detail["curve"]}
    assert found.success == curve["all others"] == 1.0
    for known in (0, 1, 2):
        assert curve[str(known)] == pytest.approx(float(success_by_enumeration(held, known)), abs=0.03)
    assert "4" not in curve


def test_nobody_in_a_bucket_alone_has_others_to_be_known() -> None:
    found = attack_corruption(make_case([0, 1], [0, 1]), np.random.default_rng(1))
    assert found.success == 1.0
    assert [row["known"] for row in found.detail["curve"]] == ["all others"]


def test_pairs_of_people_by_their_values() -> None:
    """Of a bucket with 0, 0, 1 there is a pair of zeros, and two pairs of 0 and 1, half in each cell."""
    case = make_case([0, 0, 1, 1, 1], [0, 0, 0, 1, 1])
    found = linking._pairs_by_value(np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 1]), case)
    assert found.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert found.sum() == 3 + 1


def test_the_chance_of_a_pair_is_that_of_all_dealings() -> None:
    """Values 0, 0, 1, 1, 2 dealt to places (0, 1), (0, 1), (1, 2) of two buckets: every dealing counted."""
    values, bucket = [0, 0, 1, 1, 2, 1], [0, 1, 0, 1, 1, 1]
    case = make_case(values, bucket)
    places = {v: [b for b, x in zip(bucket, values, strict=True) if x == v] for v in range(3)}
    dealings = list(product(*(permutations(places[v]) for v in range(3))))
    found = linking._chance_together(case)
    for one, two in product(range(3), repeat=2):
        if one == two and len(places[one]) < 2:
            continue
        first, second = 0, 1 if one == two else 0
        together = sum(deal[one][first] == deal[two][second] for deal in dealings)
        assert found[one, two] == pytest.approx(together / len(dealings)), (one, two)
    assert found[2, 2] == 0


def test_two_bucketizations_tell_the_value_that_both_buckets_have() -> None:
    """Person 0 shares a bucket with value 1 first and with value 2 then: only 0 is in both."""
    values = [0, 1, 2, 0]
    one, two = make_case(values, [0, 0, 1, 1]), make_case(values, [0, 1, 0, 1])
    together, mates = attack_two_bucketizations(one, two)
    # every person's two buckets have one value in common: 0 and 1 with 0 and 2 is 0, and so on
    assert together.success == 1.0
    assert together.name.startswith("two")
    assert mates.n_trials == 2
    assert mates.success == 0.0


def test_the_same_dealing_twice_is_noticed_as_shared_coins() -> None:
    n = 400
    rng = np.random.default_rng(2)
    values = rng.integers(8, size=n).tolist()
    bucket = (np.argsort(np.argsort(rng.random(n))) % (n // 4)).tolist()
    other = (np.argsort(np.argsort(rng.random(n))) % (n // 4)).tolist()
    same = attack_two_bucketizations(make_case(values, bucket), make_case(values, bucket))[1]
    apart = attack_two_bucketizations(make_case(values, bucket), make_case(values, other))[1]
    assert same.success == 1.0
    assert same.holds is False
    assert apart.success < 0.1
    assert apart.holds


def test_values_are_matched_by_how_they_are_written() -> None:
    one = make_case([0, 1, 2], [0, 0, 0])
    two = make_case([0, 1], [0, 0])
    assert linking.same_values(one, two).tolist() == [0, 1, -1]
