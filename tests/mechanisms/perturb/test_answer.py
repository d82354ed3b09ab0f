"""Perturbed releases: answers are sums of weighted rows, unbiased, and their intervals hold the truth."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

import dalenius
from dalenius.ask import Opened, _open, ask, ask_many
from dalenius.mechanisms.perturb.answer import PerturbedRows, merge_terms, without_overlap
from dalenius.mechanisms.perturb.apply import Perturber
from dalenius.mechanisms.perturb.channel import Laws
from dalenius.mechanisms.perturb.mechanism import PerturbTablePlan
from dalenius.question.model import Model
from dalenius.question.sql import parse_shared
from dalenius.question.targets import Score
from dalenius.randomness import Randomness
from dalenius.release.folder import StoredRelease
from dalenius.tables.columns import CodedTable
from tests.ask.conftest import SENSITIVE
from tests.ask.test_brute_force import CONDITIONS, KEYS, SUMMANDS
from tests.ask.test_files import questions
from tests.chance import FALSE_ALARM, Z
from tests.mechanisms.perturb.reference import estimate_rows
from tests.mechanisms.perturb.test_mechanism import channels_of

METHODS = ["small-domain", "least-variance", "uniform"]


def policy(table: pa.Table, path: Path, method: str = "small-domain") -> dalenius.Policy:
    quasi = [spelled(name) for name in table.column_names if name not in SENSITIVE]
    return dalenius.Policy.from_dict(
        {
            "source": table.rename_columns([spelled(name) for name in table.column_names]),
            "release": str(path),
            "columns": {"quasi": quasi, "sensitive": SENSITIVE},
            "promise": {"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"},
            "mechanism": {"kind": "perturb", "method": method},
        }
    )


def publish(table: pa.Table, path: Path, method: str = "small-domain") -> StoredRelease:
    return dalenius.publish(policy(table, path, method), seed=1).stored


def spelled(sql: str) -> str:
    """`weight` is a name that published tables reserve."""
    return sql.replace("weight", "mass")


@pytest.fixture(scope="module", params=METHODS)
def perturbed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, table: pa.Table
) -> StoredRelease:
    return publish(table, tmp_path_factory.mktemp("perturbed") / "r", request.param)


def weighted(release: StoredRelease) -> duckdb.DuckDBPyConnection:
    """Every published row with every value that its part has, weighted as section 3 says."""
    connection = release.connect()
    parameters = release.manifest.parameters
    channels = channels_of(release.manifest.parameters)
    listed = [
        (number, float(channel.gamma), channel.n_values, *parameters["values"][code])
        for number, channel in enumerate(channels, start=1)
        for code in channel.codes
    ]
    connection.register(
        "domain",
        pa.table(
            dict(
                zip(
                    ["number", "gamma", "m", "disease", "severity"],
                    map(list, zip(*listed, strict=True)),
                    strict=True,
                )
            )
        ),
    )
    connection.execute(
        """CREATE TEMP TABLE weighted AS
           SELECT data.* EXCLUDE (part, disease, severity), d.disease, d.severity::BIGINT AS severity,
                  ((m - 1 + gamma) * (data.disease IS NOT DISTINCT FROM d.disease
                    AND data.severity IS NOT DISTINCT FROM d.severity::BIGINT)::INT - 1) / (gamma - 1) AS w
           FROM data JOIN domain AS d ON part = number"""
    )
    return connection


@pytest.fixture(scope="module")
def rows(perturbed: StoredRelease) -> duckdb.DuckDBPyConnection:
    return weighted(perturbed)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(condition=CONDITIONS, summand=st.sampled_from(SUMMANDS), filtered=CONDITIONS)
def test_any_condition_and_summand(
    perturbed: StoredRelease, rows: duckdb.DuckDBPyConnection, condition: str, summand: str, filtered: str
) -> None:
    condition, summand, filtered = spelled(condition), spelled(summand), spelled(filtered)
    expected = rows.execute(
        f"""SELECT sum(w * ({summand})),
                   coalesce(sum(w) FILTER (WHERE ({summand}) IS NOT NULL), 0),
                   coalesce(sum(w) FILTER (WHERE {filtered}), 0) FROM weighted WHERE {condition}"""
    ).fetchone()
    assert expected is not None
    answer = ask(
        perturbed,
        f"SELECT SUM({summand}), COUNT({summand}), COUNT(*) FILTER (WHERE {filtered}) "
        f"FROM t WHERE {condition}",
    )
    found = [row.estimate for row in answer.rows]
    assert found == pytest.approx(
        [None if number is None else float(number) for number in expected], abs=1e-5
    )
    assert answer.assumption is None


@settings(max_examples=25)
@given(condition=CONDITIONS, keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True))
def test_any_grouping(
    perturbed: StoredRelease, rows: duckdb.DuckDBPyConnection, condition: str, keys: list[str]
) -> None:
    condition, listed = spelled(condition), ", ".join(keys)
    expected = {
        row[:-2]: (float(row[-2]), float(row[-1]))
        for row in rows.execute(
            f"SELECT {listed}, sum(w), sum(w * age) FROM weighted WHERE {condition} GROUP BY ALL"
        ).fetchall()
    }
    answer = ask(perturbed, f"SELECT {listed}, COUNT(*), SUM(age) FROM t WHERE {condition} GROUP BY {listed}")
    found: dict[tuple[object, ...], list[float]] = {}
    for row in answer.rows:
        numbers = found.setdefault(tuple(value for _, value in row.group), [])
        assert row.estimate is not None or numbers == [0.0]  # a sum over nobody is NULL
        numbers.append(row.estimate or 0.0)
    assert set(expected) <= set(found)
    for key, pair in found.items():
        assert tuple(pair) == pytest.approx(expected.get(key, (0.0, 0.0)), abs=1e-5)


@pytest.fixture(scope="module")
def pairs(perturbed: StoredRelease) -> duckdb.DuckDBPyConnection:
    """Every published row with every value of the table, whatever the parts have."""
    connection = perturbed.connect()
    values = perturbed.manifest.parameters["values"]
    columns = {"disease": [v[0] for v in values], "severity": [v[1] for v in values]}
    connection.register("listed", pa.table({"code": range(len(values)), **columns}))
    connection.execute("CREATE TEMP TABLE numbered AS SELECT *, row_number() OVER () - 1 AS place FROM data")
    connection.execute(
        """CREATE TEMP TABLE pairs AS
           SELECT n.* EXCLUDE (disease, severity), code, listed.disease, listed.severity::BIGINT AS severity
           FROM numbered AS n, listed"""
    )
    return connection


@settings(max_examples=25)
@given(condition=CONDITIONS, summand=st.sampled_from(SUMMANDS))
def test_any_variance(
    perturbed: StoredRelease, pairs: duckdb.DuckDBPyConnection, condition: str, summand: str
) -> None:
    """The standard error is that of the definition, with a_r(x) written out for every row and value."""
    condition, summand = spelled(condition), spelled(summand)
    asked = pairs.execute(
        f"""SELECT coalesce(CASE WHEN {condition} THEN ({summand})::DOUBLE END, 0) FROM pairs
            ORDER BY place, code"""
    ).fetchnumpy()
    codes = {tuple(value): code for code, value in enumerate(perturbed.manifest.parameters["values"])}
    published = pairs.execute(
        "SELECT part - 1, disease, severity::VARCHAR FROM numbered ORDER BY place"
    ).fetchall()
    expected = estimate_rows(
        channels_of(perturbed.manifest.parameters),
        np.array([row[0] for row in published]),
        np.array([codes[row[1:]] for row in published]),
        np.reshape(next(iter(asked.values())), (len(published), -1)),
    )
    (row,) = ask(perturbed, f"SELECT SUM({summand}) FROM t WHERE {condition}").rows
    assert row.std_error == pytest.approx(expected.std_error, abs=1e-4 * max(1.0, expected.std_error))


@pytest.mark.parametrize(("meaning", "question"), questions("must_answer.sql"))
def test_every_kind_of_question_is_answered(
    meaning: str, question: str, perturbed: StoredRelease, regions: pa.Table
) -> None:
    answer = ask(perturbed, spelled(question), tables={"regions": regions})
    for row in answer.rows:
        if row.estimate is not None and row.status == "estimate":
            assert row.std_error is not None
            assert row.low is not None, meaning
            assert row.high is not None
            assert row.low <= row.high


def test_questions_about_quasi_identifiers_are_exact(perturbed: StoredRelease, table: pa.Table) -> None:
    answer = ask(perturbed, "SELECT COUNT(*), SUM(age), AVG(age) FROM t WHERE sex = 'F' AND age > 33")
    raw = duckdb.connect()
    raw.register("t", table)
    expected = raw.execute(
        "SELECT COUNT(*), SUM(age), AVG(age) FROM t WHERE sex = 'F' AND age > 33"
    ).fetchone()
    assert expected is not None
    assert [row.estimate for row in answer.rows] == pytest.approx(list(map(float, expected)))
    assert {row.status for row in answer.rows} == {"exact"}


def test_estimates_are_not_clipped_and_can_be_made_consistent(perturbed: StoredRelease) -> None:
    sql = "SELECT age, disease, severity, COUNT(*) FROM t GROUP BY age, disease, severity"
    plain, moved = ask(perturbed, sql), ask(perturbed, sql, consistent=True)
    assert min(row.estimate for row in plain.rows if row.estimate is not None) < 0
    assert min(row.estimate for row in moved.rows if row.estimate is not None) >= 0
    assert moved.assumption is not None
    assert "no longer unbiased" in moved.assumption


def test_it_explains_itself_and_offers_hoeffdings_interval(perturbed: StoredRelease) -> None:
    sql = "SELECT COUNT(*) FROM t WHERE disease = 'Flu' AND age > 40"
    score, wide = ask(perturbed, sql), ask(perturbed, sql, estimator="hoeffding")
    assert "gamma_j" in score.explain
    assert "the publisher" in score.explain
    assert score.rows[0].estimate == wide.rows[0].estimate
    assert score.rows[0].low is not None
    assert wide.rows[0].low is not None
    assert wide.rows[0].low <= score.rows[0].low
    with pytest.raises(dalenius.InputError, match="unknown"):
        ask(perturbed, sql, estimator="anatomy")


QUESTIONS = [
    "SELECT COUNT(*) FROM t WHERE disease = 'Flu'",
    "SELECT COUNT(*) FROM t WHERE disease IS NULL AND age > 50",
    "SELECT COUNT(*) FROM t WHERE disease = 'Gout' AND age IN (30, 31, 32)",
    "SELECT COUNT(*) FROM t WHERE age / 25 > severity",
    "SELECT SUM(severity) FROM t WHERE sex = 'F'",
    "SELECT SUM(age * severity) FROM t WHERE zip = '10115'",
    "SELECT SUM(mass) FROM t WHERE disease IN ('Cold', 'Flu') AND age < 30",
]
RATIOS = [
    "SELECT AVG(severity) FROM t",
    "SELECT AVG(age) FROM t WHERE disease = 'Cold'",
    "SELECT COUNT(*) FILTER (WHERE disease = 'Flu') / COUNT(*) FROM t WHERE sex = 'M'",
]
N_RELEASES = 250


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory, table: pa.Table) -> dict[float, np.ndarray]:
    """By confidence: releases × questions × (estimate, std error, low, high), over many perturbations."""
    with pytest.MonkeyPatch.context() as patch:
        # the same ten texts, asked of the same columns 375 times: reading them took a third of the time
        read = cache(parse_shared)
        patch.setattr("dalenius.ask.parse_shared", lambda text, names, _: read(text, tuple(names)))
        return answer_often(tmp_path_factory.mktemp("many"), table)


def answer_often(folder: Path, table: pa.Table) -> dict[float, np.ndarray]:
    found: dict[float, list[list[list[float | None]]]] = {0.90: [], 0.95: [], 0.99: []}
    for method in METHODS[:2]:
        first = publish(table, folder / method, method)
        plan = dalenius.plan(policy(table, Path("unused"), method))
        assert isinstance(plan, PerturbTablePlan)
        codes = plan.histogram.encoder(plan.schema).encode(table.combine_chunks().to_batches()[0])
        rows = CodedTable.of(policy(table, Path("unused")).source.table.select(["age", "sex", "mass", "zip"]))  # type: ignore[attr-defined]
        model = PerturbedRows.load(first)
        for seed in range(N_RELEASES // 2):
            perturber = Perturber(plan.perturbation, Randomness.seeded(seed))
            parts, values = perturber.perturb(codes)
            law = Laws.of(plan.perturbation.channels, len(plan.histogram))
            drawn = replace(model, rows=rows, laws=law, cells=law.cells(parts, values))
            release = opened_as(first, drawn.model(), f"{seed:032x}")
            for confidence, listed in found.items():
                given_ = ask_many(release, [*QUESTIONS, *RATIOS], confidence=confidence)
                listed.append([[r.estimate, r.std_error, r.low, r.high] for a in given_ for r in a.rows])
    return {confidence: np.array(listed, dtype=float) for confidence, listed in found.items()}


def opened_as(release: StoredRelease, model: Model, name: str) -> StoredRelease:
    """The release, but with what another draw of its coins would have published."""
    other = replace(release, manifest=replace(release.manifest, id=name))
    key = (str(release.path.resolve()), name, 0)
    shared = _open.get((str(release.path.resolve()), "shared", 0))
    if shared is None:
        shared = Opened(model=model)
    _open.clear()
    _open[key[0], "shared", 0] = shared
    _open[key] = replace(shared, model=model)  # the values are the same: what was looked up stays
    return other


@pytest.fixture(scope="module")
def truths(table: pa.Table) -> np.ndarray:
    raw = duckdb.connect()
    raw.register("t", table.rename_columns([spelled(name) for name in table.column_names]))
    return np.array([float(raw.execute(sql).fetchall()[0][0]) for sql in [*QUESTIONS, *RATIOS]])


def test_answers_are_unbiased_with_the_claimed_error(
    answers: dict[float, np.ndarray], truths: np.ndarray
) -> None:
    estimate, claimed = answers[0.95][:, : len(QUESTIONS), 0], answers[0.95][:, : len(QUESTIONS), 1]
    error = np.sqrt((claimed**2).mean(axis=0))
    away = (estimate.mean(axis=0) - truths[: len(QUESTIONS)]) / error * np.sqrt(N_RELEASES)
    assert np.abs(away).max() < Z
    ratio = estimate.var(axis=0, ddof=1) / error**2
    assert np.abs(ratio - 1).max() < Z * np.sqrt(2.5 / N_RELEASES)
    # a bias of half a standard error would be noticed, and a standard error a third off
    assert np.sqrt(N_RELEASES) / 2 > Z
    assert abs(1.34**2 - 1) > Z * np.sqrt(2.5 / N_RELEASES)


@pytest.mark.parametrize("confidence", [0.90, 0.95, 0.99])
def test_intervals_hold_the_truth(
    confidence: float, answers: dict[float, np.ndarray], truths: np.ndarray
) -> None:
    low, high = answers[confidence][..., 2], answers[confidence][..., 3]
    hits = ((low - 1e-9 <= truths) & (truths <= high + 1e-9)).sum(axis=0)
    fewest = stats.binom.ppf(FALSE_ALARM, N_RELEASES, confidence)
    assert hits.min() >= fewest
    middle, reach = (low + high) / 2, (high - low) / 4
    halved = (np.abs(truths - middle) <= reach).sum(axis=0)
    assert (halved < fewest).all() or confidence == 0.99
    assert (halved < fewest).any()


@given(
    terms=st.lists(
        st.tuples(
            st.dictionaries(st.integers(0, 5), st.sampled_from([1.0, -1.0, 2.5]), min_size=1),
            st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=4, max_size=4),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_terms_keep_their_meaning(terms: list[tuple[dict[int, float], list[float]]]) -> None:
    def meaning(listed: list[tuple[Score, np.ndarray]]) -> np.ndarray:
        table = np.zeros((6, 4))
        for score, weights in listed:
            table[score.rows] += np.outer(1.0 if score.values is None else score.values, weights)
        return table

    given_ = [
        (
            Score(rows=np.array(sorted(own)), values=np.array([own[row] for row in sorted(own)])),
            np.array(weights),
        )
        for own, weights in terms
    ]
    merged = merge_terms(given_)
    np.testing.assert_allclose(meaning(merged), meaning(given_))
    if merged:
        apart = without_overlap(merged)
        np.testing.assert_allclose(meaning(apart), meaning(given_))
        assert sum(weights != 0 for _, weights in apart).max() <= 1
