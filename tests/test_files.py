"""Files are whole or not there, and what tells about the table is its owner's."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pyarrow.csv
import pytest

import dalenius
from dalenius import files
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


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def begin_to_write(path: Path) -> None:
    with files.folder_beside(path) as folder:
        (folder / "half").write_text("of a table")
        with mock.patch("os.replace", die):
            write_whole(path, "a report", PRIVATE)


@pytest.mark.parametrize("name", ["x.release", "[a-z]*.release"])
def test_what_a_killed_process_left_is_removed_and_what_a_live_one_holds_is_not(
    tmp_path: Path, name: str
) -> None:
    target = tmp_path / name
    child = os.fork()
    if child == 0:
        begin_to_write(target)
    os.waitpid(child, 0)
    left = {path.name for path in tmp_path.iterdir()}
    assert len(left) == 4
    (tmp_path / ".other.partial-0").mkdir()  # of another target
    with files.folder_beside(target) as live:
        (live / "half").write_text("of another table")
        with files.folder_beside(target) as second:
            assert live.exists()
            assert second != live
        write_whole(target, "whole", SHARED)
        assert {path.name for path in tmp_path.iterdir()} == {
            name,
            ".other.partial-0",
            live.name,
            f"{live.name}.lock",
        }
    assert {path.name for path in tmp_path.iterdir()} == {name, ".other.partial-0"}


def test_what_a_killed_process_spilled_is_removed_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dalenius.system.private_temporary_folder", lambda: tmp_path)
    monkeypatch.setattr(files, "_folder_of_process", files._folder_of_process.__wrapped__)

    def spill() -> None:
        folder = files.own_temporary_folder()
        (folder / "cells").write_text("of a table")

    def in_child(body: Callable[[], None]) -> int:
        child = os.fork()
        if child == 0:
            body()
            os.kill(os.getpid(), signal.SIGKILL)
        return child

    os.waitpid(in_child(spill), 0)
    (left,) = tmp_path.rglob("cells")
    spill()  # this process takes a folder of its own, and removes the other
    (mine,) = tmp_path.rglob("cells")
    assert mine != left
    os.waitpid(in_child(spill), 0)
    assert mine.exists()
    assert len(list(tmp_path.rglob("cells"))) == 2
