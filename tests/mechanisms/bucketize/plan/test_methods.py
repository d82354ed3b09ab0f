"""One size and Anatomy beside their definitions, and the max_bucket that a refusal names."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil
from typing import NoReturn

import pytest
from hypothesis import given, settings

from dalenius.errors import InputError, PromiseNotMet
from dalenius.mechanisms.bucketize.plan import methods
from dalenius.mechanisms.bucketize.plan.integer import Master, UndecidedError
from dalenius.mechanisms.bucketize.plan.methods import (
    has_setting,
    plan_anatomy,
    plan_buckets,
    plan_one_size,
    sufficient_max_bucket,
)
from dalenius.mechanisms.bucketize.plan.optimal import has_any_setting
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem, NoSettingFits, Run
from tests.mechanisms.bucketize.problems import deal_by_hand, least_loss, problems

HALF = Fraction(1, 2)


def smallest_single_size(problem: BucketProblem) -> int | None:
    """Lemma 2 for every size: S divides n and o_i ≤ ⌊f′_i·S⌋·n/S."""
    n = problem.n_rows
    for size in range(1, min(problem.max_bucket, n) + 1):
        pairs = zip(problem.counts, problem.thresholds, strict=True)
        if n % size == 0 and all(o <= t * size // 1 * (n // size) for o, t in pairs):
            return size
    return None


@given(problems(max_rows=25))
def test_one_size_is_the_smallest_that_keeps_every_threshold(problem: BucketProblem) -> None:
    wanted = smallest_single_size(problem)
    if wanted is None:
        with pytest.raises(NoSettingFits, match="divides"):
            plan_one_size(problem)
        return
    plan = plan_one_size(problem)
    plan.check(problem)
    assert (plan.sizes, plan.n_buckets) == ((wanted,), (problem.n_rows // wanted,))
    assert least_loss(problem, 1) == plan.loss


def test_one_size_looks_at_more_sizes_than_a_block_has() -> None:
    """5,040 has 60 divisors, 55,440 has 120: the one that fits is beyond the first 64."""
    n = 55_440
    divisors = [size for size in range(2, n + 1) if n % size == 0]
    fits = divisors[100]
    counts = (n // fits, n - n // fits)
    problem = BucketProblem(counts=counts, thresholds=(Fraction(1, fits), Fraction(1)), max_bucket=n)
    assert plan_one_size(problem).sizes == (fits,)
    with pytest.raises(NoSettingFits):
        plan_one_size(replace(problem, max_bucket=fits - 1))


def test_one_size_looks_at_the_first_size_of_the_second_block() -> None:
    """2¹²·3⁴ has 65 divisors, of which 1 is too small where something is promised, and the last one fits."""
    n = 2**12 * 3**4
    for counts in ((1, n - 1), (2, n - 2)):
        limits = (Fraction(counts[0], n), Fraction(1))
        plan = plan_one_size(BucketProblem(counts=counts, thresholds=limits, max_bucket=n))
        assert plan.sizes == (n // counts[0],)


def anatomize(counts: tuple[int, ...], diversity: int) -> list[list[int]]:
    """Anatomy as it is printed: ℓ values from the ℓ largest lists, and leftovers to groups that lack them."""
    left = Counter(dict(enumerate(counts)))
    groups: list[list[int]] = []
    while len(left) >= diversity:
        values = [value for value, _ in left.most_common(diversity)]
        groups.append(values)
        left = Counter({value: n for value, n in (left - Counter(values)).items() if n})
    for value in left.elements():
        next(group for group in sorted(groups, key=len) if value not in group).append(value)
    return groups


@pytest.mark.parametrize("diversity", [2, 3])
@pytest.mark.parametrize("n_values", [3, 4])
def test_anatomys_buckets_are_as_many_and_as_even_as_anatomys(diversity: int, n_values: int) -> None:
    """All tables of up to four people a value. What is printed may make a group of ℓ+2; ours are even."""
    for counts in product(range(1, 5), repeat=n_values):
        problem = BucketProblem(
            counts=counts, thresholds=(Fraction(1, diversity),) * n_values, max_bucket=sum(counts)
        )
        if max(counts) * diversity > sum(counts):
            with pytest.raises(PromiseNotMet):
                plan_anatomy(problem)
            continue
        printed, plan = anatomize(counts, diversity), plan_anatomy(problem)
        plan.check(problem)
        assert sum(plan.n_buckets) == len(printed) == sum(counts) // diversity
        assert plan.loss <= sum((len(group) - 1) ** 2 for group in printed)
        for bucket in deal_by_hand(plan):
            assert len(set(bucket)) == len(bucket) >= diversity
        assert max(plan.sizes) - min(plan.sizes) <= 1


@given(problems())
def test_anatomy_takes_the_strictest_threshold_for_all(problem: BucketProblem) -> None:
    diversity = ceil(1 / min(problem.thresholds))
    fits = max(problem.counts) * diversity <= problem.n_rows
    largest = -(-problem.n_rows // (problem.n_rows // diversity)) if fits else None
    if largest is None or largest > problem.max_bucket:
        with pytest.raises(NoSettingFits) as caught:
            plan_anatomy(problem)
        assert caught.value.needed == largest
    else:
        assert all(len(set(bucket)) == len(bucket) for bucket in deal_by_hand(plan_anatomy(problem)))


def test_no_max_bucket_is_named_where_anatomy_has_no_diversity() -> None:
    """Five of seven have one value: three to a bucket cannot all be different, whatever its size."""
    thresholds = (Fraction(5, 7), Fraction(1, 3), Fraction(1, 3))
    problem = BucketProblem(counts=(5, 1, 1), thresholds=thresholds, max_bucket=7)
    with pytest.raises(NoSettingFits, match="needs 3-diversity") as refused:
        plan_buckets(problem, "anatomy")
    assert refused.value.needed is None
    assert "would do" not in refused.value.message


@pytest.mark.parametrize(
    ("problem", "method", "message"),
    [
        (
            BucketProblem(counts=(3, 3), thresholds=(HALF,) * 2, max_bucket=6),
            "optimum",
            "no bucketization method 'optimum'; did you mean 'optimal'",
        ),
        (
            BucketProblem(
                counts=(3, 3),
                thresholds=(HALF,) * 2,
                max_bucket=6,
                groups=(Run(begin=0, end=1, threshold=HALF),),
            ),
            "multi-size",
            "method 'multi-size' knows no groups of values; use method 'optimal'",
        ),
    ],
)
def test_methods_that_cannot_be_are_refused(problem: BucketProblem, method: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan_buckets(problem, method)


def test_a_group_above_its_threshold_is_refused_before_any_search() -> None:
    problem = BucketProblem(
        counts=(3, 3, 2),
        thresholds=(HALF,) * 3,
        max_bucket=8,
        groups=(Run(begin=0, end=2, threshold=Fraction(3, 4) - Fraction(1, 10**9)),),
    )
    with pytest.raises(PromiseNotMet, match="threshold of a group of values is below its share"):
        plan_buckets(problem)
    just = replace(problem, groups=(Run(begin=0, end=2, threshold=Fraction(3, 4)),))
    assert plan_buckets(just).n_rows == 8


@given(problems())
@settings(max_examples=40)
def test_whether_a_method_has_a_setting_is_whether_it_plans(problem: BucketProblem) -> None:
    for method, n_sizes in (("optimal", None), ("two-size", 2), ("one-size", 1)):
        for max_bucket in (problem.max_bucket, problem.n_rows):
            tried = least_loss(replace(problem, max_bucket=max_bucket), n_sizes) is not None
            assert has_setting(problem, method, max_bucket) == tried


@given(problems())
@settings(max_examples=40)
def test_what_would_do_does_and_for_two_sizes_nothing_less(problem: BucketProblem) -> None:
    for method, n_sizes in (("two-size", 2), ("one-size", 1)):
        if has_setting(problem, method, problem.max_bucket):
            continue
        found = sufficient_max_bucket(problem, method)
        works = [
            size
            for size in range(problem.max_bucket + 1, problem.n_rows + 1)
            if least_loss(replace(problem, max_bucket=size), n_sizes) is not None
        ]
        assert found == works[0]


def even_buckets_keep(problem: BucketProblem, n_buckets: int) -> bool:
    """Whether buckets that are filled one record after the other keep every threshold."""
    codes = [code for code, count in enumerate(problem.counts) for _ in range(count)]
    buckets = [codes[b::n_buckets] for b in range(n_buckets)]
    return all(
        Fraction(bucket.count(code), len(bucket)) <= threshold
        for bucket in buckets
        for code, threshold in enumerate(problem.thresholds)
    )


@pytest.mark.parametrize(("least", "largest"), [(90, 100), (101, 200), (201, 500), (501, 1_000)])
def test_even_buckets_are_named_where_larger_ones_are_tried_in_vain(least: int, largest: int) -> None:
    """30 of 1,000 at 3/100 exactly: 10, 5, 2 or 1 even buckets keep it, and no other number of them."""
    problem = BucketProblem(counts=(30, 970), thresholds=(Fraction(3, 100), Fraction(1)), max_bucket=10)
    keeping = [b for b in range(1, 12) if even_buckets_keep(problem, b)]
    assert keeping == [1, 2, 5, 10]
    assert methods._largest_of_even(problem, least) == largest


def test_a_threshold_that_is_its_frequency_needs_one_bucket_of_all_rows() -> None:
    """Too much for the linear programme; what would do is told all the same."""
    common, rare = (302_546_845, 134_818_231, 60_076_499, 26_770_754), (11_929_345, 5_315_848, 2_368_801)
    counts = (*common, *rare, 1_055_564, 470_371)
    n_rows = sum(counts)
    thresholds = tuple(Fraction(count, n_rows) * (1 if i == 0 else 2) for i, count in enumerate(counts))
    problem = BucketProblem(counts=counts, thresholds=thresholds, max_bucket=50)
    with pytest.raises(NoSettingFits, match=f"max_bucket = {n_rows} would do") as refused:
        plan_buckets(problem)
    assert refused.value.needed == n_rows


@given(problems(max_rows=25))
@settings(max_examples=30)
def test_what_the_programme_cannot_decide_is_planned_or_refused_all_the_same(problem: BucketProblem) -> None:
    def undecided(_: object) -> NoReturn:
        raise UndecidedError("rounding errors")

    refused = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Master, "solve", undecided)
        try:
            plan_buckets(problem)
        except NoSettingFits as error:
            refused = error
        if refused is not None:
            assert refused.needed is not None
            assert has_any_setting(replace(problem, max_bucket=refused.needed))
