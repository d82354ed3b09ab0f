"""Comparisons: numbers beside a slow twin, baselines, what is refused, and that nothing is left behind."""

from __future__ import annotations

import json
import math
import statistics
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import dalenius
from dalenius.demo_data import hospital
from dalenius.engines.base import silent
from dalenius.errors import InputError, PolicyError
from dalenius.evaluate.compare import Comparison, Standing, compare_policies, sample_randomness
from dalenius.evaluate.contender import matched_epsilon, policy_contender, release_seed
from dalenius.evaluate.original import read_shared
from dalenius.evaluate.sql_workload import SqlWorkload
from dalenius.evaluate.workload import AnatomyWorkload, Marginals
from dalenius.policy import Policy
from dalenius.randomness import Randomness

TABLE = hospital(600)
ROLES = {"unit": "patient_id", "identifiers": ["name"], "sensitive": ["disease"]}
DIVERSE = {"kind": "l-diversity", "l": 4}
RHO = {"kind": "rho-privacy", "rho1": "max", "rho2": "1/4"}
WORKLOAD = AnatomyWorkload(n_questions=12, selectivity=0.1, most_quasi=2)


def policy(promise: dict[str, Any], table: Any = TABLE, **sections: Any) -> Policy:
    columns = {**ROLES, "quasi": ["age", "sex", "district", "insurance"]}
    given: dict[str, Any] = {"source": table, "columns": columns, "promise": promise, **sections}
    return Policy.from_dict(given)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    policies = {
        "diverse": policy(DIVERSE),
        "perturbed": policy(RHO, mechanism={"method": "small-domain"}),
        "too strict": policy({"kind": "l-diversity", "l": 7}),
    }
    metrics = ["relative-error", "median-relative-error", "rmse", "mse", "loss", "retention", "suppressed"]
    return compare_policies(policies, workload=WORKLOAD, metrics=metrics, n_seeds=2, seed=3)


def named(comparison: Comparison, name: str) -> Standing:
    return next(one for one in comparison.standings if one.contender.name == name)


def test_errors_are_those_of_a_slow_twin(comparison: Comparison, tmp_path: Path) -> None:
    """Publish again with the same seeds, ask one by one, count with DuckDB, and average in loops."""
    own = policy(DIVERSE)
    shared = read_shared({"diverse": own}, silent)
    randomness = Randomness.seeded(3)
    asked = WORKLOAD.questions(shared.original, randomness.stream("compare", "workload"))
    connection = duckdb.connect()
    connection.register("t", TABLE)
    means, medians, squares = [], [], []
    for number in range(2):
        draw = sample_randomness(randomness, policy_contender("diverse", own, shared), number)
        twin = policy(DIVERSE, release=str(tmp_path / f"{number}.release"))
        release = dalenius.publish(twin, seed=release_seed(draw))
        errors, offs = [], []
        for sql in asked.sqls:
            (truth,) = connection.execute(sql).fetchone() or (0,)
            estimate = release.ask(sql).rows[0].estimate
            assert estimate is not None
            errors.append(abs(estimate - truth) / max(truth, 0.001 * 600))
            offs.append((estimate - truth) ** 2)
        means.append(statistics.mean(errors))
        medians.append(statistics.median(errors))
        squares.append(statistics.mean(offs))
    spreads = named(comparison, "diverse").spreads
    assert spreads["relative-error"].values == pytest.approx(means, rel=1e-9)
    assert spreads["relative-error"].deviation == pytest.approx(statistics.stdev(means), rel=1e-6)
    assert spreads["median-relative-error"].mean == pytest.approx(statistics.mean(medians), rel=1e-9)
    assert spreads["mse"].values == pytest.approx(squares, rel=1e-9)
    assert spreads["rmse"].values == pytest.approx([math.sqrt(one) for one in squares], rel=1e-9)
    with connection:
        plan = dalenius.plan(own).to_dict()
    assert spreads["loss"].mean == plan["loss"]
    assert spreads["retention"].mean == pytest.approx(0.25, abs=0.01)


def test_retention_of_parts_is_what_their_plan_says(comparison: Comparison) -> None:
    parts = dalenius.plan(policy(RHO, mechanism={"method": "small-domain"})).to_dict()["parts"]
    kept = sum(part["rows"] * part["diagonal"] for part in parts) / 600
    assert named(comparison, "perturbed").spreads["retention"].mean == pytest.approx(kept)


def test_baselines_are_there_at_the_bound_that_can_be_kept(comparison: Comparison) -> None:
    names = [one.contender.name for one in comparison.standings if one.contender.is_baseline]
    assert names == ["Anatomy", "UP", "FRAPP", "Laplace", "suppress-all"]
    assert all(named(comparison, name).bound == 0.25 for name in names[:-1])
    nothing = named(comparison, "suppress-all")
    assert nothing.spreads["relative-error"].mean <= 1
    assert nothing.spreads["suppressed"].mean == 1
    largest = max(count for _, count in _counted()) / 600
    assert nothing.bound == pytest.approx(largest)
    epsilon = named(comparison, "Laplace").contender.epsilon
    assert epsilon == pytest.approx(matched_epsilon(Fraction(round(largest * 600), 600), Fraction(1, 4)))


def _counted() -> list[tuple[str, int]]:
    rows = TABLE.group_by("disease").aggregate([("disease", "count")]).to_pylist()
    return [(row["disease"], row["disease_count"]) for row in rows]


def test_a_promise_that_cannot_be_kept_is_shown_with_its_reason(comparison: Comparison) -> None:
    strict = named(comparison, "too strict")
    assert strict.reason is not None
    assert "more frequent than their threshold" in strict.reason
    assert comparison.is_feasible
    described = {one["policy"]: one for one in comparison.to_dict()["policies"]}
    assert described["too strict"]["feasible"] is False
    only = compare_policies({"strict": policy({"kind": "l-diversity", "l": 7})}, workload=WORKLOAD, n_seeds=1)
    assert not only.is_feasible
    assert not only.best


def test_the_json_holds_a_value_per_policy_and_metric_and_says_that_it_is_private(
    comparison: Comparison,
) -> None:
    found = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert found["private"] is True
    pairs = [(row["policy"], row["metric"]) for row in found["results"]]
    assert len(pairs) == len(set(pairs)) == len(comparison.standings) * (len(comparison.measures) + 1)
    cells = sum(row["cells"] for row in found["by_selectivity"] if row["policy"] == "diverse")
    assert cells == 2 * comparison.n_cells
    assert all(len(row["values"]) == 2 for row in found["results"] if row["spread"] is not None)
    perturbed = [row for row in found["by_selectivity"] if row["policy"] == "perturbed"]
    assert all(set(row["spread"]) == {"relative-error", "median-relative-error", "rmse"} for row in perturbed)
    assert any(row["spread"]["rmse"] > 0 for row in perturbed)
    assert {row["policy"] for row in found["best"]} <= {"diverse", "perturbed"}
    assert any("FRAPP" in note for note in found["not_comparable"])


def test_the_frontier_is_what_no_other_one_beats(comparison: Comparison) -> None:
    values = [(one.bound, one.value(comparison.measure) or 0.0, one) for one in comparison.ranked]
    slow = {
        id(one)
        for bound, error, one in values
        if not any(b <= bound and e <= error and (b, e) != (bound, error) for b, e, _ in values)
    }
    assert {id(one) for one in comparison.frontier} == slow
    bounds = [one.bound for one in comparison.frontier]
    assert bounds == sorted(bounds)
    best = min((error, one.contender.name) for _, error, one in values if not one.contender.is_baseline)
    assert [one.policy for one in comparison.best] == [best[1]]
    assert "the next policy" in comparison.best[0].reason


def test_the_reason_says_what_the_axis_hides() -> None:
    """Anatomy with the same largest bound errs less than thresholds that are far lower for rare values."""
    promise = {"kind": "f-privacy", "default": {"times": 3, "plus": "0.02"}}
    found = compare_policies({"own": policy(promise)}, workload=WORKLOAD, n_seeds=1, seed=4)
    (best,) = found.best
    assert "but the baseline" in best.reason
    assert "no baseline keeps its lower thresholds, down to" in best.reason


def test_a_seed_repeats_everything_but_the_noise_of_opendp_and_nothing_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DALENIUS_LEDGER", str(tmp_path / "ledger"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    views = policy(
        {"kind": "d-gamma-privacy", "k": 2, "gamma": "1/4"},
        mechanism={"domains": "active", "duplicates": "distinct", "views": 2},
        release=str(tmp_path / "views"),
    )
    batches = policy(DIVERSE, release=str(tmp_path / "daily"), series={"kind": "batches"})
    first, second = (
        compare_policies({"views": views, "batch": batches}, workload=WORKLOAD, n_seeds=1, seed=8)
        for _ in range(2)
    )
    for one, again in zip(first.standings, second.standings, strict=True):
        if one.contender.kind != "laplace":
            assert one.spreads == again.spreads
    assert named(first, "views").reason is None
    assert [path.name for path in tmp_path.rglob("*")] == ["scratch"]


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    own = policy(DIVERSE)
    coarse = policy(RHO, recode={"age": {"bins": [0, 50, 120]}})
    columns = {"unit": "patient_id", "identifiers": ["name"], "quasi": ["age", "sex", "disease"]}
    swapped = {**columns, "sensitive": ["district"], "dropped": ["insurance"]}
    other_secret = Policy.from_dict({"source": TABLE, "columns": swapped, "promise": {**DIVERSE, "l": 2}})
    for others, words in (
        ({}, "no policy"),
        ({"b": policy(DIVERSE, table=hospital(500))}, "only policies for one table"),
        ({"b": coarse}, "recode 'age' differently"),
        ({"b": other_secret}, "about different columns"),
    ):
        with pytest.raises(InputError, match=words):
            compare_policies({"a": own, **others} if others else {}, workload=WORKLOAD)
    with pytest.raises(InputError, match="did you mean 'rmse'"):
        compare_policies({"a": own}, metrics=["rmsee"])
    with pytest.raises(InputError, match="0 draws"):
        compare_policies({"a": own}, n_seeds=0)
    unchosen = policy({"kind": "d-gamma-privacy", "k": 2, "gamma": "1/4"}, mechanism={"domains": ["age"]})
    with pytest.raises(PolicyError, match="unchosen: "):
        compare_policies({"unchosen": unchosen}, workload=WORKLOAD, n_seeds=1)


def test_other_workloads_and_measures() -> None:
    """Distances, accuracy, means that noise cannot answer, and a policy without a sensitive column."""
    share = "AVG(CASE WHEN insurance = 'private' THEN 1 ELSE 0 END) AS share"
    text = f"SELECT sex, {share}, COUNT(*) AS n FROM t WHERE disease = 'Flu' GROUP BY sex"
    few = TABLE.select(["age", "sex", "insurance", "disease"])
    columns = {"quasi": ["sex", "insurance"], "sensitive": ["disease"], "dropped": ["age"]}
    own = Policy.from_dict({"source": few, "columns": columns, "promise": DIVERSE})
    found = compare_policies(
        {"diverse": own},
        workload=SqlWorkload(name="own", text=text),
        metrics=["total-variation", "hellinger", "accuracy"],
        n_seeds=1,
        seed=1,
    )
    diverse, nothing = named(found, "diverse"), named(found, "suppress-all")
    assert diverse.spreads["total-variation"].mean < nothing.spreads["total-variation"].mean
    assert diverse.spreads["hellinger"].mean < nothing.spreads["hellinger"].mean
    assert 0.1 < diverse.spreads["accuracy"].mean < 1
    assert nothing.spreads["accuracy"].mean == pytest.approx(0.2, abs=0.08)
    assert found.n_cells == 4
    laplace = named(found, "Laplace")
    assert laplace.reason is not None
    assert "counts only" in laplace.reason


def test_withheld_records_are_counted_and_their_bound_is_that_of_the_buckets() -> None:
    thinned = policy({"kind": "l-diversity", "l": 6}, suppress={"method": "safe"})
    found = compare_policies({"thinned": thinned}, workload=WORKLOAD, metrics=["suppressed"], n_seeds=1)
    standing = named(found, "thinned")
    assert standing.bound == pytest.approx(1 / 6)
    assert standing.spreads["suppressed"].mean == dalenius.plan(thinned).to_dict()["suppressed"] / 600 > 0


def test_views_of_whole_rows_are_compared_without_a_sensitive_column() -> None:
    table = pa.table({"a": [i % 7 for i in range(60)], "b": [i % 11 for i in range(60)]})
    whole = Policy.from_dict(
        {
            "source": table,
            "columns": {"quasi": ["a", "b"], "sensitive": []},
            "promise": {"kind": "d-gamma-privacy", "d": "1/10", "gamma": "1/2"},
            "mechanism": {"domains": "active"},
        }
    )
    found = compare_policies({"view": whole}, workload=Marginals(most_columns=1), n_seeds=1, seed=1)
    assert [one.contender.name for one in found.standings] == ["view", "FRAPP", "suppress-all"]
    assert named(found, "view").reason is None
