"""Differences between groups: what a question with FILTER says, covariances that fit, ranks that hold."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dalenius
from dalenius.ask import ask
from dalenius.cli.main import run
from dalenius.errors import QueryError
from dalenius.release.folder import StoredRelease
from tests.ask.conftest import SENSITIVE, coded, patients
from tests.ask.releases import deal, write_release

QUESTION = "SELECT zip, COUNT(*) AS n, AVG(severity) AS a FROM t WHERE disease = 'Flu' GROUP BY zip"


def test_a_difference_is_that_of_a_question_about_it(release: StoredRelease) -> None:
    answer = ask(release, QUESTION, differences=True)
    assert len(answer.differences) == 6
    own = ask(
        release,
        "SELECT COUNT(*) FILTER (WHERE zip = '10115') - COUNT(*) FILTER (WHERE zip = '20095') FROM t "
        "WHERE disease = 'Flu'",
    ).rows[0]
    one = answer.differences[0]
    assert (one.first, one.second) == ((("zip", "10115"),), (("zip", "20095"),))
    assert [one.estimate, one.std_error, one.low, one.high] == pytest.approx(
        [own.estimate, own.std_error, own.low, own.high]
    )
    errors = {row.group: row.std_error for row in answer.rows if row.column == "n"}
    first, second = errors[one.first], errors[one.second]
    assert first is not None
    assert second is not None
    assert one.std_error is not None
    assert one.covariance is not None
    assert one.std_error**2 == pytest.approx(first**2 + second**2 - 2 * one.covariance, rel=0.02)


def test_groups_of_a_secret_that_add_up_err_against_each_other(release: StoredRelease) -> None:
    """With two groups that make up all, what one has too much the other has too little."""
    question = "SELECT disease = 'Flu' AS flu, COUNT(*) AS n FROM t WHERE sex = 'F' AND disease IS NOT NULL "
    answer = ask(release, question + "GROUP BY flu", differences=True, estimator="anatomy")
    (one,) = answer.differences
    assert one.covariance is not None
    assert one.covariance < 0


def test_ranks_hold_the_truth_and_are_settled_where_all_is_known(tmp_path: Path) -> None:
    held = []
    for seed in range(3):
        table = patients(600, seed)
        bucket = deal(coded(table, SENSITIVE), {4: 75, 6: 50}, np.random.default_rng(seed))
        release = write_release(tmp_path, table, SENSITIVE, bucket, name=f"r{seed}")
        answer = ask(
            release, "SELECT zip, COUNT(*) AS n FROM t WHERE disease = 'Flu' GROUP BY zip", differences=True
        )
        flu = table.filter(pa.compute.equal(table["disease"], "Flu"))["zip"].to_pylist()
        counts = {zip_: flu.count(zip_) for zip_ in set(flu)}
        for rank in answer.ranks:
            above = sum(other > counts[rank.group[0][1]] for other in counts.values())
            held.append(rank.low <= above + 1 <= rank.high)
        known = ask(release, "SELECT zip, COUNT(*) FROM t GROUP BY zip", differences=True)
        assert all(rank.low == rank.high for rank in known.ranks) or len(set(counts.values())) < 3
    assert all(held)


def test_the_command_line_shows_them(release: StoredRelease, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", str(release.path), QUESTION, "--differences", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["differences"][0]["first"] == {"zip": "10115"}
    assert set(found["ranks"][0]) == {"group", "column", "low", "high"}
    assert run(["ask", str(release.path), QUESTION, "--differences"]) == 0
    assert "10115 − 20095" in capsys.readouterr().out


def test_what_cannot_be_compared_is_refused(release: StoredRelease) -> None:
    with pytest.raises(QueryError, match="between 2 to 40 groups; the question has 1"):
        ask(release, "SELECT COUNT(*) FROM t", differences=True)
    with pytest.raises(QueryError, match="not of order statistics"):
        ask(release, "SELECT sex, MEDIAN(age) FROM t GROUP BY sex", differences=True)


def test_an_interval_reaches_to_an_estimate_that_is_not_possible(tmp_path: Path) -> None:
    """Of four people of a town perturbed records say that more than four have a value, or less than none."""
    n = 240
    table = pa.table(
        {
            "town": [f"T{i % 60}" for i in range(n)],
            "age": [i // 60 for i in range(n)],
            "drug": [("none", "alcohol", "opiates")[i * 7 % 31 % 3] for i in range(n)],
        }
    )
    policy = dalenius.Policy.from_dict(
        {
            "source": table,
            "release": str(tmp_path / "r"),
            "columns": {"quasi": ["town", "age"], "sensitive": ["drug"]},
            "promise": {"kind": "f-privacy", "default": 0.5},
            "mechanism": {"kind": "perturb"},
        }
    )
    release = dalenius.publish(policy, seed=1)
    outside = 0
    for town in range(6):
        own = f"FROM t WHERE town = 'T{town}' GROUP BY drug"
        found = [
            *release.ask(f"SELECT drug, COUNT(*) {own}", differences=True).differences,
            *release.ask(f"SELECT drug, COUNT(*) AS n, 10 - COUNT(*) AS g, COUNT(*) / 2 AS h {own}").rows,
        ]
        for one in found:
            assert one.estimate is not None
            assert one.low is not None
            assert one.high is not None
            assert one.low <= one.estimate <= one.high
            outside += abs(one.estimate) > 4
    assert outside > 20, "or this shows nothing"
