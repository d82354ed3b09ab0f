"""How useful a release is: steps, marginals and errors of answers that are made up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import QueryError
from dalenius.question.answer import AnswerRow
from dalenius.release.folder import StoredRelease
from dalenius.reporting import utility
from dalenius.reporting.distribution import Truth
from dalenius.reporting.utility import Keys, Outcome
from dalenius.sql import connect


def truth_of(table: pa.Table) -> Truth:
    connection = connect()
    connection.register("t", table)
    return Truth(table=table, connection=connection)


def release_with(quasi: tuple[str, ...], sensitive: tuple[str, ...]) -> StoredRelease:
    roles = {"quasi": quasi, "sensitive": sensitive}
    return cast("StoredRelease", SimpleNamespace(columns=lambda role: roles[role]))


def row(
    cell: str, estimate: float | None, low: float | None, high: float | None, status: str = "estimate"
) -> AnswerRow:
    return AnswerRow(
        group=(("k0", cell),),
        column="n",
        estimate=estimate,
        std_error=1.0,
        low=low,
        high=high,
        status=cast("Any", status),
    )


@given(st.floats(0.001, 10**7))
def test_a_step_is_the_least_round_number_that_is_not_below(least: float) -> None:
    rounds = [factor * 10**power for power in range(9) for factor in (1, 2, 5)]
    assert utility._round_step(least) == next(step for step in rounds if step >= least)


def test_numbers_are_grouped_where_they_are_many_and_texts_are_left_out() -> None:
    n = 200
    truth = truth_of(
        pa.table(
            {
                "few": [i % 40 for i in range(n)],
                "age": list(range(3, 203)),
                "name": [f"n{i}" for i in range(n)],
                "flag": [i % 2 == 0 for i in range(n)],
            }
        )
    )
    assert utility._keys(truth, "few") == Keys(sql='"few"', title="few", n_values=40)
    # 199/8 = 24.9: steps of 50, from 3 // 50 = 0 to 202 // 50 = 4
    assert utility._keys(truth, "age") == Keys(sql='"age" // 50 * 50', title="age in steps of 50", n_values=5)
    assert utility._keys(truth, "name") is None
    found = utility._keys(truth, "flag")
    assert found is not None
    assert found.n_values == 2


def test_marginals_are_each_column_with_the_sensitive_ones_or_pairs() -> None:
    truth = truth_of(pa.table({"a": [1, 2], "b": [1, 1], "c": [3, 4], "ill": ["x", "y"]}))
    titles = [
        [key.title for key in keys]
        for keys in utility._marginals(release_with(("a", "b", "c"), ("ill",)), truth)
    ]
    assert titles == [["a", "ill"], ["b", "ill"], ["c", "ill"]]
    pairs = utility._marginals(release_with(("a", "b", "c"), ()), truth)
    assert [[key.title for key in keys] for keys in pairs] == [["a", "b"], ["a", "c"], ["b", "c"]]


def test_marginals_of_too_many_cells_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = truth_of(pa.table({"a": list(range(12)), "b": [1, 2, 3] * 4, "ill": ["x", "y", "z"] * 4}))
    monkeypatch.setattr(utility, "_MOST_CELLS", 9)
    kept = utility._marginals(release_with(("a", "b"), ("ill",)), truth)
    assert [[key.title for key in keys] for keys in kept] == [["b", "ill"]]


def test_intervals_hold_the_truth_or_not_and_exact_answers_are_no_intervals() -> None:
    found: dict[tuple[str, ...], AnswerRow] = {
        ("a",): row("a", 3.0, 2.0, 4.0),
        ("b",): row("b", 3.0, 2.0, 4.0),
        ("c",): row("c", 3.0, 2.0, 4.0),
        ("d",): row("d", 5.0, 5.0, 5.0, "exact"),
        ("e",): row("e", None, None, None),
    }
    # a holds 4, b does not hold 5, c does not hold 0
    assert utility._count_covered(found, {("a",): 4.0, ("b",): 5.0, ("d",): 9.0}) == (1, 3)
    assert utility._estimate(None) == 0.0
    assert utility._estimate(found["a",]) == 3.0
    assert utility._estimate(found["e",]) != utility._estimate(found["e",])  # NaN: it does not tell
    assert utility._coverage(0, 0) == "every answer is exact"


def test_the_errors_of_a_marginal_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Truth 4, 2 and 2 of a, b and c; answered 5, 2 and nothing of c, and 1 of a d that nobody has."""
    truth = truth_of(pa.table({"ill": list("aaaabbcc")}))
    answer = SimpleNamespace(
        rows=(row("a", 5.0, 4.0, 6.0), row("b", 2.0, 2.0, 2.0, "exact"), row("d", 1.0, 0.5, 2.0)),
        assumption="so and so",
    )
    monkeypatch.setattr(utility, "ask", lambda *_: answer)
    keys = (Keys(sql="ill", title="ill", n_values=3),)
    found = utility._measure(release_with((), ("ill",)), truth, keys)
    assert found is not None
    assert (found.title, found.n_cells, found.assumption) == ("“ill”", 4, "so and so")
    # relative errors 1/4, 0, 2/2 and 1/(8·0.001): sorted 0, 0.25, 1, 125
    assert found.median_error == pytest.approx((0.25 + 1) / 2)
    # off by 1, 0, 2 and 1: the 95 % quantile of 0, 1, 1, 2 is 1.85
    assert found.off_by == pytest.approx(1.85)
    assert (found.n_covered, found.n_intervals) == (1, 2)


def test_what_cannot_be_asked_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = truth_of(pa.table({"ill": ["a"]}))

    def refuse(*_: object) -> None:
        raise QueryError("no")

    monkeypatch.setattr(utility, "ask", refuse)
    keys = (Keys(sql="ill", title="ill", n_values=1),)
    assert utility._measure(release_with((), ("ill",)), truth, keys) is None
    monkeypatch.setattr(
        utility, "ask", lambda *_: SimpleNamespace(rows=(row("a", None, None, None),), assumption=None)
    )
    assert utility._measure(release_with((), ("ill",)), truth, keys) is None
    section = utility.describe_utility(release_with((), ("ill",)), truth)
    assert len(section.blocks) == 1


def test_assumptions_are_told_once() -> None:
    def outcome(assumption: str | None) -> Outcome:
        return Outcome(
            title="x",
            n_cells=1,
            median_error=0.1,
            off_by=1.0,
            n_covered=1,
            n_intervals=1,
            assumption=assumption,
        )

    said = utility._note([outcome("one"), outcome("two"), outcome("one"), outcome(None)])
    assert said is not None
    assert said.startswith("The intervals rest on this: one; two.")
    assert utility._note([outcome(None)]) is None
