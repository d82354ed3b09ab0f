"""Releases that were damaged or changed after publication: every command that reads one says so."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.cli.main import run
from tests.auditing.releases import sign

FOLDER = Path(__file__).parents[1] / "releases"
FILES = {"bucketize": "st.parquet", "perturb": "data.parquet", "alpha-beta": "view.parquet"}
QUESTION = "SELECT COUNT(*) FROM t"


def without_a_row(table: pa.Table) -> pa.Table:
    return table.slice(1)


def without_a_column(table: pa.Table) -> pa.Table:
    return table.drop_columns(table.column_names[:1])


def with_texts_for_numbers(table: pa.Table) -> pa.Table:
    return table.set_column(0, table.column_names[0], pa.array(["x"] * table.num_rows))


def with_nulls(table: pa.Table) -> pa.Table:
    last = table.schema.names[-1]
    return table.set_column(
        table.num_columns - 1, last, pa.nulls(table.num_rows, table.schema.field(last).type)
    )


def without_rows(table: pa.Table) -> pa.Table:
    return table.slice(0, 0)


CHANGES = [without_a_row, without_a_column, with_texts_for_numbers, with_nulls, without_rows]


@pytest.fixture(params=FILES)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    shutil.copytree(FOLDER / request.param, tmp_path / "r")
    return tmp_path / "r" / FILES[request.param]


def change(file: Path, how: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(how(pq.ParquetFile(file).read()), file)


def test_a_changed_file_is_not_asked(file: Path) -> None:
    change(file, without_a_row)
    with pytest.raises(dalenius.ReleaseCorrupt, match="is not the file that was published"):
        dalenius.open_release(file.parent).ask(QUESTION)


def test_nor_is_a_release_without_its_file_but_a_file_beside_it_does_no_harm(file: Path) -> None:
    (file.parent / "notes.txt").write_text("from the press office")
    dalenius.open_release(file.parent).ask(QUESTION)
    file.rename(file.parent / "elsewhere")
    with pytest.raises(dalenius.ReleaseCorrupt, match=f"{file.name} is missing"):
        dalenius.open_release(shutil.copytree(file.parent, file.parents[1] / "moved")).ask(QUESTION)


@pytest.mark.parametrize("how", CHANGES)
def test_changed_tables_are_found_out_with_new_hashes_too(file: Path, how: Any) -> None:
    change(file, how)
    sign(file.parent)
    verdict = dalenius.verify(file.parent)
    # a view is a random set of rows: a row less, or none, is another view that could have been drawn
    possible = file.name == "view.parquet" and how in (without_a_row, without_rows)
    assert verdict.ok is possible, [check.detail for check in verdict.checks]
    try:
        dalenius.open_release(file.parent).ask(QUESTION)
    except dalenius.DaleniusError as error:
        assert not isinstance(error, dalenius.InternalError)  # noqa: PT017  (it may also be answered)


def test_a_manifest_of_other_columns_is_found_out(file: Path) -> None:
    path = file.parent / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["columns"][0]["name"] = "income"
    path.write_text(json.dumps(manifest))
    try:
        failed = [check.name for check in dalenius.verify(file.parent).checks if not check.ok]
    except dalenius.ReleaseCorrupt as error:  # a domain is of its columns
        failed = ["columns"] if "domains are not those of its columns" in str(error) else []
    assert "columns" in failed


def test_damage_exits_1_and_a_broken_promise_3(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release = file.parent
    assert run(["verify", str(release)]) == 0
    content = file.read_bytes()
    for how in (without_a_row, without_a_column, with_texts_for_numbers):
        change(file, how)
        if how is not without_a_row:
            sign(release)
        assert run(["verify", str(release)]) == 1
        assert "the release is damaged" in capsys.readouterr().out
        file.write_bytes(content)
    file.write_bytes(content[:-9])
    assert run(["verify", str(release)]) == 1
    file.write_bytes(content)
    sign(release)
    assert run(["verify", str(release)]) == 0


def test_a_promise_that_is_not_kept_is_no_damage(tmp_path: Path) -> None:
    release = shutil.copytree(FOLDER / "bucketize", tmp_path / "r")
    path = release / "manifest.json"
    manifest = json.loads(path.read_text())
    for entry in manifest["promise"]["thresholds"]:
        entry["at_most"] = "1/1000"
    path.write_text(json.dumps(manifest))
    found = dalenius.verify(release)
    assert (found.ok, found.damaged) == (False, False)
    assert run(["verify", str(release)]) == 3
