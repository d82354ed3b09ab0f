"""Where a table comes from: CSV, TSV, Parquet, a folder of Parquet, PostgreSQL, or a data frame.

A `Source` can be scanned as often as needed; it shows itself to DuckDB as something to select from.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import duckdb

from dalenius.errors import SourceError
from dalenius.sql import refuse_unusable_names
from dalenius.tables.csv import CSV_SUFFIXES, CsvSource
from dalenius.tables.frames import FrameSource, SparkFrameSource
from dalenius.tables.parquet import ParquetSource
from dalenius.tables.postgres import is_uri, read_table


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
        source = FrameSource.open(table, name)
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
