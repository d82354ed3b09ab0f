"""Answers from views: the estimator's definition by brute force over the domain, and calibrated intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import dalenius
from dalenius.ask import answer_asked
from dalenius.errors import InputError, QueryError
from dalenius.mechanisms.alphabeta import answer as alphabeta
from dalenius.mechanisms.alphabeta.apply import first_view, next_view, union
from dalenius.mechanisms.alphabeta.plan.law import ViewLaw
from dalenius.mechanisms.alphabeta.published import PublishedView, marginal_law, read
from dalenius.mechanisms.frapp import answer as frapp
from dalenius.mechanisms.frapp.apply import frapp_view
from dalenius.mechanisms.frapp.plan import FrappLaw
from dalenius.mechanisms.frapp.published import PublishedFrapp
from dalenius.mechanisms.tuples.answer.estimation import TupleModel
from dalenius.mechanisms.tuples.domain import Domain, TupleCodes
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.question.answer import Answer
from dalenius.question.database import Database, Deadline, Limits, Request, Workspace
from dalenius.question.sql import parse
from dalenius.randomness import Randomness
from tests.chance import FALSE_ALARM, Z
from tests.mechanisms.alphabeta.releases import policy, survey

QUESTIONS = [
    "SELECT COUNT(*) FROM t",
    "SELECT COUNT(*) AS n FROM t WHERE age BETWEEN 25 AND 30 AND ill = 'flu'",
    "SELECT COUNT(ill) FROM t WHERE zip < age OR sex = 'F'",
    "SELECT SUM(age) FROM t WHERE NOT (ill IN ('flu', 'hiv') AND zip > 12)",
    "SELECT SUM(age * zip - 0.5) FROM t WHERE ill LIKE '%l%'",
    "SELECT COUNT(*) FILTER (WHERE sex = 'M') FROM t WHERE ill IS NULL",
    "SELECT SUM(CASE WHEN ill = 'hiv' THEN 1 ELSE 0 END) FROM t",
    "SELECT sex, ill, COUNT(*) FROM t WHERE age > 35 GROUP BY sex, ill",
    "SELECT zip % 3 AS z, SUM(zip) FROM t WHERE age = 20 GROUP BY z",
    "SELECT age // 10 AS decade, sex, COUNT(*) FROM t GROUP BY decade, sex",
    "SELECT COUNT(*) FROM t WHERE zip IN (SELECT zip FROM towns WHERE big) AND "
    "CASE WHEN age > 30 THEN sex = 'F' END",
    "SELECT COUNT(*) FROM t WHERE age > 99",
]
TOWNS = pa.table({"zip": [1, 5, 7, 30], "big": [True, False, True, True]})


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dalenius.Release]:
    folder = tmp_path_factory.mktemp("views")
    for seed in (1, 2):
        dalenius.publish(policy(folder / "series", views=3), seed=seed)
    return {
        "one": dalenius.publish(policy(folder / "one"), seed=3),
        "frapp": dalenius.publish(policy(folder / "frapp", method="frapp"), seed=4),
        "series": dalenius.open_release(folder / "series"),
        "second": dalenius.open_release(folder / "series" / "view-2"),
    }


@cache
def domain_table() -> pa.Table:
    relation = duckdb.connect().sql(
        "SELECT * FROM (SELECT unnest(range(20, 40)) AS age), (SELECT unnest(['F', 'M']) AS sex), "
        "(SELECT unnest(range(1, 31)) AS zip), (SELECT unnest(['cold', 'flu', 'hiv', NULL]) AS ill)"
    )
    assert relation is not None
    return relation.to_arrow_table()


def run(question: str, table: pa.Table) -> dict[tuple[Any, ...], float]:
    """The question on a whole table, by group."""
    connection = duckdb.connect()
    connection.register("t", table)
    connection.register("towns", TOWNS)
    rows = connection.execute(question).fetchall()
    return {tuple(row[:-1]): float(row[-1] or 0) for row in rows}


def brute_force(release: dalenius.Release, question: str) -> dict[tuple[Any, ...], float]:
    """(Q(V) − β·Q(D))/α, or FRAPP's inverse, group by group of the domain."""
    shown = run(question, pq.read_table(release.path / "view.parquet"))
    everywhere = run(question, domain_table())
    given = release.manifest["parameters"]
    if given["method"] == "frapp":
        n, gamma_f = release.manifest["rows"]["published"], float(Fraction(given["gamma_f"]))
        other = (1 - gamma_f) / (len(domain_table()) - 1)
        return {g: (shown.get(g, 0) - n * other * q) / (gamma_f - other) for g, q in everywhere.items()}
    view = read(release.stored.manifest)
    law = marginal_law(view.law, view.index)
    alpha, beta = float(law.alpha), float(law.beta)
    return {g: (shown.get(g, 0) - beta * q) / alpha for g, q in everywhere.items()}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("kind", ["one", "frapp", "second"])
def test_estimates_are_those_of_the_definition(
    views: dict[str, dalenius.Release], kind: str, question: str
) -> None:
    answer = views[kind].ask(question, tables={"towns": TOWNS})
    found = {tuple(cell for _, cell in row.group): row.estimate for row in answer.rows}
    expected = brute_force(views[kind], question)
    assert found.keys() == expected.keys()
    assert all(found[g] == pytest.approx(expected[g], rel=1e-9, abs=1e-9) for g in expected)
    assert answer.assumption is None
    for row in answer.rows:
        assert row.low is not None
        assert row.high is not None
        assert row.estimate is not None
        assert row.low <= row.estimate <= row.high


def test_a_text_is_counted_beside_a_sum(views: dict[str, dalenius.Release]) -> None:
    counted, _ = views["one"].ask("SELECT COUNT(ill), SUM(age) FROM t").rows
    (alone,) = views["one"].ask("SELECT COUNT(ill) FROM t").rows
    assert (counted.estimate, counted.std_error) == (alone.estimate, alone.std_error)


def view_of(people: pa.Table, folder: Path) -> dalenius.Release:
    """A view of numbered persons with a sensitive number each, over the numbers that occur."""
    person, secret = people.column_names
    asked = policy(
        folder,
        people,
        active=True,
        columns={"quasi": [person], "sensitive": [secret]},
        promise={"kind": "d-gamma-privacy", "d": 0.3, "gamma": 0.8},
        domains={},
    )
    return dalenius.publish(asked, seed=1)


@pytest.mark.parametrize("large", [1e14, 1e9 + 0.5])
def test_small_numbers_are_summed_beside_large_ones(tmp_path: Path, large: float) -> None:
    costs = [0.1, 2.0, 3.5, 50.0, large]
    table = pa.table({"person": range(200), "cost": [costs[person % 5] for person in range(200)]})
    release = view_of(table, tmp_path / "r")
    law = read(release.stored.manifest).law
    shown = pq.read_table(release.path / "view.parquet").column("cost").to_pylist()
    alpha, beta = float(law.alpha), float(law.beta)
    small = sum(cost for cost in shown if cost < 100)
    total, average = release.ask("SELECT SUM(cost), AVG(cost) FROM t WHERE cost < 100").rows
    assert total.estimate == pytest.approx((small - beta * 200 * sum(costs[:4])) / alpha, rel=1e-6)
    (only,) = release.ask("SELECT AVG(CASE WHEN cost < 100 THEN cost END) FROM t").rows
    assert (average.estimate, average.std_error) == pytest.approx((only.estimate, only.std_error), rel=1e-6)


def test_nan_counts_as_null_and_what_is_infinite_is_not_summed(tmp_path: Path) -> None:
    values = [1.0, 2.0, math.nan, math.inf]
    table = pa.table({"person": range(80), "kilos": [values[person % 4] for person in range(80)]})
    release = view_of(table, tmp_path / "r")
    alone, others = release.ask("SELECT COUNT(kilos), COUNT(*) FILTER (WHERE kilos <> 'nan') FROM t").rows
    assert alone.estimate == pytest.approx(others.estimate)
    with pytest.raises(QueryError, match="is infinite for some values"):
        release.ask("SELECT SUM(kilos) FROM t WHERE kilos < 3")
    total, low, high = release.ask(
        "SELECT SUM(CASE WHEN abs(kilos) < 1e300 THEN kilos END), COUNT(*) FILTER (WHERE kilos = 1), "
        "COUNT(*) FILTER (WHERE kilos = 2) FROM t"
    ).rows
    assert low.estimate is not None
    assert high.estimate is not None
    assert total.estimate == pytest.approx(low.estimate + 2 * high.estimate)


def test_groups_of_the_domain_that_the_view_lacks_are_answered(views: dict[str, dalenius.Release]) -> None:
    question = "SELECT age, zip, ill, COUNT(*) FROM t GROUP BY age, zip, ill"
    rows = views["one"].ask(question).rows
    assert len(rows) == 20 * 30 * 4
    assert min(row.estimate for row in rows if row.estimate is not None) < 0


def test_having_order_and_limit(views: dict[str, dalenius.Release]) -> None:
    rows = (
        views["one"]
        .ask("SELECT ill, COUNT(*) AS n FROM t GROUP BY ill HAVING COUNT(*) > 0 ORDER BY n DESC LIMIT 2")
        .rows
    )
    estimates = [row.estimate for row in rows if row.estimate is not None]
    assert len(rows) == len(estimates) == 2
    assert estimates == sorted(estimates, reverse=True)


def test_an_average_is_the_ratio_of_its_totals(views: dict[str, dalenius.Release]) -> None:
    question = "SELECT AVG(age), SUM(age), COUNT(age), SUM(age) / COUNT(age) FROM t WHERE sex = 'F'"
    average, total, n, ratio = (row.estimate for row in views["one"].ask(question).rows)
    assert total is not None
    assert n is not None
    assert average == pytest.approx(total / n)
    assert ratio == average


@pytest.mark.parametrize("aggregate", ["COUNT(*)", "SUM(age)"])
def test_a_number_that_is_added_moves_the_interval(
    views: dict[str, dalenius.Release], aggregate: str
) -> None:
    question = f"SELECT {aggregate}, {aggregate} + 500, {aggregate} - 500 FROM t WHERE ill = 'flu'"
    plain, *moved = views["one"].ask(question).rows
    for row, added in zip(moved, (500, -500), strict=True):
        for end in ("estimate", "low", "high"):
            assert getattr(row, end) == pytest.approx(getattr(plain, end) + added)


def test_consistent_answers_are_possible(views: dict[str, dalenius.Release]) -> None:
    question = "SELECT age, ill, COUNT(*) FROM t WHERE zip = 3 GROUP BY age, ill"
    plain, moved = views["one"].ask(question), views["one"].ask(question, consistent=True)
    estimates = [row.estimate or 0.0 for row in moved.rows]
    assert min(row.estimate or 0.0 for row in plain.rows) < 0 <= min(estimates)
    assert max(estimates) <= 2
    assert sum(estimates) == pytest.approx(max(0.0, sum(row.estimate or 0.0 for row in plain.rows)))
    assert moved.assumption is not None


def test_what_cannot_be_asked_is_refused(views: dict[str, dalenius.Release]) -> None:
    for question, message in [
        ("SELECT SUM(ill) FROM t", "SUM and AVG need numbers"),
        ("SELECT COUNT(*) FROM t WHERE random() < 0.5", "not possible here"),
        ("SELECT COUNT(*) FROM t GROUP BY (sex, ill)", "is not one value"),
        ("SELECT copy, COUNT(*) FROM t GROUP BY copy", "'copy' is not in the release"),
    ]:
        with pytest.raises(QueryError, match=message):
            views["one"].ask(question)
    with pytest.raises(InputError, match="estimator 'combined' is unknown"):
        views["one"].ask(QUESTIONS[0], estimator="combined")


def test_a_series_is_combined_or_asked_for_its_last_view(views: dict[str, dalenius.Release]) -> None:
    series = views["series"]
    both, last, alone = (
        series.ask(QUESTIONS[0]).rows[0],
        series.ask(QUESTIONS[0], estimator="last-view").rows[0],
        views["second"].ask(QUESTIONS[0]).rows[0],
    )
    assert both.std_error is not None
    assert last.std_error is not None
    assert alone.std_error is not None
    assert both.std_error < min(last.std_error, alone.std_error)


# Calibration: many views of one small table, straight from the mechanism's kernels.

SMALL = Domain.of({"age": range(20, 40), "sex": ["F", "M"], "zip": range(1, 31)})
LAW = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 25))
SERIES = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 20), views=2, decay=Fraction(606531, 10**6))
SHAPE = NoiseLaw.of(SMALL, {"sex": ["3/4", "1/4"]})
GAMMA_F = Fraction(1, 4)
CALIBRATED = [
    "SELECT COUNT(*) FROM t WHERE zip < age",
    "SELECT COUNT(*) FROM t WHERE age = 21 AND sex = 'F'",
    "SELECT SUM(zip) FROM t WHERE age < 25",
    "SELECT AVG(zip) FROM t WHERE sex = 'M'",
]
KINDS = ["one", "shaped", "series", "last-view", "frapp"]
N_RELEASES = 100
CONFIDENCE = 0.9


def small_table() -> TupleCodes:
    rng = np.random.default_rng(11)
    drawn = (rng.integers(20, size=250), rng.integers(2, size=250), rng.integers(30, size=250))
    return union(SMALL, [drawn])


def published_of(kind: str) -> PublishedView:
    gamma, size = Fraction(1, 2), SMALL.size
    return PublishedView(
        domain=SMALL,
        law={"one": LAW, "shaped": LAW}.get(kind, SERIES),
        noise=SHAPE if kind == "shaped" else None,
        d=Fraction(1, 10),
        gamma=gamma,
        adversary="independent",
        promised_views=2,
        domain_size=size,
        index=2 if kind in ("series", "last-view") else 1,
        counts_rows=False,
    )


def drawn_model(kind: str, seed: int) -> TupleModel:
    table, stream = small_table(), Randomness.seeded(seed).stream("view")
    if kind == "frapp":
        law = FrappLaw(k=Fraction(1), gamma_f=GAMMA_F, domain_size=SMALL.size)
        stated = PublishedFrapp(
            domain=SMALL, law=law, gamma=Fraction(1, 2), domain_size=SMALL.size, counts_rows=True
        )
        return frapp.model_of(stated, SMALL.names, frapp_view(SMALL, table, GAMMA_F, stream))
    view = published_of(kind)
    views = [first_view(SMALL, table, view.law, stream, view.noise)]
    if view.index == 2:
        views.append(next_view(SMALL, table, views, SERIES, stream))
    return alphabeta.model_of(view, SMALL.names, views)


def many_answers(kind: str) -> Iterator[list[Answer]]:
    """Of many draws. What a question counts is a function on the domain: it is worked out for the first."""
    queries = [parse(question, SMALL.names) for question in CALIBRATED]
    limits = Limits(seconds=86_400)  # of all draws together
    workspace = Workspace(database=Database({}, limits), deadline=Deadline(limits))
    asked = drawn_model(kind, 0).evaluate(queries, workspace)
    for seed in range(N_RELEASES):
        model = drawn_model(kind, seed)
        estimator = kind if kind == "last-view" else model.estimators.names[0]
        request = Request(confidence=CONFIDENCE, estimator=estimator)
        yield answer_asked(model, queries, asked, request, workspace)


@pytest.mark.parametrize("kind", KINDS)
def test_estimates_are_unbiased_with_honest_errors_and_intervals(kind: str) -> None:
    truths = [sum(run(q, pa.Table.from_batches([SMALL.decode(small_table())])).values()) for q in CALIBRATED]
    answers = list(many_answers(kind))
    for k, truth in enumerate(truths):
        rows = [answer[k].rows[0] for answer in answers]
        estimate = np.array([row.estimate for row in rows], dtype=float)
        claimed = np.array([row.std_error for row in rows], dtype=float)
        error = estimate.std(ddof=1) / math.sqrt(N_RELEASES)
        slack = 0.0 if k < 3 else 0.02 * truth  # a ratio is unbiased to first order only
        assert abs(estimate.mean() - truth) < Z * error + slack
        assert k > 0 or abs(estimate.mean() - 1.6 * truth) > Z * error
        ratio = (claimed**2).mean() / estimate.var(ddof=1)
        assert 0.5 < ratio < 2.0
        low, high = (np.array([getattr(row, side) for row in rows], dtype=float) for side in ("low", "high"))
        assert misses_too_often((low <= truth) & (truth <= high)) > FALSE_ALARM
        assert misses_too_often(np.abs(estimate - truth) <= 0.6 * claimed) < FALSE_ALARM
        assert (high - low).mean() < 5 * 2 * 1.645 * claimed.mean()


def misses_too_often(covered: np.ndarray) -> float:
    """How likely so few hits are if intervals cover as often as they claim."""
    hits, n = int(covered.sum()), len(covered)
    return float(stats.binomtest(hits, n, CONFIDENCE, alternative="less").pvalue)


def test_errors_stay_within_rho_at_its_confidence(tmp_path: Path) -> None:
    """Through the whole pipeline: publish, open, ask. The bound is for one query, so one query is asked."""
    rules = [policy(tmp_path / f"r{seed}", survey(120, seed=7)) for seed in range(24)]
    plan = dalenius.plan(rules[0]).to_dict()
    bound = plan["rho"] * math.sqrt(plan["tuples"])
    truth = run(
        "SELECT COUNT(*) FROM t WHERE zip <= age",
        survey(120, seed=7).group_by(list(survey().column_names)).aggregate([]),
    )[()]
    errors = []
    for seed, one in enumerate(rules):
        (row,) = dalenius.publish(one, seed=seed).ask("SELECT COUNT(*) FROM t WHERE zip <= age").rows
        assert row.estimate is not None
        errors.append(abs(row.estimate - truth))
    misses = sum(error > bound for error in errors)
    assert stats.binomtest(misses, len(errors), 0.05, alternative="greater").pvalue > FALSE_ALARM
    too_small = sum(error > bound / 12 for error in errors)
    assert stats.binomtest(too_small, len(errors), 0.05, alternative="greater").pvalue < FALSE_ALARM
