"""The original table beside a release, with its people's records found again by their quasi-identifiers.

Several releases about the same people: what they tell together, and whether they share coins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dalenius.arrays import Codes, Floats, Ints
from dalenius.errors import InputError
from dalenius.randomness import Randomness
from dalenius.release.folder import StoredRelease
from dalenius.tables.codes import narrowest
from dalenius.tables.columns import Coded, CodedTable
from dalenius.threats.chance import Chance
from dalenius.threats.result import AttackResult, Threat, against_chance, make_result

RECODED = "if the policy recodes columns, or says how the file is read, give the policy file as the original"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """What is attacked: a release, with its original and other releases about the same people at hand."""

    release: StoredRelease
    original: pa.Table
    also: tuple[StoredRelease, ...]
    randomness: Randomness
    """The attackers' own."""


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
        codes = self.joined.combine(names).codes.astype(np.int64)
        return tuple(np.split(codes, np.cumsum(self.lengths)[:-1]))

    def cells(self, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """The cells of each of these combinations."""
        return self.joined.combine(names).to_pylist(names)


def _join(name: str, tables: Sequence[pa.Table]) -> pa.ChunkedArray:
    kind = tables[-1].schema.field(name).type
    pieces = [piece for table in tables for piece in cast_cells(table, name, kind).chunks]
    return pa.chunked_array(pieces, kind)


def cast_cells(original: pa.Table, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    """A column of the original as the release has it."""
    try:
        return original.column(name).cast(kind)
    except pa.ArrowException as error:
        raise InputError(
            f"column {name!r} of the original is {original.schema.field(name).type}, the release has {kind}",
            hint=RECODED,
        ) from error


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
class QuasiColumn:
    """One quasi-identifier of people and of published rows."""

    name: str
    cells: pa.Array
    """The different ones that either has."""
    people_codes: Codes
    row_codes: Codes
    """Which of them each person and each published row has, in as few bytes as will do."""

    @property
    def people(self) -> Ints:
        """Which of the cells each person has, to reckon with."""
        return self.people_codes.astype(np.int64)

    @property
    def rows(self) -> Ints:
        """Which of them each published row has."""
        return self.row_codes.astype(np.int64)

    @property
    def n_cells(self) -> int:
        """How many different cells there are."""
        return len(self.cells)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class People:
    """The people of the original and the rows of a release, known by their quasi-identifiers.

    Who only has quasi-identifiers cannot tell the records of equal ones (of one profile) apart, and neither
    can an audit.
    """

    columns: tuple[QuasiColumn, ...]
    profile: Ints
    """Each person's combination of quasi-identifiers."""
    row_profile: Ints
    """That of each published row."""

    @classmethod
    def find(cls, original: pa.Table, published: pa.Table, quasi: Sequence[str]) -> People:
        """Compare the quasi columns of both tables; without any, everybody is like everybody else."""
        common = CommonCodes.of(quasi, (original, published))
        profile, row_profile = common.of_rows(quasi)
        if not np.isin(row_profile, profile).any():
            raise InputError(
                "no published row has the quasi-identifiers of a row of the original",
                hint=RECODED,
            )
        columns = []
        for name, column in common.joined.columns.items():
            narrow = narrowest(len(column.cells))
            people, rows = (codes.astype(narrow) for codes in common.of_rows([name]))
            columns.append(QuasiColumn(name=name, cells=column.cells, people_codes=people, row_codes=rows))
        return cls(columns=tuple(columns), profile=profile, row_profile=row_profile)

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


def keep_published(original: pa.Table, published: pa.Table, quasi: Sequence[str]) -> pa.Table:
    """The people of whom it is certain that they are published, where some were withheld.

    Of people with one profile of whom some are published nobody can say which.
    """
    people = People.find(original, published, quasi)
    n = people.n_profiles
    here, there = (np.bincount(p, minlength=n) for p in (people.profile, people.row_profile))
    kept = original.filter(pa.array((here <= there)[people.profile]))
    if not kept.num_rows:
        raise InputError(
            "records were withheld, and everybody shares the quasi-identifiers with somebody who was: it "
            "cannot be told who is published",
            hint="audit a rehearsal of the policy without [suppress]",
        )
    return kept


_TOGETHER = Threat(
    knows="two releases about the same people, and everybody's quasi-identifiers",
    wants="a person's sensitive value, from both together",
    covered=False,
)
_MOST_PEOPLE = 200_000
_MOST_CELLS = 16_000_000
"""Of people, and of people × values; of more, evenly spaced people are looked at."""
_AGAIN = (
    "do not publish independent releases of one table: publish once, or use views that are planned together"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linked:
    """The people whose row is known in both releases."""

    truth: Ints
    first: Ints
    second: Ints
    """Row numbers in each release."""
    n_failed: int


def link(one: People, two: People, value: Ints, n_values: int) -> Linked:
    """People whose quasi-identifiers are unique in two releases of one original, with everybody's value."""
    first, second = one.row_of_person(), two.row_of_person()
    both = np.flatnonzero((first >= 0) & (second >= 0))
    most = max(1, min(_MOST_PEOPLE, _MOST_CELLS // n_values))
    both = both[:: len(both) // most + 1]
    return Linked(truth=value[both], first=first[both], second=second[both], n_failed=len(first) - len(both))


def expect_right(belief: Floats, truth: Ints) -> float:
    """People × values of beliefs: expected successes of guessing the likeliest; equals share."""
    is_best = belief >= belief.max(axis=1, keepdims=True) * (1 - 1e-12)
    rows = np.arange(len(truth))
    return float((is_best[rows, truth] / is_best.sum(axis=1)).sum())


def two_releases(people: Linked, *, right: float, right_alone: float, baseline: float) -> AttackResult:
    """What an attack on both releases gets right, beside the same on the first alone."""
    trials = len(people.truth)
    return make_result(
        "two releases",
        _TOGETHER,
        successes=right,
        trials=trials,
        baseline=baseline,
        control=right_alone / max(trials, 1),
        n_failed=people.n_failed,
        advice=_AGAIN,
    )


_COINS = Threat(
    knows="two releases about the same people",
    wants="signs that both were made with the same coins, so that one tells what the other did",
    covered=True,
)


def shared_coins(hits: float, expected: float, trials: int, n_failed: int = 0) -> AttackResult:
    """How often two releases agree, beside how often coins of their own would."""
    return against_chance(
        "shared coins",
        _COINS,
        hits=hits,
        trials=trials,
        # agreements are pairs, all but independent: their variance is below twice their mean
        chance=Chance(expected=expected, variance=2 * expected, largest=2.0),
        n_failed=n_failed,
        advice="the two releases share their randomness: publish without a seed",
    )
