"""Files are whole or not there, and what tells about the table is its owner's."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pyarrow.csv
import pytest

import dalenius
from dalenius.cli.demo import POLICY
from dalenius.cli.main import run
from dalenius.demo_data import hospital
from dalenius.files import PRIVATE, SHARED, create_private, write_whole


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def _usual_mask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_a_file_is_replaced_whole_and_with_its_own_mode(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    write_whole(path, "for all", SHARED)
    assert (path.read_text(), mode(path)) == ("for all", 0o644)
    write_whole(path, "for one", PRIVATE)
    assert (path.read_text(), mode(path)) == ("for one", 0o600)
    with pytest.raises(FileExistsError):
        create_private(path, "again")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud800", PRIVATE)
    assert path.read_text() == "for one"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_made_with_the_original_is_its_owners(tmp_path: Path) -> None:
    pyarrow.csv.write_csv(hospital(400), tmp_path / "patients.csv")
    policy, release = tmp_path / "patients.toml", tmp_path / "patients.release"
    policy.write_text(POLICY.replace("0.03", "0.2"))
    dalenius.publish(policy, seed=1)
    for name in ("private.html", "private.json"):  # also in place of one that everybody can read
        (tmp_path / name).touch()
        assert run(["report", str(release), "--original", str(policy), "--output", str(tmp_path / name)]) == 0
        assert mode(tmp_path / name) == 0o600
    assert run(["report", str(release), "--output", str(tmp_path / "r.html")]) == 0
    assert mode(tmp_path / "r.html") == 0o644
    (tmp_path / "plan.svg").touch()
    assert run(["plan", str(policy), "--chart", str(tmp_path / "plan.svg")]) == 0
    assert mode(tmp_path / "plan.svg") == 0o600
