"""Parquet files and folders of them as a source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from dalenius.errors import SourceError
from dalenius.sql import connect_shared, scan_parquet


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
            raise SourceError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
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


def _scan(files: tuple[str, ...], partitioned: bool) -> str:
    return scan_parquet(files, f"union_by_name = true, hive_partitioning = {str(partitioned).lower()}")
