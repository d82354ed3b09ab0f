"""The original of a release: a table, or the policy that published it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from dalenius.engines.base import Progress, silent
from dalenius.engines.local.engine import LocalEngine
from dalenius.errors import InputError, SourceError, did_you_mean
from dalenius.policy import Policy
from dalenius.release.folder import StoredRelease
from dalenius.sql import connect, identifiers
from dalenius.tables.source import Source, open_source


def read_original(original: Any, release: StoredRelease, progress: Progress = silent) -> pa.Table:
    """The published columns of the original: a policy (file), whose recoding is applied, or a table."""
    if isinstance(original, str | Path) and str(original).endswith(".toml"):
        original = Policy.from_file(original)
    names = (*release.columns("quasi"), *release.columns("sensitive"))
    if isinstance(original, Policy):
        _refuse_missing(original.source, original.columns.published, names)
        with LocalEngine().open(original, None, progress) as scan:
            return scan.source.table().select(list(names))
    source = open_source(original)
    _refuse_missing(source, source.column_names, names)
    with connect() as connection:
        table = connection.sql(f"SELECT {identifiers(names)} FROM {source.scan(connection)}").to_arrow_table()
    if not table.num_rows:
        raise SourceError(f"{source.name} has no rows", hint="give the table that was published")
    return table


def _refuse_missing(source: Source, has: Sequence[str], names: Sequence[str]) -> None:
    for name in names:
        if name not in has:
            raise InputError(
                f"{source.name} has no column {name!r}, which the release shows; {did_you_mean(name, has)}"
            )
