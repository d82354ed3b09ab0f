"""Spark: the table that one machine sees, tasks that fail, secrets that stay, releases that all can read."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dalenius
from dalenius import Policy
from dalenius.cli.main import run
from dalenius.engines import preparing
from dalenius.engines.base import Engine, OpenedTable, silent
from dalenius.engines.local.engine import LocalEngine
from dalenius.errors import EngineError, InputError, PolicyError, SourceError
from dalenius.mechanisms.base import Coding
from dalenius.randomness import Randomness
from dalenius.tables.giveaways import find_giveaways
from dalenius.tables.reading import rebatch
from tests.conftest import PROJECT
from tests.contract.subject import Subject, people
from tests.contract.subjects import SPARK_SUBJECTS

pytest.importorskip("pyspark")

from dalenius.engines.spark import engine as spark_engine
from dalenius.engines.spark import scan as spark_scan
from dalenius.engines.spark import writing as spark_writing
from dalenius.engines.spark.engine import SparkEngine
from dalenius.engines.spark.errors import spark_errors
from dalenius.engines.spark.source import from_wire, to_wire
from dalenius.engines.spark.tasks import Digest
from tests.engines.spark import flaky
from tests.mechanisms import test_types_published as types

_BY_NAME = {subject.name.removesuffix(", on Spark"): subject for subject in SPARK_SUBJECTS}
BUCKETS = _BY_NAME["bucketize optimal f-privacy"]
SMALL = SparkEngine(group_rows=200)


def hashes(release: dalenius.Release) -> list[str]:
    return [file["sha256"] for table in release.manifest["tables"] for file in table["files"]]


def described(engine: Engine, policy: Policy) -> dict[str, Any]:
    """Everything that a mechanism, a series or a manifest may ask of a table."""
    with engine.open(policy, None, silent) as scan:
        return _asked(scan, policy)


def _asked(scan: OpenedTable, policy: Policy) -> dict[str, Any]:
    columns = policy.columns.published
    sought = scan.active_values(columns[0])[:1]
    return {
        "schema": scan.schema,
        "histogram": scan.histogram(policy.columns.sensitive),
        "records": [scan.n_rows(), scan.n_different(_no_coding())],
        "copies": scan.most_copies(),
        "domains": {name: scan.active_values(name) for name in columns},
        "n_found": scan.find_values(columns[0], sought)[0],
        "fingerprint": scan.fingerprint(b"k" * 32),
        "repeated": [scan.count_repeated(name) for name in columns if name not in dict(policy.recode)],
        "repeated together": scan.count_repeated(*(one for one in columns if one not in dict(policy.recode))),
        "cells": sorted(
            Counter(map(str, scan.sample_cells(columns[:1], columns[1:], scan.n_rows()).to_pylist())).values()
        ),
        "sample": sorted(Counter(map(str, scan.sample(columns, scan.n_rows()).to_pylist())).values()),
        "rare": [scan.count_rare(columns[:n], few) for n, few in ((1, 2), (2, 3), (len(columns), 2))],
    }


def _no_coding() -> Coding:
    """Engines that plan, and Spark, tell records apart by their cells."""
    return Coding(encode=lambda batch: batch, names=(), bits=0)


def policy_of(source: Any, names: list[str], **sections: Any) -> Policy:
    return Policy.from_dict(
        {
            "source": source,
            "columns": {"quasi": names[:-1], "sensitive": names[-1:]},
            "promise": {"kind": "f-privacy", "default": "0.99"},
            **sections,
        }
    )


TYPED = pa.table(
    {
        "small": pa.array([1, 2, None, 255], pa.uint8()),
        "large": pa.array([2**64 - 1, 0, None, 7], pa.uint64()),
        "at": pa.array([datetime.datetime(2024, 5, 1, 12, 30, 1, 5), None] * 2, pa.timestamp("us")),
        "clock": pa.array([datetime.time(1, 2, 3), None] * 2, pa.time64("us")),
        "price": pa.array([decimal.Decimal("1.25"), None] * 2, pa.decimal128(9, 2)),
        "day": pa.array([datetime.date(1977, 1, 1), None] * 2, pa.date32()),
        "share": pa.array([0.5, None, 1e-3, 2.0]),
        "is": pa.array([True, None, False, False]),
        "disease": pa.array(["Flu", "Flu", None, ""]),
    }
)
CSV = """zip,age,note,disease
01234,30,"a ""b"", c",Flu
00501,41,"two
lines",
01234,30,,""
10000,7,x,Cold
"""


def test_a_csv_file_is_the_table_that_one_machine_sees(spark: Any, tmp_path: Path) -> None:
    """Leading zeros, quotes, line breaks, NULL and the empty text: equal to the fingerprint."""
    (tmp_path / "p.csv").write_text(CSV)
    recode = {"age": {"bins": [0, 18, 65]}}
    policy = policy_of(tmp_path / "p.csv", ["zip", "age", "note", "disease"], recode=recode)
    assert described(SMALL, policy) == described(LocalEngine(), policy)


def test_a_large_table_has_the_fingerprints_that_one_machine_gives_it(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From its columns' counts: that of this version, and that of the one before."""
    monkeypatch.setattr(preparing, "_FEW_ROWS", 0)
    known = []
    for engine in (SMALL, LocalEngine()):
        for recode in ({}, {"age": {"bins": [0, 18, 200]}}):
            policy = policy_of(people(), people(1).column_names, recode=recode)
            with engine.open(policy, None, silent) as scan:
                known.append([scan.fingerprint(b"k" * 32), scan.earlier_fingerprint(b"k" * 32)])
        with engine.open(policy_of(TYPED, TYPED.column_names), None, silent) as scan:
            known.append([scan.fingerprint(b"k" * 32), scan.earlier_fingerprint(b"k" * 32)])
    assert known[:3] == known[3:]
    assert len({one for pair in known for one in pair}) == 6


def test_types_that_spark_lacks_come_through(spark: Any, tmp_path: Path) -> None:
    policy = policy_of(TYPED, TYPED.column_names)
    assert described(SMALL, policy) == described(LocalEngine(), policy)


def test_cells_of_every_type_and_a_survey_weight_are_published_as_they_are(
    spark: Any, tmp_path: Path
) -> None:
    """And a weight that is no number is refused, as on one machine."""
    names = [f"c{i}" for i in range(len(types.TYPES))]
    table = types.table(types.TYPES)
    table = table.append_column("w", pa.array([1.5, 2.25] * (len(table) // 2)))
    columns = {"quasi": names, "weight": "w", "sensitive": ["secret"]}
    data = {"source": table, "columns": columns, "release": str(tmp_path / "r"), **types.KEPT["bucketize"]}
    release = dalenius.publish(Policy.from_dict(data), engine=SMALL, seed=1)
    assert release.verify().ok
    known, found = types.expected(types.TYPES), types.exported(release, tmp_path, names)
    for name, kind in zip(names, types.TYPES, strict=True):
        assert Counter(map(repr, found[name])) == Counter(map(repr, known[name])), kind
    (total,) = release.ask("SELECT SUM(w) FROM t").rows
    assert total.estimate == pytest.approx(len(table) / 2 * (1.5 + 2.25))
    texts = table.set_column(table.column_names.index("w"), "w", pa.array(["x", "y"] * (len(table) // 2)))
    with pytest.raises(PolicyError, match="'w' is not numeric"):
        dalenius.plan(Policy.from_dict({**data, "source": texts}), engine=SMALL)


def test_parquet_and_data_frames_are_the_same_table(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    for i in range(3):
        pq.write_table(people(90).slice(i * 30, 30), folder / f"{i}.parquet")
    columns = people(1).column_names
    expected = described(LocalEngine(), policy_of(people(90), columns))
    assert described(SMALL, policy_of(folder, columns)) == expected
    for source in (spark.read.parquet(str(folder)), people(90).to_pandas()):
        with SMALL.open(policy_of(source, columns), None, silent) as scan:
            assert (scan.schema, scan.fingerprint(b"k" * 32)) == (expected["schema"], expected["fingerprint"])


def test_a_code_beside_the_secret_is_found_in_a_part_of_the_records(spark: Any) -> None:
    table = people()
    codes = pa.array([str(hash(one)) for one in table["disease"].to_pylist()])
    policy = policy_of(table.append_column("code", codes), ["uid", "age", "code", "disease"])
    columns = policy.columns.published
    with SMALL.open(policy, None, silent) as scan:
        part = scan.sample(columns, scan.n_rows() // 2)
    assert 0 < len(part) < len(table)
    assert [one.column for one in find_giveaways(part, columns[:-1], columns[-1:])] == ["code"]


@pytest.mark.parametrize("engine", [LocalEngine(), SMALL], ids=["local", "spark"])
def test_a_person_is_one_whatever_kind_of_space_is_beside_the_number(spark: Any, engine: Engine) -> None:
    spelt = ["P1", " p1", "P1\t", "P1\r\n", "P1\xa0", "\u2003P1", "\ufeffP1", "P1\u200b", "0P1", "P 1", "P 2"]
    table = pa.table({"id": spelt, "disease": ["Flu", "Cold", "HIV", *map(str, range(8))]})
    with engine.open(policy_of(table, ["id", "disease"]), None, silent) as scan:
        assert scan.count_repeated("id") == (1, 9)
        found = scan.sample_cells(("id",), ("disease",), 11)["id"].to_pylist()
    assert sorted(Counter(found).items()) == [("p 1", 1), ("p 2", 1), ("p1", 9)]


def test_files_that_lack_a_column_are_read_by_spark(spark: Any, tmp_path: Path) -> None:
    pq.write_table(people(40), tmp_path / "a.parquet")
    pq.write_table(people(20).drop_columns(["age"]), tmp_path / "b.parquet")
    policy = policy_of(tmp_path, people(1).column_names)
    with SMALL.open(policy, None, silent) as scan:
        assert scan.source.files is None
        found = {scan.fingerprint(b"k" * 32), scan.record_fingerprint(b"k" * 32)}
    assert found == {described(LocalEngine(), policy)["fingerprint"]}


@pytest.mark.parametrize(
    ("sections", "error", "message"),
    [
        ({"recode": {"age": {"bins": [0, 18, 60]}}}, PolicyError, "190 rows have a value"),
        ({"recode": {"disease": {"round": 5}}}, PolicyError, "not numeric"),
        ({"columns": {"unit": "age", "quasi": ["uid"], "sensitive": ["disease"]}}, SourceError, "60 people"),
        ({"mechanism": {"kind": "bucketize", "fakes": 1}}, InputError, "one machine only"),
    ],
)
def test_refusals_are_those_of_one_machine(
    spark: Any, tmp_path: Path, sections: dict[str, Any], error: type[Exception], message: str
) -> None:
    data: dict[str, Any] = {
        "promise": {"kind": "l-diversity", "l": 2},
        "release": str(tmp_path / "r"),
        **sections,
    }
    with pytest.raises(error, match=message):
        dalenius.publish(policy_of(people(), ["uid", "age", "disease"], **data), engine=SMALL)
    assert list(tmp_path.iterdir()) == []


def test_a_series_of_dates_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `plan` and `publish`, with the way that does it, and without starting Spark."""
    monkeypatch.setattr(spark_engine, "_find_session", lambda _: pytest.fail("Spark was started"))
    policy = policy_of(
        people(),
        ["uid", "age", "disease"],
        columns={"unit": "uid", "quasi": ["age"], "sensitive": ["disease"]},
        series={"kind": "dates"},
        release=str(tmp_path / "r"),
        ledger={"path": str(tmp_path / "ledger")},
    )
    for command in (dalenius.plan, dalenius.publish):
        with pytest.raises(PolicyError, match="not published on Spark") as refused:
            command(policy, engine="spark")
        assert "--engine local" in (refused.value.hint or "")
    assert not (tmp_path / "r").exists()
    assert dalenius.publish(policy, engine="local").verify().ok


@pytest.mark.parametrize("subject", SPARK_SUBJECTS, ids=lambda subject: subject.name)
def test_runs_differ_and_a_seeded_run_repeats_also_where_tasks_fail_and_run_again(
    spark: Any, subject: Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every task that scatters, inserts, gathers or writes fails at its first attempt, with its work done."""

    def run_with(seed: int | None, name: str) -> dalenius.Release:
        return subject.publish(subject.policy(people(), tmp_path / name), seed=seed, again=True)

    n_free = 2 if subject is BUCKETS else 1  # two runs draw their keys alike, whatever they publish
    free = [run_with(None, f"free {i}") for i in range(n_free)]
    plain = run_with(3, "plain")
    monkeypatch.setattr(spark_writing, "guard", flaky.failing_first)
    again = run_with(3, "again")
    assert hashes(again) == hashes(plain)
    assert len({tuple(hashes(release)) for release in (*free, plain)}) == len(free) + 1
    releases = [*free, plain, again]
    assert len({release.manifest["id"] for release in releases}) == len(releases)
    assert [release.verify(strict=True).ok for release in releases] == [*(True for _ in free), False, False]
    assert again.verify().ok
    assert len(list(tmp_path.iterdir())) == len(releases)


def test_a_source_that_changes_between_two_passes_is_caught(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two people have changed places: the counts of every partition are the same."""
    source = tmp_path / "people.csv"
    lines = [f"{i},{'Flu' if i % 2 else 'Cold'}" for i in range(10, 50)]
    source.write_text("\n".join(["uid,disease", *lines]))
    honest = spark_scan.SparkScan.write

    def changing(scan: Any, *arguments: Any) -> Any:
        source.write_text("\n".join(["uid,disease", lines[1], lines[0], *lines[2:]]))
        return honest(scan, *arguments)

    monkeypatch.setattr(spark_scan.SparkScan, "write", changing)
    policy = policy_of(source, ["uid", "disease"], release=str(tmp_path / "r"))
    with pytest.raises(EngineError, match=r"changed between two passes.*another order"):
        dalenius.publish(policy, engine=SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def logged(session: Any) -> Iterator[bytes]:
    """Spark's log and event log, its settings, and what it would explain."""
    folder = Path(session.sparkContext.getConf().get("spark.local.dir"))
    for path in folder.rglob("*"):
        if path.is_file() and (path.name == "spark.log" or "local-" in path.name):
            yield path.read_bytes()
    yield repr(session.sparkContext.getConf().getAll()).encode()


def test_neither_keys_nor_cells_are_logged(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    keys: set[bytes] = set()
    honest = Randomness.derived_key

    def noted(random: Randomness, *name: str | int) -> bytes:
        keys.update((random.key, honest(random, *name)))
        return honest(random, *name)

    plans = []
    pieces = spark_writing.SparkWriter._pieces

    def explained(writer: Any, shards: Any) -> Any:
        frame = pieces(writer, shards)
        frame.explain(True)
        plans.append(repr(shards) + repr(writer))
        return frame

    monkeypatch.setattr(Randomness, "derived_key", noted)
    monkeypatch.setattr(spark_writing.SparkWriter, "_pieces", explained)
    dalenius.publish(BUCKETS.policy(people(), tmp_path / "r"), engine=SMALL)
    monkeypatch.setattr(spark_writing, "guard", flaky.blurting)
    with pytest.raises(EngineError, match=r"ValueError at flaky\.py") as caught:
        dalenius.publish(BUCKETS.policy(people(), tmp_path / "s"), again=True, engine=SMALL)
    printed = capfd.readouterr()
    written = b"".join([*logged(spark), *map(str.encode, plans), printed.out.encode(), printed.err.encode()])
    assert b"MapInArrow" in written
    assert b"a Dalenius task failed" in written
    assert b"Bronchitis-of-somebody" not in written + str(caught.value).encode()
    assert len(keys) > 3
    for key in keys:
        for spelt in (key, key.hex().encode(), base64.b64encode(key)[:40], repr(key).encode()[2:-1]):
            assert spelt not in written


def test_errors_of_spark_itself_are_told_without_their_text() -> None:
    with pytest.raises(EngineError, match=r"Spark could not do it \(ValueError\)") as caught, spark_errors():
        raise ValueError("HIV")
    assert "HIV" not in str(caught.value)


def test_the_command_line_asks_and_audits_a_release_of_many_files(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dalenius.cli.publisher.publish.engine_named", lambda _: SMALL)
    pq.write_table(people(400), tmp_path / "people.parquet")
    (tmp_path / "p.toml").write_text(
        'source = "people.parquet"\nrelease = "r"\n[columns]\nquasi = ["uid", "age"]\n'
        'sensitive = ["disease"]\n[promise]\nkind = "l-diversity"\nl = 2\n'
    )
    assert run(["publish", str(tmp_path / "p.toml"), "--engine", "spark", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["published"] == 400
    release = dalenius.open_release(tmp_path / "r")
    assert release.ask("SELECT COUNT(*) FROM t").to_dict()["rows"][0]["estimate"] == 400
    assert run(["verify", str(tmp_path / "r"), "--strict"]) == 0
    assert run(["export", str(tmp_path / "r"), "--to", str(tmp_path / "csv")]) == 0
    assert run(["audit", str(tmp_path / "r"), "--original", str(tmp_path / "p.toml"), "--json"]) == 0


def test_an_engine_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = BUCKETS.policy(people(10), Path("r"))
    with pytest.raises(InputError, match="did you mean 'spark'"):
        dalenius.plan(policy, engine="sparc")
    monkeypatch.setitem(sys.modules, "dalenius.engines.spark.engine", None)
    with pytest.raises(InputError, match="PySpark is not installed"):
        dalenius.plan(policy, engine="spark")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("kill", {"killed": True, "same": True, "ok": True}),
        ("connect", {"session": "pyspark.sql.connect.session"}),
    ],
)
def test_a_cluster_that_loses_an_executor_and_a_connect_session(
    spark: Any, script: str, expected: dict[str, Any], tmp_path: Path
) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.engines.spark.spark_scripts", script, str(tmp_path)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert ran.returncode == 0, ran.stderr[-2_000:]
    found = json.loads(ran.stdout.strip().splitlines()[-1])
    assert expected.items() <= found.items()
    assert all(found["ok"].values()) if script == "connect" else found["ok"]


@given(cuts=st.lists(st.integers(0, 40), max_size=4).map(sorted), drop=st.integers(0, 39))
def test_the_digest_follows_the_rows_and_not_the_batches(cuts: list[int], drop: int) -> None:
    table = pa.concat_tables([TYPED] * 10)
    edges = [0, *cuts, len(table)]
    pieces = [batch for a, b in pairwise(edges) for batch in table.slice(a, b - a).to_batches()]
    others = table.take([i for i in range(len(table)) if i != drop] + [drop])

    def digest(batches: list[pa.RecordBatch]) -> bytes:
        found = Digest(b"k", tuple(table.column_names))
        for batch in rebatch(batches, 16):
            found.update(batch)
        return found.value()

    whole = digest(table.combine_chunks().to_batches())
    assert digest(pieces) == whole
    assert (digest(others.to_batches()) == whole) == others.equals(table)


def test_what_travels_comes_back_as_it_was() -> None:
    (batch,) = TYPED.combine_chunks().to_batches()
    assert from_wire(to_wire(batch, TYPED.schema), TYPED.schema).equals(batch)
    with pytest.raises(SourceError, match="does not travel"):
        to_wire(pa.record_batch({"x": [[1]]}), pa.schema([("x", pa.list_(pa.int64()))]))
