"""The plan of a table from its counts: groups as runs, refusals that name nothing secret, and words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import altair
import numpy as np
import pyarrow as pa
import pytest

from dalenius.errors import InternalError, PolicyError, PromiseNotMet
from dalenius.mechanisms.bucketize import table_plan
from dalenius.mechanisms.bucketize.config import BucketizeConfig
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem, NoSettingFits, Run
from dalenius.mechanisms.bucketize.statement import state_plan
from dalenius.mechanisms.bucketize.table_plan import BucketizePlan, cap_above, mix_numbers, plan_promise
from dalenius.mechanisms.bucketize.words import say_plan
from dalenius.promises.f_privacy import FPrivacy
from dalenius.promises.groups import Group, arrange
from dalenius.promises.l_diversity import LDiversity
from dalenius.promises.proximity import Distance, Proximity
from dalenius.promises.sets import SetPrivacy
from dalenius.tables.histogram import Histogram

COUNTS = {"Flu": 40, "Cold": 30, "HIV": 6, "Lung": 4, "Gout": 20}
HISTOGRAM = Histogram.of(("ill",), Counter({(value,): n for value, n in COUNTS.items()}))
SCHEMA = pa.schema([("age", pa.int64()), ("ill", pa.string())])


def group(name: str, at_most: str, *values: str) -> Group:
    return Group(name=name, values=tuple((value,) for value in values), at_most=Fraction(at_most))


def promise(**values: object) -> FPrivacy:
    section = {"default": {"times": 2, "plus": 0.05}, "values": values}
    return FPrivacy.from_policy(section, ("ill",))


def planned(**values: object) -> BucketizePlan:
    return plan_promise(BucketizeConfig(), promise(**values), HISTOGRAM, SCHEMA)


def test_thresholds_and_counts_are_those_of_the_promise() -> None:
    """2f + 0.05, and at most one half: 0.4 and 0.3 of 100 become 1/2, 0.06 becomes 0.17."""
    plan = planned(HIV="0.1")
    of_value = dict(zip((value for (value,) in plan.histogram.values), plan.thresholds, strict=True))
    assert of_value == {
        "Flu": Fraction(1, 2),
        "Cold": Fraction(1, 2),
        "HIV": Fraction(1, 10),
        "Lung": Fraction("0.13"),
        "Gout": Fraction("0.45"),
    }
    assert plan.problem.counts == plan.histogram.counts
    assert (plan.n_rows, plan.outright) == (100, 0)
    plan.buckets.check(plan.problem)
    assert plan.plans == (plan.buckets,)
    assert {plan.histogram.values[code] for code in plan.named} == {("HIV",)}


def test_a_plan_as_json_has_sizes_and_measures() -> None:
    plan = planned()
    told = plan.to_dict()
    assert told["rows"] == 100
    assert sum(entry["size"] * entry["count"] for entry in told["buckets"]) == 100
    assert (told["loss"], told["lower_bound"]) == (plan.buckets.loss, plan.buckets.lower_bound)
    assert "fakes" not in told
    assert "regions" not in told


def test_groups_become_runs_the_inner_ones_first() -> None:
    groups = (group("outer", "1/2", "HIV", "Lung", "Gout"), group("inner", "1/4", "HIV", "Lung"))
    arranged = arrange(groups, HISTOGRAM)
    runs = table_plan._runs(groups, arranged)
    names = [value for (value,) in arranged.values]
    assert [set(names[run.begin : run.end]) for run in runs] == [{"HIV", "Lung"}, {"HIV", "Lung", "Gout"}]
    assert [run.threshold for run in runs] == [Fraction(1, 4), Fraction(1, 2)]
    assert runs[1].holds(runs[0])
    # a limit of 1 is none, and a group that nobody is of limits nothing
    assert table_plan._runs((group("x", "1", "Flu"), group("y", "1/2", "Rabies")), arranged) == ()


def test_values_of_a_group_that_stand_apart_are_an_error_of_ours() -> None:
    """By name Cold, Flu, Gout, HIV, Lung: Cold and Gout have Flu between them."""
    with pytest.raises(InternalError, match="do not stand together"):
        table_plan._runs((group("x", "1/2", "Cold", "Gout"),), HISTOGRAM)
    assert table_plan._runs((group("x", "1/2", "Cold", "Flu"),), HISTOGRAM) == (
        Run(begin=0, end=2, threshold=Fraction(1, 2)),
    )


def test_a_group_at_its_share_is_kept_and_below_it_refused() -> None:
    table_plan._check_shares((group("cancer", "0.1", "HIV", "Lung"),), HISTOGRAM)
    with pytest.raises(PromiseNotMet, match=r"group 'cancer' \(0\.099\) is below its share \(0\.1\)"):
        table_plan._check_shares((group("cancer", "0.099", "HIV", "Lung"),), HISTOGRAM)


def test_a_named_value_below_its_share_is_named_and_others_are_not() -> None:
    with pytest.raises(PromiseNotMet, match=r"threshold of 'HIV' \(0\.05\) is below its frequency \(0\.06\)"):
        planned(HIV="0.05")
    with pytest.raises(PromiseNotMet, match="1 of 5 values of 'ill' are more frequent") as caught:
        plan_promise(BucketizeConfig(), LDiversity(l=3), HISTOGRAM, SCHEMA)
    said = f"{caught.value.message} {caught.value.hint}"
    assert "Flu" not in said
    assert "the commonest makes up 0.4 of the records" in said
    assert "nor l above 2" in said  # 100/40 = 2.5
    assert "[suppress]" in said


def test_a_share_that_only_whole_tables_have_gets_a_hint() -> None:
    """601 of 1,001 and a threshold of just that; 31/50 is the next that a bucket of 50 can keep."""
    share = Fraction(601, 1_001)
    problem = BucketProblem(counts=(601, 400), thresholds=(share, Fraction(1, 2)), max_bucket=50)
    hint = table_plan._room_hint(problem)
    assert hint is not None
    assert hint.endswith("cap = 0.62")
    assert cap_above(share, 50) == Fraction(31, 50)
    loose = BucketProblem(counts=(601, 400), thresholds=(Fraction(2, 3), Fraction(1, 2)), max_bucket=50)
    assert table_plan._room_hint(loose) is None
    full = BucketProblem(counts=(99, 1), thresholds=(Fraction(99, 100), Fraction(1, 2)), max_bucket=50)
    assert table_plan._room_hint(full) is None  # only 1 is above


def test_what_no_bucket_fits_is_told_with_the_hint() -> None:
    held = Histogram.of(("ill",), Counter({("a",): 601, ("b",): 400}))
    asked = FPrivacy.from_policy({"default": {"times": 1, "plus": 0}}, ("ill",))
    with pytest.raises(NoSettingFits) as caught:
        plan_promise(BucketizeConfig(), asked, held, SCHEMA)
    assert caught.value.needed == 1_001
    assert "makes up" in (caught.value.hint or "")


def test_a_plan_in_words_tells_limits_certainty_and_errors() -> None:
    told = list(say_plan(planned(HIV="0.1")))
    assert "can link nobody to HIV with more than" in told[0]
    assert "any of the 4 others" in told[0]
    assert "Nobody's value is certain." in told
    assert any("commonest protected value" in line for line in told)
    assert not any(name in line for line in told for name in ("Flu", "Cold", "Lung", "Gout"))


def test_people_whose_value_is_no_secret_are_counted_as_certain() -> None:
    plan = planned(Flu=1)
    told = list(say_plan(plan))
    if plan.outright:
        certain = sum(plan.buckets.certain)
        assert any(
            line.startswith(f"{certain:,} ") and "Flu, which you called no secret" in line for line in told
        )
    all_open = plan_promise(
        BucketizeConfig(),
        promise(**dict.fromkeys(COUNTS, 1)),
        HISTOGRAM,
        SCHEMA,
    )
    assert list(say_plan(all_open)) == ["No value is protected: each of them is named with 1 in the policy."]
    assert all_open.outright == 100


def test_a_group_with_a_value_that_nobody_has_is_asked_about() -> None:
    asked = FPrivacy.from_policy(
        {
            "default": {"times": 2, "plus": 0.05},
            "groups": {"cancer": {"values": ["Lung", "Brest"], "at_most": 0.2}},
        },
        ("ill",),
    )
    told = list(say_plan(plan_promise(BucketizeConfig(), asked, HISTOGRAM, SCHEMA)))
    (line,) = [line for line in told if "group" in line]
    assert "the group cancer (1 value)" in line
    assert "1 value of it not in the table: is the spelling the table's?" in line


def test_what_a_manifest_states_depends_on_columns_and_groups() -> None:
    plain = state_plan(promise(), planned())
    assert plain.parameters == {"buckets": planned().to_dict()["buckets"]}
    assert any("only each single value has a threshold" in text for text in plain.not_covered)
    assert any("corruption" in text for text in plain.not_covered)
    pairs = Histogram.of(
        ("ill", "ward"), Counter({("a", "x"): 5, ("b", "x"): 5, ("a", "y"): 5, ("b", "y"): 5})
    )
    both = FPrivacy.from_policy({"default": "1/2"}, ("ill", "ward"))
    schema = pa.schema([("ill", pa.string()), ("ward", pa.string())])
    stated = state_plan(both, plan_promise(BucketizeConfig(), both, pairs, schema))
    assert stated.not_covered[-1].startswith("a single sensitive column")
    assert len(stated.not_covered) == len(plain.not_covered) + 1


def test_near_numbers_are_counted_and_a_missing_one_is_near_none() -> None:
    schema = pa.schema([("age", pa.int64()), ("pay", pa.int64())])
    for third, n_near in ((1_002, 30), (None, 0), (9_000, 0)):
        held = Histogram.of(("pay",), Counter({(1_000,): 10, (1_001,): 10, (third,): 10}))
        plan = plan_promise(BucketizeConfig(), LDiversity(l=3), held, schema)
        assert plan.count_near(0.01) == n_near
    texts = Histogram.of(("pay",), Counter({("a",): 10, ("b",): 10}))
    assert plan_promise(BucketizeConfig(), LDiversity(l=2), texts, schema).count_near(1.0) == 0


def test_near_numbers_are_not_counted_where_buckets_are_not_known() -> None:
    """With fakes nobody knows whose a number is; of several columns none is the number."""
    schema = pa.schema([("age", pa.int64()), ("pay", pa.int64()), ("ill", pa.int64())])
    held = Histogram.of(("pay",), Counter({(number,): 10 for number in range(1_000, 1_006)}))
    assert plan_promise(BucketizeConfig(), LDiversity(l=3), held, schema).count_near(0.01) == 60
    faked = plan_promise(BucketizeConfig(fakes=1), LDiversity(l=3), held, schema)
    assert faked.fakes
    assert faked.count_near(0.01) == 0
    both = Histogram.of(("pay", "ill"), Counter({(number, 1): 10 for number in range(1_000, 1_006)}))
    assert plan_promise(BucketizeConfig(), LDiversity(l=3), both, schema).count_near(0.01) == 0


SETS = SetPrivacy(columns=("Flu", "HIV"), default=Fraction(2, 3), named=(("HIV", Fraction(1, 2)),))
OF_SETS = {(False, False): 4, (True, False): 8, (True, True): 2, (False, True): 1}


def plan_sets(kind: pa.DataType, counts: Mapping[Any, int]) -> BucketizePlan:
    schema = pa.schema([("Flu", pa.bool_()), ("HIV", kind)])
    return plan_promise(BucketizeConfig(), SETS, Histogram.of(("Flu", "HIV"), dict(counts)), schema)


def test_people_with_several_values_are_limited_value_by_value() -> None:
    plan = plan_sets(pa.bool_(), OF_SETS)
    values = plan.histogram.values
    held = [({values[code] for code in codes}, limit) for codes, limit in plan.problem.overlapping]
    assert held == [
        ({(True, False), (True, True)}, Fraction(2, 3)),
        ({(True, True), (False, True)}, Fraction(1, 2)),
        ({(False, False)}, Fraction(1, 2)),
    ]
    assert plan.problem.is_mixed
    assert plan.outright == 0  # no limit is 1
    with pytest.raises(PromiseNotMet, match="below its share of the people"):
        plan_sets(pa.bool_(), {**OF_SETS, (True, False): 9})


@pytest.mark.parametrize("cells", [("no", "yes"), (None, True)])
def test_sets_are_of_columns_of_yes_and_no(cells: tuple[object, object]) -> None:
    kind = pa.string() if "no" in cells else pa.bool_()
    counts = {(flu, cells[hiv]): n for (flu, hiv), n in OF_SETS.items()}
    with pytest.raises(PolicyError, match="columns of yes and no, without NULL"):
        plan_sets(kind, counts)


def test_of_sets_only_who_has_a_value_for_certain_is_counted() -> None:
    """A bucket in which all have the flu tells it; one in which nobody has HIV is no secret of theirs."""
    plan = plan_sets(pa.bool_(), OF_SETS)
    codes = {value: code for code, value in enumerate(plan.histogram.values)}
    buckets = np.array([1, 1, 2, 2], dtype=np.int64)
    held = [codes[v] for v in ((True, False), (True, True), (False, False), (True, False))]
    contents = [(buckets, np.array(held, dtype=np.int32), np.ones(4, dtype=np.int64))]
    assert plan.count_alike(contents) == 2


@pytest.mark.parametrize(("fakes", "n_certain"), [(0, 2), (1, 1)])
def test_a_bucket_with_one_value_tells_it_unless_one_of_them_is_nobodys(fakes: int, n_certain: int) -> None:
    """Two people with one value; or one person and a fake, which is there twice: it is no secret either."""
    held = Histogram.of(("ill",), Counter({(f"ill {number}",): 10 for number in range(6)}))
    plan = plan_promise(BucketizeConfig(fakes=fakes), LDiversity(l=3), held, SCHEMA)
    listed = (np.array([1, 2, 2]), np.array([0, 1, 2], dtype=np.int32), np.array([2, 1, 1]))
    assert plan.count_alike([listed]) == n_certain


PAY = pa.schema([("pay", pa.int64())])


def test_near_numbers_share_a_limit_from_each_number_on() -> None:
    """One guess is within 5 of two neighbours, and of 200 alone."""
    near = Proximity(within=Distance.parse(5), at_most=Fraction(2, 5))
    numbers = Histogram.of(("pay",), Counter({(n,): 10 for n in (130, 100, 120, 110, 200)}))
    plan = plan_promise(BucketizeConfig(), near, numbers, PAY)
    assert [value for (value,) in plan.histogram.values] == [100, 110, 120, 130, 200]
    assert plan.problem.windows == (2, 3, 4, 4, 5)
    assert plan.proximity == near
    with pytest.raises(PromiseNotMet, match="40 % of the records are near one number"):
        plan_promise(BucketizeConfig(), replace(near, at_most=Fraction(39, 100)), numbers, PAY)
    texts = Histogram.of(("pay",), Counter({("a",): 10, ("b",): 10}))
    with pytest.raises(PolicyError, match="is about numbers; column 'pay' is string"):
        plan_promise(BucketizeConfig(), near, texts, pa.schema([("pay", pa.string())]))


@pytest.mark.parametrize(("n_values", "is_mixed"), [(128, False), (129, True)])
def test_many_numbers_are_mixed_and_few_or_texts_are_not(n_values: int, is_mixed: bool) -> None:
    numbers = Histogram.of(("pay",), Counter({(n,): 1 + n % 3 for n in range(n_values)}))
    mixed = mix_numbers(numbers, PAY)
    assert (mixed.values != numbers.values) == is_mixed
    assert sorted(mixed.values) == sorted(numbers.values)
    assert dict(zip(mixed.values, mixed.counts, strict=True)) == dict(
        zip(numbers.values, numbers.counts, strict=True)
    )
    texts = Histogram.of(("pay",), Counter({(str(n),): 1 for n in range(n_values)}))
    assert mix_numbers(texts, pa.schema([("pay", pa.string())])).values == texts.values


def test_the_drawing_has_the_commonest_values_with_their_limits_and_all_buckets() -> None:
    plan = planned()
    values, buckets = plan.draw(altair).to_dict()["hconcat"]
    rows = (values.get("data") or values["layer"][0]["data"])["values"]
    order = sorted(range(5), key=lambda code: -plan.histogram.counts[code])
    assert [row["value"] for row in rows] == [plan.histogram.values[code][0] for code in order]
    assert [row["share"] for row in rows] == [plan.histogram.counts[code] / 100 for code in order]
    assert [row["threshold"] for row in rows] == [float(plan.thresholds[code]) for code in order]
    pairs = zip(plan.buckets.sizes, plan.buckets.n_buckets, strict=True)
    assert buckets["data"]["values"] == [{"size": s, "records": s * b} for s, b in pairs]


@pytest.mark.parametrize(("ell", "is_told"), [(3, True), (5, True), (6, False), (None, False)])
def test_withholding_records_is_a_way_out_only_where_there_are_enough_values(
    ell: int | None, is_told: bool
) -> None:
    """Five values, of which one is too common for 3-diversity; no part of the table is 6-diverse."""
    asked = FPrivacy.from_policy({"default": "1/3"}, ("ill",)) if ell is None else LDiversity(l=ell)
    with pytest.raises(PromiseNotMet, match="more frequent than their threshold") as refused:
        plan_promise(BucketizeConfig(), asked, HISTOGRAM, SCHEMA)
    assert ("[suppress]" in str(refused.value.hint)) == is_told
