"""CSV and TSV files, read so that an error names file, line and column, and no type is guessed wrongly.

An empty field is NULL; a quoted empty field (`""`) is the empty text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from dalenius.errors import SourceError
from dalenius.sql import connect, identifier, literal, one_row, refuse_unusable_names
from dalenius.tables.files.bytes import FileBytes, find_encoding, hold
from dalenius.tables.files.dialect import (
    DAY_LIKE,
    NUMBER_LIKE,
    TEXT,
    Dialect,
    Kind,
    looks_like_data,
    read_first_line,
    refuse_record,
)
from dalenius.tables.files.options import SourceOptions

CSV_SUFFIXES = (".csv", ".tsv", ".tab", ".txt")
CSV_OPTIONS = ("encoding", "delimiter", "quote", "decimal", "thousands", "header", "missing", "dates")
_SAMPLE_ROWS = 2_048


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvSource:
    """Delimited text files with the same columns."""

    name: str
    files: tuple[FileBytes, ...]
    """As UTF-8, plain or gzipped."""
    dialect: Dialect
    columns: tuple[tuple[str, Kind], ...]
    """Name and type of each column."""
    is_slow: bool = field(default=True, init=False)
    is_shared: bool = field(default=True, init=False)

    @classmethod
    def open(cls, files: Sequence[FileBytes], options: SourceOptions, name: str) -> CsvSource:
        """Read the headers, then everything once: is it rectangular, and what are its types?"""
        options.refuse_others(CSV_OPTIONS, "a text file")
        read = [_read_start(file, options) for file in files]
        first, dialect, names = read[0]
        for other, _, found in read[1:]:
            if found != names:
                raise SourceError(
                    f"{other.name} has other columns than {first.name}",
                    hint="files that are read as one table have the same columns in the same order",
                )
        source = cls(
            name=name,
            files=tuple(file for file, _, _ in read),
            dialect=dialect,
            columns=tuple((column, TEXT) for column in names),
        )
        with connect() as connection:
            if options.header is None:
                _refuse_record(connection, source)
            kinds = _find_kinds(connection, source)
        return cls(
            name=name, files=source.files, dialect=dialect, columns=tuple(zip(names, kinds, strict=True))
        )

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns, in order."""
        return tuple(name for name, _ in self.columns)

    @property
    def usual_path(self) -> str | None:
        """Where others read the same: a file in UTF-8 with quotes and a header; None if they would not."""
        (first, *others), dialect = self.files, self.dialect
        usual = dialect.header and dialect.quote == '"'
        return first.path if usual and not others and first.kept is None else None

    def scan(self, connection: duckdb.DuckDBPyConnection) -> str:
        """The files with their typed columns."""
        hold(connection, self.files)
        return self.select_typed(self.texts(), self.column_names)

    def texts(self, extra: str = "") -> str:
        """SQL to select from: every field as it is written."""
        dialect = self.dialect
        columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in self.column_names)
        paths = ", ".join(literal(file.path) for file in self.files)
        compression = "gzip" if any(file.compression for file in self.files) else "none"
        return (
            f"read_csv([{paths}], auto_detect = false, header = {str(dialect.header).lower()}, "
            f"delim = {literal(dialect.delimiter)}, quote = {literal(dialect.quote)}, "
            f"escape = {literal(dialect.quote)}, nullstr = '', allow_quoted_nulls = false, "
            f"hive_partitioning = false, compression = '{compression}', columns = {{{columns}}}{extra})"
        )

    def select_typed(self, as_text: str, names: Sequence[str]) -> str:
        """SQL to select from: some columns in their types, from a relation that has them as texts."""
        typed = ", ".join(
            f"{kind.value.format(self.dialect.text(name))} AS {identifier(name)}"
            for name, kind in self.columns
            if name in names
        )
        return f"(SELECT {typed} FROM {as_text})"


def _read_start(file: FileBytes, options: SourceOptions) -> tuple[FileBytes, Dialect, list[str]]:
    """The file as UTF-8, how it is written, and its columns."""
    start = file.start()
    found = find_encoding(start)
    if b"\0" in start and not found.startswith(("utf-16", "utf-32")) and options.encoding is None:
        raise SourceError(
            f"{file.name} is not a text file: it holds NUL bytes",
            hint="what it is goes by its ending, e.g. .parquet, .xlsx, .sqlite: rename it",
        )
    encoding = options.encoding or found
    try:
        text = start.decode("utf-8-sig" if encoding == "utf-8" else encoding, errors="replace")
    except UnicodeError:  # a text in UTF-16 without its mark
        text = ""
    dialect, names = read_first_line(text, file.name, file.suffix, encoding, options)
    if not dialect.header:
        names = [f"column_{place}" for place in range(1, len(names) + 1)]
    elif options.header is None and len({name.strip().casefold() for name in names} - {""}) < len(names):
        refuse_record(file.name, looks_like_data(names), [])
    refuse_unusable_names(f"{file.name}, line {1 + bool(dialect.skip)}", names)
    usual = encoding.replace("_", "-").lower() in ("utf-8", "utf8", "utf-8-sig", "ascii")
    if dialect.skip or not usual:
        file = file.to_utf8("utf-8-sig" if usual else encoding, dialect.skip)
    return file, dialect, names


def _refuse_record(connection: duckdb.DuckDBPyConnection, source: CsvSource) -> None:
    """A first line that is like the lines below is one of them."""
    names = source.column_names
    doubtful = looks_like_data(list(names))
    like = literal(f"{NUMBER_LIKE}|{DAY_LIKE}")
    asked = [
        f"coalesce(avg(regexp_full_match(trim({identifier(names[place])}), {like})::INT), 0)"
        for place in doubtful
    ]
    asked += [f"count(*) FILTER ({identifier(name)} = {literal(name)})" for name in names]
    sample = f"(FROM {source.texts(', ignore_errors = true')} LIMIT {_SAMPLE_ROWS})"
    try:
        found = one_row(connection, f"SELECT {', '.join(asked)} FROM {sample}")
    except duckdb.Error:
        return  # the next look says what is wrong with the file
    kinds = [place for place, share in zip(doubtful, found, strict=False) if share > 0.5]
    again = [place for place, times in enumerate(found[len(doubtful) :]) if times]
    refuse_record(source.name, kinds, again if 2 * len(again) >= len(names) or kinds else [])


def _find_kinds(connection: duckdb.DuckDBPyConnection, source: CsvSource) -> list[Kind]:
    """The narrowest type that loses nothing, per column; also where ragged or undecodable lines show."""
    names, as_text = source.column_names, source.texts(", store_rejects = true")
    kinds = dict.fromkeys(names, source.dialect.kinds())
    try:
        # what the first lines rule out is not tried on all of them; of the rest the narrowest, mostly right,
        # is tried first: whether texts are floating numbers takes ten times as long as reading
        start = f"(FROM {as_text} LIMIT {_SAMPLE_ROWS})"
        kinds = _keep_passing(connection, source, start, kinds, of_none=True)
        found = _keep_passing(connection, source, as_text, {name: own[:1] for name, own in kinds.items()})
        again = {name: own[1:] for name, own in kinds.items() if own[1:] and not found[name]}
        if again:
            found |= _keep_passing(connection, source, as_text, again)
        rejects = connection.execute(
            "SELECT file_path, line, column_idx, column_name, error_type, error_message FROM reject_errors "
            "JOIN reject_scans USING (scan_id, file_id) ORDER BY line LIMIT 1"
        ).fetchall()
    except duckdb.Error as error:
        if "invalid state" in str(error):
            raise SourceError(
                f"{source.name}: some lines end otherwise than others (LF, CRLF)",
                hint="save it with one kind of line ends, e.g. with `dos2unix` or an editor",
            ) from error
        raise SourceError(
            f"{source.name} cannot be read: {_without_content(str(error))}",
            hint="is it damaged, or not whole? get it again from where it came",
        ) from error
    if rejects:
        raise _ragged_error(source, rejects[0])
    return [found[name][0] if found[name] else TEXT for name in names]


def _keep_passing(
    connection: duckdb.DuckDBPyConnection,
    source: CsvSource,
    as_text: str,
    kinds: dict[str, tuple[Kind, ...]],
    *,
    of_none: bool = False,
) -> dict[str, tuple[Kind, ...]]:
    """The kinds of each column that all its texts are of, and where it has none all kinds, if asked."""
    tests = [(name, kind) for name, own in kinds.items() for kind in own]
    asked = [f"count({identifier(name)})" for name in source.column_names]  # so that every field is read
    for name, kind in tests:
        text = source.dialect.text(name)
        asked += [f"count({text})", f"count_if({kind.test.format(text)})"]
    found = one_row(connection, f"SELECT {', '.join(asked)} FROM {as_text}")[len(source.column_names) :]
    pairs = zip(tests, found[::2], found[1::2], strict=True)
    fitting = [one for one, n_texts, n_passed in pairs if (n_texts or of_none) and n_passed == n_texts]
    return {name: tuple(kind for of, kind in fitting if of == name) for name in kinds}


def _ragged_error(source: CsvSource, reject: tuple[Any, ...]) -> SourceError:
    path, line, column, name, kind, message = reject
    if name in source.column_names:  # of missing fields DuckDB gives the first one's name
        column = source.column_names.index(name) + 1
    found = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    if found:
        what = f"expected {found[1]} fields, found {found[2]}"
        hint = (
            "every line needs as many fields as the first, here separated by "
            f"{source.dialect.delimiter!r}: quote fields that hold it, or give another with --delimiter "
            "(`delimiter` in the policy's source)"
        )
    elif kind == "INVALID ENCODING":
        what = "the text is not UTF-8"
        hint = "--encoding cp1252 (or latin-1, …), or `encoding` in the policy's source, says what it is"
    else:
        what = "a quote is opened and not closed as CSV demands"
        hint = 'a quote inside a quoted field is written twice: ""; --quote says which character quotes'
    of = next((file.name for file in source.files if file.path == path), source.name)
    # a first line that runs into the next one has a cell for a name
    where = f"column {column}" + (f" ({name!r})" if name and not found else "")
    return SourceError(f"{of}, line {line + bool(source.dialect.skip)}, {where}: {what}", hint=hint)


def _without_content(message: str) -> str:
    """DuckDB's message without the line it quotes, which may hold a sensitive value."""
    kept = [line for line in message.splitlines() if line.strip() and not line.startswith("Original Line")]
    return kept[0] if kept else "unknown error"
