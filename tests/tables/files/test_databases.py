"""Database files as sources: read by several databases and threads of one process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb

from dalenius.sql import connect, count
from dalenius.tables.source import open_source


def test_threads_and_databases_read_a_file_at_once_and_after_each_other(tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE TABLE people AS SELECT range AS age FROM range(40)")
    source = open_source(str(path))

    def read(connection: duckdb.DuckDBPyConnection) -> int:
        return count(connection, f"SELECT count(*) FROM ({source.scan(connection)})")

    for _ in range(3):  # each database ends before the next one begins, or while another one reads
        first, second = connect(), connect()
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(read, [base.cursor() for base in (first, second) for _ in range(4)]))
        first.close()
        assert (*found, read(second)) == (40,) * 9
