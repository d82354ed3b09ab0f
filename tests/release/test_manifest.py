"""The manifest as a value: what is read is what was written, also what this version does not know."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from dalenius.errors import ReleaseCorrupt
from dalenius.release.manifest import FILE_NAME, Manifest, read_manifest, schema_errors, write_manifest

KEPT = sorted(path.parent for path in (Path(__file__).parents[1] / "releases").glob(f"*/{FILE_NAME}"))
SERIES = {"id": "0" * 32, "kind": "views", "index": 2, "of": 3}


def data_of(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / FILE_NAME).read_text())
    return read


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_a_manifest_is_written_as_it_was(folder: Path, tmp_path: Path) -> None:
    write_manifest(tmp_path, read_manifest(folder))
    assert (tmp_path / FILE_NAME).read_bytes() == (folder / FILE_NAME).read_bytes()


def test_what_only_newer_versions_know_is_kept() -> None:
    data = data_of(KEPT[0]) | {"series": dict(SERIES)}
    places = [data, data["mechanism"], data["rows"], data["columns"][0], data["tables"][0], data["series"]]
    for place in [*places, data["tables"][0]["files"][0], data["promise"], data["parameters"]]:
        place["new"] = {"of": ["a", 1, None]}
    assert Manifest.from_dict(data).to_dict() == data


def test_its_entries_have_names() -> None:
    data = data_of(KEPT[0])
    manifest = Manifest.from_dict(data | {"series": SERIES})
    assert manifest.mechanism.kind == data["mechanism"]["kind"]
    assert [column.name for column in manifest.columns] == [column["name"] for column in data["columns"]]
    by_role = {role: manifest.columns_of(role) for role in ("quasi", "sensitive")}
    assert all(column["name"] in by_role[column["role"]] for column in data["columns"])
    table = manifest.table(data["tables"][0]["name"])
    assert table is not None
    assert table.files[0].sha256 == data["tables"][0]["files"][0]["sha256"]
    assert manifest.table("none") is None
    assert manifest.index == 2
    assert Manifest.from_dict(data).index == 1


@pytest.mark.parametrize("wrong", [{}, {"id": "x"}, SERIES | {"index": "2"}, SERIES | {"of": "3"}])
def test_a_place_in_a_series_that_cannot_be_is_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    folder = shutil.copytree(KEPT[0], tmp_path / "r")
    (folder / FILE_NAME).write_text(json.dumps(data_of(folder) | {"series": wrong}))
    with pytest.raises(ReleaseCorrupt, match=r"does not fit its schema: \$.series"):
        read_manifest(folder)


def test_a_good_one_is_not() -> None:
    assert schema_errors(data_of(KEPT[0]) | {"series": SERIES}) == []
    assert schema_errors(data_of(KEPT[0]) | {"series": SERIES | {"kind": "batches", "of": None}}) == []
