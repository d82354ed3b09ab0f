"""Where a table comes from: CSV, TSV, Parquet, a folder of Parquet, PostgreSQL, or a data frame.

A `Source` can be scanned as often as needed; it shows itself to DuckDB as something to select from.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from dalenius.errors import SourceError
from dalenius.sql import connect_shared, identifier, scan_parquet
from dalenius.tables.csv import CSV_SUFFIXES, CsvSource
from dalenius.tables.names import refuse_unusable_names
from dalenius.tables.postgres import read_table
from dalenius.tables.postgres_uri import is_uri


class Source(Protocol):
    """A table that can be scanned again and again, always in the same row order."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns, in order."""

    def scan(self, connection: duckdb.DuckDBPyConnection) -> str:
        """SQL to select from, valid on this connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetSource:
    """A Parquet file, or a folder whose Parquet files are read in the order of their names."""

    name: str
    files: tuple[str, ...]
    column_names: tuple[str, ...]
    partitioned: bool
    """Whether folders inside the folder are named `column=value`, and are columns therefore."""

    @classmethod
    def open(cls, path: Path) -> ParquetSource:
        """Read the schema; refuse what is not Parquet, or nested."""
        files = (
            tuple(sorted(str(file) for file in path.rglob("*.parquet"))) if path.is_dir() else (str(path),)
        )
        if not files:
            raise SourceError(
                f"folder {path} holds no .parquet file",
                hint="give a CSV or Parquet file, or a folder of Parquet",
            )
        partitioned = any("=" in part for file in files for part in Path(file).relative_to(path).parts[:-1])
        scan = _scan(files, partitioned)
        try:
            described = connect_shared().execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()
        except duckdb.Error as error:
            raise SourceError(f"{path} cannot be read as Parquet: {_first_line(error)}") from error
        for column, kind, *_ in described:
            if any(mark in kind for mark in ("[", "STRUCT", "MAP", "UNION")):
                raise SourceError(
                    f"{path}: column {column!r} is nested ({kind}); a published column holds plain values",
                    hint="unnest it, or leave it out of the file",
                )
        names = tuple(row[0] for row in described)
        return cls(name=str(path), files=files, column_names=names, partitioned=partitioned)

    def scan(self, connection: duckdb.DuckDBPyConnection) -> str:  # noqa: ARG002  (the protocol's signature)
        """The files as one table."""
        return _scan(self.files, self.partitioned)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameSource:
    """A data frame: Arrow, or whatever narwhals knows (pandas, polars, …)."""

    name: str
    table: pa.Table

    @classmethod
    def open(cls, frame: Any) -> FrameSource:
        """Take the frame as an Arrow table, without its index, categories or metadata."""
        return cls(name="the data frame", table=_plain(_to_arrow(frame)))

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns, in order."""
        return tuple(self.table.column_names)

    def scan(self, connection: duckdb.DuckDBPyConnection) -> str:
        """The frame, registered under a name of its own."""
        view = f"frame_{id(self.table)}"
        connection.register(view, self.table)
        return identifier(view)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparkFrameSource:
    """A PySpark data frame, which stays where it is unless one machine is to publish it."""

    name: str
    frame: Any
    column_names: tuple[str, ...]

    @classmethod
    def open(cls, frame: Any) -> SparkFrameSource:
        """Take the frame as it is; nothing is computed."""
        return cls(name="the data frame", frame=frame, column_names=tuple(frame.columns))

    @staticmethod
    def fits(frame: Any) -> bool:
        """Whether it is one, asked without loading pyspark."""
        return any(base.__module__.startswith("pyspark.sql") for base in type(frame).__mro__)

    def scan(self, connection: duckdb.DuckDBPyConnection) -> str:
        """The whole frame, brought to this machine."""
        return FrameSource.open(self.frame).scan(connection)


def open_source(spec: Any) -> Source:
    """The source that a policy names: a path, a table of PostgreSQL, or a data frame.

    >>> import pyarrow as pa
    >>> open_source(pa.table({"age": [30], "disease": ["Flu"]})).column_names
    ('age', 'disease')
    """
    if not isinstance(spec, str | Path):
        kind = SparkFrameSource if SparkFrameSource.fits(spec) else FrameSource
        source: Source = kind.open(spec)
    elif is_uri(str(spec)):
        name, table = read_table(str(spec))
        source = FrameSource(name=name, table=_plain(table))
    else:
        source = _open_path(Path(spec))
    refuse_unusable_names(source.name, source.column_names)
    return source


def _open_path(path: Path) -> Source:
    if not path.exists():
        raise SourceError(
            f"source {path} does not exist", hint="paths in a policy are relative to the policy file"
        )
    if path.is_dir() or path.suffix == ".parquet":
        return ParquetSource.open(path)
    if {suffix.lower() for suffix in path.suffixes[-2:]} & set(CSV_SUFFIXES):
        return CsvSource.open(path)
    raise SourceError(
        f"source {path} has an unknown ending {path.suffix!r}",
        hint=f"known: {', '.join(CSV_SUFFIXES)} (each also with .gz), .parquet, or a folder of Parquet",
    )


def _to_arrow(frame: Any) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    import narwhals as nw  # not before there is a frame: most tables are files

    try:
        native = nw.from_native(frame)
    except TypeError as error:
        raise SourceError(
            f"source of type {type(frame).__name__} is not a table",
            hint="give a path, or a pandas, polars or Arrow table",
        ) from error
    except nw.exceptions.DuplicateError as error:
        raise SourceError("the data frame has two columns of one name", hint="rename one of them") from error
    if native.implementation.is_pandas():
        return _from_pandas(frame)
    return native.collect().to_arrow() if isinstance(native, nw.LazyFrame) else native.to_arrow()


def _from_pandas(frame: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError) as error:  # its text may quote a cell, or say too little
        raise SourceError(
            f"the data frame cannot be read ({type(error).__name__}): a column holds cells of several types",
            hint="give every column one type, e.g. with frame.astype",
        ) from error


def _plain(table: pa.Table) -> pa.Table:
    """Without dictionaries, whose unused entries would travel along, and without metadata."""
    fields = []
    for field in table.schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_nested(kind):
            raise SourceError(f"column {field.name!r} is nested; a published column holds plain values")
        fields.append(pa.field(field.name, kind))
    return table.replace_schema_metadata(None).cast(pa.schema(fields))


def _scan(files: tuple[str, ...], partitioned: bool) -> str:
    return scan_parquet(files, f"union_by_name = true, hive_partitioning = {str(partitioned).lower()}")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
