"""`verify` sees every change that could break a promise, from the release alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.errors import InputError, InternalError, ReleaseCorrupt
from dalenius.mechanisms.bucketize import apply, check
from dalenius.release.folder import sha256
from dalenius.release.manifest import read_manifest, schema_errors
from dalenius.release.series import open_release
from dalenius.release.verify import _check_series, tell_outright, verify, verify_release
from tests.contract.subject import people
from tests.mechanisms.bucketize.subjects import DIVERSE, LINEAR, SUBJECTS


@pytest.fixture(params=[LINEAR, DIVERSE], ids=["f-privacy", "l-diversity"])
def release(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dalenius.Release:
    """One is checked as a whole, the other by ranges of seven buckets."""
    if request.param == DIVERSE:
        monkeypatch.setattr(check, "_WINDOW", 7)
    subject = next(s for s in SUBJECTS if s.promise == request.param)
    return dalenius.publish(subject.policy(people(), tmp_path / "r"))


def failed(release: dalenius.Release) -> list[str]:
    return [check.name for check in dalenius.verify(release.path).checks if not check.ok]


def rewrite(release: dalenius.Release, table: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Replace a table and make the manifest fit, as somebody who wants to hide a change would."""
    path = release.path / f"{table}.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    edit_manifest(release, lambda manifest: _refresh(manifest, release.path))


def _refresh(manifest: dict[str, Any], folder: Path) -> None:
    for entry in manifest["tables"]:
        for file in entry["files"]:
            file["sha256"] = sha256(folder / file["file"])
        entry["rows"] = pq.read_metadata(folder / entry["files"][0]["file"]).num_rows


def edit_manifest(release: dalenius.Release, change: Callable[[dict[str, Any]], None]) -> None:
    path = release.path / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def test_a_seeded_release_is_refused_where_it_counts(tmp_path: Path) -> None:
    subject = next(s for s in SUBJECTS if s.promise == LINEAR)
    seeded = dalenius.publish(subject.policy(people(), tmp_path / "seeded"), seed=1)
    assert seeded.manifest["for_publication"] is False
    assert dalenius.verify(seeded.path).ok
    assert not dalenius.verify(seeded.path, strict=True).ok
    assert verify(seeded.path).ok
    assert verify_release(open_release(seeded.path)).ok
    assert not verify(seeded.path, strict=True).ok


def test_a_fresh_release_passes(release: dalenius.Release) -> None:
    assert failed(release) == []
    assert schema_errors(release.manifest) == []


def test_a_changed_byte_is_seen(release: dalenius.Release) -> None:
    path = release.path / "st.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert failed(release) == ["files"]


def test_missing_and_extra_files_are_seen(release: dalenius.Release) -> None:
    (release.path / "notes.txt").write_text("x")
    assert failed(release) == ["files"]
    (release.path / "notes.txt").unlink()
    (release.path / "qit.parquet").unlink()
    assert failed(release) == ["files"]


def test_a_bucket_above_its_threshold_is_seen(release: dalenius.Release) -> None:
    """A bucket with one value only: sizes agree, the share does not."""

    def concentrate(st: pa.Table) -> pa.Table:
        first = st.filter(pc.equal(st["bucket"], 1))
        total = pc.sum(first["count"]).as_py()
        kept = first.slice(0, 1).set_column(2, "count", pa.array([total], pa.int64()))
        return pa.concat_tables([kept, st.filter(pc.not_equal(st["bucket"], 1))])

    rewrite(release, "st", concentrate)
    assert failed(release) == ["promise"]


def test_people_without_values_are_seen(release: dalenius.Release) -> None:
    rewrite(release, "qit", lambda qit: qit.slice(1))
    assert failed(release) == ["bucket sizes", "records"]


def test_repeated_and_negative_entries_are_seen(release: dalenius.Release) -> None:
    rewrite(
        release,
        "st",
        lambda st: pa.concat_tables(
            [
                st,
                st.slice(0, 1),
                st.slice(0, 1).set_column(2, "count", pa.array([-st["count"][0].as_py()], pa.int64())),
            ]
        ),
    )
    assert "sensitive table" in failed(release)


def test_a_value_that_nothing_was_promised_for_is_seen(tmp_path: Path) -> None:
    release = dalenius.publish(SUBJECTS[0].policy(people(), tmp_path / "r"))
    edit_manifest(release, lambda manifest: manifest["promise"]["thresholds"].pop())
    assert failed(release) == ["promise"]


def test_a_missing_column_is_a_failed_check_not_a_crash(release: dalenius.Release) -> None:
    rewrite(release, "st", lambda st: st.drop_columns(["count"]))
    assert failed(release) == ["columns"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(format_version=99), "reads up to 1"),
        (lambda m: m.update(format="other"), "not the manifest"),
        (lambda m: m.pop("promise"), "'promise' is a required property"),
        (lambda m: m["tables"][0]["files"][0].update(file="../../etc/passwd"), "does not fit its schema"),
    ],
)
def test_a_manifest_that_is_none_is_refused(
    release: dalenius.Release, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    edit_manifest(release, change)
    with pytest.raises(ReleaseCorrupt, match=message):
        dalenius.open_release(release.path)


def test_folders_that_are_no_releases(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a release"):
        dalenius.verify(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ReleaseCorrupt, match="not JSON"):
        read_manifest(tmp_path)


def test_a_folder_that_holds_releases_names_them(release: dalenius.Release, tmp_path: Path) -> None:
    """They are neither a damaged series nor one release; a series says so in every manifest."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    shutil.copytree(release.path, folder / "a.release")
    with pytest.raises(InputError, match=r"is not a release, but holds one: a\.release"):
        dalenius.verify(folder)
    shutil.copytree(release.path, folder / "b.release")
    with pytest.raises(InputError, match=r"but holds 2 of them: a\.release, b\.release") as refused:
        dalenius.verify(folder)
    assert f"`dalenius verify {folder / 'a.release'}`" in str(refused.value.hint)


def test_the_writer_refuses_what_it_wrote_wrongly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mechanism that puts too much of a value into a bucket is caught before anybody sees the release."""
    honest = apply.Layout.contents

    def broken(layout: apply.Layout) -> Any:
        for buckets, codes, counts in honest(layout):
            yield buckets, codes * 0, counts

    monkeypatch.setattr(apply.Layout, "contents", broken)
    with pytest.raises(InternalError, match="does not keep the promise"):
        dalenius.publish(SUBJECTS[0].policy(people(), tmp_path / "r"))
    assert list(tmp_path.iterdir()) == []


def test_what_is_published_outright_is_told_in_words() -> None:
    assert tell_outright(0, ("ill",)) == "nobody is published outright"
    assert tell_outright(1, ("ill",)).endswith("the person's ill")
    assert tell_outright(2_000, ("ill", "stage")).startswith("2,000 people are published outright")
    assert tell_outright(2, ("ill", "stage")).endswith("read off their ill or stage")
    assert tell_outright(2, ()).endswith("read off their sensitive value")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ReleaseCorrupt("a part cannot be\nsecond line"), "a part cannot be"),
        (KeyError("zq-cell"), "KeyError"),  # what Python says of an error may be a cell
    ],
)
def test_tables_of_another_mechanism_are_told_in_a_line(
    release: dalenius.Release, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    def check_promise(_: object) -> None:
        raise error

    monkeypatch.setattr("dalenius.release.verify.check_promise", check_promise)
    (check,) = (check for check in dalenius.verify(release.path).checks if not check.ok)
    assert check.detail == f"the tables are not those of this mechanism: {told}"


def test_a_series_may_have_as_many_views_as_its_parameters_are_for() -> None:
    same = SimpleNamespace(parameters={"views": 2}, promise={"kind": "l-diversity", "l": 2})

    def of_two(n_parts: int) -> bool:
        parts = [SimpleNamespace(series=SimpleNamespace(index=i + 1), manifest=same) for i in range(n_parts)]
        series: Any = SimpleNamespace(
            parts=parts, manifest=same, series=SimpleNamespace(of=2, kind="views", index=n_parts)
        )
        return _check_series(series).ok

    assert [of_two(n) for n in (1, 2, 3)] == [True, True, False]


@pytest.mark.parametrize("kind", ["views", "batches", "dates"])
def test_a_series_has_one_promise(kind: str) -> None:
    def of_two(**other: Any) -> str:
        promises = [{"kind": "l-diversity", "l": 3}, {"kind": "l-diversity", "l": 3} | other]
        parts = [
            SimpleNamespace(
                series=SimpleNamespace(index=index, kind=kind, of=None),
                manifest=SimpleNamespace(parameters={}, columns=(), promise=promise),
            )
            for index, promise in enumerate(promises, start=1)
        ]
        last = parts[-1]
        series: Any = SimpleNamespace(parts=parts, manifest=last.manifest, series=last.series)
        return _check_series(series).detail

    assert of_two() == "releases 1, 2"
    assert of_two(l=2).endswith("made with different promises")
