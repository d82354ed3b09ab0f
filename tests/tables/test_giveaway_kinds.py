"""Columns that the secret decides, and numbers that make it: neither by chance, nor hidden behind less."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest

from dalenius.tables.giveaways import find_giveaways

Found = list[tuple[str, str | None, str | None, str]]


def find(columns: Mapping[str, object], sensitive: list[str]) -> Found:
    """What would be refused."""
    records = pa.table(columns)
    quasi = [name for name in records.column_names if name not in sensitive]
    found = find_giveaways(records, quasi, sensitive)
    return [(one.column, one.beside, one.told, one.how) for one in found if not one.is_loose]


@pytest.mark.parametrize("n_people", [400, 2_000])
@pytest.mark.parametrize("wrong", [0, 0.05])
def test_a_ward_that_the_disease_decides_leaves_few_values_of_a_bucket(n_people: int, wrong: float) -> None:
    """Of buckets of five of 40 diseases on ten wards, nine of ten people's were alone with their ward."""
    rng = np.random.default_rng(1)
    s = rng.integers(0, 40, n_people)
    ward = np.where(rng.random(n_people) < wrong, rng.integers(0, 10, n_people), s % 10)
    columns = {"ward": ward.astype(str), "age": rng.integers(18, 90, n_people), "s": s}
    assert find(columns, ["s"]) == [("ward", None, None, "kinds")]
    assert not find({**columns, "ward": rng.permutation(ward)}, ["s"])


def test_one_ward_of_several_rare_diseases_is_enough_unless_others_have_them_too() -> None:
    rng = np.random.default_rng(2)
    s = rng.integers(0, 40, 3_000)
    is_infectious = s < 4
    assert find({"flag": is_infectious, "s": s}, ["s"]) == [("flag", None, None, "kinds")]
    elsewhere = is_infectious & (rng.random(3_000) < 0.3)
    assert not find({"flag": is_infectious & ~elsewhere, "s": s}, ["s"])


def test_what_was_measured_of_people_with_some_diseases_only_tells_that_they_have_one_of_them() -> None:
    rng = np.random.default_rng(10)
    s = rng.integers(0, 40, 2_000)
    is_empty = ~np.isin(s, [3, 7, 9])
    sugar = pa.array(rng.normal(7, 1, 2_000), mask=is_empty)
    assert find({"sugar": sugar, "s": s}, ["s"]) == [("sugar", None, None, "kinds")]
    others = pa.array(rng.normal(7, 1, 2_000), mask=rng.permutation(is_empty))
    assert not find({"sugar": others, "s": s}, ["s"])


def test_a_grade_of_pay_tells_a_salary_that_nobody_shares() -> None:
    rng = np.random.default_rng(3)
    salary = np.exp(rng.normal(10.5, 0.5, 2_000))
    band = np.searchsorted(np.quantile(salary, np.linspace(0, 1, 21)[1:-1]), salary)
    grade = rng.permutation(21)[band].astype(str)
    assert find({"grade": grade, "s": salary}, ["s"]) == [("grade", None, None, "kinds")]
    assert not find({"grade": rng.permutation(grade), "s": salary}, ["s"])


def test_sex_is_not_told_by_the_values_of_one_sex_only() -> None:
    """A quarter of all people have what only men have: of a man that leaves three quarters open."""
    rng = np.random.default_rng(4)
    is_man = rng.random(4_000) < 0.49
    s = np.where(is_man & (rng.random(4_000) < 0.5), rng.integers(0, 5, 4_000), rng.integers(5, 20, 4_000))
    assert not find({"sex": is_man, "s": s}, ["s"])


def days(numbers: np.ndarray) -> pa.Array:
    return pa.array((np.datetime64("2020-01-01") + numbers).astype("datetime64[D]"))


def test_two_numbers_that_make_the_secret_one_are_found_and_no_others() -> None:
    rng = np.random.default_rng(5)
    n = 1_500
    came, stay = rng.integers(0, 3_000, n), rng.integers(1, 20, n)
    dates = {"age": rng.integers(18, 90, n), "came": days(came), "left": days(came + stay)}
    assert find({**dates, "s": stay}, ["s"]) == [("came", "left", None, "sums")]
    assert not find({**dates, "s": rng.permutation(stay)}, ["s"])
    height, weight = rng.normal(170, 10, n).round(), rng.normal(75, 15, n).round()
    some = pa.array(height, mask=rng.random(n) < 0.4)  # not everybody was measured
    index = (weight / (height / 100) ** 2).round(1)
    assert find({"h": some, "w": weight, "s": index}, ["s"]) == [("h", "w", None, "sums")]


def test_a_number_that_two_secret_ones_make_rules_out_others() -> None:
    rng = np.random.default_rng(6)
    n = 600
    high = rng.normal(140, 20, n)
    low = high - rng.normal(45, 12, n)
    columns = {"difference": high - low + rng.normal(0, 0.2, n), "high": high, "low": low}
    assert find(columns, ["high", "low"]) == [("difference", None, None, "sums")]
    assert not find({**columns, "difference": rng.permutation(high - low)}, ["high", "low"])


@pytest.mark.parametrize("place", ["{number}{code}", "2024{code}{number}", "x-2024{code}{number}"])
def test_a_letter_among_figures_and_the_last_ones_are_a_code(place: str) -> None:
    rng = np.random.default_rng(7)
    s = rng.integers(0, 6, 900)
    numbers = zip(10_000 + rng.permutation(900), s, strict=True)
    cells = [place.format(number=number, code="HKLMPQ"[value]) for number, value in numbers]
    assert find({"case": cells, "s": s}, ["s"]) == [("case", None, None, "words")]
    assert not find({"case": cells, "s": rng.permutation(s)}, ["s"])


def test_the_last_figures_of_a_number_are_a_code() -> None:
    rng = np.random.default_rng(8)
    s = rng.integers(0, 6, 900)
    number = (10_000 + rng.permutation(900)) * 100
    assert find({"case": number + 11 * s, "s": s}, ["s"]) == [("case", None, None, "words")]
    assert not find({"case": number + rng.integers(0, 100, 900), "s": s}, ["s"])


def test_what_is_told_loosely_hides_nothing_else() -> None:
    """One cell of few people tells a value; the column also tells with another one, or one column of two."""
    rng = np.random.default_rng(9)
    a, b = rng.integers(0, 5, 4_000), rng.integers(0, 5, 4_000)
    s = (a + b) % 5
    is_few = rng.random(4_000) < 0.01
    a, s = np.where(is_few, 9, a), np.where(is_few, 0, s)
    assert find({"a": a, "b": b, "s": s}, ["s"]) == [("a", "b", None, "nearly")]
    t = rng.integers(0, 8, 4_000)
    both = {"c": np.where(is_few, 99, s), "s": s, "t": np.where(is_few, 0, t)}
    assert find(both, ["s", "t"]) == [("c", None, "s", "agree")]
