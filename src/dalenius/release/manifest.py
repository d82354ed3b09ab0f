"""The manifest: a release's description of itself, as a value. Nobody else reads or writes `manifest.json`.

Compatibility: fields are never removed and never change their meaning; new ones are optional. A reader
refuses a `format_version` above its own, and keeps the fields that it does not know. The JSON Schema beside
this file is part of the package.
"""

from __future__ import annotations

import datetime
import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import Any, Self

from dalenius.errors import InputError, ReleaseCorrupt
from dalenius.plain import misfits, plain_fields

FORMAT = "dalenius-release"
FORMAT_VERSION = 1
FILE_NAME = "manifest.json"
SIGNATURE_NAME = "manifest.sig"
MOST_ROWS = 2**53
"""Of any table or part of it: what every reader of JSON has as a whole number."""
MOST_VIEWS = 1_000
_MOST_BYTES = 2**27
_DEEPEST = 40
_LONGEST_TEXT = 2**20
"""No mechanism writes as much; whoever does wants to exhaust its readers."""
NUMBERING = ("bucket", "copy", "count", "part")
"""Columns of whole numbers from 1 on, which mechanisms add."""
RESERVED_NAMES = (*NUMBERING, "weight")
"""What no column of a source may be called; old releases have columns called `weight`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _CheckedEntry:
    """An object of the manifest: its fields are called and ordered as in the file."""

    other: Mapping[str, Any] = field(default_factory=dict, metadata={"json": None})
    """Fields that only newer versions know."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read an object that fits the schema."""
        names = {each.name for each in fields(cls)} - {"other"}
        known = {name: cls._read(name, data[name]) for name in data if name in names}
        return cls(**known, other={name: data[name] for name in data if name not in names})

    @classmethod
    def _read(cls, name: str, data: Any) -> Any:  # noqa: ARG003  (for those that hold other entries)
        """A field's value."""
        return data

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; a field that older versions did not write is left out where it was not there."""
        written = plain_fields(self) | dict(self.other)
        added = [each.name for each in fields(self) if each.default is None]
        return {name: value for name, value in written.items() if name not in added or value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made(_CheckedEntry):
    """By what a release was made."""

    kind: str
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(_CheckedEntry):
    """A published column."""

    name: str
    role: str
    """`quasi` or `sensitive`."""
    type: str
    """Its Arrow type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows(_CheckedEntry):
    """How many rows of the source were published and withheld; None: not known, or not to be told."""

    published: int | None
    suppressed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry(_CheckedEntry):
    """A file of a release."""

    file: str
    """Its path in the release's folder."""
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry(_CheckedEntry):
    """A table of a release, as it was written."""

    name: str
    files: tuple[FileEntry, ...]
    rows: int

    @classmethod
    def _read(cls, name: str, data: Any) -> Any:
        return tuple(map(FileEntry.from_dict, data)) if name == "files" else data


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesEntry(_CheckedEntry):
    """A release's place in its series."""

    id: str
    kind: str
    """`views`, `batches` or `dates`."""
    index: int
    """From 1."""
    of: int | None
    """How many releases the series may have; None: any number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(_CheckedEntry):
    """Everything that is public about a release, beside its tables."""

    format: str
    format_version: int
    id: str
    created: str
    """The day, never finer."""
    for_publication: bool
    """False if a seed was used: whoever knows it can undo the release."""
    mechanism: Made
    promise: Mapping[str, Any]
    """The promise as data; `promises.read_promise` gives its value."""
    assumes: tuple[str, ...]
    not_covered: tuple[str, ...]
    disclosed: tuple[str, ...]
    parameters: Mapping[str, Any]
    """The mechanism's own; its `published` room reads them."""
    columns: tuple[Column, ...]
    rows: Rows
    tables: tuple[TableEntry, ...]
    series: SeriesEntry | None
    outright: int | None = None
    """How many people's sensitive value the tables tell for certain; None: an older release, which did not
    say."""
    draft: bool | None = None
    """Whether it is a rehearsal, outside the ledger, which the next one may replace; None: it is none."""
    k: int | None = None
    """With so many records every published one shares its quasi-identifiers, itself among them; None: that
    was no condition."""
    signer: str | None = None
    """The Ed25519 public key of whoever signed this manifest, in hexadecimal; None: nobody did."""

    @classmethod
    def _read(cls, name: str, data: Any) -> Any:
        match name:
            case "mechanism":
                return Made.from_dict(data)
            case "rows":
                return Rows.from_dict(data)
            case "columns":
                return tuple(map(Column.from_dict, data))
            case "tables":
                return tuple(map(TableEntry.from_dict, data))
            case "series":
                return SeriesEntry.from_dict(data) if data else None
            case "assumes" | "not_covered" | "disclosed":
                return tuple(data)
        return data

    def columns_of(self, role: str) -> tuple[str, ...]:
        """The names of the published columns of a role, `quasi` or `sensitive`."""
        return tuple(column.name for column in self.columns if column.role == role)

    @property
    def index(self) -> int:
        """Which release of its series it is, from 1; the only one is the first."""
        return 1 if self.series is None else self.series.index

    def table(self, name: str) -> TableEntry | None:
        """The table of that name, if there is one."""
        return next((entry for entry in self.tables if entry.name == name), None)


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON Schema of manifests."""
    text = resources.files("dalenius.release").joinpath("manifest.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def schema_errors(manifest: Any) -> list[str]:
    """What the JSON Schema finds wrong, each with its place."""
    return list(misfits(manifest, schema()))


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a release folder."""
    path = folder / FILE_NAME
    if not folder.exists():
        raise InputError(f"{folder} is not a release: it does not exist", hint="`dalenius publish` makes one")
    if not folder.is_dir() or not path.is_file():
        raise InputError(
            f"{folder} is not a release: it has no {FILE_NAME}", hint="`dalenius publish` makes one"
        )
    data = _load(path)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ReleaseCorrupt(f"{path} is not the manifest of a release")
    version = data.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        shown = version if isinstance(version, int | float) else "none that is a number"
        raise ReleaseCorrupt(
            f"{path} has format version {shown}; this Dalenius reads up to {FORMAT_VERSION}",
            hint="upgrade Dalenius",
        )
    errors = schema_errors(data)
    if errors:
        raise ReleaseCorrupt(f"{path} does not fit its schema: {_shorten(errors[0])}")
    manifest = Manifest.from_dict(data)
    for problem in _problems(manifest):
        raise ReleaseCorrupt(f"{path}: {problem}")
    return manifest


def _load(path: Path) -> Any:
    """The JSON of a file, if it is no larger, deeper or stranger than a mechanism would write it."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ReleaseCorrupt(f"{path} has more than {_MOST_BYTES >> 20} MiB")
        text = path.read_text(encoding="utf-8")
        data = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except RecursionError as error:
        raise ReleaseCorrupt(f"{path} is nested too deeply") from error
    except ValueError as error:
        raise ReleaseCorrupt(f"{path} is not JSON: {_shorten(str(error))}") from error
    problem = _strange(data)
    if problem:
        raise ReleaseCorrupt(f"{path} {problem}")
    return data


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _strange(data: Any) -> str | None:
    """What no mechanism writes: nesting, long texts, halves of characters."""
    level, depth = [data], 0
    while level:
        if depth > _DEEPEST:
            return "is nested too deeply"
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below += value.keys()
                below += value.values()
            elif isinstance(value, list):
                below += value
            elif isinstance(value, str):
                if len(value) > _LONGEST_TEXT:
                    return f"has a text of {len(value):,} characters"
                if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
                    return "has a text with half a character (a lone surrogate)"
        level, depth = below, depth + 1
    return None


def _shorten(message: str) -> str:
    shown = message.encode("unicode_escape").decode("ascii") if not message.isprintable() else message
    return shown if len(shown) <= 200 else f"{shown[:200]}…"


def _problems(manifest: Manifest) -> Iterator[str]:
    """What fits the schema and cannot be."""
    columns = [column.name for column in manifest.columns]
    tables = [table.name for table in manifest.tables]
    files = [file.file for table in manifest.tables for file in table.files]
    if not columns or not all(name.strip() for name in columns):
        yield "a column has no name, or there is none"
    for what, names in (("columns", columns), ("tables", tables), ("files", files)):
        if len({name.casefold() for name in names}) != len(names):
            yield f"two {what} have the same name"
    taken = [name for name in columns if name.casefold() in NUMBERING]
    if taken:
        yield f"a column is called {taken[0]!r}, which is no name for one"
    if not all(re.fullmatch(r"[a-z][a-z0-9_]{0,60}", name) for name in tables):
        yield "a table has a name that no mechanism gives"
    if not all(re.fullmatch(r"[\w\-][\w\-.]{0,200}(/[\w\-][\w\-.]{0,200})?", name) for name in files):
        yield "a file has a name that no engine gives"
    if not all(table.files for table in manifest.tables):
        yield "a table has no file"
    if any(table.rows > MOST_ROWS for table in manifest.tables):
        yield "a table has more rows than there can be"
    if any((n or 0) > MOST_ROWS for n in (manifest.rows.published, manifest.rows.suppressed)):
        yield "it counts more records than there can be"
    yield from _problems_of_series(manifest)
    try:
        datetime.date.fromisoformat(manifest.created)
    except ValueError:
        yield "the day on which it was made is none"


def _problems_of_series(manifest: Manifest) -> Iterator[str]:
    series = manifest.series
    if series is None:
        return
    if series.kind not in ("views", "batches", "dates"):
        yield "its series is of a kind that there is not"
    if not 1 <= series.index <= MOST_ROWS or (series.of is not None and not series.index <= series.of):
        yield f"it is number {series.index} of a series of {series.of}"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, last of all files."""
    text = json.dumps(manifest.to_dict(), indent=2, ensure_ascii=False) + "\n"
    if len(text.encode()) > _MOST_BYTES:
        raise InputError(
            f"the manifest would have more than {_MOST_BYTES >> 20} MiB, which no reader opens",
            hint="recode the columns whose values it lists, so that they have fewer",
        )
    (folder / FILE_NAME).write_text(text, encoding="utf-8")
