"""What an answer makes of totals with known means and covariances, checked by matrices.

Fieller's intervals: against the inversion of a test, and where the first order fails.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from dalenius.ask import ask
from dalenius.ask.formulas import denominator, fieller, possible_ratio
from dalenius.question.model import totals_of
from dalenius.question.query import Aggregate, AggregateRef, Arithmetic, Expression, Number
from dalenius.release.folder import StoredRelease
from tests.ask.given import Given, answer
from tests.ask.releases import write_release
from tests.chance import FALSE_ALARM

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


AGE = Expression(sql="age", columns=("age",))
AGGREGATES = (
    Aggregate(kind="count"),
    Aggregate(kind="avg", argument=AGE),
    Aggregate(kind="sum", argument=AGE),
    Aggregate(kind="count", condition=AGE),
)
COUNT, MEAN, SUM, PART = (AggregateRef(index=k) for k in range(4))


@given(
    a=st.floats(-5, 5),
    b=st.floats(0.5, 5),
    var_a=st.floats(0.01, 2),
    var_b=st.floats(0.01, 2),
    correlation=st.floats(-0.9, 0.9),
)
def test_it_is_the_inversion_of_a_test(
    a: float, b: float, var_a: float, var_b: float, correlation: float
) -> None:
    """r is inside exactly where |A − rB| ≤ z·√Var(A − rB)."""
    z, cov, ratio = 1.96, correlation * np.sqrt(var_a * var_b), a / b
    assume(abs(1 - z**2 * var_b / b**2) > 0.05)
    error = np.sqrt(var_a - 2 * ratio * cov + ratio**2 * var_b) / b
    joint = (cov - ratio * var_b) / b
    found = fieller(*(np.array([x]) for x in (z, error, b, var_b, joint)))
    low, high = ratio + found[0][0], ratio + found[1][0]
    if z**2 * var_b >= b**2:
        assert (low, high) == (-np.inf, np.inf)
        return
    for r in (low, high):  # at the ends the test is just undecided
        spread = z * np.sqrt(max(var_a - 2 * r * cov + r**2 * var_b, 0.0))
        assert abs(a - r * b) == pytest.approx(spread, rel=1e-6, abs=1e-6)
    assert low <= ratio <= high


def test_it_covers_where_the_first_order_does_not() -> None:
    rng = np.random.default_rng(5)
    n, truth = 20_000, 2.0
    b = rng.normal(3.0, 1.2, n)
    a = truth * 3.0 + rng.normal(0, 0.3, n)
    z, ratio = np.full(n, 1.96), a / b
    error = np.sqrt(0.3**2 + ratio**2 * 1.2**2) / np.abs(b)
    low, high = fieller(z, error, b, np.full(n, 1.2**2), -ratio * 1.2**2 / b)
    hits = int(((ratio + low <= truth) & (truth <= ratio + high)).sum())
    assert stats.binomtest(hits, n, 0.95, alternative="less").pvalue > FALSE_ALARM
    first_order = int((np.abs(ratio - truth) <= 1.96 * error).sum())
    assert stats.binomtest(first_order, n, 0.95, alternative="less").pvalue < FALSE_ALARM


def test_what_is_divided_by() -> None:
    totals = totals_of(AGGREGATES)
    estimates = np.arange(1.0, len(totals) + 1)[None, :]

    def divisor(formula: object) -> float | None:
        found = denominator(formula, AGGREGATES, totals, estimates)  # type: ignore[arg-type]
        return None if found is None else float(found.value[0])

    percent = Arithmetic(operator="*", left=Number(value=100.0), right=PART)
    assert divisor(Arithmetic(operator="/", left=percent, right=COUNT)) == 1.0
    assert (
        divisor(MEAN) == estimates[0, [t.kind == "count" and t.argument == AGE for t in totals].index(True)]
    )
    assert divisor(COUNT) is None
    assert divisor(Arithmetic(operator="/", left=MEAN, right=COUNT)) is None
    assert divisor(Arithmetic(operator="-", left=MEAN, right=COUNT)) is None


def test_what_a_ratio_can_be() -> None:
    def ends(formula: object) -> tuple[float, float]:
        return possible_ratio(formula, AGGREGATES, lambda _: (20.0, 69.0))  # type: ignore[arg-type]

    share = Arithmetic(operator="/", left=PART, right=COUNT)
    percent = Arithmetic(operator="*", left=Number(value=100.0), right=PART)
    assert ends(MEAN) == (20.0, 69.0)
    assert ends(share) == (0.0, 1.0)
    assert ends(Arithmetic(operator="/", left=percent, right=COUNT)) == (0.0, 100.0)
    assert ends(Arithmetic(operator="/", left=COUNT, right=PART)) == (-np.inf, np.inf)


def test_a_mean_of_hardly_anybody_is_only_known_to_be_possible(
    release: StoredRelease, tmp_path: Path
) -> None:
    text = "SELECT AVG(age) FROM t WHERE disease = '{}' AND sex = 'M'"
    (row,) = ask(release, text.format("Gout"), estimator="regression").rows
    assert None not in (row.estimate, row.low, row.high)
    assert row.low <= row.estimate <= row.high  # type: ignore[operator]
    # every bucket holds one of each: the regression cannot tell anything
    table = pa.table(
        {"age": [20, 30, 40, 50] * 5, "sex": ["F", "M", "M", "M"] * 5, "disease": ["Flu", "Cold"] * 10}
    )
    alike = write_release(tmp_path, table, ["disease"], np.repeat(np.arange(10), 2), "alike")
    (row,) = ask(alike, text.format("Flu"), estimator="regression").rows
    assert (row.status, row.low, row.high) == ("undetermined", 20.0, 50.0)
