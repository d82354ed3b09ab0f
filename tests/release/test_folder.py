"""A release is there whole or not at all."""

from __future__ import annotations

import errno
from datetime import UTC, datetime
from pathlib import Path

import pytest

import dalenius
from dalenius import system
from dalenius.errors import EngineError, InputError, InternalError, PromiseNotMet
from dalenius.mechanisms.base import Check
from dalenius.release.folder import new_release
from tests.contract.subject import people
from tests.mechanisms.bucketize.subjects import SUBJECTS

POLICY = SUBJECTS[0].policy


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    with pytest.raises(StopError), new_release(tmp_path / "r") as folder:  # noqa: PT012
        (folder / "secret.parquet").write_text("half")
        raise StopError
    assert list(tmp_path.iterdir()) == []


def test_an_existing_release_is_never_touched(tmp_path: Path) -> None:
    release = dalenius.publish(POLICY(people(), tmp_path / "r"))
    before = (release.path / "manifest.json").read_bytes()
    with pytest.raises(InputError, match="exists already"):
        dalenius.publish(POLICY(people(), tmp_path / "r"))
    assert (release.path / "manifest.json").read_bytes() == before


def test_no_file_tells_the_time_of_day(tmp_path: Path) -> None:
    """Copies and archives keep the files' times; the manifest has the day."""
    release = dalenius.publish(POLICY(people(), tmp_path / "r"))
    times = {path.stat().st_mtime_ns for path in (release.path, *release.path.rglob("*"))}
    midnight = datetime.fromisoformat(release.manifest["created"]).replace(tzinfo=UTC)
    day = int(midnight.timestamp()) * 10**9
    assert times <= {day, day + 86_400 * 10**9}  # midnight may have passed since the manifest was made


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        dalenius.publish(POLICY(people(), tmp_path / "absent" / "r"))


def test_what_a_killed_run_left_is_removed_but_not_what_a_live_run_writes(tmp_path: Path) -> None:
    dead = tmp_path / ".r.partial-dead"
    dead.mkdir()
    (dead / "qit.parquet").write_text("half")
    with new_release(tmp_path / "r") as live:
        assert not dead.exists()
        with new_release(tmp_path / "r") as second:
            assert live.exists()
            assert second != live
    assert (tmp_path / "r").is_dir()


def test_a_full_disk_is_a_clear_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dalenius.engines.local.scan.LocalScan.write", full)
    with pytest.raises(EngineError, match="the disk is full; nothing was published"):
        dalenius.publish(POLICY(people(), tmp_path / "r"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stopped", [KeyboardInterrupt, OSError])
def test_a_run_that_is_stopped_after_its_last_step_stays_in_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: type[BaseException]
) -> None:
    """The release is there: if the ledger forgot it, another one of the same people would not be refused."""

    def stop(_: Path) -> None:
        raise stopped

    with monkeypatch.context() as patch:
        patch.setattr("dalenius.system.share", stop)
        if stopped is KeyboardInterrupt:
            with pytest.raises(KeyboardInterrupt):
                dalenius.publish(POLICY(people(), tmp_path / "r"))
        else:  # it is there all the same
            dalenius.publish(POLICY(people(), tmp_path / "r"))
    assert dalenius.verify(tmp_path / "r").ok
    with pytest.raises(PromiseNotMet, match="published before"):
        dalenius.publish(POLICY(people(), tmp_path / "again"))


def test_a_run_that_is_stopped_before_its_last_step_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dalenius.system.rename", stop)
        with pytest.raises(KeyboardInterrupt):
            dalenius.publish(POLICY(people(), tmp_path / "r"))
    assert list(tmp_path.iterdir()) == []
    dalenius.publish(POLICY(people(), tmp_path / "again"))


def test_nothing_can_be_read_by_others_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = []

    def rename(source: Path, target: Path) -> None:
        modes.append(source.stat().st_mode & 0o077)
        source.rename(target)

    monkeypatch.setattr("dalenius.system.rename", rename)
    release = dalenius.publish(POLICY(people(), tmp_path / "r"))
    assert modes == [0]
    assert release.path.stat().st_mode & 0o055 == 0o055


def _full_disk(path: Path) -> None:
    raise OSError(errno.EIO, "Input/output error", str(path))


def test_a_disk_that_does_not_keep_what_is_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is asked of it while what was written is checked, and again at the end."""
    with monkeypatch.context() as patched:
        patched.setattr("dalenius.system.sync", _full_disk)
        with pytest.raises(EngineError, match="Input/output"):
            dalenius.publish(POLICY(people(), tmp_path / "r"))
        with pytest.raises(OSError, match="Input/output"), new_release(tmp_path / "r"):
            pass
    assert list(tmp_path.iterdir()) == []
    dalenius.publish(POLICY(people(), tmp_path / "r"))  # the ledger does not know of another one


def test_a_release_that_breaks_its_promise_is_told_of_before_a_disk_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> list[Check]:
        return [Check(name="promise", ok=False, detail="3 entries are above their threshold")]

    monkeypatch.setattr("dalenius.system.sync", _full_disk)
    monkeypatch.setattr("dalenius.publishing.check_release", broken)
    with pytest.raises(InternalError, match="does not keep the promise"):
        dalenius.publish(POLICY(people(), tmp_path / "r"))
    assert list(tmp_path.iterdir()) == []


def test_all_files_are_on_the_disk_before_they_have_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, bool]] = []
    usual = system.sync

    def sync(path: Path) -> None:
        usual(path)
        synced.append((path.name, (tmp_path / "r").exists()))

    monkeypatch.setattr("dalenius.system.sync", sync)
    release = dalenius.publish(POLICY(people(), tmp_path / "r"))
    files = {path.name for path in release.path.iterdir()}
    in_time = [name for name, has_name in synced if not has_name]
    assert all(in_time.count(name) == 2 for name in files), "once early, and with its time"
