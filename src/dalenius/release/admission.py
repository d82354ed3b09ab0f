"""Nothing of a release is used that was not looked at: who it is from is not known.

In this order: the files are those that the manifest lists (SHA-256), what the manifest says can be read by
its mechanism, and the tables hold what it says. The tables are read whole, by a process of its own with
limits of memory and time: a file that crashes a Parquet reader, or unpacks to more than it is worth, is a
damaged release and nothing worse. Which tables a release has is decided by its manifest, through the hashes,
so a manifest that was looked at once, or that this process wrote, is known.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dalenius import system
from dalenius.errors import DaleniusError, ReleaseCorrupt
from dalenius.mechanisms import registry
from dalenius.mechanisms.config import config_of
from dalenius.promises import read_promise
from dalenius.release.folder import StoredRelease, list_malformed, refuse_changed
from dalenius.release.manifest import FILE_NAME, MOST_ROWS, NUMBERING, Manifest
from dalenius.release.signing import refuse_false_signature

_MEMORY = 3 * 2**30
_SECONDS = 60
_BYTES_PER_SECOND = 2**20
"""Slow even for a small machine: a file of a gigabyte may take a quarter of an hour."""
_ROWS_AT_ONCE = 2**16
_ROWS_PER_BYTE = 5_000
"""Of a file. Rows that say nothing pack well, and a table of nothing else is no release."""
_FEW_ROWS = 10_000_000
_VERIFY = "`dalenius verify` lists what is wrong"

_known: set[str] = set()
"""SHA-256 of manifests whose tables were looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableContents:
    """What the files of a table really hold."""

    name: str
    rows: int
    columns: tuple[tuple[str, str], ...]
    """Name and Arrow type, as they are in every file."""
    outside: tuple[str, ...]
    """Columns that count or number something, with a cell that is no whole number from 1 on."""


def admit(release: StoredRelease) -> None:
    """Refuse a release, or one of its series, that is not what its manifest says.

    Raises:
        ReleaseCorrupt: what is wrong.
    """
    refuse_changed(release)
    for one in release.parts:
        refuse_false_signature(one)
        fingerprint = _fingerprint(one)
        if fingerprint in _known:
            continue
        read_stated(one)
        for problem in find_problems(one.manifest, look_at_tables(one)):
            raise ReleaseCorrupt(f"{one.path} is damaged: {problem}", hint=_VERIFY)
        _known.add(fingerprint)


def trust(release: StoredRelease) -> None:
    """This process has just written the release, and checked it."""
    _known.add(_fingerprint(release))


def _fingerprint(release: StoredRelease) -> str:
    return hashlib.sha256((release.path / FILE_NAME).read_bytes()).hexdigest()


def read_stated(release: StoredRelease) -> None:
    """Let the mechanism, its promise and the stages before it read what the manifest says.

    Raises:
        ReleaseCorrupt: one of them cannot.
    """
    manifest = release.manifest
    if registry.package_of(release.mechanism, release.method) is None:
        raise ReleaseCorrupt(
            f"{release.path}: mechanism {release.mechanism!r} is unknown", hint="upgrade Dalenius"
        )
    try:
        _refuse_promise(manifest, read_promise(manifest.promise).kind)
        for room in (
            registry.find_room(release.mechanism, release.method, "published"),
            *registry.stage_rooms("published"),
        ):
            if room is not None:
                room.read(manifest)
    except ReleaseCorrupt as error:
        raise ReleaseCorrupt(f"{release.path} is damaged: {error.message}", hint=_VERIFY) from error
    except list_malformed(DaleniusError) as error:
        raise ReleaseCorrupt(
            f"{release.path} is damaged: its manifest does not describe a release of {release.mechanism} "
            f"({type(error).__name__})",
            hint=_VERIFY,
        ) from error


def _refuse_promise(manifest: Manifest, promised: str) -> None:
    """What a mechanism does not keep, and would not check, cannot be promised of it."""
    made = manifest.mechanism
    config = config_of(made.kind, made.method)
    if promised not in config.promises:
        raise ReleaseCorrupt(f"the manifest promises {promised}, which {made.kind} does not keep")
    if not config.stages and manifest.promise.get("suppression") is not None:
        raise ReleaseCorrupt(f"the manifest says that records were withheld, which {made.kind} never does")


def look_at_tables(release: StoredRelease) -> tuple[TableContents, ...]:
    """What the tables hold, read whole by a process of its own.

    Raises:
        ReleaseCorrupt: they cannot be read, or not within the limits.
    """
    work = partial(_look, release.path, release.manifest)
    files = [path for entry in release.manifest.tables for path in release.files(entry.name)]
    n_bytes = sum(path.stat().st_size for path in files)
    told = system.run_apart(work, memory=_MEMORY, seconds=_SECONDS + n_bytes // _BYTES_PER_SECOND)
    if told is None:
        raise ReleaseCorrupt(
            f"{release.path} is damaged: reading its tables took too much memory or time, or crashed",
            hint="get the release again from whoever published it; nothing was read in this process",
        )
    found = json.loads(told)
    if isinstance(found, str):
        raise ReleaseCorrupt(f"{release.path} is damaged: {found}", hint=_VERIFY)
    return tuple(
        TableContents(
            name=table["name"],
            rows=table["rows"],
            columns=tuple((name, kind) for name, kind in table["columns"]),
            outside=tuple(table["outside"]),
        )
        for table in found
    )


def _look(folder: Path, manifest: Manifest) -> bytes:
    """In the other process: all tables, or a sentence on what cannot be read."""
    found: Any = []
    try:
        for entry in manifest.tables:
            files = [folder / file.file for file in entry.files]
            found.append({"name": entry.name, **_look_at(entry.name, files)})
    except ReleaseCorrupt as error:
        found = error.message
    except list_malformed(OSError) as error:
        found = f"a file of a table cannot be read ({type(error).__name__})"
    return json.dumps(found).encode()


def _most_rows(n_bytes: int) -> int:
    """How many rows a file of this size is believed to hold (docs/release.md)."""
    return max(_FEW_ROWS, _ROWS_PER_BYTE * n_bytes)


def _look_at(table: str, files: list[Path]) -> dict[str, Any]:
    import pyarrow.parquet as pq  # who publishes has written the tables, and does not read them so

    rows, columns = 0, None
    outside: set[str] = set()
    for path in files:
        file = pq.ParquetFile(path)
        schema = file.schema_arrow
        described = [(field.name, str(field.type)) for field in schema]
        if columns not in (None, described):
            raise ReleaseCorrupt(f"the files of table {table!r} have different columns")
        columns = described
        stated = file.metadata.num_rows
        if stated > _most_rows(path.stat().st_size):
            raise ReleaseCorrupt(f"{path.name} says that it holds {stated:,} rows, which it cannot")
        counted = 0
        for batch in file.iter_batches(_ROWS_AT_ONCE, use_threads=False):
            batch.validate(full=True)
            counted += batch.num_rows
            outside |= {
                name
                for name, cells in zip(schema.names, batch.columns, strict=True)
                if name in NUMBERING and not _counts(cells)
            }
        if counted != stated:
            raise ReleaseCorrupt(f"{path.name} does not hold as many rows as it says")
        rows += counted
    return {"rows": rows, "columns": columns, "outside": sorted(outside)}


def _counts(cells: pa.Array) -> bool:
    """Whether all cells are whole numbers from 1 on."""
    if not pa.types.is_integer(cells.type) or cells.null_count:
        return False
    if not len(cells):
        return True
    ends = pc.min_max(cells)
    return bool(ends["min"].as_py() >= 1 and ends["max"].as_py() <= MOST_ROWS)


def find_problems(manifest: Manifest, contents: tuple[TableContents, ...]) -> Iterator[str]:
    """What the tables hold and the manifest does not say, a sentence each."""
    yield from wrong_rows(manifest, contents)
    yield from wrong_columns(manifest, contents)
    for table in contents:
        for name in table.outside:
            yield f"{name!r} of table {table.name!r} is not a whole number from 1 on in every row"


def wrong_rows(manifest: Manifest, contents: tuple[TableContents, ...]) -> Iterator[str]:
    """Tables with another number of rows than the manifest states."""
    stated = {entry.name: entry.rows for entry in manifest.tables}
    wrong = [table.name for table in contents if table.rows != stated[table.name]]
    if wrong:
        yield f"the manifest states other row counts for {', '.join(wrong)}"


def wrong_columns(manifest: Manifest, contents: tuple[TableContents, ...]) -> Iterator[str]:
    """Columns that the manifest does not describe, or as another type, or that are in another table."""
    listed = {column.name: kind_of(column.type) for column in manifest.columns}
    found = {name: kind_of(kind) for table in contents for name, kind in table.columns}
    wrong = [name for name in listed if listed[name] != found.get(name)]
    wrong += [name for name in found if name not in (*listed, *NUMBERING)]
    wrong += [name for name in NUMBERING if found.get(name, "int") != "int"]
    if wrong:
        yield f"other columns or types than in the manifest: {', '.join(map(ascii, wrong))}"
        return
    room = registry.find_room(manifest.mechanism.kind, manifest.mechanism.method, "published")
    if room is None or not hasattr(room, "tables"):
        return
    expected: dict[str, tuple[str, ...]] = room.tables(manifest)
    held = {table.name: [name for name, _ in table.columns] for table in contents}
    if {name: sorted(columns) for name, columns in expected.items()} != {
        name: sorted(columns) for name, columns in held.items()
    }:
        yield f"the tables are not those of {manifest.mechanism.kind}, or do not have its columns"


def kind_of(arrow_type: str) -> str:
    """What is left of a type's name however it is stored.

    >>> kind_of("large_string"), kind_of("uint8"), kind_of("timestamp[us, tz=UTC]"), kind_of("double")
    ('string', 'int', 'timestamp', 'float')
    """
    plain = arrow_type.removeprefix("dictionary<values=").removeprefix("large_").removeprefix("u")
    kind = re.match(r"[a-z]*", plain)[0]  # type: ignore[index]
    return {"double": "float", "halffloat": "float"}.get(kind, kind)
