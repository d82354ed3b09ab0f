"""CSV and TSV files, read so that an error names file, line and column, and no type is guessed wrongly.

An empty field is NULL; a quoted empty field (`""`) is the empty text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import duckdb
import pyarrow as pa

from dalenius.errors import InternalError, SourceError
from dalenius.sql import connect, identifier, literal, one_row, refuse_unusable_names, register_frame
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
from dalenius.tables.files.kinds import SAMPLE_ROWS, find_kinds, select_typed, start_column, type_cells
from dalenius.tables.files.options import SourceOptions
from dalenius.tables.files.texts import (
    Column,
    NotPlainError,
    TooManyBytesError,
    can_be_plain,
    collect,
    read_plain,
)

CSV_SUFFIXES = (".csv", ".tsv", ".tab", ".txt")
CSV_OPTIONS = ("encoding", "delimiter", "quote", "decimal", "thousands", "header", "missing", "dates")
_MOST_HELD = 2**28
"""Bytes of cells that are held once they were read; a larger file is read again for every scan."""
_BATCH_ROWS = 2**16
_REJECTS = ", store_rejects = true"


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvSource:
    """Delimited text files with the same columns."""

    name: str
    files: tuple[FileBytes, ...]
    """As UTF-8, plain or gzipped."""
    dialect: Dialect
    columns: tuple[tuple[str, Kind], ...]
    """Name and type of each column."""
    held: pa.Table | None = field(default=None, repr=False, compare=False)
    """All cells in their types, those of few values as codes, unless they are too many."""

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
        with connect() as connection, _explained(source):
            texts = _collect(connection, source, may_be_record=options.header is None)
            if texts is not None:
                kinds, held = type_cells(connection, dialect, texts)
            else:
                kinds = find_kinds(connection, dialect, source.column_names, source.texts(_REJECTS))
                held = None
                _refuse_rejected(connection, source)
        return replace(source, columns=tuple((column, kinds[column]) for column in names), held=held)

    @property
    def is_slow(self) -> bool:
        """Whether its texts are read for every scan."""
        return self.held is None

    @property
    def is_shared(self) -> bool:
        """Whether the file is read where it is."""
        return self.held is None

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
        if self.held is not None:
            return register_frame(connection, self.held)
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
        return select_typed(
            self.dialect, {name: kind for name, kind in self.columns if name in names}, as_text
        )


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
        refuse_record(file.name, len(names), looks_like_data(names), {})
    refuse_unusable_names(f"{file.name}, line {dialect.first_line}", names)
    usual = encoding.replace("_", "-").lower() in ("utf-8", "utf8", "utf-8-sig", "ascii")
    if dialect.skip or not usual:
        file = file.to_utf8("utf-8-sig" if usual else encoding, dialect.skip)
    return file, dialect, names


def _collect(
    connection: duckdb.DuckDBPyConnection, source: CsvSource, *, may_be_record: bool
) -> dict[str, Column] | None:
    """The texts of all columns, read once; None if they are too many to be held."""
    names, dialect = source.column_names, source.dialect
    ways = [_read_plain, _read_by_duckdb] if can_be_plain(dialect, names) else [_read_by_duckdb]
    for read in ways:
        batches = read(connection, source)
        try:
            if may_be_record:
                batches = _check_start(connection, source, batches)
            found = collect(batches, [start_column(dialect) for _ in names], _MOST_HELD)
        except NotPlainError:
            continue
        except TooManyBytesError:
            return None
        return dict(zip(names, found, strict=True))
    raise InternalError("DuckDB's reader of texts found a file that is not plain")


def _read_plain(connection: duckdb.DuckDBPyConnection, source: CsvSource) -> Iterator[pa.RecordBatch]:
    del connection
    for file in source.files:
        yield from read_plain(file, source.dialect, source.column_names)


def _read_by_duckdb(connection: duckdb.DuckDBPyConnection, source: CsvSource) -> Iterator[pa.RecordBatch]:
    yield from connection.sql(f"SELECT * FROM {source.texts(_REJECTS)}").to_arrow_reader(_BATCH_ROWS)
    _refuse_rejected(connection, source)


def _check_start(
    connection: duckdb.DuckDBPyConnection, source: CsvSource, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The same; a first line that is like the lines below is one of them."""
    first = next(batches, None)
    if first is None:
        return
    names = source.column_names
    doubtful = looks_like_data(list(names))
    like = literal(f"{NUMBER_LIKE}|{DAY_LIKE}")
    asked = [
        f"coalesce(avg(regexp_full_match(trim({identifier(names[place])}), {like})::INT), 0)"
        for place in doubtful
    ]
    asked += [
        f"CASE WHEN bool_or({identifier(name)} = {literal(name)}) THEN count(DISTINCT {identifier(name)}) END"
        for name in names
    ]
    with connection.cursor() as second:  # the first one is reading
        second.register("start", pa.Table.from_batches([first.slice(0, SAMPLE_ROWS)]))
        found = one_row(second, f"SELECT {', '.join(asked)} FROM start")
    kinds = [place for place, share in zip(doubtful, found, strict=False) if share > 0.5]
    again = {place: n_texts for place, n_texts in enumerate(found[len(doubtful) :]) if n_texts}
    refuse_record(source.name, len(names), kinds, again)
    yield from chain([first], batches)


@contextmanager
def _explained(source: CsvSource) -> Iterator[None]:
    """What is wrong with the file, without DuckDB's words, which may quote a cell."""
    try:
        yield
    except (duckdb.Error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the machine's; DuckDB's own, on the way to Arrow, have no number
        if "invalid state" in str(error):
            raise SourceError(
                f"{source.name}: some lines end otherwise than others (LF, CRLF)",
                hint="save it with one kind of line ends, e.g. with `dos2unix` or an editor",
            ) from error
        raise SourceError(
            f"{source.name} cannot be read: {_without_content(str(error))}",
            hint="is it damaged, or not whole? get it again from where it came",
        ) from error


def _refuse_rejected(connection: duckdb.DuckDBPyConnection, source: CsvSource) -> None:
    """Of what DuckDB read, a line that is ragged or no text."""
    rejects = connection.execute(
        "SELECT file_path, line, column_idx, column_name, error_type, error_message FROM reject_errors "
        "JOIN reject_scans USING (scan_id, file_id) ORDER BY line LIMIT 1"
    ).fetchall()
    if rejects:
        raise _ragged_error(source, rejects[0])


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
        if found[1] == "1":
            hint = f"is there a title above the names of the columns? take it out; or else {hint}"
    elif kind == "INVALID ENCODING":
        what = "the text is not UTF-8"
        hint = "--encoding cp1252 (or latin-1, …), or `encoding` in the policy's source, says what it is"
    elif kind == "LINE SIZE OVER MAXIMUM":
        what = "the line is longer than 2 MB"
        hint = "is it a text file of one record a line? a line of a person is never so long"
    else:
        what = "a quote is opened and not closed as CSV demands"
        hint = 'a quote inside a quoted field is written twice: ""; --quote says which character quotes'
    of = next((file.name for file in source.files if file.path == path), source.name)
    # a first line that runs into the next one has a cell for a name
    where = "" if column is None else f", column {column}" + (f" ({name!r})" if name and not found else "")
    return SourceError(f"{of}, line {line + source.dialect.first_line - 1}{where}: {what}", hint=hint)


def _without_content(message: str) -> str:
    """DuckDB's message without the line it quotes, which may hold a sensitive value."""
    kept = [line for line in message.splitlines() if line.strip() and not line.startswith("Original Line")]
    return kept[0] if kept else "unknown error"
