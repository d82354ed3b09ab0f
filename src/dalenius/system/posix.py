"""Linux, macOS and other systems with POSIX files."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

_OWNERS = 0o600
_OWNERS_FOLDER = 0o700


def lock(file: IO[str]) -> None:
    """Hold an open file until it is closed; an OSError if another process holds it."""
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def sync(path: Path) -> None:
    """A file, or what a folder lists, is on the disk when this returns."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def create_private(path: Path) -> int:
    """An open handle of a new file that only its owner may read, from before anything is in it."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNERS)


def make_private_folder(path: Path) -> None:
    """A new folder that only its owner may look into."""
    path.mkdir(mode=_OWNERS_FOLDER)


def restrict(path: Path) -> None:
    """Let only the owner read and write a file."""
    path.chmod(_OWNERS)


def share(folder: Path) -> None:
    """Let everybody read a folder and what is in it."""
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o644 if path.is_file() else 0o755)


def rename(source: Path, target: Path) -> None:
    """Give a file or a folder its name."""
    source.rename(target)


def data_folder() -> Path:
    """Where the user's programs keep what they remember."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")


def private_temporary_folder() -> Path:
    """A folder for what is not kept, which only this user can read."""
    return _temporary_folder_of(os.getuid())


@cache
def _temporary_folder_of(user: int) -> Path:
    folder = Path(tempfile.gettempdir()) / f"dalenius-{user}"
    with suppress(FileExistsError):
        folder.mkdir(mode=_OWNERS_FOLDER)
    found = folder.lstat()
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == user and not stat.S_IMODE(found.st_mode) & 0o077
    return folder if is_ours else Path(tempfile.mkdtemp(prefix="dalenius-"))  # somebody else took the name


def stop_on_signals() -> None:
    """End as after Ctrl-C, and remove what is unfinished, when asked to end or when the terminal closes."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` has it ignored
            signal.signal(number, signal.default_int_handler)
