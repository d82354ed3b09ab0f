"""Totals and combinations of them as targets: what is NULL, whole, possible, adds up and goes together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dalenius.arrays import Floats
from dalenius.mechanisms.rows.estimation import RowEstimation, RowsAsked, _settle
from dalenius.mechanisms.rows.lookup import Lookup
from dalenius.mechanisms.rows.summands import ScoreList, Summands, summands
from dalenius.question.database import Database, Deadline, Limits, Workspace
from dalenius.question.model import Column, Combination, Total
from dalenius.question.sql import parse
from dalenius.question.targets import Range, Targets
from dalenius.tables.columns import CodedTable

PEOPLE = CodedTable.of(pa.table({"age": [20, 20, 30, 40], "sex": ["F", "M", "F", "M"]}))
SECRET = CodedTable.of(pa.table({"ill": ["flu", "cold"], "days": [3, 5]}))
SHARE = np.array([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0], [0.125, 0.875]])
"""How likely each person has each value."""


@dataclass(frozen=True, eq=False)
class Found:
    estimate: Floats
    std_error: Floats
    is_posterior: bool = False

    def intervals(self, confidence: float, possible: Range) -> Range:
        assert (possible[0] <= possible[1]).all()
        return self.estimate - 2 * confidence, self.estimate + 2 * confidence


@dataclass(frozen=True, eq=False)
class Independent:
    """People whose values are drawn independently: means and variances are sums over them."""

    asked: RowsAsked

    def _weights(self, targets: Targets) -> Floats:
        """Targets × people × values."""
        terms = np.zeros((len(targets.target), *SHARE.shape))
        for i, score in enumerate(targets.score.tolist()):
            own = self.asked.scores[score]
            numbers = 1.0 if own.values is None else own.values
            terms[i, own.rows] = np.multiply.outer(
                np.broadcast_to(numbers, len(own.rows)), targets.weights[i]
            )
        return targets.add_up(terms)

    def estimate(self, targets: Targets) -> Found:
        weights = self._weights(targets)
        mean = (weights * SHARE).sum(axis=2)
        variance = (weights**2 * SHARE).sum(axis=2) - mean**2
        return Found(mean.sum(axis=1), np.sqrt(np.maximum(variance.sum(axis=1), 0.0)))

    def possible_range(self, targets: Targets) -> Range:
        weights = np.where(SHARE > 0, self._weights(targets), np.nan)
        return np.nanmin(weights, axis=2).sum(axis=1), np.nanmax(weights, axis=2).sum(axis=1)


@dataclass(frozen=True, eq=False)
class Wide(Independent):
    """The same with an error that is larger than anything possible."""

    is_posterior: bool

    def estimate(self, targets: Targets) -> Found:
        found = super().estimate(targets)
        return Found(found.estimate, np.full_like(found.estimate, 50.0), self.is_posterior)


def estimation_of(text: str, confidence: float = 0.95) -> tuple[RowEstimation, Summands]:
    workspace = Workspace(database=Database({}, Limits()), deadline=Deadline(Limits()))
    lookup = Lookup(rows=PEOPLE, sensitive=SECRET, workspace=workspace)
    scores = ScoreList()
    question = summands(lookup, parse(text, ["age", "sex", "ill", "days"]), scores)
    asked = RowsAsked(questions=(question,), scores=tuple(scores.scores))
    source = Independent(asked)
    return RowEstimation(asked=asked, source=source, confidence=confidence, n_rows=4), question


def test_totals_are_sums_over_people_and_values() -> None:
    text = "SELECT COUNT(*) FILTER (WHERE ill = 'flu'), SUM(age * days) FROM t WHERE sex = 'F'"
    found, question = estimation_of(text)
    first, third = SHARE[0] @ [3, 5], SHARE[2] @ [3, 5]
    assert [total.kind for total in question.totals] == ["count", "sum", "count"]
    assert found.totals(0).tolist() == [pytest.approx([1.25, 20 * first + 30 * third, 2.0])]
    assert found.std_error(0, 0).tolist() == pytest.approx([np.sqrt(0.25 * 0.75)])


def test_totals_of_the_same_people_of_a_group_have_one_score() -> None:
    """Each threshold of a quantile is such a total."""
    some = ", ".join(f"COUNT(CASE WHEN days < {n} THEN 1 END)" for n in range(3, 9))
    found, question = estimation_of(f"SELECT sex, COUNT(*), {some} FROM t GROUP BY sex")
    assert [len(score.rows) for score in found.asked.scores] == [2, 2]
    assert found.totals(0)[:, 0].tolist() == [2.0, 2.0]
    assert {score for own in question.groups.values() for terms in own for score, _ in terms} == {0, 1}
    apart, _ = estimation_of("SELECT sex, COUNT(*), COUNT(*) FILTER (WHERE age < 35) FROM t GROUP BY sex")
    assert sorted(len(score.rows) for score in apart.asked.scores) == [1, 2, 2, 2]


def test_sums_over_nobody_are_null_and_counts_are_whole() -> None:
    found, question = estimation_of("SELECT SUM(age), COUNT(*) FROM t WHERE age > 90")
    kinds = [total.kind for total in question.totals]
    assert np.isnan(found.totals(0)[0, kinds.index("sum")])
    assert found.std_error(0, kinds.index("sum")).tolist() == [0.0]
    counted, _ = estimation_of("SELECT COUNT(*) FROM t WHERE ill = 'cold'", confidence=0.8)
    column = counted.total(0, 0, counted.totals(0)[:, 0])
    assert column.estimate.tolist() == [2.125]
    assert (column.low.tolist(), column.high.tolist()) == ([1.0], [3.0])  # 0.525 and 3.725, of at most 3


def _holds(n: int, share: float, confidence: float, round_ends: Callable[[Column], Range]) -> float:
    """How likely a binomial count is in the interval of its normal law, once that is of whole numbers."""
    law = stats.binom(n, share)
    ends = stats.norm(law.mean(), law.std()).interval(confidence)
    mean, error, *own = (np.array([[number]]) for number in (law.mean(), law.std(), *ends))
    found = Column(estimate=mean, std_error=error, low=own[0], high=own[1])
    low, high = round_ends(found)
    return float(law.cdf(high.item()) - law.cdf(low.item() - 1))


def _settled(found: Column, n: int) -> Range:
    total = Total(kind="count", argument=None, condition=None)
    settled = _settle(found, (np.zeros((1, 1)), np.full((1, 1), float(n))), (total,), n)
    assert settled.low <= found.estimate <= settled.high
    return settled.low, settled.high


@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95, 0.99])
def test_ends_of_counts_are_whole_and_hold_no_more_than_they_must(confidence: float) -> None:
    """They hold as often as is said for counts from 3 to 70; the next whole numbers inwards would not."""
    laws = [(n, share) for n in (30, 60, 140) for share in (0.1, 0.2, 0.35, 0.5)]
    found = [_holds(n, share, confidence, partial(_settled, n=n)) for n, share in laws]
    inwards = [_holds(n, p, confidence, lambda one: (np.ceil(one.low), np.floor(one.high))) for n, p in laws]
    outwards = [_holds(n, p, confidence, lambda one: (np.floor(one.low), np.ceil(one.high))) for n, p in laws]
    assert min(inwards) < confidence <= min(found)
    assert np.mean(found) < np.mean(outwards)


@pytest.mark.parametrize("is_posterior", [True, False])
def test_a_posterior_has_no_larger_error_than_a_law_of_what_is_possible(is_posterior: bool) -> None:
    found, _ = estimation_of("SELECT COUNT(*) FROM t WHERE ill = 'flu'")
    wide = replace(found, source=Wide(found.asked, is_posterior))
    column = wide.total(0, 0, wide.totals(0)[:, 0])
    # one of four people has it for certain, one of them certainly not: between 1 and 4, on average 1.875
    expected = np.sqrt((1.875 - 1) * (4 - 1.875)) if is_posterior else 50.0
    assert column.std_error.tolist() == pytest.approx([expected])
    assert wide.std_error(0, 0).tolist() == [50.0]  # of which covariances are made


def test_groups_by_the_secret_add_up_to_their_rows() -> None:
    found, question = estimation_of("SELECT sex, ill, COUNT(*), SUM(days) FROM t GROUP BY sex, ill")
    planes = found.possible(0).planes
    totals = found.totals(0)
    count = next(k for k, total in enumerate(question.totals) if total.kind == "count" and not total.argument)
    mine = [plane for plane in planes if plane.total == count]
    assert [totals[plane.groups, count].sum() for plane in mine] == pytest.approx([2.0, 2.0])
    assert sorted(len(plane.groups) for plane in mine) == [2, 2]
    alone, _ = estimation_of("SELECT COUNT(*) FROM t WHERE ill = 'flu'")
    assert alone.possible(0).planes == ()


@dataclass(frozen=True, eq=False)
class Unasked(Independent):
    """A release that is not to be estimated from."""

    def estimate(self, targets: Targets) -> Found:
        raise AssertionError("nothing is estimated for what is possible")


def test_what_is_possible_needs_no_estimate_and_is_the_same_beside_one() -> None:
    text = "SELECT ill, COUNT(*), COUNT(*) FILTER (WHERE age > 90), SUM(age) FROM t GROUP BY ill"
    found, _ = estimation_of(text)
    low, high = replace(found, source=Unasked(found.asked)).reach(0)
    found.totals(0)
    assert (low.tolist(), high.tolist()) == tuple(ends.tolist() for ends in found.reach(0))
    assert (low < high).any()
    assert (low[:, 1].tolist(), high[:, 1].tolist()) == ([0.0, 0.0], [0.0, 0.0])  # nobody is so old
    possible = found.possible(0)
    assert (possible.low.tolist(), possible.high.tolist()) == (low.tolist(), high.tolist())


def test_a_count_that_can_be_one_number_only_has_no_error() -> None:
    found, _ = estimation_of(
        "SELECT COUNT(*) FROM t WHERE age = 30 AND ill = 'flu'"
    )  # one has it for certain
    wide = replace(found, source=Wide(found.asked, True))
    column = wide.total(0, 0, wide.totals(0)[:, 0])
    assert [float(part[0]) for part in (column.estimate, column.std_error, column.low, column.high)] == [
        1.0,
        0.0,
        1.0,
        1.0,
    ]


FACTORS = st.lists(st.floats(-3, 3).filter(lambda f: abs(f) > 0.01), min_size=2, max_size=2)


@given(one=FACTORS, two=FACTORS)
def test_covariances_are_those_of_independent_people(one: list[float], two: list[float]) -> None:
    found, _ = estimation_of(
        "SELECT COUNT(*) FILTER (WHERE ill = 'flu'), COUNT(*) FILTER (WHERE days * age > 140) FROM t"
    )

    def combination(factors: list[float]) -> Combination:
        return Combination(
            question=0, factors=np.array([factors]), totals=found.totals(0), is_null=np.array([False])
        )

    pair = [combination(one), combination(two)]
    errors = [column.std_error for column in found.combine(pair)]
    (covariance,) = found.covariances([(pair[0], errors[0], pair[1], errors[1])])
    # what a person adds to each total if her value is this one
    flu, costly = np.array([[1, 0]] * 4), np.array([[0, 0], [0, 0], [0, 1], [0, 1]])
    a, b = ((f[0] * flu + f[1] * costly) for f in (one, two))
    expected = ((a * b * SHARE).sum(axis=1) - (a * SHARE).sum(axis=1) * (b * SHARE).sum(axis=1)).sum()
    assert covariance[0] == pytest.approx(expected, rel=1e-6, abs=1e-9)
