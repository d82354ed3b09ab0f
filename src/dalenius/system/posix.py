"""Linux, macOS and other systems with POSIX files."""

from __future__ import annotations

import faulthandler
import fcntl
import os
import resource
import select
import signal
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

_OWNERS = 0o600
_OWNERS_FOLDER = 0o700
_OWN_EXIT, _MOST_EXIT, _UNREAD = 64, 3, 141
"""What a child adds to its exit code, so that an exit of somebody else is not taken for its own."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""As glibc's malloc.h numbers them."""


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


def keep_freed_memory() -> None:
    """Let the C library keep what is freed for whatever thread wants it next, as far as it can be told to.

    By itself it gives every thread a place of its own, and large arrays back to the kernel, which clears what
    it gives out anew: a tenth of the processor time of a table of a million rows.
    """
    import ctypes  # most commands need none

    with suppress(OSError, AttributeError):  # another C library
        tell = ctypes.CDLL(None).mallopt
        for what, value in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, 2**25), (_TRIM_THRESHOLD, 2**28)):
            tell(what, value)


def work_apart_if_limited(work: Callable[[], int]) -> int | None:
    """The exit code of some work, done by a child where memory is limited (`ulimit -v`); None: it was ended.

    A native library that gets no memory ends its process as it likes: it aborts, crashes or exits. Only a
    process that is not ended can say what happened.
    """
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return work()
    child = os.fork()
    if child == 0:
        sys.exit(_OWN_EXIT + work())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal tells the child, too
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda told, _: os.kill(child, told))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) - _OWN_EXIT
    return code if 0 <= code <= _MOST_EXIT or code == _UNREAD else None


def run_apart(work: Callable[[], bytes], *, memory: int, seconds: int) -> bytes | None:
    """What the work returns, done by a process of its own, which may crash or be stopped; then None.

    A forked process has everything loaded already, so that it costs a few milliseconds. It must not touch
    what other threads may hold, such as a DuckDB database.

    Args:
        work: Returns its result and raises nothing.
        memory: How many bytes it may take beyond what this process has.
        seconds: Of the processor; of the clock it gets ten times as many.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads that do not follow
        child = os.fork()
    if child == 0:
        _work_and_exit(work, writing, memory, seconds)
    os.close(writing)
    try:
        return _receive(child, reading, 10 * seconds)
    finally:
        os.close(reading)


def _work_and_exit(work: Callable[[], bytes], pipe: int, memory: int, seconds: int) -> None:
    """Never returns: what the parent would do on its way out is the parent's."""
    status = 1
    try:
        faulthandler.disable()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):  # a native library says what it dies of
            os.dup2(nowhere, stream)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _limit(resource.RLIMIT_CPU, seconds)
        _limit(resource.RLIMIT_AS, _size() + memory)
        with os.fdopen(pipe, "wb") as told:
            told.write(work())
        status = 0
    finally:
        os._exit(status)


def _limit(what: int, most: int) -> None:
    """At most so much, or what is left of a limit that only root may raise."""
    known = resource.getrlimit(what)[1]
    resource.setrlimit(what, (most if known == resource.RLIM_INFINITY else min(most, known),) * 2)


def _size() -> int:
    """How many bytes of addresses this process has; only Linux tells."""
    if not sys.platform.startswith("linux"):
        return 2**40
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _receive(child: int, pipe: int, seconds: int) -> bytes | None:
    """All that the child tells, if it ends well and in time."""
    parts, end = [], time.monotonic() + seconds
    ended = False
    try:
        while select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
            part = os.read(pipe, 2**16)
            if not part:
                ended = True
                break
            parts.append(part)
    finally:
        if not ended:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    return b"".join(parts) if ended and status == 0 else None
