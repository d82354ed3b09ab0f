"""Where a table comes from: files of many kinds, folders and patterns of them, PostgreSQL, or a data frame.

A `Source` can be scanned as often as needed; it shows itself to DuckDB as something to select from.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from dalenius.errors import PolicyError, SourceError
from dalenius.plain import escape_controls
from dalenius.sql import connect, identifiers, refuse_unusable_names
from dalenius.tables.files.bytes import COMPRESSED_SUFFIXES, STANDARD_INPUT, FileBytes
from dalenius.tables.files.csv import CSV_SUFFIXES, CsvSource
from dalenius.tables.files.databases import DATABASE_SUFFIXES, SQLITE_START, DuckDbSource, open_sqlite
from dalenius.tables.files.lines import ARROW_SUFFIXES, JSON_SUFFIXES, JsonSource, read_arrow
from dalenius.tables.files.options import SourceOptions
from dalenius.tables.files.packages import (
    STATISTICS_SUFFIXES,
    WORKBOOK_SUFFIXES,
    read_statistics,
    read_workbook,
)
from dalenius.tables.files.parquet import PARQUET_SUFFIXES, ParquetSource
from dalenius.tables.files.persons import Persons, gather
from dalenius.tables.frames import FrameSource, SparkFrameSource
from dalenius.tables.postgres import is_uri, read_table
from dalenius.tables.types import refuse_unreadable

ENDINGS: dict[str, tuple[str, ...]] = {
    "CSV": CSV_SUFFIXES,
    "Parquet": PARQUET_SUFFIXES,
    "workbooks": WORKBOOK_SUFFIXES,
    "SPSS, Stata, SAS": STATISTICS_SUFFIXES,
    "SQLite, DuckDB": DATABASE_SUFFIXES,
    "Arrow": ARROW_SUFFIXES,
    "JSON": JSON_SUFFIXES,
}
"""By kind of file: the endings of its names."""
_KNOWN = "; ".join(f"{kind} {' '.join(endings)}" for kind, endings in ENDINGS.items())
_MAGIC = {
    b"PAR1": ".parquet",
    SQLITE_START: ".sqlite",
    b"ARROW1": ".arrow",
    b"\xff\xff\xff\xff": ".arrows",
    b"PK\x03\x04": ".xlsx",
    b"\xd0\xcf\x11\xe0": ".xls",
    b"$FL2": ".sav",
    b"<stata_dta>": ".dta",
    b"{": ".jsonl",
}


class Source(Protocol):
    """A table that can be scanned again and again, in the same row order unless it is slow."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns, in order."""

    @property
    def is_slow(self) -> bool:
        """Whether every scan reads texts, or works out a view: copied where it is scanned several times.

        Then the rows are the same ones each time, in the same order, also where a view has a join.
        """

    @property
    def is_shared(self) -> bool:
        """Whether what `scan` gives is valid on other connections to the same database."""

    def scan(self, connection: duckdb.DuckDBPyConnection) -> str:
        """SQL to select from, valid on this connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralSource:
    """Tables with the same columns, one after the other."""

    name: str
    parts: tuple[Source, ...]
    is_shared: bool = field(default=False, init=False)

    @property
    def is_slow(self) -> bool:
        """Whether one of them is."""
        return any(part.is_slow for part in self.parts)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns, as the first table has them."""
        return self.parts[0].column_names

    def scan(self, connection: duckdb.DuckDBPyConnection) -> str:
        """All of them; a column has one type, or the table is refused."""
        listed = identifiers(self.column_names)
        scans = [part.scan(connection) for part in self.parts]
        types = [connection.execute(f"DESCRIBE SELECT {listed} FROM {scan}").fetchall() for scan in scans]
        for part, found in zip(self.parts, types, strict=True):
            for (column, kind, *_), (_, usual, *_) in zip(found, types[0], strict=True):
                if kind != usual:
                    raise SourceError(
                        f"column {column!r} is {kind.lower()} in {part.name} and {usual.lower()} in "
                        f"{self.parts[0].name}",
                        hint="give it one type in all files",
                    )
        return "(" + " UNION ALL ".join(f"SELECT {listed} FROM {scan}" for scan in scans) + ")"


@contextmanager
def scanning(source: Source) -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
    """A connection, and what to select from on it; a file that turns out to be damaged is refused."""
    with connect() as connection, explained(source):
        yield connection, source.scan(connection)


@contextmanager
def explained(source: Source) -> Iterator[None]:
    """What a reader makes of a damaged file, without its words, which may quote a cell."""
    with refuse_unreadable(f"{source.name} cannot be read"):
        yield


def open_source(spec: Any, options: SourceOptions | None = None, persons: Any = None) -> Source:
    """The source that a policy names: a path, a path with options, a table of PostgreSQL, or a data frame.

    >>> import pyarrow as pa
    >>> open_source(pa.table({"age": [30], "disease": ["Flu"]})).column_names
    ('age', 'disease')
    """
    chosen = SourceOptions() if options is None else options
    if isinstance(spec, Mapping):
        persons = spec.get("persons", persons)
        spec, chosen = split_source(spec)
    if not isinstance(spec, str | Path):
        kind = SparkFrameSource if SparkFrameSource.fits(spec) else FrameSource
        source: Source = kind.open(spec)
    elif is_uri(str(spec)):
        chosen.refuse_others(("table", "missing"), "PostgreSQL")
        name, table = read_table(str(spec), chosen.table)
        source = FrameSource.open(table, name, chosen.missing)
    else:
        source = _open_path(Path(spec), chosen)
    if persons is not None:
        source = _gather(source, Persons.of(persons))
    refuse_unusable_names(source.name, source.column_names)
    return source


def _gather(source: Source, asked: Persons) -> Source:
    """The same with one row per person, in memory."""
    with scanning(source) as (connection, relation):
        table = gather(connection, relation, source.column_names, asked)
    return FrameSource.open(table, source.name)


def gather_persons(frame: Any, **given: Any) -> pa.Table:
    """One row per person of a data frame: `unit` and `values` name columns, as in a policy's source.

    >>> import pyarrow as pa
    >>> visits = pa.table({"who": [1, 1, 2], "sex": ["F", "F", "M"], "ill": ["Flu", "HIV", "Flu"]})
    >>> gather_persons(visits, unit="who", values="ill").to_pylist()[0]
    {'who': 1, 'sex': 'F', 'Flu': True, 'HIV': True}
    """
    source = FrameSource.open(frame)
    with scanning(source) as (connection, relation):
        return gather(connection, relation, source.column_names, Persons.of(given))


def split_source(spec: Mapping[str, Any]) -> tuple[str | Path, SourceOptions]:
    """The path of a source that is written with options, and the options.

    >>> split_source({"path": "t.csv", "decimal": ","})[1].decimal
    ','
    """
    path = spec.get("path")
    if not isinstance(path, str | Path) or not str(path):
        raise PolicyError(
            "source: path must name the file", hint='source = { path = "t.csv", decimal = "," }'
        )
    return path, SourceOptions.of(
        {key: value for key, value in spec.items() if key not in ("path", "persons")}
    )


def _open_path(path: Path, options: SourceOptions) -> Source:
    if path.is_dir():
        return _open_folder(path, options)
    if str(path) != STANDARD_INPUT and not path.exists():
        matches = sorted(map(Path, glob.glob(str(path), recursive=True)))
        if not matches:
            raise SourceError(
                f"source {path} does not exist", hint="paths in a policy are relative to the policy file"
            )
        return _open_files(str(path), [match for match in matches if match.is_file()], options)
    return _open_files(str(path), [path], options)


def _open_folder(path: Path, options: SourceOptions) -> Source:
    known = {suffix for endings in ENDINGS.values() for suffix in endings}
    tables = sorted(file for file in path.rglob("*") if file.is_file() and _inner_suffix(file) in known)
    if not tables:
        raise SourceError(f"folder {path} holds no table", hint=f"endings that are read: {_KNOWN}")
    if (path / "manifest.json").exists():
        raise SourceError(
            f"folder {path} looks like a release, and not like a table of people",
            hint="`dalenius verify`, `ask`, `report` and `export` take it; a table goes by its file's name",
        )
    _refuse_hidden(path, tables)
    parquet = [file for file in tables if file.suffix.lower() in PARQUET_SUFFIXES]
    if not parquet:
        return _open_files(str(path), tables, options)
    others = [file for file in tables if file not in parquet]
    if others:
        raise SourceError(
            f"folder {path} holds Parquet files and {_shown(path, others[0])}, so that it is not clear who "
            "is in the table",
            hint=f"move one or the other away, or name the files: '{path}/*.parquet'",
        )
    partitioned = any("=" in part for file in parquet for part in file.relative_to(path).parts[:-1])
    return ParquetSource.open(
        [FileBytes.of(file) for file in parquet], options, str(path), partitioned=partitioned
    )


def _refuse_hidden(folder: Path, tables: Sequence[Path]) -> None:
    """Names that begin with a dot or a line are left out by some programs and read by others."""
    for file in tables:
        parts = file.relative_to(folder).parts
        if any(part.startswith((".", "_")) and "=" not in part for part in parts):
            raise SourceError(
                f"folder {folder} holds {_shown(folder, file)}, a hidden file by its name, so that it is not "
                "clear who is in the table",
                hint="remove it, or rename it if it belongs to the table",
            )


def _shown(folder: Path, file: Path) -> str:
    return escape_controls(str(file.relative_to(folder)))


def _inner_suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSED_SUFFIXES]
    return suffixes[-1] if suffixes else ""


def _open_files(name: str, paths: Sequence[Path], options: SourceOptions) -> Source:
    files = [_recognise(FileBytes.of(path)) for path in paths]
    name = files[0].name if len(files) == 1 else name
    suffixes = {file.suffix for file in files}
    if suffixes <= set(CSV_SUFFIXES):
        return CsvSource.open(files, options, name)
    if suffixes <= set(PARQUET_SUFFIXES):
        return ParquetSource.open(files, options, name)
    if suffixes <= set(JSON_SUFFIXES):
        return JsonSource.open(files, options, name)
    if len(files) == 1:
        return _open_file(files[0], options)
    parts = tuple(_open_files(file.name, [path], options) for file, path in zip(files, paths, strict=True))
    for part in parts:
        if set(part.column_names) != set(parts[0].column_names):
            raise SourceError(
                f"{part.name} has other columns than {parts[0].name}",
                hint="files that are read as one table have the same columns",
            )
    return SeveralSource(name=name, parts=parts)


def _recognise(file: FileBytes) -> FileBytes:
    """By its ending; without one that is known, or where it means several kinds, by its first bytes."""
    known = {suffix for endings in ENDINGS.values() for suffix in endings}
    if file.suffix in known and not file.suffix.startswith(".db"):
        return file
    start = file.start()[:64]
    found = ".duckdb" if start[8:12] == b"DUCK" else None
    found = found or next((suffix for mark, suffix in _MAGIC.items() if start.startswith(mark)), None)
    if found is None and (not file.suffix or file.name == "standard input"):
        found = ".csv"
    if found is None or (file.suffix.startswith(".db") and found not in DATABASE_SUFFIXES):
        raise SourceError(
            f"source {file.name} has an unknown ending {file.suffix!r}", hint=f"known: {_KNOWN}"
        )
    return file.named(found)


def _open_file(file: FileBytes, options: SourceOptions) -> Source:
    if file.suffix in WORKBOOK_SUFFIXES:
        name, table = read_workbook(file, options)
        return FrameSource.open(table, name)
    if file.suffix in STATISTICS_SUFFIXES:
        return FrameSource.open(read_statistics(file, options), file.name)
    if file.suffix in ARROW_SUFFIXES:
        return FrameSource.open(read_arrow(file, options), file.name, options.missing)
    is_sqlite = file.suffix.startswith(".sqlite") or file.start().startswith(SQLITE_START)
    return open_sqlite(file, options) if is_sqlite else DuckDbSource.open(file, options)
