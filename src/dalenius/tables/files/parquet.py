"""Parquet files and folders of them as a source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from dalenius.errors import SourceError
from dalenius.sql import connect_shared, scan_parquet
from dalenius.tables.files.bytes import FileBytes, hold
from dalenius.tables.files.options import SourceOptions
from dalenius.tables.types import CheckedSource, check_types, refuse_unreadable

PARQUET_SUFFIXES = (".parquet", ".pq")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetSource(CheckedSource):
    """Parquet files with the same columns, read in the order of their names."""

    bytes: tuple[FileBytes, ...]
    partitioned: bool = False
    """Whether folders inside the folder are named `column=value`, and are columns therefore."""
    is_slow: bool = field(default=False, init=False)
    is_shared: bool = field(default=True, init=False)

    @classmethod
    def open(
        cls, files: Sequence[FileBytes], options: SourceOptions, name: str, *, partitioned: bool = False
    ) -> ParquetSource:
        """Read the schema; refuse what is not Parquet, or of a type that cannot be published."""
        options.refuse_others(("missing",), "Parquet")
        plain = tuple(file.plain() for file in files)
        scan = _scan(plain, partitioned)
        with refuse_unreadable(f"{name} cannot be read as Parquet"):
            if partitioned:
                _refuse_two_columns(name, plain)
            checked = check_types(connect_shared(), name, scan, options.missing)
        return cls(name=name, bytes=plain, checked=checked, partitioned=partitioned)

    @property
    def files(self) -> tuple[str, ...]:
        """Where they are."""
        return tuple(file.path for file in self.bytes)

    @property
    def usual_files(self) -> tuple[str, ...] | None:
        """Where others read the same; None where only this process can, or cells would change."""
        kept = any(file.kept for file in self.bytes)
        return self.files if self.checked.is_as_stored and not kept else None

    def scan(self, connection: duckdb.DuckDBPyConnection) -> str:
        """The files as one table."""
        hold(connection, self.bytes)
        return self.checked.select(_scan(self.bytes, self.partitioned))


def _refuse_two_columns(name: str, files: Sequence[FileBytes]) -> None:
    """What a folder's name says would take the place of what its files have."""
    told = connect_shared().execute(f"DESCRIBE SELECT * FROM {_scan(files, False)}").fetchall()
    within = {column.lower(): column for column, *_ in told}
    keys = {part.partition("=")[0] for file in files for part in Path(file.path).parts[:-1] if "=" in part}
    for key in sorted(keys):
        column = within.get(key.lower())
        if column is not None:
            raise SourceError(
                f"{name}: the column {column!r} is in the files and in the names of their folders",
                hint=f"they may differ: rename the folders {key}=…, or leave the column out of the files",
            )


def _scan(files: Sequence[FileBytes], partitioned: bool) -> str:
    options = f"union_by_name = true, hive_partitioning = {str(partitioned).lower()}"
    return scan_parquet([file.path for file in files], options)
