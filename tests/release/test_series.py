"""A series of batches: each published by itself, refused where it is none, and asked together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius import Policy
from dalenius.errors import InputError, PolicyError, PromiseNotMet, ReleaseCorrupt

DISEASES = ["Flu", "Cold", "Asthma", "Gout", "Angina"]
QUESTIONS = [
    "SELECT COUNT(*) FROM t WHERE sex = 'F' AND disease = 'Flu'",
    "SELECT SUM(age) FROM t WHERE disease IN ('Flu', 'Cold')",
    "SELECT COUNT(*) FROM t WHERE sex = 'F'",
]


def day(number: int, n_rows: int = 120, values: list[str] = DISEASES) -> pa.Table:
    rng = np.random.default_rng(number)
    shares = 0.5 ** np.arange(len(values))
    diseases = rng.choice(values, n_rows, p=shares / shares.sum())
    return pa.table(
        {
            "age": rng.integers(18, 90, n_rows),
            "sex": rng.choice(["F", "M"], n_rows, p=[0.4, 0.6]),
            "disease": pa.array(diseases.tolist()),
        }
    )


def policy(folder: Path, source: Any, **changes: Any) -> Policy:
    return Policy.from_dict(
        {
            "source": source,
            "release": "daily",
            "columns": {"quasi": ["age", "sex"], "sensitive": ["disease"]},
            "promise": {"kind": "l-diversity", "l": 3},
            "suppress": {"method": "safe"},
            "series": {"kind": "batches"},
            "ledger": {"path": "ledger"},
            **changes,
        },
        folder=folder,
    )


@pytest.fixture
def series(tmp_path: Path) -> dalenius.Release:
    for number in (1, 2, 3):
        dalenius.publish(policy(tmp_path, day(number)), seed=number)
    return dalenius.open_release(tmp_path / "daily")


def test_every_batch_is_thinned_on_its_own_and_says_that_it_is_one_of_a_series(tmp_path: Path) -> None:
    even = pa.table({"age": [30] * 60, "sex": ["F"] * 60, "disease": DISEASES * 12})
    releases = [dalenius.publish(policy(tmp_path, table)) for table in (day(1), even, day(2))]
    assert [release.path.name for release in releases] == ["batch-1", "batch-2", "batch-3"]
    places = [release.manifest["series"] for release in releases]
    assert [(place["kind"], place["index"], place["of"]) for place in places] == [
        ("batches", index, None) for index in (1, 2, 3)
    ]
    assert len({place["id"] for place in places}) == 1
    withheld = [release.manifest["rows"]["suppressed"] for release in releases]
    assert withheld[1] == 0
    assert min(withheld[0], withheld[2]) > 0
    for release in releases:
        assert any("weakens every promise" in entry for entry in release.manifest["not_covered"])
        assert any("two batches" in entry for entry in release.manifest["assumes"])
    verdict = dalenius.verify(tmp_path / "daily", strict=True)
    assert not verdict.damaged
    assert verdict.ok
    assert verdict.checks[-1].name == "series"


def test_what_is_no_new_batch_is_refused(series: dalenius.Release, tmp_path: Path) -> None:
    shuffled = day(2).take(np.random.default_rng(0).permutation(120))
    with_text = day(4).set_column(0, "age", pa.array(["old"] * 120))
    cases: list[tuple[pa.Table, dict[str, Any], str]] = [
        (shuffled, {}, "as batch 2 of the series"),
        (with_text, {}, "name, role or type: age"),
        (day(4), {"promise": {"kind": "l-diversity", "l": 4}}, "another promise"),
        (day(4), {"suppress": {"method": "exact"}}, "another promise or method of suppression"),
        (day(4), {"ledger": {"path": "other"}}, "does not know"),
        (day(4), {"release": "daily/batch-1"}, "is a release of its own"),
    ]
    for source, changes, message in cases:
        with pytest.raises(InputError, match=message):
            dalenius.publish(policy(tmp_path, source, **changes))
    assert sorted(path.name for path in (tmp_path / "daily").iterdir()) == ["batch-1", "batch-2", "batch-3"]


@pytest.mark.parametrize(
    "other",
    [
        {"default": {"times": 3, "plus": 0.2}, "values": {"Flu": 0.8}},
        {"default": {"times": 2, "plus": 0.2}, "values": {"Flu": 0.9}},
        {"default": {"times": 2, "plus": 0.2}},
        {"default": {"times": 2, "plus": 0.2}, "values": {"Flu": 0.8, "Mumps": 0.5}},
        {"default": 0.99, "values": {"Flu": 0.8}},
        {
            "default": {"times": 2, "plus": 0.2},
            "values": {"Flu": 0.8},
            "groups": {"any": {"values": ["Flu", "Mumps"], "at_most": 0.9}},
        },
    ],
)
def test_other_thresholds_are_another_promise(tmp_path: Path, other: dict[str, Any]) -> None:
    def batch(number: int, promise: dict[str, Any], values: list[str] = DISEASES) -> Policy:
        return Policy.from_dict(
            {
                "source": day(number, values=values),
                "release": "daily",
                "columns": {"quasi": ["age", "sex"], "sensitive": ["disease"]},
                "promise": {"kind": "f-privacy", **promise},
                "series": {"kind": "batches"},
                "ledger": {"path": "ledger"},
            },
            folder=tmp_path,
        )

    first = {"default": {"times": 2, "plus": 0.2}, "values": {"Flu": 0.8}}
    dalenius.publish(batch(1, first))
    with pytest.raises(InputError, match="another promise"):
        dalenius.publish(batch(2, other, [*DISEASES, "Mumps"]))
    assert dalenius.publish(batch(2, first, [*DISEASES, "Mumps"])).path.name == "batch-2"


def test_a_corrected_table_is_no_new_batch(tmp_path: Path) -> None:
    diseases = [f"disease {number}" for number in range(20)]
    table = day(1, n_rows=2000, values=diseases)
    ages = [table.column("age")[0].as_py() + 1, *table.column("age").to_pylist()[1:]]
    corrected = table.set_column(0, "age", pa.array(ages))
    dalenius.publish(policy(tmp_path, table))
    with pytest.raises(PromiseNotMet, match="people were published before, about"):
        dalenius.publish(policy(tmp_path, corrected))
    assert dalenius.publish(policy(tmp_path, corrected), again=True).path.name == "batch-2"
    assert dalenius.publish(policy(tmp_path, day(2, n_rows=2000, values=diseases))).path.name == "batch-3"


def test_batches_are_for_bucketize(tmp_path: Path) -> None:
    changes = {"promise": {"kind": "rho-privacy", "rho1": "max", "rho2": "9/10"}, "suppress": None}
    with pytest.raises(PolicyError, match="published by bucketize, not by perturb"):
        policy(tmp_path, day(1), **changes)
    with pytest.raises(PolicyError, match="kind 'views' is unknown"):
        policy(tmp_path, day(1), series={"kind": "views"})


def test_anatomys_answers_are_the_sums_of_the_batches_answers(series: dalenius.Release) -> None:
    batches = [dalenius.open_release(path) for path in sorted(series.path.parent.iterdir())]
    for question in QUESTIONS:
        (whole,) = series.ask(question, estimator="anatomy").rows
        parts = [batch.ask(question, estimator="anatomy").rows[0] for batch in batches]
        assert whole.estimate == pytest.approx(sum(part.estimate or 0 for part in parts))
        assert whole.std_error == pytest.approx(np.linalg.norm([part.std_error or 0 for part in parts]))


def test_a_condition_that_is_another_in_every_batch_is_known_where_a_batch_has_it_wholly(
    tmp_path: Path,
) -> None:
    """Men on one day and women on the other: the counts of values of each day are public."""
    for number, sex in ((1, "F"), (2, "M")):
        table = day(number).set_column(1, "sex", pa.array([sex] * 120))
        release = dalenius.publish(policy(tmp_path, table), seed=number)
    series = dalenius.open_release(tmp_path / "daily")
    (flu,) = series.ask("SELECT COUNT(*) FROM t WHERE sex = 'M' AND disease = 'Flu'").rows
    assert flu.estimate == pytest.approx(published(release.path, "Flu"))
    assert (flu.low, flu.high) == (flu.estimate, flu.estimate)


def test_groups_averages_and_conditions_on_groups_are_those_of_the_sums(tmp_path: Path) -> None:
    """A value that only one batch has is a group like any other."""
    for number, values in ((1, DISEASES), (2, [*DISEASES[:4], "Zoster"])):
        dalenius.publish(policy(tmp_path, day(number, values=values)), seed=number)
    series = dalenius.open_release(tmp_path / "daily")
    by_disease = "SELECT disease, COUNT(*), AVG(age) FROM t GROUP BY disease"
    counts = {row.group[0][1]: row for row in series.ask(by_disease).rows if row.column == "COUNT(*)"}
    assert set(counts) == {*DISEASES, "Zoster"}
    for value, row in counts.items():
        assert row.estimate == published(tmp_path, value)  # how often a value occurs is public
    total, n_people, average = (
        series.ask(f"SELECT {what} FROM t WHERE sex = 'F'").rows[0].estimate or 0.0
        for what in ("SUM(age)", "COUNT(*)", "AVG(age)")
    )
    assert average == pytest.approx(total / n_people)
    largest = series.ask("SELECT disease, COUNT(*) AS n FROM t GROUP BY disease ORDER BY n DESC LIMIT 1").rows
    assert counts[largest[0].group[0][1]].estimate == max(row.estimate or 0 for row in counts.values())


def published(folder: Path, value: str) -> int:
    tables = [pq.read_table(path) for path in folder.rglob("st.parquet")]
    return sum(pc.sum(t.filter(pc.equal(t["disease"], value))["count"]).as_py() or 0 for t in tables)


def test_answers_say_that_withheld_records_are_not_in_them(series: dalenius.Release) -> None:
    withheld = sum(
        dalenius.open_release(path).manifest["rows"]["suppressed"] for path in series.path.parent.iterdir()
    )
    exact = series.ask("SELECT COUNT(*) FROM t")
    assert exact.rows[0].std_error == 0
    assert f"{withheld} more were withheld" in (exact.assumption or "")
    assert "each batch's own mean" in (series.ask(QUESTIONS[0]).assumption or "")
    assert "3 batches" in series.ask(QUESTIONS[0]).explain


def test_a_gap_or_a_stranger_in_the_folder_is_seen(series: dalenius.Release) -> None:
    folder = series.path.parent
    (folder / "batch-2").rename(folder.parent / "away")
    assert [check.name for check in dalenius.verify(folder).checks if not check.ok] == ["series"]
    path = folder.parent / "away" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["series"]["id"] = "0" * 32
    path.write_text(json.dumps(manifest))
    (folder.parent / "away").rename(folder / "batch-2")
    with pytest.raises(ReleaseCorrupt, match="different series"):
        dalenius.verify(folder)
