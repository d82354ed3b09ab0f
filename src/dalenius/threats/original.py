"""The original table beside a release, with its people's records found again by their quasi-identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.errors import InputError
from dalenius.randomness import Randomness
from dalenius.release.folder import StoredRelease


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """What is attacked: a release, with its original and other releases about the same people at hand."""

    release: StoredRelease
    original: pa.Table
    also: tuple[StoredRelease, ...]
    randomness: Randomness
    """The attackers' own."""


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class People:
    """The people of the original and the rows of a release, known by their quasi-identifiers.

    Who only has quasi-identifiers cannot tell the records of equal ones (of one profile) apart, and neither
    can an audit.
    """

    columns: tuple[Coded, ...]
    """The quasi columns: codes of the original's rows and of the published rows."""
    profile: Ints
    """Each person's combination of quasi-identifiers."""
    row_profile: Ints
    """That of each published row."""

    @classmethod
    def find(cls, original: pa.Table, published: pa.Table, quasi: Sequence[str]) -> People:
        """Compare the quasi columns of both tables; without any, everybody is like everybody else."""
        columns = tuple(code_column(name, (original, published)) for name in quasi)
        everybody = tuple(np.zeros(table.num_rows, dtype=np.int64) for table in (original, published))
        profile, row_profile = combine(columns) if columns else everybody
        if not np.isin(row_profile, profile).any():
            raise InputError(
                "no published row has the quasi-identifiers of a row of the original",
                hint="if the policy recodes columns, give the policy file as the original",
            )
        return cls(columns=columns, profile=profile, row_profile=row_profile)

    @property
    def n_profiles(self) -> int:
        """How many combinations original and release have."""
        return int(max(self.profile.max(), self.row_profile.max())) + 1

    def value_of_row(self, value: Ints) -> Ints:
        """The value behind each published row, given everybody's; −1 where people of one profile differ."""
        return known_values(self.profile, value, self.n_profiles)[self.row_profile]

    def position_of_row(self) -> Ints:
        """Where in the source each published row was; −1 for profiles that several people share."""
        position = np.full(self.n_profiles, -1)
        position[self.profile] = np.arange(len(self.profile))
        position[np.bincount(self.profile, minlength=self.n_profiles) > 1] = -1
        return position[self.row_profile]

    def row_of_person(self) -> Ints:
        """The published row of each person; −1 where the profile is shared or absent."""
        row = np.full(self.n_profiles, -1)
        row[self.row_profile] = np.arange(len(self.row_profile))
        once = (np.bincount(self.profile, minlength=self.n_profiles) == 1) & (
            np.bincount(self.row_profile, minlength=self.n_profiles) == 1
        )
        return np.where(once, row, -1)[self.profile]
