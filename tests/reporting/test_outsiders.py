"""The report for outsiders is a function of the release folder alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dalenius
from dalenius.demo_data import hospital
from dalenius.pages.html import render_html
from dalenius.pages.writing import render_text
from dalenius.release.series import open_release
from dalenius.reporting import build as building
from dalenius.reporting.build import build_report
from dalenius.reporting.distribution import Truth
from tests.auditing.releases import deal, people, write_release
from tests.contract.subject import people as sorted_people
from tests.contract.subjects import SUBJECTS
from tests.reporting.pages import policy, published

COMMAND = "from dalenius.cli import main; main()"


def render(folder: Path, original: pa.Table | None = None) -> str:
    report = build_report(open_release(folder), original, seed=1)
    return render_html(report) + render_text(report)


def test_two_originals_with_the_same_release_have_the_same_report(tmp_path: Path) -> None:
    """Swap sensitive values inside buckets: another truth, the very same release."""
    first = people(400)
    bucket = deal(first, 5, np.random.default_rng(3))
    order = np.lexsort((np.arange(len(bucket)), bucket))
    swapped = np.arange(len(bucket))
    swapped[order] = np.roll(order.reshape(-1, 5), 1, axis=1).ravel()
    other = first.set_column(
        first.column_names.index("disease"), "disease", first["disease"].take(pa.array(swapped))
    )
    assert other != first
    folders = []
    for name, table in (("one", first), ("two", other)):
        folders.append(write_release(tmp_path, table, bucket, rng=None, name=name).path)
    contents = [{p.name: p.read_bytes() for p in folder.iterdir()} for folder in folders]
    assert contents[0] == contents[1]
    assert render(folders[0]) == render(folders[1])
    # the control: with the originals at hand the reports differ, so that this test can fail
    assert render(folders[0], first) != render(folders[1], other)


@pytest.mark.parametrize(
    "kind", ["bucketize optimal l-diversity", "perturb small-domain", "alpha-beta copies"]
)
def test_it_depends_on_nothing_else(kind: str, tmp_path: Path) -> None:
    """Another place, user, day, language and working directory, no original far and wide: the same bytes."""
    (subject,) = [s for s in SUBJECTS if s.name == kind]
    release = published(subject.policy(sorted_people(), tmp_path / "secret-project.release"))
    dalenius.report(release.path, output=tmp_path / "here.html")
    elsewhere = tmp_path / "away" / "r"
    shutil.copytree(release.path, elsewhere)
    for path in elsewhere.rglob("*"):
        os.utime(path, (0, 0))
    environment = {
        "PYTHONPATH": str(Path(dalenius.__file__).parent.parent),
        "PATH": "/usr/bin:/bin",
        "USER": "mallory",
        "HOME": str(tmp_path / "away"),
        "TZ": "Pacific/Auckland",
        "LC_ALL": "C",
        "COLUMNS": "20",
    }
    subprocess.run(
        [sys.executable, "-c", COMMAND, "report", "r", "--output", "there.html"],
        check=True,
        cwd=elsewhere.parent,
        env=environment,
        capture_output=True,
    )
    there = (elsewhere.parent / "there.html").read_bytes()
    assert there == (tmp_path / "here.html").read_bytes()
    for word in (str(tmp_path), "secret-project", "mallory", "away", str(Path.home())):
        assert word.encode() not in there


def test_the_original_is_not_even_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = published(policy(tmp_path / "r"))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the original was read")

    monkeypatch.setattr(Truth, "load", refuse)
    monkeypatch.setattr(building, "audit_release", refuse)
    assert render_html(build_report(release))
    with pytest.raises(AssertionError, match="the original was read"):
        build_report(release, sorted_people())


def test_what_was_dropped_is_in_no_report(tmp_path: Path) -> None:
    table = hospital(300)
    columns = {
        "unit": "patient_id",
        "identifiers": ["name"],
        "quasi": ["age", "sex"],
        "sensitive": ["disease"],
        "dropped": ["district", "insurance"],
    }
    published(policy(tmp_path / "r", table, columns=columns, promise={"kind": "l-diversity", "l": 3}))
    for original in (None, table):
        page = render(tmp_path / "r", original)
        dropped = {*table["name"].to_pylist(), *table["district"].to_pylist(), "patient_id", "insurance"}
        assert not [word for word in dropped if word in page]
        assert "Hypertension" in page
