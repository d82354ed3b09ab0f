"""A stranger's release: what is wrong with it is said, and nothing worse happens."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius import system
from dalenius.errors import ReleaseCorrupt
from dalenius.mechanisms import registry
from dalenius.release import admission
from dalenius.release.folder import StoredRelease
from tests.auditing.releases import sign
from tests.cli.test_cli import call

KEPT = Path(__file__).parents[1] / "releases"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return Path(shutil.copytree(KEPT / "bucketize", tmp_path / "r"))


def change(release: Path, **fields: Any) -> None:
    path = release / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_work_apart_gives_its_result() -> None:
    assert system.run_apart(lambda: b"done" * 100_000, memory=2**28, seconds=10) == b"done" * 100_000


def _spin() -> bytes:
    while True:
        pass


def _hoard() -> bytes:
    return np.ones(2**32).tobytes()  # 32 GiB


@pytest.mark.parametrize("work", [os.abort, _spin, _hoard, lambda: 1 / 0])
def test_a_crash_an_endless_loop_and_a_bomb_stay_apart(work: Callable[[], bytes]) -> None:
    assert system.run_apart(work, memory=2**28, seconds=1) is None


def test_limits_of_who_starts_a_process_hold_for_it() -> None:
    """Only root may raise them: others would get no process at all."""
    resource = pytest.importorskip("resource", reason="limits are those of POSIX")

    def limits() -> bytes:
        kinds = (resource.RLIMIT_AS, resource.RLIMIT_CPU)
        return repr([resource.getrlimit(kind) for kind in kinds]).encode()

    def again() -> bytes:
        inner = system.run_apart(limits, memory=2**34, seconds=100)
        return b"the same" if inner == limits() else b"%r, not %r" % (inner, limits())

    assert system.run_apart(again, memory=2**28, seconds=10) == b"the same"


def test_a_file_that_crashes_its_reader_is_a_damaged_release(
    release: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(admission, "_known", set())  # another test may have looked at it
    monkeypatch.setattr(admission, "_look", lambda *_: os.abort())
    with pytest.raises(dalenius.ReleaseCorrupt, match="took too much memory or time, or crashed"):
        dalenius.open_release(release)
    code, output = call(capsys, "ask", release, "SELECT COUNT(*) FROM t")[:2]
    assert code == 1
    assert "is damaged" in str(output)


def test_tables_are_looked_at_once(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[StoredRelease] = []
    look = admission.look_at_tables

    def noted(one: StoredRelease) -> tuple[admission.TableContents, ...]:
        looked.append(one)
        return look(one)

    monkeypatch.setattr(admission, "_known", set())
    monkeypatch.setattr(admission, "look_at_tables", noted)
    opened = dalenius.open_release(release)
    opened.ask("SELECT COUNT(*) FROM t")
    dalenius.open_release(release)
    assert len(looked) == 1


def test_nor_are_those_that_this_process_wrote(
    tmp_path: Path, patients: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "look_at_tables", lambda _: pytest.fail("looked at again"))
    policy = dalenius.Policy.from_dict(
        {
            "source": patients.slice(0, 300),
            "release": str(tmp_path / "r"),
            "columns": {"quasi": ["age", "sex"], "sensitive": ["disease"], "dropped": _others(patients)},
            "promise": {"kind": "l-diversity", "l": 2},
        }
    )
    dalenius.publish(policy, seed=1).ask("SELECT COUNT(*) FROM t")


def _others(table: pa.Table) -> list[str]:
    return [name for name in table.column_names if name not in ("age", "sex", "disease")]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"columns": []}, "has no name, or there is none"),
        ({"created": "2026-13-45"}, "the day on which it was made is none"),
        ({"series": {"id": "x", "kind": "parts", "index": 1, "of": None}}, "of a kind that there is not"),
        ({"series": {"id": "x", "kind": "views", "index": 3, "of": 2}}, "number 3 of a series of 2"),
        ({"promise": {"kind": "l-diversity", "l": "1e9"}}, "promise.l is '1e9', not a whole number"),
        ({"promise": {"kind": "x"}}, "promise.kind is 'x'"),
        ({"parameters": {"fakes": {"per_bucket": 1}}}, "parameters.fakes has no 'values'"),
        ({"parameters": {"regions": [{"rows": 1}]}}, r"parameters.regions\[0\] has no 'where'"),
        ({"mechanism": {"kind": "magic", "method": "x"}}, "mechanism 'magic' is unknown"),
    ],
)
def test_a_manifest_that_cannot_be_is_refused_with_what_is_wrong(
    release: Path, fields: dict[str, Any], problem: str
) -> None:
    change(release, **fields)
    for use in (dalenius.open_release, dalenius.verify):
        with pytest.raises(dalenius.ReleaseCorrupt, match=problem):
            use(release)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a": NaN}', "is not JSON: NaN is no number"),
        ('{"a": 1, "a": 2}', "a name stands twice"),
        ('{"a": "\\ud800"}', "half a character"),
        ('{"a": ' + "[" * 50 + "]" * 50 + "}", "nested too deeply"),
        ('{"a": "' + "x" * 2**20 + 'x"}', "has a text of 1,048,577 characters"),
    ],
)
def test_nor_is_json_that_no_mechanism_writes(release: Path, text: str, problem: str) -> None:
    (release / "manifest.json").write_text(text)
    with pytest.raises(dalenius.ReleaseCorrupt, match=problem):
        dalenius.verify(release)


@pytest.mark.parametrize("name", ["../manifest.json", "/etc/passwd", "..", "a\nb.parquet", ".hidden"])
def test_a_file_outside_the_release_is_not_read(release: Path, name: str) -> None:
    tables = json.loads((release / "manifest.json").read_text())["tables"]
    tables[0]["files"][0]["file"] = name
    change(release, tables=tables)
    with pytest.raises(dalenius.ReleaseCorrupt):
        dalenius.open_release(release)


@pytest.mark.parametrize("bad", [0, -3, None, 2**60])
@pytest.mark.parametrize(("table", "column"), [("st", "count"), ("st", "bucket"), ("qit", "bucket")])
def test_numbers_that_cannot_be_are_refused(release: Path, table: str, column: str, bad: int | None) -> None:
    file = release / f"{table}.parquet"
    rows = pq.ParquetFile(file).read()
    cells = [bad, *rows.column(column).to_pylist()[1:]]
    at = rows.column_names.index(column)
    pq.write_table(rows.set_column(at, column, pa.array(cells, pa.int64())), file)
    sign(release)
    with pytest.raises(dalenius.ReleaseCorrupt, match=f"'{column}' of table '{table}' is not a whole number"):
        dalenius.open_release(release)
    assert not dalenius.verify(release).ok


def test_a_table_with_a_column_of_another_is_refused(release: Path) -> None:
    file = release / "qit.parquet"
    rows = pq.ParquetFile(file).read()
    pq.write_table(rows.append_column("disease", pa.array(["Flu"] * rows.num_rows)), file)
    sign(release)
    with pytest.raises(dalenius.ReleaseCorrupt, match="do not have its columns"):
        dalenius.open_release(release)


@pytest.mark.parametrize("room", [None, ModuleType("published")])
def test_a_mechanism_need_not_say_which_tables_it_publishes(
    room: ModuleType | None, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of another package may have a room without that, or no such room."""
    stored = StoredRelease.open(release)
    contents = admission.look_at_tables(stored)
    renamed = tuple(replace(table, name="other") for table in contents)
    assert list(admission.wrong_columns(stored.manifest, renamed))
    monkeypatch.setattr(registry, "find_room", lambda *_: room)
    assert not list(admission.wrong_columns(stored.manifest, renamed))


@pytest.mark.parametrize(
    ("cells", "counts"),
    [
        ([1, 2], True),
        ([0, 2], False),
        ([1, -1], False),
        ([1, None], False),
        (["1"], False),
        ([1.0], False),
        ([2**53], True),
        ([2**53 + 1], False),
        (pa.array([], pa.int64()), True),
    ],
)
def test_what_numbers_something_is_a_whole_number_from_one_on(cells: Any, counts: bool) -> None:
    assert admission._counts(pa.array(cells)) is counts


def test_only_columns_that_number_something_must(tmp_path: Path) -> None:
    pq.write_table(pa.table({"age": [-1, 0], "bucket": [1, 0], "count": [1, 2]}), tmp_path / "t.parquet")
    assert admission._look_at("t", [tmp_path / "t.parquet"])["outside"] == ["bucket"]


def test_a_file_holds_no_more_rows_than_its_bytes_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"age": [1, 2, 3]}), tmp_path / "t.parquet")
    monkeypatch.setattr(admission, "_ROWS_PER_BYTE", 0)
    monkeypatch.setattr(admission, "_FEW_ROWS", 3)
    assert admission._look_at("t", [tmp_path / "t.parquet"])["rows"] == 3
    monkeypatch.setattr(admission, "_FEW_ROWS", 2)
    with pytest.raises(ReleaseCorrupt, match="which it cannot"):
        admission._look_at("t", [tmp_path / "t.parquet"])


def test_a_larger_file_may_hold_more_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"age": list(range(100_000))}), path, use_dictionary=False)
    monkeypatch.setattr(admission, "_FEW_ROWS", 0)
    monkeypatch.setattr(admission, "_ROWS_PER_BYTE", 1)
    assert admission._look_at("t", [path])["rows"] == 100_000
    monkeypatch.setattr(admission, "_ROWS_PER_BYTE", 50_000 / path.stat().st_size)
    with pytest.raises(ReleaseCorrupt, match="which it cannot"):
        admission._look_at("t", [path])


@pytest.mark.parametrize(
    ("n_bytes", "n_rows"), [(0, 10_000_000), (2_000, 10_000_000), (2_001, 10_005_000), (10**6, 5 * 10**9)]
)
def test_so_many_rows_are_believed_as_is_documented(n_bytes: int, n_rows: int) -> None:
    """Ten million, or 5,000 for each byte (docs/release.md)."""
    assert admission._most_rows(n_bytes) == n_rows


@pytest.mark.parametrize(("size", "seconds"), [(0, 60), (5 * 2**20, 65), (2**30, 60 + 1024)])
def test_tables_are_read_within_the_limits_that_are_documented(
    release: Path, monkeypatch: pytest.MonkeyPatch, size: int, seconds: int
) -> None:
    """3 GiB, and a minute of the processor plus a second for each MiB (docs/release.md)."""
    limits: list[tuple[int, int]] = []

    def run_apart(_: Callable[[], bytes], *, memory: int, seconds: int) -> bytes:
        limits.append((memory, seconds))
        return b"[]"

    monkeypatch.setattr(system, "run_apart", run_apart)
    if size:
        os.truncate(release / "qit.parquet", size)
    assert admission.look_at_tables(StoredRelease.open(release)) == ()
    assert limits == [(3 * 2**30, seconds)]


def test_a_text_that_is_not_utf8_is_refused(release: Path) -> None:
    """Parquet keeps any bytes; readers would stumble over them one by one."""
    path = release / "st.parquet"
    table = pq.read_table(path)
    at = table.column_names.index("disease")
    texts = [cell.encode() for cell in table["disease"].to_pylist()]
    broken = pa.array([b"\xff" + text[1:] for text in texts], pa.binary())
    forged = pa.StringArray.from_buffers(len(broken), broken.buffers()[1], broken.buffers()[2])
    pq.write_table(table.set_column(at, "disease", forged), path)
    sign(release)
    with pytest.raises(ReleaseCorrupt, match="cannot be read"):
        admission.look_at_tables(StoredRelease.open(release))
