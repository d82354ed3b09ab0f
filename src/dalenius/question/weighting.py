"""The view `weighted`: rows with weights, so that SUM(weight) under any condition is an estimate.

A mechanism's weighting is a few small tables beside the release's own, and the SQL of the view over both. The
SQL is the same for DuckDB and PostgreSQL. Whatever has a name of its own (γ, a bucket's size) is in a table
without published columns or called `weight`, which no published column can be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from dalenius.sql import identifier

VIEW = "weighted"
AS_IT_IS = "as it is in the table"
Place = Callable[[str], str]
"""From a table's name to how the view refers to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighting:
    """How the rows of a release become rows with weights, and what is in all its tables."""

    helpers: tuple[tuple[str, str], ...]
    """Name and meaning of the tables that were added to the release's own."""
    columns: tuple[tuple[str, str, str], ...]
    """Table, name and meaning of the columns of all tables, but for the published ones."""
    published: tuple[tuple[str, str, str], ...]
    """Table, role and meaning of the published columns; without an entry they hold what may be in them."""
    view: str
    """The view's SELECT."""
    weight: str
    """What a weight is."""
    note: str
    """What SUM(weight) estimates, and how well."""


def stage(connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    """Keep an Arrow table under a name."""
    connection.register("staged_rows", table)
    connection.execute(f"CREATE TABLE {identifier(name)} AS FROM staged_rows")
    connection.unregister("staged_rows")


def listed_columns(columns: tuple[str, ...], tables: dict[str, tuple[str, ...]]) -> str:
    """The view's columns, each with the alias of the table that it comes from."""
    alias = {name: table for table, names in tables.items() for name in names}
    return ", ".join(f"{alias[name]}.{identifier(name)}" for name in columns)
