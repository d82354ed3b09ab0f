"""The Windows side on a POSIX machine: its locks on those of here, and Windows' rule for open files.

There an open file can be neither removed nor renamed, nor can a folder that holds one. With the rule in
force a test fails here where it would fail there.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from inspect import isfunction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dalenius import system
from dalenius.system import windows

SIDES = ["posix", "windows"]
OWN = Path("/proc/self/fd")


def names_of_system() -> list[str]:
    """What both sides offer."""
    return [name for name, found in vars(system).items() if isfunction(found)]


def swap_in_windows(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Put the Windows side in; the calls of `icacls`, as they come."""
    for name in names_of_system():
        monkeypatch.setattr(system, name, getattr(windows, name))
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(LK_NBLCK=2, locking=_locking))
    monkeypatch.setattr(windows, "_FIRST_PAUSE", 0.0)
    calls: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", _icacls(subprocess.run, calls))
    for name in ("rename", "replace", "unlink", "remove"):
        monkeypatch.setattr(os, name, _closed_first(getattr(os, name)))
    return calls


def _locking(handle: int, mode: int, n_bytes: int) -> None:
    assert (mode, n_bytes) == (2, 1)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise PermissionError(13, "Permission denied") from error  # as Windows has it


def _icacls(run: Callable[..., Any], calls: list[list[str]]) -> Callable[..., Any]:
    """`icacls` by modes of files: what it is asked for shows in them."""

    def fake(command: list[str], **options: Any) -> Any:
        if command[0] != "icacls":
            return run(command, **options)
        calls.append(command)
        path = Path(command[1])
        if "/reset" in command:
            for inner in (*path.rglob("*"), path):
                inner.chmod(0o644 if inner.is_file() else 0o755)
        else:
            assert command[2:5] == ["/inheritance:r", "/grant:r", command[4]]
            path.chmod(0o700 if path.is_dir() else 0o600)
        return SimpleNamespace(returncode=0)

    return fake


def _closed_first(change: Callable[..., None]) -> Callable[..., None]:
    def checked(path: Any, *others: Any, dir_fd: int | None = None, **options: Any) -> None:
        folder = Path.cwd() if dir_fd is None else (OWN / str(dir_fd)).readlink()
        whole = folder / os.fspath(path)
        if OWN.is_dir() and any(whole == held or whole in held.parents for held in _open_files()):
            raise PermissionError(13, "the file is used by a process", str(path))
        change(path, *others, **options, **({} if dir_fd is None else {"dir_fd": dir_fd}))

    return checked


def _open_files() -> list[Path]:
    held = []
    for handle in OWN.iterdir():
        try:
            path = handle.readlink()
        except OSError:  # the listing's own
            continue
        if path.is_file():
            held.append(path)
    return held
