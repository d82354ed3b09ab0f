"""CSV and TSV files, read so that an error names file, line and column, and no type is guessed wrongly.

Every field is text first. A column becomes a number or a date only if every one of its texts is the
canonical spelling of one, so `01234` stays a postal code. An empty field is NULL; a quoted empty
field (`""`) is the empty text.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import duckdb

from dalenius.errors import SourceError
from dalenius.sql import connect, identifier, literal, one_row, refuse_unusable_names

CSV_SUFFIXES = (".csv", ".tsv", ".tab", ".txt")
_DELIMITERS = (",", ";", "\t", "|")
_HEADER_BYTES = 1 << 20
_SAMPLE_ROWS = 2_048
_IS_WHOLE = "try_cast({0} AS BIGINT)::VARCHAR = {0}"
# The types a text column may turn into, with the test that every text of the column must pass.
_CANONICAL = (
    ("BIGINT", _IS_WHOLE),
    (
        "DOUBLE",
        rf"coalesce({_IS_WHOLE}, false) OR (regexp_full_match({{0}}, '-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?')"
        " AND isfinite(try_cast({0} AS DOUBLE)))",
    ),
    ("DATE", "try_cast({0} AS DATE)::VARCHAR = {0}"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvSource:
    """A delimited text file, plain or gzipped, with a header."""

    name: str
    path: str
    delimiter: str
    columns: tuple[tuple[str, str], ...]
    """Name and SQL type of each column."""

    @classmethod
    def open(cls, path: Path) -> CsvSource:
        """Read the header, then the whole file once: is it rectangular, and what are its types?"""
        header, delimiter = _read_header(path)
        connection = connect()
        as_text = _read_csv(str(path), delimiter, header, extra=", store_rejects = true")
        types = _types(connection, path, header, as_text)
        return cls(
            name=str(path),
            path=str(path),
            delimiter=delimiter,
            columns=tuple(zip(header, types, strict=True)),
        )

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns, in order."""
        return tuple(name for name, _ in self.columns)

    def scan(self, connection: duckdb.DuckDBPyConnection) -> str:  # noqa: ARG002  (the protocol's signature)
        """The file with its typed columns."""
        return self.typed(_read_csv(self.path, self.delimiter, self.column_names), self.column_names)

    def typed(self, as_text: str, names: Sequence[str]) -> str:
        """SQL to select from: some columns in their types, from a relation that has them as texts."""
        typed = ", ".join(
            f"{identifier(name)}::{kind} AS {identifier(name)}" if kind != "VARCHAR" else identifier(name)
            for name, kind in self.columns
            if name in names
        )
        return f"(SELECT {typed} FROM {as_text})"


def _read_csv(path: str, delimiter: str, header: tuple[str, ...], extra: str = "") -> str:
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in header)
    return (
        f"read_csv({literal(path)}, auto_detect = false, header = true, delim = {literal(delimiter)}, "
        "quote = '\"', escape = '\"', nullstr = '', allow_quoted_nulls = false, hive_partitioning = false, "
        f"columns = {{{columns}}}{extra})"
    )


def _read_header(path: Path) -> tuple[tuple[str, ...], str]:
    try:
        with _open_bytes(path) as file:
            start = file.read(_HEADER_BYTES)
    except (OSError, EOFError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from error
    if b"\0" in start and start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError(f"{path}: the text is UTF-16, not UTF-8", hint="convert the file to UTF-8")
    if b"\0" in start:
        raise SourceError(
            f"{path} is not a text file: it holds NUL bytes", hint="is it Parquet? name it *.parquet"
        )
    # A multi-byte character may be cut where the sample ends; what is behind is checked by the scan.
    text = start.decode("utf-8-sig", errors="replace")
    if not text.strip():
        raise SourceError(f"{path} is empty", hint="the first line names the columns")
    line = text.splitlines()[0]
    if "\N{REPLACEMENT CHARACTER}" in line:
        raise SourceError(f"{path}, line 1: the header is not UTF-8", hint="convert the file to UTF-8")
    delimiter = "\t" if _suffix(path) in (".tsv", ".tab") else max(_DELIMITERS, key=line.count)
    names = next(csv.reader(text.splitlines(keepends=True), delimiter=delimiter))
    refuse_unusable_names(f"{path}, line 1", names)
    return tuple(names), delimiter


def _open_bytes(path: Path) -> IO[bytes]:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _suffix(path: Path) -> str:
    return Path(path.stem).suffix if path.suffix == ".gz" else path.suffix


def _types(
    connection: duckdb.DuckDBPyConnection, path: Path, header: tuple[str, ...], as_text: str
) -> list[str]:
    """The narrowest type that loses nothing, per column; also where ragged or undecodable lines show."""
    tests = [(name, kind, test.format(identifier(name))) for name in header for kind, test in _CANONICAL]
    asked = [
        f"bool_and(coalesce({t}, false)) FILTER ({identifier(name)} IS NOT NULL)" for name, _, t in tests
    ]
    try:
        # what the first lines rule out is not tried on all of them
        sample = one_row(connection, f"SELECT {', '.join(asked)} FROM (FROM {as_text} LIMIT {_SAMPLE_ROWS})")
        asked = ["false" if ok is False else test for test, ok in zip(asked, sample, strict=True)]
        every_field = ", ".join(f"count({identifier(name)})" for name in header)
        passed = one_row(connection, f"SELECT {', '.join(asked)}, {every_field} FROM {as_text}")
        rejects = connection.execute(
            "SELECT line, column_idx, column_name, error_type, error_message FROM reject_errors"
            " ORDER BY line LIMIT 1"
        ).fetchall()
    except duckdb.Error as error:
        raise SourceError(f"{path} cannot be read: {_without_content(str(error))}") from error
    if rejects:
        raise _ragged(path, header, rejects[0])
    fitting = [(name, kind) for (name, kind, _), ok in zip(tests, passed[: len(tests)], strict=True) if ok]
    return [next((kind for of, kind in fitting if of == name), "VARCHAR") for name in header]


def _ragged(
    path: Path, header: tuple[str, ...], reject: tuple[int, int, str | None, str, str]
) -> SourceError:
    line, column, name, kind, message = reject
    if name in header:  # of missing fields DuckDB gives the first one's name, and how many there are
        column = header.index(name) + 1
    found = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    if found:
        what = f"expected {found[1]} fields, found {found[2]}"
        hint = "quote fields that hold the delimiter; every line needs as many fields as the header"
    elif kind == "INVALID ENCODING":
        what, hint = "the text is not UTF-8", "convert the file to UTF-8"
    else:
        what, hint = (
            "a quote is opened and not closed as CSV demands",
            'a quote inside a quoted field is written twice: ""',
        )
    where = f"column {column}" + (f" ({name!r})" if name else "")
    return SourceError(f"{path}, line {line}, {where}: {what}", hint=hint)


def _without_content(message: str) -> str:
    """DuckDB's message without the line it quotes, which may hold a sensitive value."""
    kept = [line for line in message.splitlines() if line.strip() and not line.startswith("Original Line")]
    return kept[0] if kept else "unknown error"
