"""Tables of a PostgreSQL server: connection strings, connections and sources that never show a password.

A table as a source is read once, whole, and kept in memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

import pyarrow as pa
import pyarrow.compute as pc

from dalenius.errors import DaleniusError, InputError, SourceError
from dalenius.sql import identifier, literal

SCHEMES = ("postgresql", "postgres")
_SECRET_OPTIONS = ("password", "sslpassword")


def is_uri(target: str) -> bool:
    """Whether this is a connection string and not a path."""
    return "://" in target


def check_uri(uri: str) -> str:
    """The connection string, if it can be shown without its password.

    A password with a bare @, / or # would be read as something else and could be shown as such.
    """
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError as error:
        raise _malformed_error() from error
    n_marks = uri.count("@")
    if parts.scheme not in SCHEMES or n_marks > 1 or n_marks != parts.netloc.count("@") or parts.fragment:
        raise _malformed_error()
    return uri


def without_password(uri: str) -> str:
    """The connection string for people to see: without password, and without options, which may hold others.

    >>> without_password("postgresql://ann:secret@db.example:5432/clinic?sslmode=require")
    'postgresql://ann@db.example:5432/clinic'
    """
    parts = urlsplit(check_uri(uri))
    user, mark, host = parts.netloc.rpartition("@")
    return f"{parts.scheme}://{user.partition(':')[0]}{mark}{host}{parts.path}"


def without_secrets(text: str, uri: str) -> str:
    """A server's message, first line only, without the connection string or its passwords.

    >>> without_secrets('bad "s%20t" for ann', "postgresql://ann:s%20t@db/clinic")
    'bad "***" for ann'
    """
    parts = urlsplit(uri)
    options = parse_qsl(parts.query, keep_blank_values=True)
    given = [parts.password, *(value for key, value in options if key.lower() in _SECRET_OPTIONS)]
    secrets = {uri} | {form for secret in given if secret for form in (secret, unquote(secret))}
    line = (text.strip().splitlines() or [""])[0]
    for secret in sorted(secrets, key=len, reverse=True):
        line = line.replace(secret, "***")
    return line


def hide_passwords(text: str) -> str:
    """A text that may quote connection strings, without what stands between :// and @.

    >>> hide_passwords("unexpected argument (postgresql://ann:secret@db/clinic)")
    'unexpected argument (postgresql://***@db/clinic)'
    """
    return re.sub(r"://\S*@", "://***@", text)


def _malformed_error() -> InputError:
    return InputError(
        "the connection string cannot be read (it is not shown: it may hold a password)",
        hint="postgresql://user@host:5432/database; write @ : / ? # % in a password as %40 %3A %2F %3F %23 "
        "%25, or leave it to PGPASSWORD or ~/.pgpass",
    )


@contextmanager
def connected(uri: str, explained: Callable[[Any], DaleniusError]) -> Iterator[Any]:
    """A connection; `explained` makes Dalenius' own error out of the driver's, without its secrets."""
    try:
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi
    except ImportError as error:
        raise InputError(
            "PostgreSQL needs the extra `postgres`", hint='pip install "dalenius[postgres]"'
        ) from error
    try:
        with dbapi.connect(uri) as connection:
            yield connection
    except Error as error:
        raise explained(error) from None  # the driver's own message may quote the password


_EXAMPLE = "postgresql://user@host:5432/database?table=schema.table"
_MOST_DIGITS = 38
_PLAIN = ("boolean", "smallint", "integer", "bigint", "real", "double precision", "text", "date")


def read_table(uri: str, wanted: str | None = None) -> tuple[str, pa.Table]:
    """What messages call the table, and the table; types that Arrow has no equal of come as text.

    Args:
        uri: a connection string whose option `table` names the table, with or without its schema.
        wanted: the table, if the string does not name it.
    """
    server, table = _split(uri, wanted)
    name = f"{without_password(server)} table {table}"
    schema, _, own = table.rpartition(".")
    place = f"{identifier(schema)}.{identifier(own)}" if schema else identifier(own)
    with connected(server, partial(_explain, server, name)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT a.attname, format_type(a.atttypid, NULL) FROM pg_catalog.pg_attribute AS a "
            f"WHERE a.attrelid = {literal(place)}::regclass AND a.attnum > 0 AND NOT a.attisdropped "
            "ORDER BY a.attnum"
        )
        found = cursor.fetchall()
        columns = ", ".join(_select_as(column, kind) for column, kind in found)
        cursor.execute(f"SELECT {columns} FROM {place}")
        read = cursor.fetch_arrow_table()
    for i, (column, kind) in enumerate(found):
        if kind == "numeric":
            read = read.set_column(i, column, _exact(read.column(i)))
    return name, read


def _exact(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Exact numbers with as many decimals as they have; more than 38 digits, or infinite ones, stay texts."""
    decimals = pc.max(pc.utf8_length(pc.replace_substring_regex(texts, r"^[^.]*\.?", ""))).as_py() or 0
    try:
        return texts.cast(pa.decimal128(_MOST_DIGITS, decimals))
    except pa.ArrowException:
        return texts


def _split(uri: str, wanted: str | None) -> tuple[str, str]:
    """The connection string without the table, and the table."""
    parts = urlsplit(check_uri(uri))
    options = parse_qsl(parts.query, keep_blank_values=True)
    tables = [value for key, value in options if key == "table" and value]
    tables += [] if wanted is None else [wanted]
    if len(tables) != 1:
        raise SourceError(
            f"source {without_password(uri)} names no table, or several",
            hint=f"for example {_EXAMPLE}, or --table NAME",
        )
    rest = urlencode([option for option in options if option[0] != "table"], quote_via=quote)
    return urlunsplit(parts._replace(query=rest)), tables[0]


def _select_as(column: str, kind: str) -> str:
    name = identifier(column)
    if kind in _PLAIN or kind.startswith(("timestamp", "time ")):
        return name
    return f"CAST({name} AS text) AS {name}"


def _explain(uri: str, name: str, error: Any) -> SourceError:
    message = f"{name}: {without_secrets(str(error), uri)}"
    return SourceError(message, hint="is the server there, and may this user read this table?")
