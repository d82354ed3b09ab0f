"""Fieller's intervals: against the inversion of a test, and where the first order fails."""

from __future__ import annotations

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
from tests.ask.releases import write_release
from tests.chance import FALSE_ALARM

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
