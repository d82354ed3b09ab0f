"""A table that is published again as people come, leave and change: published, verified, asked, attacked."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.cli.main import run
from dalenius.errors import InputError, PolicyError, PromiseNotMet
from dalenius.mechanisms.bucketize.export import complete
from dalenius.policy import Policy
from dalenius.release.folder import StoredRelease
from tests.auditing.releases import sign

N = 900
VALUES = np.array(["Flu", "Cold", "Gout", "HIV"])
rng = np.random.default_rng(0)
AGE, SEX = rng.integers(18, 90, N), rng.choice(["F", "M"], N)
DISEASE = VALUES[(np.array([0.35, 0.65, 0.9]) < rng.random(N)[:, None]).sum(axis=1)]
FIRST = np.arange(600)
STAY = rng.random(600) < 0.85
SECOND = np.concatenate([np.flatnonzero(STAY), np.arange(600, 800)])


def people(who: np.ndarray, disease: np.ndarray = DISEASE) -> pa.Table:
    columns = {"id": who, "age": AGE[who], "sex": SEX[who], "row": who, "disease": disease[who].tolist()}
    return pa.table(columns)


def policy(folder: Path, table: pa.Table, series: dict[str, str] | None = None, **changes: Any) -> Policy:
    return Policy.from_dict(
        {
            "source": table,
            "release": "years",
            "columns": {"unit": "id", "quasi": ["age", "sex", "row"], "sensitive": ["disease"]},
            "promise": {"kind": "f-privacy", "default": 0.5, "values": {"HIV": 0.2}},
            "series": {"kind": "dates", **(series or {})},
            "ledger": {"path": "ledger"},
            **changes,
        },
        folder=folder,
    )


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two dates, and the ledger that remembers them."""
    folder = tmp_path_factory.mktemp("published")
    for who in (FIRST, SECOND):
        dalenius.publish(policy(folder, people(who)), seed=1)
    return folder


@pytest.fixture
def years(published: Path, tmp_path: Path) -> Path:
    """A copy that a test can go on with."""
    shutil.copytree(published, tmp_path, dirs_exist_ok=True)
    return tmp_path / "years"


def buckets(date: Path) -> dict[int, int]:
    table = pq.read_table(date / "qit.parquet")
    return dict(zip(table["row"].to_pylist(), table["bucket"].to_pylist(), strict=True))


def contents(date: Path) -> dict[int, Counter[str]]:
    found: dict[int, Counter[str]] = {}
    for row in pq.read_table(date / "st.parquet").to_pylist():
        found.setdefault(row["bucket"], Counter())[row["disease"]] += row["count"]
    return found


def test_who_stays_keeps_the_bucket_and_its_values_and_who_is_new_has_new_ones(years: Path) -> None:
    one, two = buckets(years / "date-1"), buckets(years / "date-2")
    then, now = contents(years / "date-1"), contents(years / "date-2")
    assert set(two) == set(SECOND.tolist())
    assert all(two[person] == one[person] for person in np.flatnonzero(STAY).tolist())
    assert all(now[bucket] == then[bucket] for bucket in now if bucket in then)
    assert {two[person] for person in range(600, 800)} == set(now) - set(then)
    # a bucket lists the values of its own people, and at the first date nothing else
    for bucket, listed in then.items():
        assert listed == Counter(DISEASE[[p for p, b in one.items() if b == bucket]].tolist())


def test_people_of_a_view_whose_rows_come_in_another_order_each_time_are_in_their_own_buckets(
    tmp_path: Path,
) -> None:
    """As those of a view with a join do: its rows are read once for who is who, and once to be written."""
    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        database.register("those", people(FIRST))
        database.execute("CREATE TABLE kept AS FROM those; CREATE VIEW v AS FROM kept ORDER BY random()")
    source = {"path": "t.duckdb", "table": "v"}
    dalenius.publish(policy(tmp_path, people(FIRST), source=source))
    listed = contents(tmp_path / "years" / "date-1")
    own = {bucket: Counter[str]() for bucket in listed}
    for person, bucket in buckets(tmp_path / "years" / "date-1").items():
        own[bucket][str(DISEASE[person])] += 1
    assert own == listed


def test_the_manifest_says_what_is_promised_and_how_many_values_are_of_people_who_left(years: Path) -> None:
    manifest = dalenius.open_release(years / "date-2").manifest
    one, two = buckets(years / "date-1"), buckets(years / "date-2")
    still = {two[person] for person in two}
    left = [person for person in FIRST.tolist() if person not in two and one[person] in still]
    assert manifest["parameters"]["dates"]["absent"] == len(left)
    assert manifest["parameters"]["dates"]["new"] == 200
    assert manifest["series"]["kind"] == "dates"
    assert any("who comes to the table and who leaves" in text for text in manifest["assumes"])
    assert not any(text == "several releases about the same people" for text in manifest["not_covered"])


def test_verify_looks_at_every_date_and_at_all_together(years: Path) -> None:
    found = dalenius.verify(years)
    assert found.ok
    assert "kept buckets" in {check.name for check in found.checks}
    # the values of who left are taken out: the twin
    path = years / "date-2"
    table = pq.read_table(path / "st.parquet")
    there = Counter(pq.read_table(path / "qit.parquet")["bucket"].to_pylist())
    listed = Counter(table["bucket"].to_pylist())
    larger = next(b for b in listed if listed[b] > there[b])
    row = table["bucket"].to_pylist().index(larger)
    pq.write_table(pa.concat_tables([table.slice(0, row), table.slice(row + 1)]), path / "st.parquet")
    rehash(path)
    broken = {check.name for check in dalenius.verify(years).checks if not check.ok}
    assert {"kept buckets", "date-2: bucket sizes"} <= broken


def rehash(path: Path) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    for table in manifest["tables"]:
        for file in table["files"]:
            file["sha256"] = hashlib.sha256((path / file["file"]).read_bytes()).hexdigest()
        table["rows"] = pq.read_metadata(path / table["files"][0]["file"]).num_rows
    (path / "manifest.json").write_text(json.dumps(manifest))


def test_a_new_bucket_lists_the_values_of_its_people_and_no_other(years: Path) -> None:
    """Who has just come has not left: a value more would hide that a bucket has too few."""
    date = years / "date-2"
    manifest = json.loads((date / "manifest.json").read_text())
    qit = pq.read_table(date / "qit.parquet")
    newest = max(qit["bucket"].to_pylist())
    keep = np.flatnonzero(np.array(qit["bucket"]) != newest)
    pq.write_table(qit.take(np.append(keep, qit["bucket"].to_pylist().index(newest))), date / "qit.parquet")
    gone = qit.num_rows - len(keep) - 1
    manifest["parameters"]["dates"]["absent"] += gone
    manifest["rows"]["published"] -= gone
    (date / "manifest.json").write_text(json.dumps(manifest))
    sign(date)
    assert gone
    assert dalenius.verify(date).ok  # by itself it cannot be told
    (wrong,) = (check for check in dalenius.verify(years).checks if not check.ok)
    assert wrong.detail.endswith("and 1 new ones list values of nobody")


def test_each_date_and_the_change_are_answered(years: Path) -> None:
    release = dalenius.open_release(years)

    def ask(sql: str, estimator: str) -> Any:
        return release.ask(sql, estimator=estimator).rows[0]

    count = "SELECT COUNT(*) FROM t WHERE sex = 'F'"
    women = [int((SEX[who] == "F").sum()) for who in (FIRST, SECOND)]
    assert [ask(count, f"date-{d}").estimate for d in (1, 2)] == women
    assert ask(count, "change-1-2").estimate == women[1] - women[0]
    colds = "SELECT COUNT(*) FROM t WHERE disease = 'Cold'"
    truth = [int((DISEASE[who] == "Cold").sum()) for who in (FIRST, SECOND)]
    first, second, change = (ask(colds, name) for name in ("date-1", "date-2", "change-1-2"))
    assert first.estimate == truth[0]
    assert second.low <= truth[1] <= second.high
    assert change.low <= truth[1] - truth[0] <= change.high
    assert change.estimate == pytest.approx(second.estimate - first.estimate)
    with pytest.raises(InputError, match="a ratio of changes"):
        release.ask("SELECT AVG(age) FROM t WHERE disease = 'Cold'", estimator="change-1-2")


def test_the_audit_finds_nothing_in_kept_buckets_and_the_twin_at_once(years: Path, tmp_path: Path) -> None:
    kept = {a.name: a for a in dalenius.audit(years / "date-2", people(SECOND), seed=0).attacks}
    across = kept["linking across dates (date-1)"]
    assert across.holds
    assert across.n_trials > 400
    assert across.success == across.control
    assert kept["linking"].holds
    assert "fakes do not go" in (kept["corruption"].advice or "")  # dates refuse them
    # the twin: the second date is another series of its own, put beside the first one
    twin = tmp_path / "twin"
    twin.mkdir()
    dalenius.publish(policy(twin, people(SECOND)), seed=2)
    os.rename(years / "date-2", tmp_path / "aside")
    os.rename(twin / "years" / "date-1", years / "date-2")
    as_second(years)
    found = {a.name: a for a in dalenius.audit(years / "date-2", people(SECOND), seed=0).attacks}
    assert found["linking across dates (date-1)"].holds is False


def as_second(years: Path) -> None:
    first = json.loads((years / "date-1" / "manifest.json").read_text())
    manifest = json.loads((years / "date-2" / "manifest.json").read_text())
    manifest["series"] = {**first["series"], "index": 2}
    (years / "date-2" / "manifest.json").write_text(json.dumps(manifest))


def test_a_changed_value_needs_a_rule(tmp_path: Path, years: Path) -> None:
    changed = DISEASE.copy()
    who = SECOND[:20]
    changed[who] = [VALUES[(list(VALUES).index(v) + 1) % 4] for v in DISEASE[who]]
    with pytest.raises(PromiseNotMet, match="20 people have another sensitive value"):
        dalenius.publish(policy(tmp_path, people(SECOND, changed)), seed=3)
    dalenius.publish(policy(tmp_path, people(SECOND, changed), {"changed": "leaves"}), seed=3)
    third = buckets(years / "date-3")
    assert set(third) == set(SECOND[20:].tolist())
    manifest = dalenius.open_release(years / "date-3").manifest
    assert manifest["parameters"]["dates"]["withheld"] == 20
    assert any("whose sensitive value has changed" in text for text in manifest["disclosed"])
    assert any("how often which value changes" in text for text in manifest["not_covered"])
    # for good, even if the value is the old one again; and the rule stays
    dalenius.publish(policy(tmp_path, people(SECOND), {"changed": "leaves"}), seed=4)
    assert set(buckets(years / "date-4")) == set(third)
    with pytest.raises(InputError, match="changed = 'leaves'"):
        dalenius.publish(policy(tmp_path, people(SECOND), {"changed": "stays"}), seed=5)


def test_who_stays_with_a_changed_value_counts_with_the_first_one(tmp_path: Path, years: Path) -> None:
    changed = DISEASE.copy()
    changed[SECOND[:20]] = [VALUES[(list(VALUES).index(v) + 1) % 4] for v in DISEASE[SECOND[:20]]]
    dalenius.publish(policy(tmp_path, people(SECOND, changed), {"changed": "stays"}), seed=3)
    assert buckets(years / "date-3") == buckets(years / "date-2")
    assert contents(years / "date-3") == contents(years / "date-2")


def test_who_comes_back_has_the_old_bucket(tmp_path: Path, years: Path) -> None:
    everybody = np.concatenate([FIRST, np.arange(600, 900)])
    dalenius.publish(policy(tmp_path, people(everybody)), seed=3)
    one, three = buckets(years / "date-1"), buckets(years / "date-3")
    assert all(three[person] == one[person] for person in FIRST.tolist())
    assert dalenius.verify(years).ok


@pytest.mark.parametrize("respelt", [50, 600], ids=["some", "all"])
def test_nobody_gets_a_second_bucket_by_another_spelling(tmp_path: Path, years: Path, respelt: int) -> None:
    """Spreadsheets drop zeros before a number, or add a decimal point: the person is not a new one."""
    table = people(SECOND)
    ways = [f"{who:05d}" if who < respelt else f"{who}" for who in SECOND.tolist()]
    units = [f" {way}.0" if number % 2 else way for number, way in enumerate(ways)]
    with pytest.raises(InputError, match=r"people would be new whose 'id' was in the series before"):
        dalenius.plan(policy(tmp_path, table.set_column(0, "id", pa.array(units))))


def test_a_series_goes_on_whose_people_were_not_written_down_in_plain_spelling(
    tmp_path: Path, years: Path
) -> None:
    """As earlier versions wrote it."""
    (roll,) = (tmp_path / "ledger.people").iterdir()
    pq.write_table(pq.read_table(roll).drop_columns(["plain"]), roll)
    dalenius.publish(policy(tmp_path, people(SECOND)), seed=1)
    assert "plain" in pq.read_schema(next((tmp_path / "ledger.people").iterdir())).names


def test_nobody_need_be_new(tmp_path: Path, years: Path) -> None:
    dalenius.publish(policy(tmp_path, people(SECOND[:300])), seed=3)
    plan = dalenius.plan(policy(tmp_path, people(SECOND[:200]))).to_dict()
    assert plan["dates"] == {
        "new": 0,
        "stay": 200,
        "absent": plan["dates"]["absent"],
        "changed": 0,
        "withheld": 0,
    }
    assert dalenius.verify(years).ok
    assert dalenius.open_release(years).ask("SELECT COUNT(*) FROM t").rows[0].estimate == 300


def test_the_private_file_tells_nothing_without_the_key(tmp_path: Path, years: Path) -> None:
    (file,) = (tmp_path / "ledger.people").iterdir()
    assert file.name.endswith("-2.parquet")
    if os.name == "posix":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    table = pq.read_table(file)
    assert table.column_names == ["person", "value", "bucket", "gone", "plain", "also"]
    assert len(set(table["value"].to_pylist())) == len(table)  # equal values do not look alike
    assert table["person"].to_pylist() == sorted(table["person"].to_pylist())  # no source order
    raw = file.read_bytes()
    assert not any(value.encode() in raw for value in VALUES)
    file.unlink()
    with pytest.raises(InputError, match="which says who is in which bucket"):
        dalenius.publish(policy(tmp_path, people(SECOND)), seed=3)


def test_a_run_that_fails_leaves_the_memory_as_it_was(
    tmp_path: Path, years: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {file.name: file.read_bytes() for file in (tmp_path / "ledger.people").iterdir()}

    def fail(*_: object) -> None:
        raise InputError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("dalenius.release.ledger.Ledger.record", fail)
        with pytest.raises(InputError, match="the disk is full"):
            dalenius.publish(policy(tmp_path, people(SECOND[:300])), seed=3)
    assert {file.name: file.read_bytes() for file in (tmp_path / "ledger.people").iterdir()} == before
    dalenius.publish(policy(tmp_path, people(SECOND[:300])), seed=3)
    assert (years / "date-3").is_dir()


def test_strangers_and_small_groups_of_newcomers_are_refused(tmp_path: Path, years: Path) -> None:
    renamed = people(SECOND).set_column(0, "id", pa.array(SECOND + 10_000))
    with pytest.raises(InputError, match="none of the 7"):
        dalenius.publish(policy(tmp_path, renamed), seed=3)
    flu = np.flatnonzero(DISEASE == "Flu")
    flu = flu[flu >= 800][:3]
    with pytest.raises(PromiseNotMet, match="the 3 people who are new cannot have buckets") as refused:
        dalenius.publish(policy(tmp_path, people(np.concatenate([SECOND, flu]))), seed=3)
    assert "leave them out of all later dates" in (
        refused.value.hint or ""
    )  # waiting would tell their values
    assert not (years / "date-3").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"columns": {"quasi": ["age", "sex", "row", "id"], "sensitive": ["disease"]}},
            "need .columns. unit",
        ),
        ({"mechanism": {"fakes": 1}}, "do not go with .mechanism. fakes"),
        ({"mechanism": {"regions": True}}, "do not go with .mechanism. regions"),
        ({"promise": {"kind": "f-privacy", "default": {"times": 4, "plus": 0.02}}}, "the same at every date"),
        ({"series": {"kind": "dates", "changed": "moves"}}, "changed 'moves' is unknown"),
        ({"series": {"kind": "date"}}, "did you mean 'dates'"),
        (
            {"promise": {"kind": "l-diversity", "l": 2}, "suppress": {"method": "safe"}},
            "do not go with .suppress.",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        policy(tmp_path, people(FIRST), **changes)


def test_a_date_can_be_asked_completed_and_exported_by_itself(years: Path, tmp_path: Path) -> None:
    one = dalenius.open_release(years / "date-2")
    assert one.ask("SELECT COUNT(*) FROM t").rows[0].estimate == len(SECOND)
    drawn = complete(StoredRelease.open(years / "date-2")).draw(np.random.default_rng(0))
    assert drawn.num_rows == len(SECOND)
    allowed = contents(years / "date-2")
    home = buckets(years / "date-2")
    for row in drawn.to_pylist():
        assert allowed[home[row["row"]]][row["disease"]] > 0


def test_a_series_is_asked_date_by_date_with_its_own_changes(
    years: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "SELECT sex, COUNT(*) FROM t WHERE disease = 'Flu' GROUP BY sex"
    series = dalenius.open_release(years)
    course = series.ask_each(sql)
    assert [moment.release for moment in course.moments] == ["date-1", "date-2"]
    for number, moment in enumerate(course.moments, start=1):
        assert moment.answer.rows == series.ask(sql, estimator=f"date-{number}").rows
    own = series.ask(sql, estimator="change-1-2").rows
    assert [(one.group, one.estimate, one.low, one.high) for one in course.changes] == [
        (row.group, row.estimate, row.low, row.high) for row in own
    ]
    # averages have answers by date, and no change
    average = series.ask_each("SELECT AVG(age) FROM t WHERE disease = 'Flu'")
    assert (len(average.moments), average.changes) == (2, ())
    assert run(["ask", str(years), sql, "--each", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [one["release"] for one in shown["moments"]] == ["date-1", "date-2"]
    assert len(shown["changes"]) == 2


def test_what_is_no_series_is_not_asked_date_by_date(years: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT COUNT(*) FROM t"
    for arguments, part in (
        ([str(years / "date-1")], "is not a series of several releases"),
        ([str(years), "--estimator", "date-1"], "has an estimator for each date"),
        ([str(years), "--then", str(years / "date-1")], "--each is about one series"),
    ):
        release, *options = arguments
        assert run(["ask", release, sql, "--each", *options]) == 2
        assert part in capsys.readouterr().err
