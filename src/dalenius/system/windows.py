"""Windows: an open file can neither be removed nor its folder renamed, and modes say nothing about readers.

Who may read a file is said by its access list, which `icacls` writes. Without it a file has the list of its
folder.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import IO, Any

_OWNER = "*S-1-3-4"
"""The rights of whoever owns the file, by the number that every language of Windows has for it."""
_TRIES = 8
_FIRST_PAUSE = 0.05
"""Seconds; doubled before each further try."""


def lock(file: IO[str]) -> None:
    """Hold an open file until it is closed; an OSError if another process holds it."""
    runtime: Any = import_module("msvcrt")
    file.seek(0)
    runtime.locking(file.fileno(), runtime.LK_NBLCK, 1)


def sync(path: Path) -> None:
    """A file is on the disk when this returns; folders cannot be opened here, and are journaled."""
    if path.is_dir():
        return
    handle = os.open(path, os.O_RDWR)  # a handle for reading cannot be flushed here
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def create_private(path: Path) -> int:
    """An open handle of a new file that only its owner may read, from before anything is in it."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        restrict(path)
    except OSError:
        os.close(handle)
        path.unlink()
        raise
    return handle


def make_private_folder(path: Path) -> None:
    """A new folder that only its owner may look into."""
    path.mkdir()
    _write_access(path, "/inheritance:r", "/grant:r", f"{_OWNER}:(OI)(CI)F")


def restrict(path: Path) -> None:
    """Let only the owner read and write a file."""
    _write_access(path, "/inheritance:r", "/grant:r", f"{_OWNER}:F")


def share(folder: Path) -> None:
    """Let those read a folder and what is in it who may read the folder around it."""
    _write_access(folder, "/reset", "/T")


def rename(source: Path, target: Path) -> None:
    """Give a file or a folder its name; wait where a virus scanner looks at it for a moment."""
    for attempt in range(_TRIES):
        try:
            source.rename(target)
        except PermissionError:
            if attempt == _TRIES - 1 or target.exists():
                raise
            time.sleep(_FIRST_PAUSE * 2**attempt)
        else:
            return


def data_folder() -> Path:
    """Where the user's programs keep what they remember."""
    return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")


def private_temporary_folder() -> Path:
    """A folder for what is not kept: each user has one of their own here."""
    folder = Path(tempfile.gettempdir()) / "dalenius"
    folder.mkdir(exist_ok=True)
    return folder


def stop_on_signals() -> None:
    """End as after Ctrl-C, with everything unfinished removed, on Ctrl-Break too."""
    number = getattr(signal, "SIGBREAK", None)
    if number is not None:
        signal.signal(number, signal.default_int_handler)


def run_apart(work: Callable[[], bytes], *, memory: int, seconds: int) -> bytes | None:  # noqa: ARG001
    """What the work returns, done in this process: here is no cheap way to another one."""
    return work()


def keep_freed_memory() -> None:
    """Nothing: the C library is not told how to keep memory."""


def work_apart_if_limited(work: Callable[[], int]) -> int | None:
    """The exit code of some work; memory is not limited here."""
    return work()


def _write_access(path: Path, *change: str) -> None:
    done = subprocess.run(["icacls", str(path), *change, "/Q"], capture_output=True, check=False)  # noqa: S603, S607
    if done.returncode:
        raise PermissionError(f"icacls could not say who may read {path}")
