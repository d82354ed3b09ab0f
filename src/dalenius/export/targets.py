"""Where an export goes: a folder of CSV files, a DuckDB file, or PostgreSQL.

It is there whole or not at all, and never over anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.errors import DaleniusError, EngineError, InputError
from dalenius.export.staging import StagedExport
from dalenius.files import folder_beside
from dalenius.mechanisms.base import VIEW
from dalenius.sql import identifier, literal
from dalenius.tables.postgres import connected, without_password, without_secrets
from dalenius.tables.reading import read_batches


@contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """A path inside a hidden folder beside the target; what is made there becomes the target at the end."""
    refuse_taken(target)
    if not target.parent.is_dir():
        raise InputError(f"folder {target.parent} does not exist", hint="make it first")
    try:
        with folder_beside(target) as folder:
            # The final name: a DuckDB file knows itself by it.
            hidden = folder / target.name
            yield hidden
            refuse_taken(target)
            hidden.rename(target)
    except (OSError, duckdb.IOException, duckdb.OutOfMemoryException) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "not enough disk or memory"
        raise EngineError(f"{target} cannot be written: {reason}") from error


def refuse_taken(target: Path) -> None:
    """Nothing is overwritten; an empty folder may be filled."""
    is_empty_folder = target.is_dir() and not any(target.iterdir())
    if (target.exists() or target.is_symlink()) and not is_empty_folder:
        what = "is not empty" if target.is_dir() else "exists already"
        raise InputError(f"{target} {what}", hint="remove it, or export to another place")


def refuse_inside(target: Path, release: Path) -> None:
    """A release is what its manifest lists: another file among its own, and it counts as damaged."""
    if target.resolve().is_relative_to(release.resolve()):
        raise InputError(f"{target} is inside the release", hint="give a place outside of it")


_OPTIONS = "FORMAT csv, HEADER true, DELIMITER ',', QUOTE '\"', ESCAPE '\"', NULLSTR ''"
_SQL = """\
-- Load the CSV files into tables of the same names (types: dictionary.csv; an empty field is NULL, "" is an
-- empty text), then create this view. It is not a file because it can be many times larger than the tables.
CREATE VIEW {name} AS
{view};
"""


_FORMULA = r"[=+@\t\r\n＝＋＠－-]"
"""What a text begins with that spreadsheets take for a formula, and run; some of them in full width too."""
_APOSTROPHE = literal("'")


def write_csv(staged: StagedExport, target: Path, *, keeps_formulas: bool = False) -> None:
    """Write a file per table, the dictionary among them, and the view's SQL.

    A text or a heading that a spreadsheet would take for a formula gets an apostrophe before it, unless it is
    to be kept. Numbers are never changed.
    """
    if target.exists() and not target.is_dir():
        raise InputError(f"{target} exists already and is not a folder", hint="export to another place")
    with unfinished(target) as hidden:
        hidden.mkdir()
        for table in staged.tables:
            file = literal(str(hidden / f"{table}.csv"))
            rows = identifier(table) if keeps_formulas else f"({_without_formulas(staged, table)})"
            staged.connection.execute(f"COPY {rows} TO {file} ({_OPTIONS})")
        text = _SQL.format(name=identifier(VIEW), view=staged.view)
        (hidden / f"{VIEW}.sql").write_text(text, encoding="utf-8")


def _without_formulas(staged: StagedExport, table: str) -> str:
    described = staged.connection.execute(f"DESCRIBE {identifier(table)}").fetchall()
    columns = []
    for name, kind, *_ in described:
        cell = identifier(name)
        if kind in ("VARCHAR", "BLOB"):  # bytes are written as a text, as far as they are one
            cell = f"{cell}::VARCHAR"
            begins = f"regexp_matches({cell}, {literal('^' + _FORMULA)})"
            cell = f"CASE WHEN {begins} THEN {_APOSTROPHE} || {cell} ELSE {cell} END"
        columns.append(f"{cell} AS {identifier(safe_heading(name))}")
    return f"SELECT {', '.join(columns)} FROM {identifier(table)}"


def without_formulas(table: pa.Table) -> pa.Table:
    """The same for a table that is in memory."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        cells = column
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            begins = pc.match_substring_regex(column, f"^{_FORMULA}")
            cells = pc.if_else(begins, pc.binary_join_element_wise("'", column, ""), column)
        columns[safe_heading(name)] = cells
    return pa.table(columns)


def safe_heading(name: str) -> str:
    """A column's name as a file of CSV has it."""
    return f"'{name}" if re.match(_FORMULA, name) else name


def write_duckdb(staged: StagedExport, target: Path) -> None:
    """Write the tables and the view into a new file."""
    if target.is_dir():
        raise InputError(f"{target} is a folder", hint="a DuckDB file is a new file, like patients.duckdb")
    with unfinished(target) as hidden:
        connection = staged.connection
        connection.execute(f"ATTACH {literal(str(hidden))} AS exported_file")
        for table in staged.tables:
            name = identifier(table)
            connection.execute(f"CREATE TABLE exported_file.main.{name} AS FROM {name}")
        connection.execute("DETACH exported_file")
        with duckdb.connect(str(hidden)) as file:
            file.execute(f"CREATE VIEW {identifier(VIEW)} AS {staged.view}")


_LONGEST_NAME = 63
_SAME = ("BOOLEAN", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "VARCHAR", "BLOB", "DATE", "TIME")
_PORTABLE = {
    "TINYINT": "SMALLINT",
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INTEGER",
    "UINTEGER": "BIGINT",
    "UBIGINT": "DECIMAL(20, 0)",
    "HUGEINT": "DECIMAL(38, 0)",
    "TIMESTAMP_S": "TIMESTAMP",
    "TIMESTAMP_MS": "TIMESTAMP",
    "TIMESTAMP_NS": "TIMESTAMP",
}
_REFUSED = ("28", "3D", "42501", "22021")
"""SQLSTATEs that the caller can mend: login, database, privilege, a character PostgreSQL cannot hold."""


def write_postgres(staged: StagedExport, uri: str, schema: str) -> None:
    """Write the tables and the view into a schema, all or nothing."""
    names = (*staged.tables, VIEW)
    _refuse_long_names(staged, schema)
    with connected(uri, partial(_explain, uri)) as connection, connection.cursor() as cursor:
        _make_schema(cursor, uri, schema, names)
        for table in staged.tables:
            rows = read_batches(staged.connection, _portable_select(staged, table))
            cursor.adbc_ingest(table, rows, mode="create", db_schema_name=schema)
            # Without statistics the planner takes small joins for huge ones and compiles every question.
            cursor.execute(f"ANALYZE {identifier(schema)}.{identifier(table)}")
        cursor.execute(f"CREATE VIEW {identifier(schema)}.{identifier(VIEW)} AS {staged.view}")
        connection.commit()


def _explain(uri: str, error: Any) -> DaleniusError:
    state = error.sqlstate or ""
    message = f"{without_password(uri)}: {without_secrets(str(error), uri)}"
    if not state or state.startswith(_REFUSED):
        hint = "is the server there, and may this user create a schema in this database?"
        return InputError(message, hint=hint)
    return EngineError(message, hint="nothing was written")


def _refuse_long_names(staged: StagedExport, schema: str) -> None:
    """PostgreSQL cuts longer names off without an error."""
    columns = [
        row[0]
        for table in staged.tables
        for row in staged.connection.execute(f"DESCRIBE {identifier(table)}").fetchall()
    ]
    for name in (schema, *columns):
        if len(name.encode()) > _LONGEST_NAME:
            raise InputError(
                f"the name {name!r} has {len(name.encode())} bytes; PostgreSQL's names have at most "
                f"{_LONGEST_NAME}",
                hint="choose a schema with --name, or rename the column in the source and publish again",
            )


def _make_schema(cursor: Any, uri: str, schema: str, names: tuple[str, ...]) -> None:
    cursor.execute(
        "SELECT c.relname FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n "
        f"ON n.oid = c.relnamespace WHERE n.nspname = {literal(schema)}"
    )
    taken = sorted({row[0] for row in cursor.fetchall()} & set(names))
    if taken:
        raise InputError(
            f"{without_password(uri)}: schema {schema!r} has {', '.join(taken)} already",
            hint="choose another schema with --name, or drop the old one",
        )
    cursor.execute(f"SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = {literal(schema)}")
    if not cursor.fetchall():
        cursor.execute(f"CREATE SCHEMA {identifier(schema)}")


def _portable_select(staged: StagedExport, table: str) -> str:
    """The table with types that PostgreSQL has."""
    described = staged.connection.execute(f"DESCRIBE {identifier(table)}").fetchall()
    columns = [_portable(identifier(name), kind) for name, kind, *_ in described]
    return f"SELECT {', '.join(columns)} FROM {identifier(table)}"


def _portable(name: str, kind: str) -> str:
    if kind in _SAME or kind.startswith(("DECIMAL", "TIMESTAMP WITH")) or kind == "TIMESTAMP":
        return name
    return f"CAST({name} AS {_PORTABLE.get(kind, 'VARCHAR')}) AS {name}"
