"""Quoting, and the DuckDB connections that everything runs on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

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


def connect(spill: Path | None = None) -> duckdb.DuckDBPyConnection:
    """An in-memory database that keeps row order; sorts that outgrow memory go to `spill`."""
    connection = duckdb.connect(config={"preserve_insertion_order": True})
    # Extensions would be fetched over the network at run time.
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET autoload_known_extensions = false")
    connection.execute("SET enable_progress_bar = false")
    if spill is not None:
        connection.execute(f"SET temp_directory = {literal(str(spill))}")
        connection.execute(f"SET memory_limit = {literal(_MEMORY_BEFORE_SPILLING)}")
    return connection


def one_row(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...]:
    """The only row of an aggregate."""
    (row,) = connection.execute(sql).fetchall()
    found: tuple[Any, ...] = row
    return found


def count(connection: duckdb.DuckDBPyConnection, sql: str) -> int:
    """The only number of an aggregate."""
    return int(one_row(connection, sql)[0])
