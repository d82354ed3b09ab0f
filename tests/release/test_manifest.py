"""The manifest as a value: what is read is what was written, also what this version does not know."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dalenius.errors import ReleaseCorrupt
from dalenius.plain import misfits
from dalenius.release.manifest import (
    FILE_NAME,
    Manifest,
    read_manifest,
    schema,
    schema_errors,
    write_manifest,
)

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


def places(data: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to every part of a JSON value."""
    parts = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [here, *(place for key, part in parts for place in places(part, (*here, key)))]


def broken(data: Any, place: tuple[Any, ...], part: Any) -> Any:
    """The value with one part left out (`...`) or replaced."""
    if not place:
        return None if part is ... else part
    whole = json.loads(json.dumps(data))
    inner = whole
    for key in place[:-1]:
        inner = inner[key]
    if part is ...:
        del inner[place[-1]]
    else:
        inner[place[-1]] = part
    return whole


def test_the_schema_is_read_as_its_standard_says() -> None:
    validator = jsonschema.Draft202012Validator(schema())
    data = data_of(KEPT[0]) | {"series": SERIES}
    n_refused = 0
    for place in places(data):
        for part in (..., None, True, 0, -1, 2.0, 2.5, "x", "a/b/c", [], ["x"], {}, {"kind": 1}):
            tried = broken(data, place, part)
            theirs = sorted(error.json_path for error in validator.iter_errors(tried))
            ours = sorted(error.split(": ")[0] for error in schema_errors(tried))
            assert ours == theirs, (place, part)
            n_refused += bool(ours)
    assert n_refused > 300


def test_a_word_that_is_not_known_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="maxLength"):
        list(misfits("abc", {"maxLength": 2}))
