"""Files that are written whole or not at all, and those that only their owner may read.

What is unfinished has a hidden name beside its place, and a lock that its process holds. A process that is
killed leaves the name and loses the lock: so the next run knows what it may remove.
"""

from __future__ import annotations

import atexit
import glob
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

from dalenius import system

PRIVATE = 0o600
"""Who may read a file that tells about the table: its owner."""
SHARED = 0o666
"""Whoever the user's mask lets."""
_LOCK = ".lock"
_TRIES = 20


def write_whole(path: Path, text: str, mode: int) -> None:
    """Write a text under a name, in place of what is there; who may read it is known from the start."""
    _remove_abandoned(path.parent, f".{path.name}.unfinished-")
    unfinished = path.with_name(f".{path.name}.unfinished-{secrets.token_hex(4)}")
    with _held(unfinished):
        try:
            _create(unfinished, text, mode)
            os.replace(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)


@contextmanager
def folder_beside(target: Path) -> Iterator[Path]:
    """A hidden folder beside a target, which only its owner may look into, and which is gone at the end.

    What killed runs left beside the same target is removed first.
    """
    _remove_abandoned(target.parent, f".{target.name}.partial-")
    folder = target.parent / f".{target.name}.partial-{secrets.token_hex(8)}"
    with _held(folder):
        try:
            system.make_private_folder(folder)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def own_temporary_folder() -> Path:
    """Where this process puts what is not kept; only its user can read it, and it is gone at the end."""
    return _folder_of_process(os.getpid())


@cache
def _folder_of_process(process: int) -> Path:
    around = system.private_temporary_folder()
    _remove_abandoned(around, "")
    folder = around / secrets.token_hex(8)
    held = ExitStack()
    with suppress(OSError):  # where no file can be made, nothing can be spilled either
        held.enter_context(_held(folder))
        system.make_private_folder(folder)  # DuckDB makes its own inside, and none around that

    def remove() -> None:
        if os.getpid() == process:  # and not in one that was forked from it
            shutil.rmtree(folder, ignore_errors=True)
            held.close()

    atexit.register(remove)
    return folder


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold the lock of something unfinished; other runs see that it is not abandoned."""
    lock = path.with_name(f"{path.name}{_LOCK}")
    file = _lock_new(lock)
    try:
        with file:
            yield
    finally:
        with suppress(OSError):  # Windows: another run looks whether it is held, and removes it
            lock.unlink()


def _lock_new(path: Path) -> IO[str]:
    """A lock of our own, also if another run takes it for abandoned before it is locked."""
    for _ in range(_TRIES):
        file = path.open("w")
        try:
            system.lock(file)
        except OSError:
            file.close()
            continue
        if path.exists():
            return file
        file.close()
    raise OSError(f"{path.name} cannot be locked")


def _remove_abandoned(folder: Path, start: str) -> None:
    """Remove what killed runs left behind: hidden things of this name that no process holds."""
    for name in glob.glob(f"{glob.escape(start)}*", root_dir=folder, include_hidden=True):
        path = folder / name.removesuffix(_LOCK)
        lock = path.with_name(f"{path.name}{_LOCK}")
        try:
            if lock.exists():
                with lock.open("a") as file:
                    system.lock(file)
                    _remove(path)
                lock.unlink()
            elif start:  # by an earlier version, which had no lock or another one
                _remove(path)
        except OSError:
            continue  # another run is writing there


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def create_private(path: Path, text: str) -> None:
    """Write a text that only its owner may read into a file that must be new."""
    _create(path, text, PRIVATE)


def make_private(path: Path) -> None:
    """A file that only its owner may read, before something that asks for a name writes into it."""
    if path.exists():
        system.restrict(path)
    else:
        os.close(system.create_private(path))


def _create(path: Path, text: str, mode: int) -> None:
    if mode == PRIVATE:
        handle = system.create_private(path)
    else:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
