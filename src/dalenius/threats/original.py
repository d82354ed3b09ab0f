"""The original table beside a release, with its people's records found again by their quasi-identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.errors import InputError
from dalenius.tables.columns import Coded, CodedTable


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommonCodes:
    """Columns of several tables in common codes.

    >>> tables = pa.table({"a": [7, 8], "b": [1, 1]}), pa.table({"a": [8], "b": [1]})
    >>> [codes.tolist() for codes in CommonCodes.of(["a", "b"], tables).of_rows(["a", "b"])]
    [[0, 1], [1]]
    """

    joined: CodedTable
    """The rows of the tables, one table after the other."""
    lengths: tuple[int, ...]

    @classmethod
    def of(cls, names: Sequence[str], tables: Sequence[pa.Table]) -> CommonCodes:
        """Code columns that all tables have; their types are those of the last one, which is published."""
        lengths = tuple(table.num_rows for table in tables)
        columns = {name: Coded.of(name, _join(name, tables)) for name in names}
        return cls(joined=CodedTable(n_rows=sum(lengths), columns=columns), lengths=lengths)

    def of_rows(self, names: Sequence[str]) -> tuple[Ints, ...]:
        """For each table, which combination of cells of these columns its rows have."""
        codes = self.joined.combined(names).codes.astype(np.int64)
        return tuple(np.split(codes, np.cumsum(self.lengths)[:-1]))


def _join(name: str, tables: Sequence[pa.Table]) -> pa.ChunkedArray:
    kind = tables[-1].schema.field(name).type
    try:
        pieces = [piece for table in tables for piece in table.column(name).cast(kind).chunks]
    except pa.ArrowException as error:
        raise InputError(
            f"column {name!r} of the original is {tables[0].schema.field(name).type}, the release has {kind}",
            hint="if the policy recodes it, give the policy file as the original",
        ) from error
    return pa.chunked_array(pieces, kind)


def find_profiles(common: CommonCodes) -> tuple[Ints, Ints]:
    """The combination of quasi-identifiers of each of the original's people, and of each published row."""
    people, rows = common.of_rows(list(common.joined.columns))
    if not np.isin(rows, people).any():
        raise InputError(
            "no published row has the quasi-identifiers of a row of the original",
            hint="if the policy recodes columns, give the policy file as the original",
        )
    return people, rows


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
