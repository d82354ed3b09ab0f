"""Thresholds: named, linear, compound, and unknown."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import PolicyError
from dalenius.promises.f_privacy import FPrivacy, Linear
from dalenius.promises.l_diversity import LDiversity
from dalenius.tables.histogram import Histogram

DISEASES = Histogram.of(("disease",), {("Flu",): 7, ("HIV",): 2, (None,): 1})


@given(times=st.fractions(1, 20), plus=st.fractions(0, 1), counts=st.lists(st.integers(1, 50), min_size=1))
def test_linear_thresholds_that_grow_are_always_feasible(
    times: Fraction, plus: Fraction, counts: list[int]
) -> None:
    histogram = Histogram.of(("x",), {(i,): count for i, count in enumerate(counts)})
    promise = FPrivacy(default=Linear(times=times, plus=plus))
    for code, threshold in enumerate(promise.thresholds(histogram)):
        assert histogram.frequency(code) <= threshold <= 1
        assert threshold == min(1, times * histogram.frequency(code) + plus)


def test_named_values_override_the_default_and_null_is_a_value() -> None:
    section = {"kind": "f-privacy", "default": "1/3", "values": {"NULL": 0.1, "Flu": 1}}
    promise = FPrivacy.from_policy(section, ("disease",))
    assert promise.thresholds(DISEASES) == (Fraction(1, 10), Fraction(1), Fraction(1, 3))
    assert promise.to_dict(DISEASES)["thresholds"][0] == {"value": [None], "at_most": "1/10"}
    assert [promise.is_named(value) for value in DISEASES.values] == [True, True, False]


def test_compound_values_are_named_cell_by_cell() -> None:
    histogram = Histogram.of(("disease", "ward"), {("HIV", 1): 1, ("HIV", 2): 1})
    entry = {"disease": "HIV", "ward": 2, "at_most": 0.5}
    promise = FPrivacy.from_policy({"default": 1, "values": [entry]}, ("disease", "ward"))
    assert promise.thresholds(histogram) == (Fraction(1), Fraction(1, 2))
    with pytest.raises(PolicyError, match="a cell in each"):
        FPrivacy.from_policy({"values": {"HIV": 0.5}}, ("disease", "ward"))


def test_unknown_and_missing_thresholds() -> None:
    with pytest.raises(PolicyError, match="no row has 'HVI' in 'disease'"):
        FPrivacy(default=Fraction(1), named=((("HVI",), Fraction(1)),)).thresholds(DISEASES)
    with pytest.raises(PolicyError, match="2 values of 'disease' have no threshold"):
        FPrivacy(default=None, named=((("Flu",), Fraction(1)),)).thresholds(DISEASES)


def test_null_beside_the_text_null_is_ambiguous() -> None:
    histogram = Histogram.of(("disease",), {("NULL",): 1, (None,): 1})
    with pytest.raises(PolicyError, match="NULL and the text 'NULL'"):
        FPrivacy(default=Fraction(1)).thresholds(histogram)


def test_l_diversity_is_one_threshold_for_all() -> None:
    promise = LDiversity(l=3)
    assert promise.thresholds(DISEASES) == (Fraction(1, 3),) * 3
    assert promise.to_dict(DISEASES) == {"kind": "l-diversity", "l": 3}
    assert not promise.is_named(("Flu",))
