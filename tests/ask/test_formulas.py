"""What an answer makes of totals with known means and covariances, checked by matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ask.given import Given, answer

Z = 1.959963984540054
TWO = "SELECT {} FROM t"
COVARIANCE = np.array([[4.0, 1.5], [1.5, 9.0]])
"""Of the totals COUNT(x) and COUNT(y)."""
NUMBERS = st.floats(-50, 50).filter(lambda number: abs(number) > 0.1)


def model(*mean: float, covariance: np.ndarray = COVARIANCE) -> Given:
    return Given(mean=np.array([mean]), covariance=covariance)


@given(a=NUMBERS, b=NUMBERS, m=NUMBERS, n=NUMBERS)
def test_a_linear_formula_has_the_variance_of_its_combination(a: float, b: float, m: float, n: float) -> None:
    formula = f"{a} * COUNT(x) - {b} * COUNT(y) + 7"
    (row,) = answer(model(m, n), TWO.format(formula)).rows
    error = np.sqrt(np.array([a, -b]) @ COVARIANCE @ np.array([a, -b]))
    assert row.estimate == pytest.approx(a * m - b * n + 7)
    assert row.std_error == pytest.approx(error)
    assert (row.low, row.high) == pytest.approx((row.estimate - Z * error, row.estimate + Z * error))


@given(a=NUMBERS, b=NUMBERS)
def test_a_product_is_taken_to_first_order(a: float, b: float) -> None:
    (row,) = answer(model(a, b), TWO.format("COUNT(x) * COUNT(y)")).rows
    gradient = np.array([b, a])
    assert row.estimate == pytest.approx(a * b)
    assert row.std_error == pytest.approx(np.sqrt(gradient @ COVARIANCE @ gradient))


@given(a=NUMBERS, b=NUMBERS, farther=st.floats(0.01, 9))
def test_a_ratio_is_what_a_test_does_not_reject(a: float, b: float, farther: float) -> None:
    """r is inside where |A − rB| ≤ z·√Var(A − rB); if even B = 0 is not rejected, nothing is known."""
    (row,) = answer(model(a, b), TWO.format("COUNT(x) / COUNT(y)")).rows
    assert row.estimate == pytest.approx(a / b)
    if b**2 <= Z**2 * COVARIANCE[1, 1]:
        assert (row.low, row.high) == (None, None)
        return
    assert row.low is not None
    assert row.high is not None

    def statistic(r: float) -> float:
        direction = np.array([1.0, -r])
        return float(abs(a - r * b) / np.sqrt(direction @ COVARIANCE @ direction))

    assert [statistic(row.low), statistic(row.high)] == pytest.approx([Z, Z], rel=1e-6)
    assert statistic(row.low - farther) > Z
    assert statistic(row.high + farther) > Z


def test_a_certain_denominator_leaves_the_first_order() -> None:
    text = TWO.format("COUNT(x) / COUNT(y)")
    covariance = np.diag([4.0, 0.01])
    (heeded,) = answer(Given(mean=np.array([[20.0, 30.0]]), covariance=covariance), text).rows
    (certain,) = answer(Given(mean=np.array([[20.0, 30.0]]), covariance=covariance, certain=0.03), text).rows
    assert certain.std_error == heeded.std_error
    reach = Z * (certain.std_error or 0.0)
    assert (certain.low, certain.high) == pytest.approx((2 / 3 - reach, 2 / 3 + reach), rel=1e-12)
    assert heeded.high != pytest.approx(certain.high, rel=1e-12)


def test_a_total_has_its_own_interval_also_with_a_number_added() -> None:
    rows = answer(model(20.0, 30.0), TWO.format("COUNT(x), COUNT(y) + 4, -1 * COUNT(x)")).rows
    assert [(row.low, row.high) for row in rows[:2]] == [(17.0, 25.0), (31.0, 39.0)]
    assert (rows[2].low, rows[2].high) == pytest.approx((-20 - 2 * Z, -20 + 2 * Z))


def test_a_division_by_nothing_is_null_and_not_exact() -> None:
    (row,) = answer(model(20.0, 0.0), TWO.format("COUNT(x) / COUNT(y)")).rows
    assert (row.estimate, row.std_error, row.low, row.high, row.status) == (
        None,
        None,
        None,
        None,
        "estimate",
    )


def test_what_is_certain_assumes_nothing() -> None:
    exact = answer(model(20.0, 30.0, covariance=np.zeros((2, 2))), TWO.format("COUNT(x) / COUNT(y)"))
    assert (exact.rows[0].status, exact.rows[0].low, exact.rows[0].high) == ("exact", 2 / 3, 2 / 3)
    assert exact.assumption is None
    assert answer(model(20.0, 30.0), TWO.format("COUNT(x)")).assumption == "what is given is right"


GROUPS = Given(
    mean=np.array([[-2.0, 5.0], [8.0, 50.0], [3.0, 9.0]]),
    covariance=COVARIANCE,
    keys=((2,), (0,), (1,)),
    key_values=(pa.array(["a", "b", None]),),
)


def keys(text: str, model: Given = GROUPS) -> list[object]:
    return [dict(row.group)["x"] for row in answer(model, text).rows]


def test_groups_are_chosen_and_ordered_by_their_estimates() -> None:
    """The means of COUNT(x) and COUNT(y): None −2 and 5, a 8 and 50, b 3 and 9."""
    by = "SELECT x, COUNT(x), COUNT(y) FROM t GROUP BY x"
    assert keys(by)[::2] == ["a", "a", "b", "b", None, None][::2]
    assert keys(f"{by} HAVING COUNT(x) > 0 ORDER BY 2 DESC")[::2] == ["a", "b"]
    assert keys(f"{by} ORDER BY COUNT(x) / COUNT(y) DESC LIMIT 2")[::2] == ["b", "a"]  # 1/3, 0.16, -0.4
    assert keys(f"{by} HAVING COUNT(y) - COUNT(x) BETWEEN 6 AND 7")[::2] == ["b", None]


def test_what_is_only_ordered_by_needs_no_interval() -> None:
    given_ = replace(GROUPS, calls=[])
    assert keys("SELECT x, COUNT(x) FROM t GROUP BY x ORDER BY COUNT(y)", given_) == [None, "b", "a"]
    assert given_.calls == ["total 0"]


def test_consistent_counts_are_possible_and_add_up() -> None:
    plain, moved = (
        answer(GROUPS, "SELECT x, COUNT(x) AS n FROM t GROUP BY x", consistent=c) for c in (False, True)
    )
    before, after = ([row.estimate or 0.0 for row in found.rows] for found in (plain, moved))
    assert min(before) < 0 <= min(after)
    assert sum(after) == pytest.approx(sum(before))
    assert all(row.low <= row.estimate <= row.high for row in moved.rows)  # type: ignore[operator]
    assert {row.status for row in moved.rows} == {"consistent"}
    assert moved.assumption is not None
    assert moved.assumption.startswith("what is given is right; moved to the nearest table")
