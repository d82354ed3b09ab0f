"""Which thresholds buckets could keep, and the sections that are written for a policy."""

from __future__ import annotations

import tomllib
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.mechanisms.bucketize.feasible import (
    SafeDefault,
    find,
    find_safe_default,
    match,
    propose,
    suggest,
)
from dalenius.mechanisms.bucketize.plan.methods import plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.mechanisms.feasible import TableFacts, Wish
from dalenius.promises.f_privacy import FPrivacy
from dalenius.tables.histogram import Histogram


def facts(*counts: int) -> TableFacts:
    histogram = Histogram.of(("ill",), Counter({(f"v{i}",): n for i, n in enumerate(counts)}))
    return TableFacts(n_rows=sum(counts), columns=(), histogram=histogram)


NOTHING = TableFacts(n_rows=9, columns=(), histogram=None)


@pytest.mark.parametrize(("counts", "largest"), [((5, 5), 2), ((4, 3, 3), 2), ((3, 3, 3), 3), ((9, 1), 1)])
def test_the_largest_l_is_what_the_commonest_value_leaves(counts: tuple[int, ...], largest: int) -> None:
    assert find(facts(*counts)).data == {"largest_l": largest}
    assert f"l = {largest};" in str(find(facts(*counts)).text[0])
    assert find(NOTHING).data == {"largest_l": None}


@given(st.lists(st.integers(1, 40), min_size=2, max_size=6))
@settings(max_examples=25)
def test_a_safe_default_plans_buckets_in_which_nobody_is_certain(counts: list[int]) -> None:
    histogram = facts(*counts).histogram
    assert histogram is not None
    safe = find_safe_default(histogram)
    assert safe is not None
    asked = FPrivacy.from_policy({"default": {"times": 4, "plus": "0.02", "cap": str(safe.cap)}}, ("ill",))
    problem = BucketProblem(
        counts=histogram.counts, thresholds=asked.thresholds(histogram), max_bucket=safe.max_bucket
    )
    plan = plan_buckets(problem)
    assert plan.count_certain() == 0
    assert max(problem.thresholds) < 1


def test_a_table_of_one_value_has_no_safe_default() -> None:
    histogram = facts(30).histogram
    assert histogram is not None
    assert find_safe_default(histogram) is None
    assert "NO default can protect ill" in suggest(facts(30))


def test_a_commoner_value_gets_a_cap_above_its_share() -> None:
    """601 of 1,001: no bucket of 50 has just that share, and 31 of 50 are the next above it.

    30 of 50 are 0.6, which is then the value's own limit: a bucket of all keeps it with the usual cap.
    """
    plain = facts(30, 20).histogram
    assert plain is not None
    assert find_safe_default(plain) == SafeDefault(cap=Fraction(1, 2), max_bucket=50)
    histogram = facts(601, 400).histogram
    assert histogram is not None
    assert find_safe_default(histogram) == SafeDefault(cap=Fraction(31, 50), max_bucket=50)
    text = suggest(facts(601, 400))
    assert "the commonest makes up 60" in text
    assert "cap = 0.62" in text


def test_several_columns_have_a_default_for_all_of_them_together_and_that_is_said() -> None:
    counts = {("HIV", f"job {i}"): 9 for i in range(12)} | {("Flu", f"job {i}"): 9 for i in range(12)}
    histogram = Histogram.of(("ill now", "job"), Counter(counts))
    table = TableFacts(n_rows=histogram.n_rows, columns=(), histogram=histogram)
    proposed = propose(table, wish())
    assert proposed is not None
    for text in (suggest(table), proposed.sections):
        assert "one by itself can be certain" in text
        (line,) = [one.removeprefix("# ") for one in text.splitlines() if one.startswith("# groups")]
        (group,) = tomllib.loads(line)["groups"].values()
        assert group == {"values": [{"ill now": "a value"}], "at_most": 0.5}
    assert "by itself" not in suggest(facts(30, 20))


@pytest.mark.parametrize("table", [facts(30, 20), facts(5, 5, 5), facts(9, 1), NOTHING])
def test_what_is_suggested_is_toml_that_a_policy_can_have(table: TableFacts) -> None:
    sections = tomllib.loads(suggest(table))
    assert sections["promise"]["kind"] == "f-privacy"
    assert sections["mechanism"]["kind"] == "bucketize"
    FPrivacy.from_policy({"default": sections["promise"]["default"]}, ("ill",))


def wish(**change: Any) -> Wish:
    fields: dict[str, Any] = {
        "recipients": "colleagues",
        "questions": "counts",
        "hide": "value",
        "withhold": False,
        "again": "never",
    }
    return Wish(**{**fields, **change})


@pytest.mark.parametrize("change", [{"hide": "presence"}, {"questions": "records"}, {"again": "same"}])
def test_what_buckets_are_not_for_is_not_proposed(change: dict[str, Any]) -> None:
    if change == {"again": "same"}:
        # the same people again: only what is planned for it, never two independent releases
        found = propose(facts(5, 5, 5), wish(**change))
        assert found is None or "[series]" in found.sections
    else:
        assert propose(facts(5, 5, 5), wish(**change)) is None


def test_the_public_gets_stricter_limits_than_colleagues() -> None:
    colleagues = propose(facts(20, 20, 20, 20), wish())
    public = propose(facts(20, 20, 20, 20), wish(recipients="public"))
    assert colleagues is not None
    assert public is not None
    limits = [tomllib.loads(found.sections)["promise"]["default"] for found in (colleagues, public)]
    assert [limit["times"] for limit in limits] == [4, 2]
    assert Fraction(str(limits[0]["cap"])) == Fraction(1, 2)
    assert Fraction(str(limits[1]["cap"])) == Fraction(1, 3)
    assert any("twice its share" in reason for reason in public.reasons)


def test_records_are_withheld_only_where_that_is_allowed_and_needed() -> None:
    skewed = propose(facts(80, 10, 10), wish(withhold=True))
    assert skewed is not None
    assert tomllib.loads(skewed.sections)["suppress"]["method"] == "safe"
    assert tomllib.loads(skewed.sections)["promise"] == {"kind": "l-diversity", "l": 2}
    for table, withhold in ((facts(80, 10, 10), False), (facts(30, 30, 40), True)):
        found = propose(table, wish(withhold=withhold))
        assert found is not None
        assert "suppress" not in tomllib.loads(found.sections)


def test_other_people_each_time_are_batches() -> None:
    found = propose(facts(20, 20, 20), wish(again="others"))
    assert found is not None
    assert tomllib.loads(found.sections)["series"] == {"kind": "batches"}
    assert any("other people" in reason for reason in found.reasons)


def test_a_promise_about_values_is_matched_with_buckets_large_enough() -> None:
    assert match(facts(30, 20), {"kind": "l-diversity", "l": 2}) == {
        "promise": {"kind": "l-diversity", "l": 2},
        "mechanism": {"kind": "bucketize", "max_bucket": 50},
    }
    assert match(facts(30, 20), {"kind": "rho-privacy"}) is None
    assert match(NOTHING, {"kind": "f-privacy"}) is None
    near = {"kind": "proximity", "within": "10%", "at_most": "0.2"}
    assert (match(facts(30, 20), near) or {})["promise"] == near
