"""The original beside a release: what its true counts are. Whatever is made from it is private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from dalenius.auditing import read_original
from dalenius.engines.base import Progress, silent
from dalenius.errors import InputError
from dalenius.pages.words import Key, key_of, words_of
from dalenius.release.folder import StoredRelease
from dalenius.sql import connect, identifier


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Truth:
    """The original's published columns, with the types that the release has."""

    table: pa.Table
    connection: duckdb.DuckDBPyConnection
    """In which the records that the release is about are the view `t`."""

    @classmethod
    def load(cls, original: Any, release: StoredRelease, progress: Progress = silent) -> Truth:
        """Read the original: a table, a file, or the policy (file) that published it.

        Raises:
            InputError: it is not the table that was published.
        """
        _refuse_batches(release)
        table = read_original(original, release, progress)
        _refuse_other_size(table, release)
        connection = connect()
        connection.register("original", table)
        cast = ", ".join(
            f"CAST({identifier(name)} AS {kind}) AS {identifier(name)}"
            for name, kind in _types(release).items()
        )
        distinct = "" if words_of(release).counts_repeats(release) else "DISTINCT "
        try:
            connection.execute(f"CREATE TEMP TABLE t AS SELECT {distinct}{cast} FROM original")
        except duckdb.ConversionException:
            raise InputError(
                "the original has other types than the release",
                hint="if the policy recodes it, give the policy file as the original",
            ) from None
        return cls(table=table, connection=connection)

    def count(self, sql: str) -> dict[Key, float]:
        """The true answer of a question with one aggregate, which comes last, by its groups."""
        rows = self.connection.execute(sql).fetchall()
        return {key_of(row[:-1]): float(row[-1] or 0) for row in rows}


def _types(release: StoredRelease) -> dict[str, str]:
    """The published columns and their types in the release."""
    wanted = (*release.columns("quasi"), *release.columns("sensitive"))
    found: dict[str, str] = {}
    with release.connect() as connection:
        for entry in release.manifest.tables:
            rows = connection.execute(f"DESCRIBE {identifier(entry.name)}").fetchall()
            found |= {name: kind for name, kind, *_ in rows}
    return {name: found[name] for name in wanted}


def _refuse_batches(release: StoredRelease) -> None:
    if release.is_several_batches:
        raise InputError(
            "a series of batches has an original for every batch",
            hint="report on one of them, e.g. dalenius report SERIES/batch-1 --original FIRST_DAY.csv",
        )


def _refuse_other_size(table: pa.Table, release: StoredRelease) -> None:
    rows = release.manifest.rows
    if not words_of(release).rows_are_people or rows.published is None or rows.suppressed is None:
        return
    expected = rows.published + rows.suppressed
    if table.num_rows != expected:
        raise InputError(
            f"the original has {table.num_rows:,} rows, and the release was made from {expected:,}",
            hint="give the table that was published, or the policy that published it",
        )
