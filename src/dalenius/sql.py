"""Quoting, which names columns may have, and the DuckDB connections that everything runs on."""

from __future__ import annotations

import atexit
import os
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.errors import SourceError
from dalenius.files import own_temporary_folder

if TYPE_CHECKING:  # who opens no database does not wait for it
    import duckdb

_MEMORY_BEFORE_SPILLING = "1GiB"
"""Of each database. Sorting 10 million rows of 8 columns in 400 MB took as long as in 18 GB."""


def identifier(name: str) -> str:
    """A column or table name, quoted for SQL.

    >>> print(identifier('the "zip" code'))
    "the ""zip"" code"
    """
    return '"' + name.replace('"', '""') + '"'


def identifiers(names: Iterable[str]) -> str:
    """Several names, quoted and separated by commas."""
    return ", ".join(identifier(name) for name in names)


def literal(text: str) -> str:
    """A text, quoted for SQL.

    >>> literal("O'Hara")
    "'O''Hara'"
    """
    return "'" + text.replace("'", "''") + "'"


def scan_parquet(files: Iterable[str], options: str = "hive_partitioning = false") -> str:
    """Parquet files to select from; a folder on their path that is named `age=1` is no column.

    >>> scan_parquet(["age=1/people.parquet"])
    "read_parquet(['age=1/people.parquet'], hive_partitioning = false)"
    """
    return f"read_parquet([{', '.join(map(literal, files))}], {options})"


def connect(spill: Path | None = None, *, threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """An in-memory database that keeps row order.

    Args:
        spill: Where what outgrows memory goes; a private folder if None.
        threads: How many it may use, if not all.
    """
    import duckdb

    connection = duckdb.connect(config={"preserve_insertion_order": True})
    # Extensions would be fetched over the network at run time.
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET autoload_known_extensions = false")
    hide_progress(connection)
    # Moments with a zone are in UTC, whatever the machine's own: a release does not tell where it was made.
    connection.execute("SET TimeZone = 'UTC'")
    # The files of a release all have the time of their day: another one under the same name looks the same.
    connection.execute("SET enable_external_file_cache = false")
    # DuckDB's own place, `.tmp` in the working folder, can be read by everybody.
    folder = own_temporary_folder() / secrets.token_hex(8) if spill is None else spill
    connection.execute(f"SET temp_directory = {literal(str(folder))}")
    if spill is not None:
        connection.execute(f"SET memory_limit = {literal(_MEMORY_BEFORE_SPILLING)}")
    if threads is not None:
        connection.execute(f"SET threads = {threads}")
    return connection


def hide_progress(connection: duckdb.DuckDBPyConnection) -> None:
    """DuckDB's own progress is not shown; in a notebook without ipywidgets it is off, and cannot be set."""
    import duckdb

    with suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = false")


_shared: dict[int, duckdb.DuckDBPyConnection] = {}
"""By process: the threads of a database do not follow into a forked one."""


def connect_shared() -> duckdb.DuckDBPyConnection:
    """A connection of its own to the database that a process keeps: a new one takes 25 ms.

    For reading: only temporary views and tables and registered ones, which other connections do not see.
    """
    import duckdb

    process = os.getpid()
    try:
        connection = _shared[process].cursor()
        connection.execute("SELECT 1").fetchall()
    except (KeyError, duckdb.Error):  # an internal error of DuckDB, met in a broken file, ends a database
        _shared[process] = connect()
        atexit.register(_close, process, _shared[process])
        connection = _shared[process].cursor()
    return connection


def _close(process: int, database: duckdb.DuckDBPyConnection) -> None:
    """Remove what was spilled; a forked process would wait for threads that it does not have."""
    if os.getpid() == process:
        database.close()


def register_frame(connection: duckdb.DuckDBPyConnection, table: Any) -> str:
    """SQL to select from an Arrow table on this connection; the same on another."""
    view = f"frame_{id(table)}"
    connection.register(view, table)
    return identifier(view)


def one_row(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...]:
    """The only row of an aggregate."""
    (row,) = connection.execute(sql).fetchall()
    found: tuple[Any, ...] = row
    return found


def count(connection: duckdb.DuckDBPyConnection, sql: str) -> int:
    """The only number of an aggregate."""
    return int(one_row(connection, sql)[0])


def refuse_unusable_names(where: str, names: Sequence[str]) -> None:
    """Every column needs a name of its own; SQL does not tell upper from lower case."""
    seen: dict[str, str] = {}
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise SourceError(
                f"{where}, column {position}: the column has no name",
                hint="name it, or remove a trailing delimiter",
            )
        folded = name.casefold()
        if folded in seen:
            raise SourceError(
                f"{where}, column {position}: columns {seen[folded]!r} and {name!r} have the same name",
                hint="rename one of them (upper and lower case count as the same)",
            )
        seen[folded] = name


def unused_name(wish: str, taken: Sequence[str]) -> str:
    """The wished name, lengthened until no column has it.

    >>> unused_name("tag", ["age", "Tag"])
    'tag_'
    """
    folded = {name.casefold() for name in taken}
    while wish in folded:
        wish += "_"
    return wish
