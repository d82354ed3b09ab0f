"""Database files as sources: a table of SQLite or DuckDB; nothing is downloaded to read them."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa

from dalenius.errors import SourceError, did_you_mean
from dalenius.sql import connect_shared, identifier, literal
from dalenius.tables.files.bytes import FileBytes, PrivateFile, hold
from dalenius.tables.files.options import SourceOptions
from dalenius.tables.files.parquet import ParquetSource
from dalenius.tables.types import CheckedSource, check_types, refuse_unreadable

DATABASE_SUFFIXES = (".duckdb", ".ddb", ".sqlite", ".sqlite3", ".db", ".db3")
SQLITE_START = b"SQLite format 3\0"
_BATCH_ROWS = 65_536
_OPTIONS = ("table", "missing")
_ONE_AT_A_TIME = threading.Lock()
"""For attaching: threads of the studio open the same file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckDbSource(CheckedSource):
    """A table or view of a DuckDB file, read where it is."""

    file: FileBytes
    place: str
    """The table in its file, quoted."""
    is_slow: bool
    """A view is worked out anew by every scan; one with a join has its rows in another order each time."""
    is_shared: bool = field(default=True, init=False)

    @classmethod
    def open(cls, file: FileBytes, options: SourceOptions) -> DuckDbSource:
        """Find the table; refuse types that cannot be published."""
        options.refuse_others(_OPTIONS, "a database file")
        plain = file.plain()
        connection = connect_shared()
        with refuse_unreadable(
            f"{file.name} cannot be read as a DuckDB file",
            hint="is it damaged, from a newer DuckDB, or open in another program for writing?",
        ):
            base = _attach(connection, plain)
            named = (
                "SELECT schema_name, table_name, false FROM duckdb_tables() WHERE database_name = $1 "
                "UNION ALL SELECT schema_name, view_name, true FROM duckdb_views() "
                "WHERE database_name = $1 AND NOT internal"
            )
            tables = {
                table if schema == "main" else f"{schema}.{table}": (
                    f"{identifier(schema)}.{identifier(table)}",
                    is_view,
                )
                for schema, table, is_view in connection.execute(named, [base]).fetchall()
            }
            chosen = _choose(file.name, sorted(tables), options.table)
            name = f"{file.name} table {chosen}"
            place, is_view = tables[chosen]
            checked = check_types(connection, name, f"{identifier(base)}.{place}", options.missing)
        return cls(name=name, file=plain, place=place, is_slow=is_view, checked=checked)

    def scan(self, connection: duckdb.DuckDBPyConnection) -> str:
        """The table, in its file, which is attached."""
        base = _attach(connection, self.file)
        return self.checked.select(f"{identifier(base)}.{self.place}")


def _attach(connection: duckdb.DuckDBPyConnection, file: FileBytes) -> str:
    hold(connection, [file])
    base = f"source_{hashlib.sha256(file.path.encode()).hexdigest()[:12]}"
    # `IF NOT EXISTS` waits, spinning, for whoever else in the process seems to be attaching the file; a
    # database that is about to end can be taken for one, and then nothing ends the wait.
    named = "SELECT 1 FROM duckdb_databases() WHERE database_name = $1"
    with _ONE_AT_A_TIME:
        if connection.execute(named, [base]).fetchone() is None:
            connection.execute(f"ATTACH {literal(file.path)} AS {identifier(base)} (READ_ONLY)")
    return base


def _choose(name: str, tables: Sequence[str], wanted: str | None) -> str:
    if wanted is not None and wanted not in tables:
        raise SourceError(f"{name} has no table {wanted!r}; {did_you_mean(wanted, tables)}")
    if wanted is None and len(tables) != 1:
        listed = f": {', '.join(map(repr, tables))}" if tables else ""
        raise SourceError(
            f"{name} has {len(tables)} tables{listed}",
            hint="say which one: --table NAME, or `table` in the policy's source",
        )
    return tables[0] if wanted is None else wanted


def open_sqlite(file: FileBytes, options: SourceOptions) -> ParquetSource:
    """A table of an SQLite file, copied in batches into a private file that DuckDB reads."""
    import pyarrow.parquet as pq

    options.refuse_others(_OPTIONS, "a database file")
    plain = file.plain()
    kept = PrivateFile()
    uri = f"file:{Path(plain.path).absolute().as_posix().replace('?', '%3f').replace('#', '%23')}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as database:
            tables = [row[0] for row in database.execute(_TABLES)]
            chosen = _choose(file.name, tables, options.table)
            columns, schema = _columns(database, chosen)
            with pq.ParquetWriter(kept.path, schema) as writer:
                for batch in _batches(database, f"SELECT {columns} FROM {identifier(chosen)}", schema):
                    writer.write_batch(batch)
    except sqlite3.Error as error:
        raise SourceError(
            f"{file.name} cannot be read as an SQLite file: {_what_happened(error)}",
            hint="is it damaged, or encrypted?",
        ) from error
    copied = FileBytes(name=file.name, path=kept.path, suffix=".parquet", kept=kept)
    return ParquetSource.open([copied], SourceOptions(missing=options.missing), f"{file.name} table {chosen}")


def _what_happened(error: sqlite3.Error) -> str:
    """In words that quote no cell: SQLite shows a text that is not UTF-8, and what it takes for a schema."""
    if "decode" in str(error):
        return "a text in it is not UTF-8"
    return str(error) if str(error) in _PLAIN else getattr(error, "sqlite_errorname", type(error).__name__)


_PLAIN = (
    "file is not a database",
    "database disk image is malformed",
    "database is locked",
    "disk I/O error",
)


_TABLES = """
SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name
"""


def _columns(database: sqlite3.Connection, table: str) -> tuple[str, pa.Schema]:
    """A cell of SQLite has a type of its own: a column has the one that holds all of them."""
    place = identifier(table)
    names = [row[1] for row in database.execute(f"PRAGMA table_xinfo({place})")]
    asked = ", ".join(f"group_concat(DISTINCT typeof({identifier(name)}))" for name in names)
    far = ", ".join(
        f"coalesce(max(abs(CASE WHEN typeof({name}) = 'integer' THEN CAST({name} AS REAL) END)), 0)"
        for name in map(identifier, names)
    )
    found = database.execute(f"SELECT {asked}, {far} FROM {place}").fetchone()
    selected, fields = [], []
    for name, kinds, most in zip(names, found, found[len(names) :], strict=False):
        present = frozenset((kinds or "").split(",")) - {"null", ""}
        kind = _TYPES.get(present, pa.string())
        if present == {"integer", "real"} and most > 2**53:
            kind = pa.string()
        fields.append(pa.field(name, kind))
        quoted = identifier(name)
        selected.append(f"CAST({quoted} AS TEXT)" if kind == pa.string() and present != {"text"} else quoted)
    return ", ".join(selected), pa.schema(fields)


_TYPES = {
    frozenset({"integer"}): pa.int64(),
    frozenset({"real"}): pa.float64(),
    frozenset({"integer", "real"}): pa.float64(),
    frozenset({"text"}): pa.string(),
    frozenset({"blob"}): pa.binary(),
}


def _batches(database: sqlite3.Connection, select: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    cursor = database.execute(select)
    while rows := cursor.fetchmany(_BATCH_ROWS):
        columns = zip(*rows, strict=True)
        arrays = [
            pa.array(cells, field.type, from_pandas=False)
            for cells, field in zip(columns, schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
