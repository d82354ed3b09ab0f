"""Both sides have the same functions, and the Windows one does what it is asked without a POSIX call."""

from __future__ import annotations

import inspect
import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from dalenius import system
from dalenius.release.folder import new_release
from dalenius.system import posix, windows
from tests.system.swapped import names_of_system, swap_in_windows

SOURCE = Path(system.__file__).parent.parent


def test_both_sides_offer_the_same() -> None:
    for name in names_of_system():
        assert inspect.signature(getattr(posix, name)) == inspect.signature(getattr(windows, name)), name


def test_only_the_posix_side_imports_what_windows_lacks() -> None:
    lacking = re.compile(
        r"import (fcntl|resource|pwd|grp|termios)\b|os\.(getuid|geteuid|fork|O_DIRECTORY)\b|flock\("
    )
    found = [path for path in SOURCE.rglob("*.py") if lacking.search(path.read_text(encoding="utf-8"))]
    assert found == [Path(posix.__file__)]


def test_windows_is_chosen_on_windows() -> None:
    code = (
        "import sys; sys.platform = 'win32'; sys.modules['fcntl'] = None\n"
        "from dalenius import system; assert system.lock.__module__ == 'dalenius.system.windows'\n"
        "import dalenius.release.ledger, dalenius.release.folder, dalenius.files"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    # What other libraries make of the name is theirs: they are loaded first.
    first = "import duckdb, pydoc, pyarrow.parquet, numpy, jsonschema, shutil, sqlite3, typer, tempfile\n"
    subprocess.run([sys.executable, "-c", first + code], check=True, env=environment)


def test_a_broken_writer_is_caught_by_the_rule_for_open_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock inside the folder, as it once was, could not be removed, nor the folder renamed."""
    swap_in_windows(monkeypatch)
    with pytest.raises(PermissionError), new_release(tmp_path / "r") as folder:
        kept = (folder / "open.txt").open("w")
    kept.close()
    assert not (tmp_path / "r").exists()


def test_access_is_written_by_owner_and_reset_when_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = swap_in_windows(monkeypatch)
    with new_release(tmp_path / "r") as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert calls == [
        ["icacls", str(folder), "/inheritance:r", "/grant:r", "*S-1-3-4:(OI)(CI)F", "/Q"],
        ["icacls", str(tmp_path / "r"), "/reset", "/T", "/Q"],
    ]


def test_a_file_whose_access_cannot_be_written_is_not_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=5))
    with pytest.raises(PermissionError, match="who may read"):
        windows.create_private(tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_a_folder_in_use_for_a_moment_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Path] = []

    def busy(self: Path, target: Path) -> None:
        tries.append(target)
        if len(tries) < 3:
            raise PermissionError(13, "in use")

    monkeypatch.setattr(Path, "rename", busy)
    monkeypatch.setattr(windows, "_FIRST_PAUSE", 0.0)
    windows.rename(tmp_path / "a", tmp_path / "b")
    assert len(tries) == 3
    tries.clear()
    monkeypatch.setattr(windows, "_TRIES", 2)
    with pytest.raises(PermissionError):
        windows.rename(tmp_path / "a", tmp_path / "b")


def test_the_windows_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert windows.data_folder() == tmp_path
    monkeypatch.delenv("LOCALAPPDATA")
    assert windows.data_folder().parts[-2:] == ("AppData", "Local")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert windows.private_temporary_folder() == tmp_path / "dalenius"


def test_a_run_that_is_asked_to_end_leaves_nothing(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom dalenius import system\n"
        "from dalenius.release.folder import new_release\nsystem.stop_on_signals()\n"
        "with new_release(Path(sys.argv[1])):\n    print('writing', flush=True)\n    time.sleep(600)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "r")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as run:
        assert run.stdout is not None
        run.stdout.readline()
        assert len(list(tmp_path.iterdir())) == 2  # the hidden folder and its lock
        run.send_signal(signal.SIGTERM)
        assert run.wait() != 0
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits of addresses are those of POSIX")
def test_too_little_memory_is_said_and_is_no_bug(tmp_path: Path) -> None:
    """Native libraries that get no memory abort, crash or exit as they like."""
    (tmp_path / "p.toml").write_text('source = "none.csv"\n')
    limit = "import resource as r; r.setrlimit(r.RLIMIT_AS, (300_000_000,) * 2)"
    ask = f"{limit}; from dalenius.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", ask, "plan", str(tmp_path / "p.toml"), "--json"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "not enough memory" in json.loads(done.stdout)["error"]["message"]
