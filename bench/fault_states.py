"""States of a machine in which `publish` may have to run, and many runs at once."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.fault_runs import start

_NOBODY = 65534
_LONG_AGO = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Something that is wrong around a run."""

    name: str
    prepare: Callable[[Path], None] = lambda _: None
    """Done to the folder before, which has `ledger` and the policies."""
    in_child: Callable[[], None] = lambda: None
    """Done in the process of the run."""
    environment: dict[str, str] = field(default_factory=dict)
    mend: Callable[[Path], None] = lambda _: None
    """What the user does about it before the next run."""


def limited(what: int, most: int) -> Callable[[], None]:
    """Limit the process."""
    return lambda: resource.setrlimit(what, (most, most))


def limited_memory(more: int) -> Callable[[], None]:
    """Let the process have so many bytes of addresses more than it has."""

    def limit() -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + more
        resource.setrlimit(resource.RLIMIT_AS, (most, most))

    return limit


def become_nobody() -> None:
    """Go on as a user who owns nothing."""
    os.setgid(_NOBODY)
    os.setuid(_NOBODY)


def _keep_ledger(folder: Path) -> None:
    shutil.copyfile(folder / "ledger", folder / "ledger.kept")


def _spoil(folder: Path) -> None:
    _keep_ledger(folder)
    (folder / "ledger").write_bytes(b"\x00garbage" * 1000)


def _cut(folder: Path) -> None:
    _keep_ledger(folder)
    content = (folder / "ledger").read_bytes()
    (folder / "ledger").write_bytes(content[: len(content) // 2])


def _from_later(folder: Path) -> None:
    _keep_ledger(folder)
    with closing(sqlite3.connect(folder / "ledger")) as database, database:
        database.execute("UPDATE ledger SET version = 99")


def _restore(folder: Path) -> None:
    (folder / "ledger.kept").replace(folder / "ledger")


def _open_folder(folder: Path) -> None:
    folder.chmod(0o777)
    (folder / "tmp").chmod(0o777)


def _close_folder(folder: Path) -> None:
    folder.chmod(0o755)
    (folder / "tmp").chmod(0o755)
    shutil.rmtree(folder / "tmp" / f"dalenius-{_NOBODY}", ignore_errors=True)


def _set_back() -> None:
    """The clock says 2001."""
    import datetime
    import time

    from dalenius.release import folder

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:  # type: ignore[override]
            return datetime.datetime.fromtimestamp(_LONG_AGO, tz)

    time.time = lambda: float(_LONG_AGO)
    there: Any = folder
    there.datetime = type("datetime", (), {"datetime": Clock, "UTC": datetime.UTC})


STATES = (
    *(
        State(
            name=f"full disk after {size:,} bytes of a file",
            in_child=limited(resource.RLIMIT_FSIZE, size),
        )
        for size in (0, 700, 4_000)
    ),
    State(name="24 open files", in_child=limited(resource.RLIMIT_NOFILE, 24)),
    *(
        State(name=f"{more} MB more memory", in_child=limited_memory(more * 10**6))
        for more in (2, 10, 30, 60, 100, 200)
    ),
    State(name="a corrupt ledger", prepare=_spoil, mend=_restore),
    State(name="a ledger that was cut", prepare=_cut, mend=_restore),
    State(name="a ledger of a later version", prepare=_from_later, mend=_restore),
    State(
        name="a ledger of another user, read-only",
        prepare=_open_folder,
        in_child=become_nobody,
        mend=_close_folder,
    ),
    State(name="a folder that may not be written", in_child=become_nobody, mend=_close_folder),
    State(name="the clock set back to 2001", in_child=_set_back),
    State(name="no HOME, locale C", environment={"HOME": "", "LC_ALL": "C", "LANG": ""}),
)


def try_at_once(folder: Path, n_runs: int, *, same_target: bool) -> tuple[str, tuple[str, ...]]:
    """Run at the same time, to one target or to one ledger: how they ended, and what is wrong."""
    (folder / "ledger").unlink(missing_ok=True)
    text = (folder / "bucketize.toml").read_text()
    names = []
    for number in range(n_runs):
        name = "once" if same_target else f"once-{number}"
        names.append(name)
        (folder / f"{name}.toml").write_text(text.replace("bucketize.release", f"{name}.release"))
    processes = [start(folder, ["publish", f"{name}.toml", "--yes"]) for name in names]
    ended = [process.wait() for process in processes]
    codes = Counter(one.exit_code for one in ended)
    problems = [] if codes[0] == 1 else [f"{codes[0]} runs published"]
    if not set(codes) <= {0, 1, 2, 3} or any("bug in Dalenius" in one.output for one in ended):
        problems.append("one ended badly")
    there = list(folder.glob("once*.release"))
    if len(there) != 1 or start(folder, ["verify", str(there[0])]).wait().exit_code:
        problems.append(f"{len(there)} releases are there, or one does not verify")
    problems += [f"left: {path.name}" for path in folder.iterdir() if path.name.startswith(".")]
    for path in (*there, *(folder / f"{name}.toml" for name in names)):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    told = next((one.message for one in ended if one.exit_code), "")
    return f"exits {dict(sorted(codes.items()))}: {told}", tuple(problems)
