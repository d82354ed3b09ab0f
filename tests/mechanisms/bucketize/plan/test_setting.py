"""A publisher's own setting is taken iff no set of sizes is short, and is refused with what is wrong."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dalenius
from dalenius.errors import PolicyError
from dalenius.mechanisms.bucketize.plan.methods import plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem, NoSettingFits, Run, violations
from dalenius.policy import Policy
from tests.mechanisms.bucketize.problems import all_settings, is_valid_setting, problems


@given(problems(), st.data())
def test_a_setting_is_taken_iff_it_is_valid(problem: BucketProblem, data: st.DataObject) -> None:
    sizes = list(range(1, problem.largest_size + 1))
    setting = data.draw(st.sampled_from(list(all_settings(problem.n_rows, sizes))))
    chosen = [(size, b) for size, b in zip(sizes, setting, strict=True) if b]
    if violations(problem):
        return
    is_valid = is_valid_setting(problem, sizes, setting)
    try:
        plan = plan_buckets(problem, setting=chosen)
    except NoSettingFits:
        assert not is_valid
    else:
        assert is_valid
        assert list(zip(plan.sizes, plan.n_buckets, strict=True)) == chosen


def test_example_3_has_its_own_setting() -> None:
    counts = (1,) * 8 + (6,) * 4 + (9,) * 2
    thresholds = tuple(2 * Fraction(o, 50) + Fraction(1, 20) for o in counts)
    plan = plan_buckets(
        BucketProblem(counts=counts, thresholds=thresholds, max_bucket=14), setting=[(14, 1), (4, 9)]
    )
    assert (plan.method, plan.sizes, plan.n_buckets) == ("given", (4, 14), (9, 1))


def test_example_5_is_refused_with_the_sizes_that_stay_empty() -> None:
    """Valid size by size: ten values fit the largest size only, and one may fill what it likes."""
    thresholds = (Fraction(1, 5),) * 10 + (Fraction(1),)
    problem = BucketProblem(counts=(5,) * 10 + (20,), thresholds=thresholds, max_bucket=6)
    with pytest.raises(NoSettingFits, match=r"size 1, 4, 5 have 70 places and may hold 50 of"):
        plan_buckets(problem, setting=[(1, 20), (4, 5), (5, 6)])


def test_places_must_add_up_and_values_must_fit() -> None:
    problem = BucketProblem(counts=(3, 2, 1), thresholds=(Fraction(1, 2),) * 3, max_bucket=6)
    with pytest.raises(NoSettingFits, match="have 5 places and the table has 6 rows"):
        plan_buckets(problem, setting=[(5, 1)])
    with pytest.raises(NoSettingFits, match="1 of the 3 values have more records"):
        plan_buckets(problem, setting=[(3, 2)])


def test_groups_are_kept_by_the_setting_too() -> None:
    group = Run(begin=0, end=2, threshold=Fraction(1, 2))
    problem = BucketProblem(counts=(1, 1, 2), thresholds=(Fraction(1, 2),) * 3, max_bucket=4, groups=(group,))
    assert plan_buckets(problem, setting=[(2, 2)]).sizes == (2,)
    two_thirds = Run(begin=0, end=2, threshold=Fraction(2, 3))
    tight = BucketProblem(
        counts=(2, 2, 2),
        thresholds=(Fraction(1),) * 3,
        max_bucket=6,
        groups=(two_thirds,),
    )
    assert plan_buckets(tight, setting=[(3, 2)]).sizes == (3,)
    with pytest.raises(NoSettingFits, match="with the groups that they are in"):
        plan_buckets(tight, setting=[(2, 3)])


@given(problems(), st.integers(1, 6))
def test_no_bucket_is_below_min_bucket_and_the_optimum_is_the_least_loss(
    problem: BucketProblem, least: int
) -> None:
    bounded = BucketProblem(
        counts=problem.counts, thresholds=problem.thresholds, max_bucket=problem.n_rows, min_bucket=least
    )
    if violations(problem) or least > problem.n_rows:
        return
    sizes = list(range(least, problem.n_rows + 1))
    valid = [s for s in all_settings(problem.n_rows, sizes) if is_valid_setting(bounded, sizes, s)]
    losses = [sum(b * (size - 1) ** 2 for size, b in zip(sizes, s, strict=True)) for s in valid]
    plan = plan_buckets(bounded)
    assert plan.sizes[0] >= least
    assert plan.loss == min(losses)


def policy(**mechanism: Any) -> Policy:
    diseases = ["Flu"] * 4 + ["Cold"] * 4 + ["HIV"] * 2
    return Policy.from_dict(
        {
            "source": pa.table({"age": list(range(10)), "disease": diseases}),
            "columns": {"quasi": ["age"], "sensitive": ["disease"]},
            "promise": {"kind": "f-privacy", "default": 0.5},
            "mechanism": mechanism,
        }
    )


def test_a_policy_can_state_the_buckets_or_the_smallest() -> None:
    own = dalenius.plan(policy(buckets=[[5, 2]])).to_dict()
    assert (own["method"], own["buckets"]) == ("given", [{"size": 5, "count": 2}])
    at_least = dalenius.plan(policy(min_bucket=4)).to_dict()
    assert min(entry["size"] for entry in at_least["buckets"]) >= 4


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        ({"buckets": [[5, 2]], "max_bucket": 9}, "leave out max_bucket"),
        ({"buckets": [[5, 2], [5, 1]]}, "name a size twice"),
        ({"buckets": [[5, 0]]}, "whole numbers from 1"),
        ({"buckets": []}, "whole numbers from 1"),
        ({"buckets": [[5, True]]}, "whole numbers from 1"),
        ({"min_bucket": 9, "max_bucket": 4}, r"min_bucket \(9\) is above max_bucket \(4\)"),
        ({"buckets": [[5, 2]], "regions": True}, "do not go with buckets"),
        ({"min_bucket": 2, "regions": True}, "do not go with min_bucket"),
    ],
)
def test_what_makes_no_sense_is_refused(mechanism: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        policy(**mechanism)


def test_they_do_not_go_with_suppression() -> None:
    base = {
        "source": pa.table({"age": [1], "disease": ["Flu"]}),
        "columns": {"quasi": ["age"], "sensitive": ["disease"]},
        "promise": {"kind": "l-diversity", "l": 2},
        "suppress": {"method": "safe"},
    }
    for mechanism in ({"buckets": [[5, 2]]}, {"min_bucket": 3}):
        with pytest.raises(PolicyError, match="would depend on the draw"):
            Policy.from_dict({**base, "mechanism": mechanism})
