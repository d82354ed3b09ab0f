"""Writing a release so that it is there whole or not at all.

Everything is written into a hidden folder beside the release's final place and renamed when complete.
A run that was killed leaves only such a folder, which no reader opens and the next run removes.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dalenius.errors import EngineError, InputError
from dalenius.release.manifest import FILE_NAME

_LOCK = ".lock"
SPILL = ".spill"
_DAY = 24 * 60 * 60


@contextmanager
def new_release(target: Path) -> Iterator[Path]:
    """A folder to fill; it becomes `target` when the block ends well, and vanishes when it does not."""
    refuse_existing(target)
    if not target.parent.is_dir():
        raise InputError(
            f"folder {target.parent} does not exist", hint="make it, or change `release` in the policy"
        )
    _remove_abandoned(target)
    folder = target.parent / f".{target.name}.partial-{secrets.token_hex(8)}"
    try:
        folder.mkdir(mode=0o700)
        (folder / SPILL).mkdir()
        lock = (folder / _LOCK).open("w")
    except OSError as error:
        raise EngineError(f"cannot write beside {target}: {error.strerror}") from error
    try:
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder
            shutil.rmtree(folder / SPILL)
            (folder / _LOCK).unlink()
            _seal(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def refuse_existing(target: Path) -> None:
    """A release is never overwritten: what was published stays known."""
    if target.exists():
        raise InputError(
            f"release {target} exists already",
            hint="choose another `release` in the policy, or move the old one away",
        )


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest, last of all files."""
    (folder / FILE_NAME).write_text(
        json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def _seal(folder: Path, target: Path) -> None:
    today = int(time.time()) // _DAY * _DAY
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o644 if path.is_file() else 0o755)
        os.utime(path, (today, today))  # copies keep it, and a release tells the day it was made, never finer
        _sync(path)
    try:
        folder.rename(target)
    except OSError:
        refuse_existing(target)  # another run was faster
        raise
    _sync(target.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_abandoned(target: Path) -> None:
    """Remove what killed runs left behind: hidden folders of this release that no process holds."""
    for folder in target.parent.glob(f".{target.name}.partial-*"):
        try:
            with (folder / _LOCK).open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # another run is writing there
