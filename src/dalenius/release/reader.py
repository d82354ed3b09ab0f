"""Opening a release: its manifest, and its tables as views of a closed-off database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from dalenius.errors import ReleaseCorrupt
from dalenius.release.manifest import read_manifest
from dalenius.sql import connect_shared, identifier, scan_parquet


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredRelease:
    """A release folder whose manifest has been read."""

    path: Path
    manifest: dict[str, Any]
    earlier: tuple[StoredRelease, ...] = ()
    """The releases of its series before it, where the whole series was opened."""

    @classmethod
    def open(cls, path: str | Path) -> StoredRelease:
        """Read the manifest; the tables are read when they are needed."""
        folder = Path(path)
        return cls(path=folder, manifest=read_manifest(folder))

    @property
    def mechanism(self) -> str:
        """The kind of the mechanism that made it."""
        return str(self.manifest["mechanism"]["kind"])

    def columns(self, role: str) -> tuple[str, ...]:
        """The published columns of a role, `quasi` or `sensitive`."""
        return tuple(column["name"] for column in self.manifest["columns"] if column["role"] == role)

    def files(self, table: str) -> list[Path]:
        """The Parquet files of a table."""
        entries = [entry for entry in self.manifest["tables"] if entry["name"] == table]
        if not entries:
            raise ReleaseCorrupt(f"{self.path}: the manifest lists no table {table!r}")
        return [self.path / file["file"] for file in entries[0]["files"]]

    def read(self, table: str, columns: Sequence[str]) -> pa.Table:
        """Some columns of a table, from the bytes of its files alone: their folders' names mean nothing."""
        try:
            files = [pq.ParquetFile(path) for path in self.files(table)]
            return pa.concat_tables([file.read(list(columns)).select(list(columns)) for file in files])
        except (OSError, pa.ArrowException, KeyError) as error:
            raise ReleaseCorrupt(f"{self.path}: table {table!r} cannot be read") from error

    def connect(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyConnection:
        """A connection on which every table of the release is a view: this one, else one for reading only."""
        connection = connection or connect_shared()
        for entry in self.manifest["tables"]:
            scan = scan_parquet(map(str, self.files(entry["name"])))
            try:
                connection.execute(f"CREATE TEMP VIEW {identifier(entry['name'])} AS FROM {scan}")
            except duckdb.Error as error:
                raise ReleaseCorrupt(f"{self.path}: table {entry['name']!r} cannot be read") from error
        return connection
