"""Export to PostgreSQL, in one transaction."""

from __future__ import annotations

from functools import partial
from typing import Any

from dalenius.errors import DaleniusError, EngineError, InputError
from dalenius.export.staging import Staged
from dalenius.question.weighting import VIEW
from dalenius.sql import identifier, literal
from dalenius.tables.postgres import connected
from dalenius.tables.postgres_uri import without_password, without_secrets
from dalenius.tables.reading import BATCH_ROWS

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


def write_postgres(staged: Staged, uri: str, schema: str) -> None:
    """Write the tables and the view into a schema, all or nothing."""
    names = (*staged.tables, VIEW)
    _refuse_long_names(staged, schema)
    with connected(uri, partial(_explained, uri)) as connection, connection.cursor() as cursor:
        _make_schema(cursor, uri, schema, names)
        for table in staged.tables:
            rows = staged.connection.sql(_portable_select(staged, table)).to_arrow_reader(BATCH_ROWS)
            cursor.adbc_ingest(table, rows, mode="create", db_schema_name=schema)
            # Without statistics the planner takes small joins for huge ones and compiles every question.
            cursor.execute(f"ANALYZE {identifier(schema)}.{identifier(table)}")
        cursor.execute(f"CREATE VIEW {identifier(schema)}.{identifier(VIEW)} AS {staged.view}")
        connection.commit()


def _explained(uri: str, error: Any) -> DaleniusError:
    state = error.sqlstate or ""
    message = f"{without_password(uri)}: {without_secrets(str(error), uri)}"
    if not state or state.startswith(_REFUSED):
        hint = "is the server there, and may this user create a schema in this database?"
        return InputError(message, hint=hint)
    return EngineError(message, hint="nothing was written")


def _refuse_long_names(staged: Staged, schema: str) -> None:
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


def _portable_select(staged: Staged, table: str) -> str:
    """The table with types that PostgreSQL has."""
    described = staged.connection.execute(f"DESCRIBE {identifier(table)}").fetchall()
    columns = [_portable(identifier(name), kind) for name, kind, *_ in described]
    return f"SELECT {', '.join(columns)} FROM {identifier(table)}"


def _portable(name: str, kind: str) -> str:
    if kind in _SAME or kind.startswith(("DECIMAL", "TIMESTAMP WITH")) or kind == "TIMESTAMP":
        return name
    return f"CAST({name} AS {_PORTABLE.get(kind, 'VARCHAR')}) AS {name}"
