"""The manifest: a release's description of itself, as a value. Nobody else reads or writes `manifest.json`.

Compatibility: fields are never removed and never change their meaning; new ones are optional. A reader
refuses a `format_version` above its own, and keeps the fields that it does not know. The JSON Schema beside
this file is part of the package.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import Any, Self

from dalenius.errors import InputError, ReleaseCorrupt
from dalenius.plain import misfits, plain_fields

FORMAT = "dalenius-release"
FORMAT_VERSION = 1
FILE_NAME = "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
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
class Made(_Entry):
    """By what a release was made."""

    kind: str
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(_Entry):
    """A published column."""

    name: str
    role: str
    """`quasi` or `sensitive`."""
    type: str
    """Its Arrow type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows(_Entry):
    """How many rows of the source were published and withheld; None: not known, or not to be told."""

    published: int | None
    suppressed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry(_Entry):
    """A file of a release."""

    file: str
    """Its path in the release's folder."""
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry(_Entry):
    """A table of a release, as it was written."""

    name: str
    files: tuple[FileEntry, ...]
    rows: int

    @classmethod
    def _read(cls, name: str, data: Any) -> Any:
        return tuple(map(FileEntry.from_dict, data)) if name == "files" else data


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesEntry(_Entry):
    """A release's place in its series."""

    id: str
    kind: str
    """`views` or `batches`."""
    index: int
    """From 1."""
    of: int | None
    """How many releases the series may have; None: any number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(_Entry):
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
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ReleaseCorrupt(f"{path} is not JSON: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ReleaseCorrupt(f"{path} is not the manifest of a release")
    version = data.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ReleaseCorrupt(
            f"{path} has format version {version}; this Dalenius reads up to {FORMAT_VERSION}",
            hint="upgrade Dalenius",
        )
    errors = schema_errors(data)
    if errors:
        raise ReleaseCorrupt(f"{path} does not fit its schema: {errors[0]}")
    return Manifest.from_dict(data)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, last of all files."""
    text = json.dumps(manifest.to_dict(), indent=2, ensure_ascii=False)
    (folder / FILE_NAME).write_text(text + "\n", encoding="utf-8")
