"""A release's folder: opening it, writing it, and whether its files are the ones that were published.

An open release has its manifest, and its tables as views of a closed-off database. A new one is there whole
or not at all: all is written into a hidden folder beside its final place, which is renamed when complete.
A run that was killed leaves only such a folder, which no reader opens and the next run removes.
What it says of itself is the manifest of a draft whose tables have been written.
"""

from __future__ import annotations

import datetime
import glob
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from dalenius import system
from dalenius.errors import DaleniusError, EngineError, InputError, ReleaseCorrupt
from dalenius.files import folder_beside
from dalenius.mechanisms.base import Check, Draft
from dalenius.prefetch import map_parallel
from dalenius.release.manifest import (
    FILE_NAME,
    FORMAT,
    FORMAT_VERSION,
    SIGNATURE_NAME,
    Column,
    Made,
    Manifest,
    Rows,
    SeriesEntry,
    TableEntry,
    read_manifest,
)
from dalenius.sql import connect_shared, identifier, scan_parquet

if TYPE_CHECKING:  # what is published is checked without what reads a policy, and read without a database
    import duckdb

    from dalenius.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredRelease:
    """A release folder whose manifest has been read."""

    path: Path
    manifest: Manifest
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
        return self.manifest.mechanism.kind

    @property
    def parts(self) -> tuple[StoredRelease, ...]:
        """The releases of its series that were opened, itself last."""
        return (*self.earlier, self)

    @property
    def series(self) -> SeriesEntry:
        """Its place in its series."""
        if self.manifest.series is None:
            raise ReleaseCorrupt(f"{self.path} does not belong to a series")
        return self.manifest.series

    @property
    def is_several_batches(self) -> bool:
        """Whether it was opened with earlier batches, which are of other people."""
        return bool(self.earlier) and self.series.kind == "batches"

    @property
    def method(self) -> str:
        """The method of the mechanism."""
        return self.manifest.mechanism.method

    def columns(self, role: str) -> tuple[str, ...]:
        """The published columns of a role, `quasi` or `sensitive`."""
        return self.manifest.columns_of(role)

    def files(self, table: str) -> list[Path]:
        """The Parquet files of a table."""
        entry = self.manifest.table(table)
        if entry is None:
            raise ReleaseCorrupt(f"{self.path}: the manifest lists no table {table!r}")
        return [self.path / file.file for file in entry.files]

    def read(self, table: str, columns: Sequence[str]) -> pa.Table:
        """Some columns of a table, from the bytes of its files alone: their folders' names mean nothing."""
        import pyarrow.parquet as pq  # who publishes writes, and does not read so

        try:
            files = [pq.ParquetFile(path) for path in self.files(table)]
            return pa.concat_tables([file.read(list(columns)).select(list(columns)) for file in files])
        except (OSError, pa.ArrowException, KeyError, ValueError) as error:
            raise ReleaseCorrupt(f"{self.path}: table {table!r} cannot be read") from error

    def column_names(self, table: str) -> list[str]:
        """The columns of a table, as its first file has them."""
        import pyarrow.parquet as pq

        names: list[str] = pq.read_schema(self.files(table)[0]).names
        return names

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The same, a few rows at a time."""
        import pyarrow.parquet as pq

        try:
            for path in self.files(table):
                batches = pq.ParquetFile(path).iter_batches(_ROWS_AT_ONCE, columns=list(columns))
                yield from (batch.select(list(columns)) for batch in batches)
        except (OSError, pa.ArrowException, KeyError, ValueError) as error:
            raise ReleaseCorrupt(f"{self.path}: table {table!r} cannot be read") from error

    def connect(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyConnection:
        """A connection on which every table of the release is a view: this one, else one for reading only."""
        import duckdb

        connection = connection or connect_shared()
        for entry in self.manifest.tables:
            scan = scan_parquet(map(str, self.files(entry.name)))
            try:
                connection.execute(f"CREATE TEMP VIEW {identifier(entry.name)} AS FROM {scan}")
            except duckdb.Error as error:
                raise ReleaseCorrupt(f"{self.path}: table {entry.name!r} cannot be read") from error
        return connection


_ROWS_AT_ONCE = 2**18
SPILL = ".spill"
_DAY = 24 * 60 * 60


@contextmanager
def new_release(target: Path) -> Iterator[Path]:
    """A folder to fill; it becomes `target` when the block ends well, and vanishes when it does not."""
    refuse_existing(target)
    if not target.parent.is_dir():
        raise InputError(
            f"folder {target.parent} does not exist", hint="make it, or change `release` in the policy"
        )
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(folder_beside(target))
            (folder / SPILL).mkdir()
        except OSError as error:
            raise _cannot_write(target, error) from error
        yield folder
        shutil.rmtree(folder / SPILL)
        _seal(folder, target)


def flush(folder: Path) -> None:
    """Have the disk write what is in a new release so far: the end of it waits for less then."""
    for path in folder.iterdir():
        if path.is_file():
            system.sync(path)


def _cannot_write(target: Path, error: OSError) -> EngineError:
    return EngineError(f"cannot write beside {target}: {error.strerror or error}")


def draft_of(release: Path) -> Path:
    """Where the rehearsal of a release goes.

    >>> draft_of(Path("out/patients.release")).name
    'patients.release.draft'
    """
    return release.with_name(f"{release.name}.draft")


@contextmanager
def earlier_draft_aside(target: Path) -> Iterator[None]:
    """An earlier draft makes place for what is written, and comes back if nothing is."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.before-*"):  # by a killed run
        shutil.rmtree(left, ignore_errors=True)
    if not target.exists():
        yield
        return
    _refuse_other_than_draft(target)
    aside = target.with_name(f".{target.name}.before-{secrets.token_hex(8)}")
    system.rename(target, aside)
    try:
        yield
    except BaseException:
        if not target.exists():
            system.rename(aside, target)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _refuse_other_than_draft(target: Path) -> None:
    try:
        is_draft = read_manifest(target).draft is True
    except DaleniusError:
        is_draft = False
    if not is_draft:
        raise InputError(
            f"{target} exists already and is no draft, so that it is not replaced",
            hint="move it away; a draft is written beside the release, with .draft at the end of its name",
        )


def refuse_existing(target: Path) -> None:
    """A release is never overwritten: what was published stays known."""
    if target.exists():
        raise InputError(
            f"release {target} exists already",
            hint="choose another `release` in the policy, or move the old one away; to try a policy out, "
            "`dalenius publish --draft` writes beside it",
        )


def _seal(folder: Path, target: Path) -> None:
    today = int(time.time()) // _DAY * _DAY
    paths = [*folder.rglob("*"), folder]
    for path in paths:
        os.utime(path, (today, today))  # copies keep it, and a release tells the day it was made, never finer
    for _ in map_parallel(system.sync, paths):  # what waits for the disk together waits once
        pass
    try:
        system.rename(folder, target)
    except OSError:
        refuse_existing(target)  # another run was faster
        raise
    with suppress(OSError):  # it is there: nothing that fails now may be told as if it were not
        system.share(target)  # not before: a killed run leaves nothing that others can read
        system.sync(target.parent)


def list_malformed(*besides: type[Exception]) -> tuple[type[Exception], ...]:
    """What may come of reading tables and manifests that no mechanism made, and what else is named."""
    import duckdb

    return (
        *besides,
        duckdb.Error,
        pa.ArrowException,
        ArithmeticError,
        AssertionError,
        LookupError,
        MemoryError,
        RecursionError,
        RuntimeError,
        TypeError,
        ValueError,
    )


def check_files(release: StoredRelease) -> Check:
    """Every file that the manifest lists is there, unchanged, and no other is."""
    listed = _list_files(release)
    present = {
        path.relative_to(release.path).as_posix() for path in release.path.rglob("*") if path.is_file()
    }
    own = {FILE_NAME} if release.manifest.signer is None else {FILE_NAME, SIGNATURE_NAME}
    extra = sorted(present - set(listed) - own)
    problems = [*changed_files(release), *(f"{name} is not in the manifest" for name in extra)]
    n_files = f"{len(listed)} files match" if len(listed) > 1 else f"{len(listed)} file matches"
    return Check.of("files", "; ".join(problems), f"{n_files} the SHA-256 of the manifest")


def refuse_changed(release: StoredRelease) -> None:
    """Only what was published can be asked; a file beside it does no harm."""
    for one in release.parts:
        changes = changed_files(one)
        if changes:
            raise ReleaseCorrupt(
                f"{one.path} is damaged: {'; '.join(changes)}", hint="`dalenius verify` lists what is wrong"
            )


def changed_files(release: StoredRelease) -> list[str]:
    """What is missing or was changed, a sentence each."""
    listed = sorted(_list_files(release).items())
    missing = [name for name, _ in listed if not (release.path / name).is_file()]
    changed = [
        name for name, hashed in listed if name not in missing and sha256(release.path / name) != hashed
    ]
    return [
        *(f"{name} is missing" for name in missing),
        *(f"{name} is not the file that was published (SHA-256 differs)" for name in changed),
    ]


def _list_files(release: StoredRelease) -> dict[str, str]:
    return {file.file: file.sha256 for table in release.manifest.tables for file in table.files}


def sha256(path: Path) -> str:
    """The file's SHA-256, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def build_manifest(
    policy: Policy,
    draft: Draft,
    schema: pa.Schema,
    tables: Sequence[TableEntry],
    *,
    is_seeded: bool,
    series: SeriesEntry | None = None,
    is_draft: bool = False,
    signer: str | None = None,
) -> Manifest:
    """Everything that is public about a release; no seed, no private count, no path, no time of day."""
    statement = draft.statement
    n_published = tables[0].rows if draft.n_published is None else draft.n_published
    return Manifest(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        id=secrets.token_hex(16),
        created=datetime.datetime.now(datetime.UTC).date().isoformat(),
        for_publication=not is_seeded,
        mechanism=Made(kind=policy.mechanism.kind, method=draft.method),
        promise=statement.promise,
        assumes=statement.assumes,
        not_covered=statement.not_covered,
        disclosed=statement.disclosed,
        parameters=statement.parameters,
        columns=describe_columns(policy, schema),
        rows=Rows(published=n_published, suppressed=draft.n_suppressed),
        tables=tuple(tables),
        series=series,
        outright=draft.outright,
        draft=is_draft or None,
        k=policy.columns.k,
        signer=signer,
    )


def describe_columns(policy: Policy, schema: pa.Schema) -> tuple[Column, ...]:
    """Name, role and type of what is published."""
    roles = dict.fromkeys(policy.columns.quasi, "quasi") | dict.fromkeys(
        policy.columns.sensitive, "sensitive"
    )
    return tuple(
        Column(name=name, role=role, type=str(schema.field(name).type)) for name, role in roles.items()
    )
