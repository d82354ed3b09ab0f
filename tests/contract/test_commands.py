"""What every mechanism offers besides releases: each command does its work on them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pytest

from dalenius.cli.main import run
from tests.contract.subject import Subject, declared, people
from tests.contract.subjects import SPARK_SUBJECTS, SUBJECTS

every_local_subject = pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
every_subject = pytest.mark.parametrize(
    "subject", [*SUBJECTS, *SPARK_SUBJECTS], ids=lambda subject: subject.name
)
BY_DISEASE = "SELECT disease, COUNT(*) AS n FROM t GROUP BY disease"


def as_toml(value: Any) -> str:
    """A value of a policy."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {as_toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value)


@pytest.fixture
def policy(subject: Subject, tmp_path: Path) -> Path:
    """A policy file of the subject, with its table beside it."""
    table = people()
    pyarrow.csv.write_csv(table, tmp_path / "people.csv")
    columns = {"quasi": ["uid", "age"], "sensitive": ["disease"]}
    sections = {"columns": columns, "promise": subject.promise, "mechanism": subject.mechanism}
    if subject.suppress is not None:
        sections["suppress"] = subject.suppress
    if subject.declares_domains:
        sections["domains"] = declared(table, table.column_names)
    lines = ['source = "people.csv"', 'release = "people.release"']
    for name, section in sections.items():
        lines += [f"[{name}]", *(f"{key} = {as_toml(value)}" for key, value in section.items())]
    path = tmp_path / "people.toml"
    path.write_text("\n".join(lines))
    return path


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    """What a command prints, which must have gone well."""
    code = run([*map(str, arguments), "--json"])
    printed = capsys.readouterr()
    assert code == 0, printed.out + printed.err
    found: dict[str, Any] = json.loads(printed.out)
    return found


def estimates(answer: dict[str, Any]) -> dict[str, float]:
    return {row["group"]["disease"]: row["estimate"] for row in answer["rows"]}


@every_subject
def test_from_a_plan_to_a_report(
    subject: Subject, policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And to a database, where what is weighted adds up to what is answered."""
    release, table = tmp_path / "people.release", tmp_path / "people.csv"
    kind = subject.mechanism["kind"]
    plan = call(capsys, "plan", policy)
    assert (plan["mechanism"], plan["feasible"], plan["rows"]) == (kind, True, 600)
    assert call(capsys, "publish", policy, "--seed", 1, "--engine", subject.engine)["rows"] == 600
    assert call(capsys, "verify", release)["ok"]
    answer = call(capsys, "ask", release, BY_DISEASE)
    truth = pa.csv.read_csv(table).group_by("disease").aggregate([("uid", "count")])
    assert set(estimates(answer)) == set(truth["disease"].to_pylist())
    assert all(row["low"] <= row["estimate"] <= row["high"] for row in answer["rows"])
    audit = call(capsys, "audit", release, "--original", policy, "--seed", 1)
    assert audit["ok"]
    assert {attack["name"] for attack in audit["attacks"]} >= {"metadata"}
    report = call(capsys, "report", release, "--original", policy, "--output", tmp_path / "report.html")
    assert report["ok"]
    assert kind in (tmp_path / "report.html").read_text()
    exported = call(capsys, "export", release, "--to", tmp_path / "people.duckdb")
    with duckdb.connect(str(tmp_path / "people.duckdb"), read_only=True) as connection:
        total = f"SELECT disease, SUM(weight) FROM {exported['view']} GROUP BY disease"
        weighted = dict(connection.execute(total).fetchall())
    assert sum(weighted.values()) == pytest.approx(sum(estimates(answer).values()), rel=0.05)


@every_local_subject
def test_a_comparison_has_a_place_for_it(
    subject: Subject, policy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn", reason="accuracy is that of a model of scikit-learn")
    measures = ("--metric", "rmse", "--metric", "retention", "--metric", "accuracy", "--metric", "loss")
    chart = policy.parent / "frontier.svg"
    few = ("--queries", 5, "--seeds", 1, "--seed", 1, "--chart", chart)
    found = call(capsys, "compare", policy, *measures, *few)
    (own,) = [row for row in found["policies"] if not row["baseline"]]
    assert (own["policy"], own["mechanism"], own["feasible"]) == ("people", subject.mechanism["kind"], True)
    measured = {row["metric"]: row["value"] for row in found["results"] if row["policy"] == "people"}
    assert measured["rmse"] is not None
    assert chart.exists()
