"""Rows that share a cell of a column that is not published: of one person, or of people who belong together.

Every promise is for one row. Of a person with several rows an attacker looks for the value that all of their
buckets hold, and so does one who knows that the people of a household have the same value. Rows of one person
are alike in most of what is published; people of one name, or of one house, are not. A name is often in two
columns, neither of which tells who somebody is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import log
from operator import attrgetter

import numpy as np
import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.tables.giveaways.cells import CellTable, CodedColumn

_LIKE_ONE = 0.6
"""The rows of one person agree in so many of the published columns …"""
_SAME = 0.95
"""… apart from those in which nearly everybody agrees …"""
_TELLING = 2.0
"""… in which two people agree with a probability of no more than exp(−2): sex alone would not do …"""
_SURPRISE = 20.0
"""… and chance makes all rows so much alike with a probability of about exp(−20)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belonging:
    """What rows that share a cell have in common."""

    is_person: bool
    """Most of what is published of them: people of one name or one house have less."""
    sharing: float | None
    """Of the people who share a cell, those who all have one sensitive value; None: as chance has it."""
    alike: tuple[float, ...] = field(default=(), repr=False)
    """How often two rows of a cell agree in each of the published columns."""


def find_belonging(
    records: pa.Table,
    identifiers: Sequence[str],
    quasi: Sequence[str],
    sensitive: Sequence[str],
    apart: Sequence[Belonging] = (),
) -> Belonging:
    """Compare the rows of every cell of a column, or of several together; all rows of a cell must be there.

    Of several together only what each `apart` does not tell counts: twins have a day of birth and an address
    in common, and with them age and postcode.

    >>> name = [f"{name}{n}" for n in range(9) for name in ("Ann", "Ann", "Bob", "Bob", "Cem")]
    >>> age = [20 + ord(one[0]) % 3 + 3 * int(one[-1]) for one in name]
    >>> flu = ["yes", "no", "no", "yes", "no"] * 9
    >>> find_belonging(pa.table({"name": name, "age": age, "flu": flu}), ["name"], ["age"], ["flu"])
    Belonging(is_person=True, sharing=None)
    """
    cells = reduce(CodedColumn.beside, (CodedColumn.of(records[name]) for name in identifiers))
    if len(records) == cells.n_values:
        return Belonging(is_person=False, sharing=None, alike=(0.0,) * len(quasi))
    secrets = [CellTable.of(cells, CodedColumn.of(records[name])).agreeing() for name in sensitive]
    n_rows = np.bincount(cells.codes)
    compared = [_Compared.of(cells, CodedColumn.of(records[name]), n_rows) for name in quasi]
    told = [max((one.alike[place] for one in apart), default=0.0) for place in range(len(quasi))]
    return Belonging(
        is_person=_is_person(
            [one.beyond(share) for one, share in zip(compared, told, strict=True)],
            int(np.count_nonzero(n_rows > 1)),
        ),
        sharing=max((share for found in secrets if found for _, share in [found]), default=None),
        alike=tuple(one.alike for one in compared),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Compared:
    """A published column, and how often two rows agree in it."""

    column: CodedColumn
    chance: float
    """Any two."""
    alike: float
    """Two of a cell."""

    @classmethod
    def of(cls, cells: CodedColumn, column: CodedColumn, n_rows: Ints) -> _Compared:
        return cls(column=column, chance=_chance(column), alike=_agreement(cells, column, n_rows))

    def beyond(self, told: float) -> _Compared:
        """Where a part of what the cell is made of tells so much."""
        return replace(self, chance=max(self.chance, told))


def _is_person(columns: Iterable[_Compared], groups: int) -> bool:
    """Whether the rows of a cell agree in most of the columns, and these tell people apart.

    Of the agreement a in a column only what is above chance c counts, (a − c)/(1 − c): rows of one name agree
    in sex, those of one house in the town. A column tells log(c′/c″) apart, where two people agree in the
    columns before it with probability c′, and in it too with c″: a town tells nothing beside its postcode.
    """
    agreements, told = [], 0.0
    before, joint = 1.0, None
    for one in sorted(columns, key=attrgetter("chance")):
        if one.chance < _SAME:
            joint = one.column if joint is None else joint.beside(one.column)
            after = _chance(joint)
            agreements.append((one.alike - one.chance) / (1 - one.chance))
            told += agreements[-1] * log(before / after)
            before = after
    return told >= _TELLING and told * groups >= _SURPRISE and float(np.mean(agreements)) >= _LIKE_ONE


def _chance(column: CodedColumn) -> float:
    """How often two rows agree, a row with itself too."""
    return float(((np.bincount(column.codes) / len(column.codes)) ** 2).sum())


def _agreement(cells: CodedColumn, column: CodedColumn, n_rows: Ints) -> float:
    """How often two rows of a cell agree, by cells, each as often as it has rows."""
    keys, counts = np.unique(cells.codes * column.n_values + column.codes, return_counts=True)
    cell = keys // column.n_values
    pairs = np.bincount(cell, counts * (counts - 1.0), minlength=len(n_rows))
    shared = n_rows > 1
    return float((pairs[shared] / (n_rows[shared] - 1)).sum() / n_rows[shared].sum())
