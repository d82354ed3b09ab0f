"""A folder as a release: its files, its place in a series, and what its manifest says of itself."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dalenius.errors import ReleaseCorrupt
from dalenius.release.folder import StoredRelease, build_manifest, check_files
from dalenius.release.manifest import SIGNATURE_NAME, SeriesEntry
from tests.contract.subject import people
from tests.mechanisms.bucketize.subjects import SUBJECTS

KEPT = Path(__file__).parents[1] / "releases" / "bucketize"


@pytest.fixture
def stored(tmp_path: Path) -> StoredRelease:
    return StoredRelease.open(shutil.copytree(KEPT, tmp_path / "r"))


def test_files_are_those_of_the_manifest_and_no_others(stored: StoredRelease) -> None:
    found = check_files(stored)
    assert found.ok
    assert found.detail == "2 files match the SHA-256 of the manifest"
    (stored.path / "notes.txt").write_text("beside")
    found = check_files(stored)
    assert not found.ok
    assert found.detail == "notes.txt is not in the manifest"


def test_a_signature_belongs_to_a_release_that_names_its_signer(stored: StoredRelease) -> None:
    (stored.path / SIGNATURE_NAME).write_bytes(b"signature")
    assert check_files(stored).detail == f"{SIGNATURE_NAME} is not in the manifest"
    assert check_files(replace(stored, manifest=replace(stored.manifest, signer="key"))).ok


def test_a_place_in_a_series(stored: StoredRelease) -> None:
    with pytest.raises(ReleaseCorrupt, match="does not belong to a series"):
        _ = stored.series
    for kind, several in (("batches", True), ("views", False)):
        place = SeriesEntry(id="s", kind=kind, index=2, of=None)
        later = replace(stored, manifest=replace(stored.manifest, series=place))
        assert later.series == place
        assert later.is_several_batches is False
        assert replace(later, earlier=(stored,)).is_several_batches is several


@pytest.mark.parametrize(("stated", "published"), [(None, 5), (7, 7), (0, 0)])
@pytest.mark.parametrize("is_draft", [False, True])
def test_a_manifest_counts_the_rows_of_its_first_table_unless_told(
    tmp_path: Path, stated: int | None, published: int, is_draft: bool
) -> None:
    empty: dict[str, Any] = {
        "promise": {},
        "assumes": (),
        "not_covered": (),
        "disclosed": (),
        "parameters": {},
    }
    draft: Any = SimpleNamespace(
        statement=SimpleNamespace(**empty), n_published=stated, method="m", n_suppressed=3, outright=0
    )
    tables: Any = [SimpleNamespace(rows=5), SimpleNamespace(rows=9)]
    policy, schema = SUBJECTS[0].policy(people(10), tmp_path / "r"), people(10).schema
    found = build_manifest(policy, draft, schema, tables, is_seeded=is_draft, is_draft=is_draft)
    assert (found.rows.published, found.rows.suppressed) == (published, 3)
    assert found.draft is (True if is_draft else None)
    assert found.for_publication is not is_draft
