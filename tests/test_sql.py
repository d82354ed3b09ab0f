"""Connections: what does not fit into memory is nobody else's to read, and nobody sees another's views."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from dalenius import sql
from dalenius.sql import connect_shared, count

PROJECT = Path(__file__).parent.parent
_SPILLS = """
import stat
from pathlib import Path
from dalenius.sql import connect, connect_shared

connection = {connect}()
connection.execute("SET memory_limit = '40MB'; SET threads = 1")
connection.execute("CREATE TEMP TABLE x AS SELECT hash(i) AS h, hash(i + 1) AS g FROM range(4000000) AS t(i)")
folder = Path(connection.execute("SELECT current_setting('temp_directory')").fetchone()[0])
assert any(folder.iterdir()), "nothing was spilled"
assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
print(folder)
"""


@pytest.mark.parametrize("connect", ["connect", "connect_shared"])
@pytest.mark.parametrize("taken", [False, True], ids=["free", "taken by somebody"])
def test_what_outgrows_memory_goes_to_a_private_folder_that_is_removed(
    tmp_path: Path, taken: bool, connect: str
) -> None:
    work, temporary = tmp_path / "work", tmp_path / "temporary"
    work.mkdir()
    temporary.mkdir()
    if taken:
        (temporary / f"dalenius-{os.getuid()}").mkdir(mode=0o755)
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "src"), "TMPDIR": str(temporary)}
    command = [sys.executable, "-c", _SPILLS.format(connect=connect)]
    ran = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    folder = Path(ran.stdout.strip())
    assert temporary in folder.parents
    assert not folder.exists()
    assert not list(work.iterdir())  # DuckDB's own place is .tmp of the working folder


def test_shared_connections_see_neither_views_nor_tables_of_one_another() -> None:
    with connect_shared() as one, connect_shared() as other:
        for connection, n_rows in ((one, 3), (other, 5)):
            connection.execute(f"CREATE TEMP VIEW people AS FROM range({n_rows})")
            connection.register("given", pa.table({"x": list(range(n_rows))}))
        assert [count(one, f"SELECT count(*) FROM {name}") for name in ("people", "given")] == [3, 3]
        assert [count(other, f"SELECT count(*) FROM {name}") for name in ("people", "given")] == [5, 5]
    with connect_shared() as later, pytest.raises(duckdb.CatalogException):
        later.execute("FROM people")


def test_threads_share_it_without_meeting() -> None:
    def counted(n_rows: int) -> int:
        with connect_shared() as connection:
            connection.execute(f"CREATE TEMP VIEW people AS FROM range({n_rows})")
            return count(connection, "SELECT count(*) FROM people")

    with ThreadPoolExecutor(8) as workers:
        assert list(workers.map(counted, range(100))) == list(range(100))


def test_a_database_that_ended_is_replaced() -> None:
    connect_shared().close()
    sql._shared[os.getpid()].close()
    with connect_shared() as connection:
        assert count(connection, "SELECT 7") == 7


_FORKS = """
import os, sys
from dalenius.sql import connect_shared, count

parent = connect_shared()
child = os.fork()
if child == 0:
    print(count(connect_shared(), "SELECT sum(range) FROM range(1000001)"), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(count(parent, "SELECT 8"))
"""


def test_a_forked_process_has_a_database_of_its_own() -> None:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "src")}
    ran = subprocess.run(
        [sys.executable, "-c", _FORKS],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stdout.split() == ["500000500000", "8"], ran.stderr
