"""The publisher's private memory of what was published.

A small database that only its owner can read. It holds, for each release, its id, the hash of its
manifest, where it went, its place in a series, and keyed fingerprints of the table it was made from and of
its counts of sensitive values, and a sketch by which its people are known again: enough to refuse a second
independent release about them, one view too many, or a view of a table that has changed. The key leaves the
ledger only for the pass over the records that makes fingerprint and sketch, which say nothing without it. No
record, no seed or key of a run and no assignment is ever kept. What is forgotten leaves a trail.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import struct
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from dalenius import system
from dalenius.errors import EngineError, InputError
from dalenius.tables.sketch import BY_CELLS, Overlap, Sketch, find_overlap

ENVIRONMENT = "DALENIUS_LEDGER"
_VERSION = 5
"""From 5 on a large table has another fingerprint, by which earlier versions would not know it."""
_SQLITE = b"SQLite format 3\0"
"""How a database file begins; a new one is empty."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS ledger (version INTEGER NOT NULL, key BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS releases (
    id TEXT PRIMARY KEY, manifest_sha256 TEXT NOT NULL, created TEXT NOT NULL, path TEXT NOT NULL,
    mechanism TEXT NOT NULL, source_fingerprint TEXT NOT NULL, for_publication INTEGER NOT NULL,
    series_id TEXT, series_index INTEGER, series_of INTEGER, values_fingerprint TEXT, record_fingerprint TEXT,
    sketch BLOB, UNIQUE (series_id, series_index)
);
CREATE TABLE IF NOT EXISTS forgotten (
    id TEXT NOT NULL, created TEXT NOT NULL, path TEXT NOT NULL, day TEXT NOT NULL, reason TEXT NOT NULL
);
"""
_ADDED = ("values_fingerprint TEXT", "record_fingerprint TEXT", "sketch BLOB")
"""Columns that versions 2, 3 and 4 brought."""


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
    sketch: bytes | None = None
    """By which the table's people are known again; packed under the ledger's key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """A release that its publisher had the ledger forget."""

    id: str
    created: str
    path: str
    day: str
    """When it was forgotten."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Marks:
    """By what a ledger knows a table again, all under its key."""

    source: str
    values: str | None
    sketch: Sketch | None
    earlier: str | None = None
    """`source` as an earlier version made it; None where the ledger has nothing to compare with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """An earlier release, and how it is known to be about the same people."""

    entry: Entry
    how: Literal["records", "values", "people"]
    """By the same records, by the same counts of sensitive values, or by the sketch."""
    overlap: Overlap | None


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

    def record(self, entry: Entry, marks: Marks | None = None, seen: Collection[str] = ()) -> None:
        """Remember a release. Two at one place of a series are refused, whoever is second.

        Args:
            entry: The release.
            marks: Of its table; None: other releases of it do not matter.
            seen: The ids of the releases that were compared with it before, and of those about its people
                that its publisher knew of. One more, which another run has recorded meanwhile, is refused.
        """
        places = ", ".join("?" for _ in _COLUMNS)
        sql = f"INSERT INTO releases ({', '.join(_COLUMNS)}) VALUES ({places})"
        with self._database() as database:
            if marks is not None:
                _refuse_unseen(database, marks, seen)
            try:
                database.execute(sql, astuple(entry))
            except sqlite3.IntegrityError as error:
                raise InputError(
                    f"release {entry.series_index} of this series is in the ledger already",
                    hint="another run published it; publish again for the next one",
                ) from error

    def take_back(self, entry: Entry) -> None:
        """Forget a release that did not come to be."""
        with self._database() as database:
            database.execute("DELETE FROM releases WHERE id = ?", (entry.id,))

    def forget(self, start: str, reason: str) -> Forgotten:
        """Forget a release, as its publisher wishes; that, when and why is kept."""
        with self._database() as database:
            entry = _find(database, start)
            today = datetime.now(UTC).date().isoformat()
            gone = Forgotten(id=entry.id, created=entry.created, path=entry.path, day=today, reason=reason)
            database.execute("DELETE FROM releases WHERE id = ?", (entry.id,))
            database.execute("INSERT INTO forgotten VALUES (?, ?, ?, ?, ?)", astuple(gone))
        return gone

    def forgotten(self) -> tuple[Forgotten, ...]:
        """What was forgotten, in order."""
        names = [field.name for field in fields(Forgotten)]
        with self._database() as database:
            rows = database.execute(f"SELECT {', '.join(names)} FROM forgotten ORDER BY rowid").fetchall()
        return tuple(Forgotten(**dict(zip(names, row, strict=True))) for row in rows)

    def releases(self) -> tuple[Entry, ...]:
        """Every release, in the order in which they were published."""
        return self._select("TRUE ORDER BY rowid")

    def find(self, start: str) -> Entry:
        """The release whose id begins so."""
        with self._database() as database:
            return _find(database, start)

    def about(self, marks: Marks) -> tuple[tuple[Match, ...], frozenset[str]]:
        """The releases for publication that are about people of this table; the ids of all compared."""
        with self._database() as database:
            return _matches(database, marks)

    def expects_earlier(self, n_rows: int) -> bool:
        """Whether an earlier version may have recorded a table of so many rows by its own fingerprint."""
        with self._database() as database:
            (key,) = database.execute("SELECT key FROM ledger").fetchone()
            entries = _select(database, "for_publication AND source_fingerprint NOT GLOB ?", f"{BY_CELLS}*")
        return any(
            entry.sketch is None or _unpack(entry.sketch, bytes(key)).n_rows == n_rows for entry in entries
        )

    def series(self, series_id: str) -> tuple[Entry, ...]:
        """The releases of a series, in order."""
        return self._select("series_id = ? ORDER BY series_index", series_id)

    def _select(self, where: str, *values: str | int) -> tuple[Entry, ...]:
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
        path = system.data_folder() / "dalenius" / "ledger"
    return Ledger(path=path)


def open_ledgers(path: Path | None, *, own_only: bool = False) -> tuple[Ledger, ...]:
    """The policy's ledger and, if it is another file, the user's, who publishes by other policies too."""
    own, users = open_ledger(path), open_ledger(None)
    return (own,) if own_only or own.path.resolve() == users.path.resolve() else (own, users)


def _make_private(path: Path) -> None:
    """Only the owner may read the file, from before anything is in it; what is no ledger keeps its mode."""
    if path.is_dir():
        raise IsADirectoryError("it is a folder, and a ledger is a file")
    if path.exists():
        with path.open("rb") as file:
            start = file.read(len(_SQLITE))
        if start in (b"", _SQLITE):
            system.restrict(path)
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileExistsError):  # another run was faster
        os.close(system.create_private(path))


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
            database.execute(f"ALTER TABLE releases ADD COLUMN {column}")
        database.execute("UPDATE ledger SET version = ?", (_VERSION,))


def _select(database: sqlite3.Connection, where: str, *values: str | int) -> tuple[Entry, ...]:
    rows = database.execute(f"SELECT {', '.join(_COLUMNS)} FROM releases WHERE {where}", values).fetchall()
    return tuple(_entry(row) for row in rows)


def _find(database: sqlite3.Connection, start: str) -> Entry:
    found = _select(database, "substr(id, 1, ?) = ?", len(start), start) if start else ()
    if len(found) != 1:
        n_found = "no release has" if not found else f"{len(found)} releases have"
        raise InputError(
            f"{n_found} an id that begins with {start!r}", hint="`dalenius ledger list` shows the ids"
        )
    return found[0]


def _matches(
    database: sqlite3.Connection, marks: Marks, ignored: Collection[str] = ()
) -> tuple[tuple[Match, ...], frozenset[str]]:
    (key,) = database.execute("SELECT key FROM ledger").fetchone()
    found, entries = [], _select(database, "for_publication ORDER BY rowid")
    for entry in entries:
        if entry.id in ignored:
            continue
        overlap = None
        if entry.sketch is not None and marks.sketch is not None:
            overlap = find_overlap(marks.sketch, _unpack(entry.sketch, bytes(key)))
        if entry.source_fingerprint in (marks.source, marks.earlier):
            found.append(Match(entry=entry, how="records", overlap=overlap))
        elif marks.values is not None and entry.values_fingerprint == marks.values:
            found.append(Match(entry=entry, how="values", overlap=overlap))
        elif overlap is not None:
            found.append(Match(entry=entry, how="people", overlap=overlap))
    return tuple(found), frozenset(entry.id for entry in entries)


def _unpack(sketch: bytes, key: bytes) -> Sketch:
    try:
        return Sketch.unpack(sketch, key)
    except (struct.error, TypeError, ValueError) as error:  # what is read decides of what type the next is
        raise sqlite3.DatabaseError("a sketch in it is damaged") from error


def _refuse_unseen(database: sqlite3.Connection, marks: Marks, seen: Collection[str]) -> None:
    """In the transaction that records: of two runs at the same time the second one knows of the first."""
    if _matches(database, marks, seen)[0]:
        raise InputError(
            "another run has published this table meanwhile; nothing was published by this one",
            hint="the two releases would be independent draws; publish again to see what that would tell",
        )


def _entry(row: tuple[object, ...]) -> Entry:
    named = dict(zip(_COLUMNS, row, strict=True))
    return Entry(**{**named, "for_publication": bool(named["for_publication"])})  # type: ignore[arg-type]
