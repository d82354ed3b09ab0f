"""The publisher's private memory of what was published.

A small database that only its owner can read. It holds, for each release, its id, the hash of its
manifest, where it went, its place in a series, and keyed fingerprints of the table it was made from and of
its counts of sensitive values: enough to refuse a second independent release of a table, one view too many,
or a view of a table that has changed. The key leaves the ledger only for the pass over the records that makes
a fingerprint, which says nothing without it. No record, no seed or key of a run and no assignment is ever
kept.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from dalenius.errors import EngineError, InputError

ENVIRONMENT = "DALENIUS_LEDGER"
_VERSION = 3
_SQLITE = b"SQLite format 3\0"
"""How a database file begins; a new one is empty."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS ledger (version INTEGER NOT NULL, key BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS releases (
    id TEXT PRIMARY KEY, manifest_sha256 TEXT NOT NULL, created TEXT NOT NULL, path TEXT NOT NULL,
    mechanism TEXT NOT NULL, source_fingerprint TEXT NOT NULL, for_publication INTEGER NOT NULL,
    series_id TEXT, series_index INTEGER, series_of INTEGER, values_fingerprint TEXT, record_fingerprint TEXT,
    UNIQUE (series_id, series_index)
);
"""
_ADDED = ("values_fingerprint", "record_fingerprint")
"""Columns that versions 2 and 3 brought."""


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
    values_fingerprint: str | None = None
    """Of how often each sensitive value occurs; None where the policy names none, or it was not kept."""
    record_fingerprint: str | None = None
    """Of the table's whole records, kept for views, which must be of one unchanged table."""


_COLUMNS = tuple(field.name for field in fields(Entry))
_SAME_TABLE = "(source_fingerprint = ? OR values_fingerprint = ?)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """A ledger file, made when it is first needed."""

    path: Path

    def key(self) -> bytes:
        """The ledger's own secret, for fingerprints of tables."""
        with self._database() as database:
            (found,) = database.execute("SELECT key FROM ledger").fetchone()
        return bytes(found)

    def record(self, entry: Entry, seen: Collection[str] | None = None) -> None:
        """Remember a release. Two at one place of a series are refused, whoever is second.

        Args:
            entry: The release.
            seen: The ids of the releases of its table that its publisher knew of. One more, which another
                run has recorded meanwhile, is refused. None: it does not matter.
        """
        marks = ", ".join("?" for _ in _COLUMNS)
        sql = f"INSERT INTO releases ({', '.join(_COLUMNS)}) VALUES ({marks})"
        with self._database() as database:
            if seen is not None:
                _refuse_unseen(database, entry, seen)
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

    def of_source(self, source: str, values: str | None = None) -> tuple[Entry, ...]:
        """Every release that was made from a table, or from one with its counts of sensitive values."""
        return self._select(f"{_SAME_TABLE} ORDER BY rowid", source, values)

    def _select(self, where: str, *values: str | None) -> tuple[Entry, ...]:
        with self._database() as database:
            return _select(database, where, *values)

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        """The open database; what the block does is kept as a whole or not at all."""
        try:
            _make_private(self.path)
            with closing(sqlite3.connect(self.path, timeout=30)) as database, database:
                database.execute("BEGIN IMMEDIATE")
                _prepare(database)
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
    """Only the owner may read the file, from before anything is in it; what is no ledger keeps its mode."""
    if path.is_dir():
        raise IsADirectoryError("it is a folder, and a ledger is a file")
    if path.exists():
        with path.open("rb") as file:
            start = file.read(len(_SQLITE))
        if start in (b"", _SQLITE):
            path.chmod(0o600)
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _prepare(database: sqlite3.Connection) -> None:
    """Make the tables of a new file; bring those of an older version up to date."""
    for statement in _SCHEMA.strip().split(";\n"):
        database.execute(statement)
    found = database.execute("SELECT version FROM ledger").fetchone()
    if found is None:
        database.execute("INSERT INTO ledger VALUES (?, ?)", (_VERSION, secrets.token_bytes(32)))
        return
    if found[0] > _VERSION:
        raise sqlite3.DatabaseError(f"it was written by a later version of Dalenius (format {found[0]})")
    if found[0] < _VERSION:
        for column in _ADDED[found[0] - 1 :]:
            database.execute(f"ALTER TABLE releases ADD COLUMN {column} TEXT")
        database.execute("UPDATE ledger SET version = ?", (_VERSION,))


def _select(database: sqlite3.Connection, where: str, *values: str | None) -> tuple[Entry, ...]:
    rows = database.execute(f"SELECT {', '.join(_COLUMNS)} FROM releases WHERE {where}", values).fetchall()
    return tuple(_entry(row) for row in rows)


def _refuse_unseen(database: sqlite3.Connection, entry: Entry, seen: Collection[str]) -> None:
    """In the transaction that records: of two runs at the same time the second one knows of the first."""
    same = _select(database, _SAME_TABLE, entry.source_fingerprint, entry.values_fingerprint)
    if any(other.id not in seen and other.for_publication for other in same):
        raise InputError(
            "another run has published this table meanwhile; nothing was published by this one",
            hint="the two releases would be independent draws; publish again to see what that would tell",
        )


def _entry(row: tuple[object, ...]) -> Entry:
    named = dict(zip(_COLUMNS, row, strict=True))
    return Entry(**{**named, "for_publication": bool(named["for_publication"])})  # type: ignore[arg-type]
