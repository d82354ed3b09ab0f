"""Thresholds: named, linear, compound, and unknown."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import PolicyError, PromiseNotMet, ReleaseCorrupt
from dalenius.plain import Stated
from dalenius.promises.bounds import Thresholds, _read
from dalenius.promises.f_privacy import CAP, FPrivacy, LinearLimit, parse_default
from dalenius.promises.l_diversity import LDiversity
from dalenius.tables.histogram import Histogram

DISEASES = Histogram.of(("disease",), {("Flu",): 7, ("HIV",): 2, (None,): 1})


def share_by_hand(count: int, n_rows: int, times: Fraction, plus: Fraction, cap: Fraction) -> Fraction:
    """The rule of a `default`, written as a chain of questions about whole numbers."""
    grown = (times * count + plus * n_rows) / n_rows
    limit = cap if grown > cap else grown
    return Fraction(count, n_rows) if limit * n_rows < count else limit


@given(
    times=st.fractions(0, 20),
    plus=st.fractions(Fraction(1, 1000), 1),
    cap=st.fractions(Fraction(1, 100), Fraction(99, 100)),
    counts=st.lists(st.integers(1, 50), min_size=2),
)
def test_a_default_is_never_certainty_and_never_below_a_values_own_share(
    times: Fraction, plus: Fraction, cap: Fraction, counts: list[int]
) -> None:
    histogram = Histogram.of(("x",), {(i,): count for i, count in enumerate(counts)})
    promise = FPrivacy(default=LinearLimit(times=times, plus=plus, cap=cap))
    for code, threshold in enumerate(promise.thresholds(histogram)):
        assert histogram.frequency(code) <= threshold < 1
        assert threshold <= max(cap, histogram.frequency(code))
        assert threshold == share_by_hand(histogram.counts[code], histogram.n_rows, times, plus, cap)


@given(
    default=st.fractions(Fraction(1, 100), Fraction(99, 100))
    | st.just(LinearLimit(times=Fraction(99), plus=CAP)),
    counts=st.lists(st.integers(1, 50), min_size=2, max_size=8),
    named=st.sets(st.integers(0, 7)),
)
def test_a_threshold_of_1_belongs_to_values_that_are_named_with_it(
    default: LinearLimit | Fraction, counts: list[int], named: set[int]
) -> None:
    histogram = Histogram.of(("x",), {(i,): count for i, count in enumerate(counts)})
    chosen = [i for i in sorted(named) if i < len(counts)]
    promise = FPrivacy(default=default, named=tuple(((str(i),), Fraction(1)) for i in chosen))
    found = promise.thresholds(histogram)
    assert [i for i, threshold in enumerate(found) if threshold == 1] == chosen


def test_the_cap_is_a_half_unless_stated() -> None:
    for written, cap in (({}, CAP), ({"cap": "0.7"}, Fraction(7, 10)), ({"cap": 0.29}, Fraction(29, 100))):
        section = {"default": {"times": 9, "plus": 0.02, **written}}
        promise = FPrivacy.from_policy(section, ("disease",))
        assert promise.default == LinearLimit(times=Fraction(9), plus=Fraction(1, 50), cap=cap)
    assert Fraction(1, 2) == CAP


@pytest.mark.parametrize("default", [Fraction(9, 10), LinearLimit(times=Fraction(4), plus=Fraction(1, 50))])
def test_a_value_that_everybody_has_is_published_only_on_the_policys_own_word(
    default: LinearLimit | Fraction,
) -> None:
    everybody = Histogram.of(("disease",), {("Flu",): 7})
    with pytest.raises(PromiseNotMet, match="everybody in the table has the same value") as caught:
        FPrivacy(default=default).thresholds(everybody)
    assert "Flu" not in caught.value.message
    named = FPrivacy(default=default, named=((("Flu",), Fraction(1)),))
    assert named.thresholds(everybody) == (Fraction(1),)


def test_named_values_override_the_default_and_null_is_a_value() -> None:
    section = {"kind": "f-privacy", "default": "1/3", "values": {"NULL": 0.1, "Flu": 1}}
    promise = FPrivacy.from_policy(section, ("disease",))
    assert promise.thresholds(DISEASES) == (Fraction(1, 10), Fraction(1), Fraction(1, 3))
    assert promise.to_dict(DISEASES)["thresholds"][0] == {"value": [None], "at_most": "1/10"}
    assert [promise.is_named(value) for value in DISEASES.values] == [True, True, False]


def test_compound_values_are_named_cell_by_cell() -> None:
    histogram = Histogram.of(("disease", "ward"), {("HIV", 1): 1, ("HIV", 2): 1})
    entry = {"disease": "HIV", "ward": 2, "at_most": 0.5}
    promise = FPrivacy.from_policy({"default": "2/3", "values": [entry]}, ("disease", "ward"))
    assert promise.thresholds(histogram) == (Fraction(2, 3), Fraction(1, 2))
    with pytest.raises(PolicyError, match="a cell in each"):
        FPrivacy.from_policy({"values": {"HIV": 0.5}}, ("disease", "ward"))


def test_unknown_and_missing_thresholds() -> None:
    with pytest.raises(PolicyError, match="no row has 'HVI' in 'disease'"):
        FPrivacy(default=Fraction(1, 2), named=((("HVI",), Fraction(1)),)).thresholds(DISEASES)
    with pytest.raises(PolicyError, match="2 values of 'disease' have no threshold"):
        FPrivacy(default=None, named=((("Flu",), Fraction(1)),)).thresholds(DISEASES)


def test_null_beside_the_text_null_is_ambiguous() -> None:
    histogram = Histogram.of(("disease",), {("NULL",): 1, (None,): 1})
    with pytest.raises(PolicyError, match="NULL and the text 'NULL'"):
        FPrivacy(default=Fraction(1, 2)).thresholds(histogram)


def test_l_diversity_is_one_threshold_for_all() -> None:
    promise = LDiversity(l=3)
    assert promise.thresholds(DISEASES) == (Fraction(1, 3),) * 3
    assert promise.to_dict(DISEASES) == {"kind": "l-diversity", "l": 3}
    assert not promise.is_named(("Flu",))


def test_words_name_the_groups_that_have_a_limit() -> None:
    groups = [
        {"name": name, "values": [["Flu"], ["HIV"]], "at_most": at_most}
        for name, at_most in (("any", "1"), ("some", "99/100"))
    ]
    thresholds = [{"value": [v], "at_most": "1"} for v in ("Flu", "HIV")]
    words = FPrivacy.in_words({"kind": "f-privacy", "thresholds": thresholds, "groups": groups}, "disease")
    assert "some (2 values) at most 99 %" in words
    assert "any (" not in words


def test_the_threshold_of_a_set_is_the_strictest_of_what_is_in_it() -> None:
    """Cells are yes and no for each value; the last limit is that of people with none."""
    limits = {"a": "1/2", "b": "1/5", "none": "9/10"}
    having = [{"name": name, "at_most": limit} for name, limit in limits.items()]
    stated = Thresholds.of({"kind": "sets", "having": having})
    expected = [
        (("true", "false"), "1/2"),
        (("false", "true"), "1/5"),
        (("true", "true"), "1/5"),
        (("false", "false"), "9/10"),
    ]
    for cells, limit in expected:
        assert stated.of_value(cells) == Fraction(limit)
    assert stated.of_value((None, "false")) is stated.of_value(("1", "false")) is None  # neither yes nor no
    assert Thresholds(common=None, listed={}, having=()).of_value(("true",)) == 0


def test_a_rule_may_leave_out_what_it_does_not_use() -> None:
    """Without `plus` or `times` that is 0; both of them are not, and together they may be 1."""
    assert parse_default({"times": 2}) == LinearLimit(times=Fraction(2), plus=Fraction(0), cap=CAP)
    assert parse_default({"plus": "1/9"}) == LinearLimit(times=Fraction(0), plus=Fraction(1, 9), cap=CAP)
    assert parse_default({"times": 1}).at(Fraction(1, 9)) == Fraction(1, 9)  # type: ignore[union-attr]
    for spec in ({}, {"times": -1, "plus": 2}, {"times": 2, "plus": -1}, {"times": 2, "cap": 1}):
        with pytest.raises(PolicyError, match=r"\[promise\] default"):
            parse_default(spec)


def test_the_bound_leaves_out_what_is_no_secret() -> None:
    named = ((("Flu",), Fraction(1)), (("HIV",), Fraction(1, 4)))
    bound = FPrivacy(default=Fraction(2, 5), named=named).bound(DISEASES)
    assert (bound.largest, bound.smallest) == (Fraction(2, 5), Fraction(1, 4))
    nobody = FPrivacy(default=None, named=tuple(((v,), Fraction(1)) for v in ("Flu", "HIV", "NULL")))
    assert nobody.bound(DISEASES).largest == 1
    assert nobody.bound(DISEASES).smallest is None


@pytest.mark.parametrize("thresholds", [7, "many", {"a": 1}])
def test_thresholds_of_a_manifest_are_a_list(thresholds: object) -> None:
    with pytest.raises(ReleaseCorrupt, match="thresholds"):
        _read(Stated.of({"thresholds": thresholds}, "promise")["thresholds"])
