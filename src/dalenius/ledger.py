"""The publisher's private memory of what was published.

A small database that only its owner can read. It holds, for each release, its id, the hash of its
manifest, where it went, its place in a series, and a keyed fingerprint of the table it was made from: enough
to refuse one view too many, or a view of a table that has changed. The key never leaves the ledger, so a
fingerprint says nothing without it. No record, no seed or key of a run and no assignment is ever kept.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from dalenius.errors import EngineError, InputError

ENVIRONMENT = "DALENIUS_LEDGER"
_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS ledger (version INTEGER NOT NULL, key BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS releases (
    id TEXT PRIMARY KEY, manifest_sha256 TEXT NOT NULL, created TEXT NOT NULL, path TEXT NOT NULL,
    mechanism TEXT NOT NULL, source_fingerprint TEXT NOT NULL, for_publication INTEGER NOT NULL,
    series_id TEXT, series_index INTEGER, series_of INTEGER, UNIQUE (series_id, series_index)
);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One published release."""

    id: str
    manifest_sha256: str
    created: str
    path: str
    mechanism: str
    source_fingerprint: str
    """Of the table, under the ledger's key; the same for the same records in any order."""
    for_publication: bool
    series_id: str | None = None
    series_index: int | None = None
    series_of: int | None = None


_COLUMNS = tuple(field.name for field in fields(Entry))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """A ledger file, made when it is first needed."""

    path: Path

    def key(self) -> bytes:
        """The ledger's own secret, for fingerprints of tables."""
        with self._database() as database:
            (found,) = database.execute("SELECT key FROM ledger").fetchone()
        return bytes(found)

    def record(self, entry: Entry) -> None:
        """Remember a release. Two at one place of a series are refused, whoever is second."""
        marks = ", ".join("?" for _ in _COLUMNS)
        sql = f"INSERT INTO releases ({', '.join(_COLUMNS)}) VALUES ({marks})"
        with self._database() as database:
            try:
                database.execute(sql, astuple(entry))
            except sqlite3.IntegrityError as error:
                raise InputError(
                    f"release {entry.series_index} of this series is in the ledger already",
                    hint="another run published it; publish again for the next one",
                ) from error

    def forget(self, entry: Entry) -> None:
        """Take back a release that did not come to be."""
        with self._database() as database:
            database.execute("DELETE FROM releases WHERE id = ?", (entry.id,))

    def series(self, series_id: str) -> tuple[Entry, ...]:
        """The releases of a series, in order."""
        return self._select("series_id = ? ORDER BY series_index", series_id)

    def of_source(self, fingerprint: str) -> tuple[Entry, ...]:
        """Every release that was made from a table."""
        return self._select("source_fingerprint = ? ORDER BY rowid", fingerprint)

    def _select(self, where: str, value: str) -> tuple[Entry, ...]:
        sql = f"SELECT {', '.join(_COLUMNS)} FROM releases WHERE {where}"
        with self._database() as database:
            rows = database.execute(sql, (value,)).fetchall()
        return tuple(_entry(row) for row in rows)

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        """The open database; what the block does is kept as a whole or not at all."""
        try:
            _make_private(self.path)
            with closing(sqlite3.connect(self.path, timeout=30)) as database, database:
                database.executescript(_SCHEMA)
                database.execute("BEGIN IMMEDIATE")
                if database.execute("SELECT version FROM ledger").fetchone() is None:
                    database.execute("INSERT INTO ledger VALUES (?, ?)", (_VERSION, secrets.token_bytes(32)))
                yield database
        except (OSError, sqlite3.OperationalError, sqlite3.DatabaseError) as error:
            raise EngineError(
                f"the ledger {self.path} cannot be used: {error}",
                hint=f"[ledger] path in the policy, or {ENVIRONMENT}, says where it is",
            ) from error


def open_ledger(path: Path | None) -> Ledger:
    """The ledger at a path; without one, where DALENIUS_LEDGER says, or in the user's data folder."""
    if path is None and ENVIRONMENT in os.environ:
        path = Path(os.environ[ENVIRONMENT]).expanduser()
    if path is None:
        data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
        path = Path(data) / "dalenius" / "ledger"
    return Ledger(path=path)


def _make_private(path: Path) -> None:
    """Only the owner may read the file, from before anything is in it."""
    if path.exists():
        path.chmod(0o600)
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _entry(row: tuple[object, ...]) -> Entry:
    named = dict(zip(_COLUMNS, row, strict=True))
    return Entry(**{**named, "for_publication": bool(named["for_publication"])})  # type: ignore[arg-type]
