"""Files that are written whole or not at all, and those that only their owner may read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from dalenius import system

PRIVATE = 0o600
"""Who may read a file that tells about the table: its owner."""
SHARED = 0o666
"""Whoever the user's mask lets."""


def write_whole(path: Path, text: str, mode: int) -> None:
    """Write a text under a name, in place of what is there; who may read it is known from the start."""
    unfinished = path.with_name(f".{path.name}.unfinished-{secrets.token_hex(4)}")
    try:
        _create(unfinished, text, mode)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


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
