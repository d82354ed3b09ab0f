"""What keeps thousands of small tests cheap, whoever starts them: nothing of it changes what a test sees."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_ROOM = 4 * 2**30
"""Far more than all files of a run take together."""


def keep_files_in_memory(place: Path = Path("/dev/shm")) -> None:  # noqa: S108
    """A publication and its ledger wait for the disk ten times, 5 ms each: a twentieth of their tests' time.

    Not where somebody chose a place, where there is little room, or where no program can be run.
    """
    if "TMPDIR" in os.environ or not os.access(place, os.W_OK | os.X_OK):
        return
    if shutil.disk_usage(place).free >= _ROOM and not os.statvfs(place).f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = str(place)
        tempfile.tempdir = None


def keep_bytecode() -> None:
    """Some machines ask for none; then every process compiles the source, and pytest rewrites all asserts."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


class FewerCollections:
    """A pytest plugin: the half a million objects of what was collected are not looked through again."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Iterator[Any]:
        gc.disable()
        try:
            return (yield)
        finally:
            gc.enable()
            gc.freeze()

    def pytest_unconfigure(self) -> None:
        gc.unfreeze()
