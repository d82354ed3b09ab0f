"""A PostgreSQL server of the tests' own, on a loopback port, in a folder that vanishes with it."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

PASSWORD = "s3cret/@ 'wörd'"


def find_programs() -> Path | None:
    """The folder of the newest server's programs."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    on_path = shutil.which("initdb")
    return folders[-1] if folders else Path(on_path).parent if on_path else None


def missing() -> str | None:
    """Why no server can be started here; None if one can."""
    if find_programs() is None:
        return "no PostgreSQL server is installed; `make services` installs one"
    if os.geteuid() == 0 and not (_has_user("postgres") and shutil.which("runuser")):
        return "PostgreSQL does not run as root, and there is no user postgres to run it as"
    return None


@contextmanager
def running_server() -> Iterator[str]:
    """A connection string of a new server's database."""
    folder = Path(tempfile.mkdtemp(prefix="dalenius-postgres-"))
    try:
        (folder / "password").write_text(PASSWORD, encoding="utf-8")
        if os.geteuid() == 0:
            for path in (folder, folder / "password"):
                shutil.chown(path, "postgres")
        with _started(folder) as port:
            yield f"postgresql://dalenius:{quote(PASSWORD, safe='')}@127.0.0.1:{port}/postgres"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _started(folder: Path) -> Iterator[int]:
    data, port = str(folder / "data"), _free_port()
    login = ["-U", "dalenius", "--auth=scram-sha-256", f"--pwfile={folder / 'password'}"]
    _run(folder, "initdb", "-D", data, *login, "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
    _run(folder, "pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield port
    finally:
        _run(folder, "pg_ctl", "-D", data, "-m", "immediate", "stop")


def _run(folder: Path, program: str, *arguments: str) -> None:
    programs = find_programs()
    assert programs is not None
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    # Not a pipe: the server inherits it and would keep it open.
    with (folder / "output").open("ab") as output:
        subprocess.run(
            [*as_user, str(programs / program), *arguments],
            cwd=folder,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )


def _has_user(name: str) -> bool:
    return any(user.pw_name == name for user in pwd.getpwall())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def query(uri: str, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a SELECT, or nothing."""
    return query_all(uri, [sql])


def query_all(uri: str, statements: Sequence[str]) -> list[tuple[Any, ...]]:
    """The rows of all statements; a connection is the slow part."""
    from adbc_driver_postgresql import dbapi

    rows: list[tuple[Any, ...]] = []
    with dbapi.connect(uri) as connection, connection.cursor() as cursor:
        for sql in statements:
            cursor.execute(sql)
            rows += cursor.fetchall() if cursor.description else []
        connection.commit()
    return rows
