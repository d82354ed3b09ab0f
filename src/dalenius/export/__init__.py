"""A release in other people's tools: a DuckDB file, PostgreSQL, or CSV, with a view whose weights add up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dalenius.errors import InputError
from dalenius.export.staging import StagedExport, staged
from dalenius.export.targets import refuse_inside, write_csv, write_duckdb, write_postgres
from dalenius.mechanisms.base import VIEW
from dalenius.plain import plain_fields
from dalenius.release.folder import StoredRelease
from dalenius.sql import identifier
from dalenius.tables.postgres import SCHEMES, check_uri, is_uri, without_password

__all__ = ["Exported", "export_release"]


_TARGETS = "postgresql://user@host/database, a file that ends in .duckdb, or a folder for CSV"
_NO_FOLDERS = (".csv", ".db", ".json", ".parquet", ".sql", ".sqlite", ".tsv", ".txt", ".xlsx", ".zip")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What `export` did."""

    release: Path
    target: str
    """Without its password."""
    view: str | None
    """How SQL refers to the view; None in a folder of CSV."""
    tables: tuple[tuple[str, int], ...]
    """Name and number of rows."""

    def to_dict(self) -> dict[str, Any]:
        """As `export --json` prints it."""
        return {**plain_fields(self), "tables": [{"name": name, "rows": n} for name, n in self.tables]}


def export_release(
    release: StoredRelease,
    target: str | Path,
    *,
    name: str | None = None,
    columns: Sequence[str] = (),
    keep_formulas: bool = False,
) -> Exported:
    """Write a release's tables and its weighted view to a target.

    Args:
        release: The opened release.
        target: `postgresql://…`, a `.duckdb` file, or a folder for CSV.
        name: The schema in PostgreSQL; by default the release's name.
        columns: Those of the view; by default all.
        keep_formulas: In CSV, leave texts as they are that a spreadsheet would take for a formula.
    """
    text = str(target)
    if is_uri(text):
        return _to_postgres(release, text, name, columns)
    if name is not None:
        raise InputError(
            "--name is the schema in PostgreSQL; a file or folder has its own name", hint="leave it out"
        )
    path = Path(text)
    refuse_inside(path, release.path)
    if path.suffix.lower() in _NO_FOLDERS:
        raise InputError(
            f"cannot export to {path}: unknown ending {path.suffix!r}", hint=f"known: {_TARGETS}"
        )
    with staged(release, identifier, columns) as contents:
        if path.suffix.lower() == ".duckdb":
            write_duckdb(contents, path)
            return _describe(release, contents, text, VIEW)
        write_csv(contents, path, keeps_formulas=keep_formulas)
        return _describe(release, contents, text, None)


def _to_postgres(release: StoredRelease, uri: str, name: str | None, columns: Sequence[str]) -> Exported:
    scheme = uri.partition("://")[0]
    if scheme not in SCHEMES:
        raise InputError(f"cannot export to {scheme}://", hint=f"known: {_TARGETS}")
    shown = without_password(check_uri(uri))
    schema = schema_name(release.path) if name is None else name

    def place(table: str) -> str:
        return f"{identifier(schema)}.{identifier(table)}"

    with staged(release, place, columns) as contents:
        write_postgres(contents, uri, schema)
        return _describe(release, contents, shown, f"{identifier(schema)}.{VIEW}")


def schema_name(path: Path) -> str:
    """A schema's name that needs no quotes, from the release's.

    >>> schema_name(Path("out/Patients 2024.release"))
    'patients_2024'
    """
    plain = re.sub(r"\W+", "_", path.resolve().name.removesuffix(".release").lower()).strip("_")
    return plain if re.match(r"[^\W\d]", plain) else f"release_{plain}".rstrip("_")


def _describe(release: StoredRelease, contents: StagedExport, target: str, view: str | None) -> Exported:
    counted = tuple((table, contents.n_rows(table)) for table in contents.tables)
    return Exported(release=release.path, target=target, view=view, tables=counted)
