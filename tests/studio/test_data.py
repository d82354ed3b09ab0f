"""Files that are made to harm who opens them end a process, not the studio."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from dalenius.errors import SourceError
from dalenius.studio.steps import data
from dalenius.tables.files import bytes as packed
from dalenius.tables.source import open_source
from tests.tables.files.messy import far_cell

pytest.importorskip("python_calamine")


def test_a_workbook_that_wants_all_memory_is_refused(tmp_path: Path) -> None:
    path = far_cell(tmp_path / "small.xlsx")
    assert path.stat().st_size < 4000
    with pytest.raises(SourceError, match="it takes more than 4,096 MB"):
        data.try_reading({"path": str(path)}, tmp_path)


def test_a_process_that_ends_is_no_end_of_the_studio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "MEGABYTES", -1_000)  # so that any process has too much
    (tmp_path / "t.parquet").write_bytes(b"this is no table")
    with pytest.raises(SourceError, match="it takes more than -1,000 MB"):
        data.try_reading({"path": "t.parquet"}, tmp_path)


def test_what_cannot_be_read_is_said_as_always(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    path.write_bytes(b"this is no table")
    with pytest.raises(SourceError) as here:
        open_source(path)
    with pytest.raises(SourceError) as there:
        data.try_reading({"path": str(path)}, tmp_path)
    assert str(there.value) == str(here.value)


@pytest.mark.parametrize("name", ["t.csv", "t.CSV.GZ", "t.jsonl", "postgresql://u@h/t.xlsx"])
def test_plain_text_needs_no_process(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "Worker", lambda *_, **__: pytest.fail("a process"))
    data.try_reading({"path": name}, tmp_path)
    with pytest.raises(pytest.fail.Exception):
        data.try_reading({"path": "t.xlsx.gz"}, tmp_path)


def test_an_archive_that_would_fill_the_disk_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.csv", "a,b\n" + "1,2\n" * 300_000)
    assert open_source(path).column_names == ("a", "b"), "a small file may pack as well as it likes"
    monkeypatch.setattr(packed, "_MUCH", 1 << 19)
    with pytest.raises(SourceError, match="unpacks to more than 250 times its size"):
        open_source(path)
