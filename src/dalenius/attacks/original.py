"""The original table beside a release, with its people's records found again by their quasi-identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dalenius.engines.base import Progress, silent
from dalenius.engines.local import LocalEngine
from dalenius.errors import InputError, SourceError, did_you_mean
from dalenius.policy import Policy
from dalenius.release.reader import StoredRelease
from dalenius.sql import connect, identifiers
from dalenius.table import Source, open_source

Ints = NDArray[np.int64]


def read_original(original: Any, release: StoredRelease, progress: Progress = silent) -> pa.Table:
    """The published columns of the original: a policy (file), whose recoding is applied, or a table."""
    if isinstance(original, str | Path) and str(original).endswith(".toml"):
        original = Policy.from_file(original)
    names = (*release.columns("quasi"), *release.columns("sensitive"))
    if isinstance(original, Policy):
        _refuse_missing(original.source, original.columns.published, names)
        with LocalEngine().open(original, None, progress) as scan:
            return scan.table().select(list(names))
    source = open_source(original)
    _refuse_missing(source, source.column_names, names)
    with connect() as connection:
        table = connection.sql(f"SELECT {identifiers(names)} FROM {source.scan(connection)}").to_arrow_table()
    if not table.num_rows:
        raise SourceError(f"{source.name} has no rows", hint="give the table that was published")
    return table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coded:
    """One column of several tables, in common codes."""

    codes: tuple[Ints, ...]
    """Per table."""
    cells: pa.Array
    """The cell of each code."""

    @property
    def n_values(self) -> int:
        """How many different cells there are."""
        return len(self.cells)


def code_column(name: str, tables: Sequence[pa.Table]) -> Coded:
    """Codes of a column that all tables have; its type is that of the last table, the published one."""
    kind = tables[-1].schema.field(name).type
    try:
        pieces = [table.column(name).cast(kind).combine_chunks() for table in tables]
    except pa.ArrowException as error:
        raise InputError(
            f"column {name!r} of the original is {tables[0].schema.field(name).type}, the release has {kind}",
            hint="if the policy recodes it, give the policy file as the original",
        ) from error
    encoded = pa.chunked_array(pieces, kind).combine_chunks().dictionary_encode(null_encoding="encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum([len(piece) for piece in pieces])[:-1]
    return Coded(codes=tuple(np.split(codes, ends)), cells=encoded.dictionary)


def combine(columns: Sequence[Coded]) -> tuple[Ints, ...]:
    """One number per row and table: equal if and only if all columns are equal, and counting from 0."""
    lengths = [len(codes) for codes in columns[0].codes]
    joined = np.zeros(sum(lengths), dtype=np.int64)
    for column in columns:
        joined, _ = number(joined * column.n_values + np.concatenate(column.codes))
    return tuple(np.split(joined, np.cumsum(lengths)[:-1]))


def number(keys: Ints) -> tuple[Ints, Ints]:
    """Numbers from 0, equal where keys are, in the order in which keys come first; and each number's key.

    >>> [found.tolist() for found in number(np.array([7, 3, 7]))]
    [[0, 1, 0], [7, 3]]
    """
    encoded = pa.array(keys).dictionary_encode()  # by hashing: several times faster than sorting
    numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers, encoded.dictionary.to_numpy(zero_copy_only=False)


def known_values(profile: Ints, value: Ints, n_profiles: int) -> Ints:
    """The value that all people of a profile have; −1 where they differ, or there are none.

    >>> known_values(np.array([0, 0, 1, 1]), np.array([5, 5, 5, 6]), 3).tolist()
    [5, -1, -1]
    """
    least = np.full(n_profiles, np.iinfo(np.int64).max)
    most = np.full(n_profiles, -1)
    np.minimum.at(least, profile, value)
    np.maximum.at(most, profile, value)
    return np.where(least == most, most, -1)


def _refuse_missing(source: Source, has: Sequence[str], names: Sequence[str]) -> None:
    for name in names:
        if name not in has:
            raise InputError(
                f"{source.name} has no column {name!r}, which the release shows; {did_you_mean(name, has)}"
            )
