"""Who is alone with what an attacker may know: how many people share each combination of cells.

Somebody whose combination nobody else has can be found by whoever knows these cells. Whoever is rare with
some of the columns is rare with all of them, so that only people who are rare with all are looked at again:
all of them, or of very many a random choice, whose groups are then counted among everybody.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import duckdb

from dalenius.exact import percent
from dalenius.plain import plain_fields
from dalenius.sql import count, identifier, one_row
from dalenius.tables.recode import DATE_TYPES, NUMERIC_TYPES, DatePart, Prefix

FEW = 5
"""Groups of fewer people are small, unless something else is asked."""
MOST_STUDIED = 2_000_000
"""Of more people a plan tells how many are rare, and not why: a second or two for a million of them."""
_MOST_GROUPS = 50_000
"""Of more small groups a random choice is looked at: shares of the people in them are right within 1 %."""
_NEARLY = Fraction(9, 10)
"""Columns that leave so many of the rare people rare are what makes them so."""
_EXACT_COLUMNS = 5
"""Of so many columns all subsets are tried; of more, one column after the other is left out."""
_FEW_VALUES = 10
"""A column with so few values is not made coarser."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rarity:
    """How many people share their cells with few others."""

    n_alone: int = field(metadata={"json": "alone"})
    n_few: int = field(metadata={"json": "few"})
    """In groups of fewer than so many people, those who are alone among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What would be left of it with other columns, or with coarser ones."""

    columns: tuple[str, ...]
    """What is left out, kept, or made coarser."""
    rarity: Rarity
    recode: str | None = None
    """How the columns are made coarser, as the policy's section `[recode]` has it."""

    def to_dict(self) -> dict[str, Any]:
        """As `--json` prints it."""
        how = {} if self.recode is None else {"recode": self.recode}
        return {"columns": list(self.columns), **how, **plain_fields(self.rarity)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniqueness:
    """How many people are rare with their cells of some columns, which columns do it, and what would help."""

    columns: tuple[str, ...]
    n_people: int = field(metadata={"json": "people"})
    fewer_than: int
    rarity: Rarity = field(metadata={"json": None})
    least: Change | None = None
    """The fewest columns that leave nearly all of these people rare; None: nobody is."""
    without: tuple[Change, ...] = ()
    """With each column left out."""
    coarser: tuple[Change, ...] = ()
    """With columns made coarser, one at a time and in the end all that can be."""
    estimated: bool = False
    """Whether what is not about all columns was found from a random choice of the rare people."""

    def to_dict(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {"columns": list(self.columns), **plain_fields(self.rarity), **plain_fields(self)}

    def sentence(self) -> str:
        """How many people, in plain words.

        >>> print(Uniqueness(columns=("age", "sex"), n_people=20, fewer_than=5,
        ...                  rarity=Rarity(n_alone=2, n_few=7)).sentence())
        2 of 20 people (10 %) are alone with their age and sex, and 7 (35 %) are among fewer than 5
        """
        known = _listed(self.columns)
        if not self.rarity.n_few:
            return f"nobody is alone with their {known}, nor among fewer than {self.fewer_than}"
        alone, few = self.rarity.n_alone, self.rarity.n_few
        return (
            f"{alone:,} of {self.n_people:,} people ({percent(alone / self.n_people)}) are alone with their "
            f"{known}, and {few:,} ({percent(few / self.n_people)}) are among fewer than {self.fewer_than}"
        )

    def lines(self) -> Iterator[tuple[str, Rarity]]:
        """What an attacker may know, all of it first, and how rare people are with it."""
        yield "all of these", self.rarity
        if self.least is not None and len(self.least.columns) < len(self.columns):
            yield f"{_listed(self.least.columns)} alone", self.least.rarity
        for change in self.without:
            yield f"all but {change.columns[0]}", change.rarity
        for change in self.coarser:
            yield f"[recode] {change.recode}", change.rarity

    def best_change(self) -> str | None:
        """What helps most, in words; None: nothing was found that does."""
        left_out = [(change, f"leaving {change.columns[0]!r} out") for change in self.without]
        single = [change for change in self.coarser if len(change.columns) == 1]
        recoded = [(change, f"[recode] {change.recode}") for change in single]
        words = [
            f"{how} leaves {change.rarity.n_few:,}"
            for changes in (recoded, left_out)
            for change, how in sorted(changes, key=lambda found: found[0].rarity.n_few)[:1]
            if change.rarity.n_few < self.rarity.n_few
        ]
        return "; ".join(words) or None


def _listed(names: Sequence[str]) -> str:
    return " and ".join(", ".join(names).rsplit(", ", 1))


def count_rare(
    connection: duckdb.DuckDBPyConnection, relation: str, columns: Sequence[str], few: int = FEW
) -> Rarity:
    """How many people of a table to select from are rare with their cells of these columns."""
    key = ", ".join(map(identifier, columns)) or "()"
    alone, rare = one_row(
        connection,
        f"SELECT count(*) FILTER (n = 1), coalesce(sum(n) FILTER (n < {few}), 0) "
        f"FROM (SELECT count(*) AS n FROM {relation} GROUP BY {key})",
    )
    return Rarity(n_alone=int(alone), n_few=int(rare))


def study_uniqueness(
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    columns: Sequence[str],
    *,
    few: int = FEW,
    fixed: Sequence[str] = (),
) -> Uniqueness:
    """Who is rare in a table to select from, with which columns, and what would change it.

    Args:
        connection: Where the table is; temporary tables are made on it, and removed.
        relation: The table.
        columns: What an attacker may know of a person.
        few: Groups of fewer people are small.
        fixed: Columns that are coarse already.
    """
    steps = list(_find_steps(connection, relation, [name for name in columns if name not in fixed]))
    cells = [*map(identifier, columns), *(step.cell for step in steps)]
    with _counting(connection, relation, cells, len(columns), few) as people:
        found = Uniqueness(
            columns=tuple(columns), n_people=people.n_people, fewer_than=few, rarity=people.total
        )
        if not people.total.n_few or not columns:
            return found
        return replace(
            found,
            least=_find_least(people, columns),
            without=tuple(
                Change(columns=(name,), rarity=people.rarity(people.every - {i}))
                for i, name in enumerate(columns)
            ),
            coarser=tuple(_make_coarser(people, columns, steps)),
            estimated=people.is_sampled,
        )


class _People:
    """The people of a table on a connection, their cells as hashes: `c0`, `c1` and so on."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, n_columns: int, few: int) -> None:
        self.every = frozenset(range(n_columns))
        self.n_people = count(connection, "SELECT count(*) FROM uniqueness_people")
        alone, rare, n_groups = one_row(
            connection,
            "SELECT count(*) FILTER (n = 1), coalesce(sum(n), 0), count(*) FROM uniqueness_rare",
        )
        self.total = Rarity(n_alone=int(alone), n_few=int(rare))
        self.is_sampled = n_groups > _MOST_GROUPS
        self._connection, self._few = connection, few
        self._known = {self.every: self.total}
        if self.is_sampled:
            connection.execute(
                "CREATE OR REPLACE TEMP TABLE uniqueness_rare AS FROM uniqueness_rare "
                f"USING SAMPLE reservoir({_MOST_GROUPS} ROWS) REPEATABLE (1)"
            )
        looked_at = count(connection, "SELECT coalesce(sum(n), 0) FROM uniqueness_rare")
        self._scale = self.total.n_few / looked_at if looked_at else 1.0

    def rarity(self, cells: frozenset[int]) -> Rarity:
        """How many people are rare with these cells alone."""
        if cells not in self._known:
            self._known[cells] = self._count(", ".join(f"c{i}" for i in sorted(cells)) or "0")
        return self._known[cells]

    def _count(self, key: str) -> Rarity:
        """Of the rare people; a group's size is counted among everybody."""
        alone, rare = one_row(
            self._connection,
            f"""
            WITH sought AS (SELECT hash({key}) AS h, sum(n) AS n FROM uniqueness_rare GROUP BY h),
            sizes AS (
                SELECT hash({key}) AS h, count(*) AS size FROM uniqueness_people
                WHERE hash({key}) IN (SELECT h FROM sought) GROUP BY 1
            )
            SELECT coalesce(sum(n) FILTER (size = 1), 0), coalesce(sum(n) FILTER (size < {self._few}), 0)
            FROM sought JOIN sizes USING (h)
            """,
        )
        return Rarity(n_alone=round(int(alone) * self._scale), n_few=round(int(rare) * self._scale))


@contextmanager
def _counting(
    connection: duckdb.DuckDBPyConnection, relation: str, cells: Sequence[str], n_columns: int, few: int
) -> Iterator[_People]:
    """The people of a table, and the groups of those who are rare with the first cells: temporary tables."""
    hashed = ", ".join(f"hash({cell}) AS c{i}" for i, cell in enumerate(cells)) or "0 AS c0"
    key = ", ".join(f"c{i}" for i in range(n_columns)) or "()"
    # coarser cells follow from the others, so that all of a group have the same
    others = "".join(f", any_value(c{i}) AS c{i}" for i in range(n_columns, len(cells)))
    own = f"{key}, " if n_columns else ""
    try:
        connection.execute(f"CREATE TEMP TABLE uniqueness_people AS SELECT {hashed} FROM {relation}")
        connection.execute(
            f"CREATE TEMP TABLE uniqueness_rare AS SELECT {own}count(*) AS n{others} "
            f"FROM uniqueness_people GROUP BY {key} HAVING count(*) < {few}"
        )
        yield _People(connection, n_columns, few)
    finally:
        connection.execute("DROP TABLE IF EXISTS uniqueness_rare")
        connection.execute("DROP TABLE IF EXISTS uniqueness_people")


def _find_least(people: _People, columns: Sequence[str]) -> Change:
    """The fewest columns with which nearly all who are rare with all of them are so already."""

    def n_few(cells: frozenset[int]) -> int:
        return people.rarity(cells).n_few

    enough = _NEARLY * people.total.n_few
    chosen = people.every
    if len(columns) <= _EXACT_COLUMNS:
        sizes = (map(frozenset, combinations(people.every, size)) for size in range(1, len(columns) + 1))
        best = (max(sets, key=n_few) for sets in sizes)
        chosen = next(cells for cells in best if n_few(cells) >= enough)
    else:
        while len(chosen) > 1:
            smaller = max((chosen - {i} for i in sorted(chosen)), key=n_few)
            if n_few(smaller) < enough:
                break
            chosen = smaller
    return Change(columns=tuple(columns[i] for i in sorted(chosen)), rarity=people.rarity(chosen))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One way of making a column coarser."""

    column: str
    cell: str
    """SQL for something that is the same where the coarser values are."""
    written: str


def _make_coarser(people: _People, columns: Sequence[str], steps: Sequence[_Step]) -> Iterator[Change]:
    """Each step by itself, then the last step of every column that has one."""
    last: dict[int, tuple[int, _Step]] = {}
    for place, step in enumerate(steps, start=len(columns)):
        i = columns.index(step.column)
        last[i] = (place, step)
        cells = people.every - {i} | {place}
        yield Change(columns=(step.column,), recode=step.written, rarity=people.rarity(cells))
    if len(last) > 1:
        cells = people.every.difference(last) | {place for place, _ in last.values()}
        yield Change(
            columns=tuple(step.column for _, step in last.values()),
            recode="; ".join(step.written for _, step in last.values()),
            rarity=people.rarity(cells),
        )


def _find_steps(
    connection: duckdb.DuckDBPyConnection, relation: str, columns: Sequence[str]
) -> Iterator[_Step]:
    """Two steps for every column with many numbers, days, or texts of one length."""
    if not columns:
        return
    described = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    types = {name: kind for name, kind, *_ in described}
    measured = ", ".join(
        f"approx_count_distinct({name}), {_extent(types[column], name)}"
        for column, name in zip(columns, map(identifier, columns), strict=True)
    )
    numbers = one_row(connection, f"SELECT {measured} FROM {relation}")
    for i, column in enumerate(columns):
        n_values, low, high = numbers[3 * i : 3 * i + 3]
        if n_values <= _FEW_VALUES or low is None:
            continue
        for cell, written in _recodes(column, types[column], low, high):
            yield _Step(column=column, cell=cell, written=f"{_key(column)} = {{ {written} }}")


def _extent(kind: str, name: str) -> str:
    """SQL for the least and the largest number, or length of a text."""
    if kind.startswith(NUMERIC_TYPES):
        finite = f"CASE WHEN isfinite({name}::DOUBLE) THEN {name}::DOUBLE END"
        return f"min({finite}), max({finite})"
    if kind == "VARCHAR":
        return f"min(length({name})), max(length({name}))"
    return f"count({name}), count({name})"


def _recodes(column: str, kind: str, low: float, high: float) -> Iterator[tuple[str, str]]:
    if kind.startswith(NUMERIC_TYPES):
        whole = not kind.startswith(("FLOAT", "DOUBLE", "DECIMAL"))
        for parts in (20, 10):
            step = _round_number((high - low) / parts)
            if step > 1 or not whole:
                # as `round` does it, but for what no whole number can be
                yield f"floor({identifier(column)} / {float(step)!r} + 0.5)", f"round = {_toml(step)}"
    elif kind.startswith(DATE_TYPES):
        for part in ("month", "year"):
            yield DatePart(part=part).expression(column), f'date = "{part}"'
    elif kind == "VARCHAR" and low == high and 3 <= low <= 20:
        for length in (int(low) - 1, int(low) - 2):
            yield Prefix(length=length).expression(column), f"prefix = {length}"


def _round_number(least: float) -> Fraction:
    """The smallest of 1, 2 and 5, times a power of ten, that is not below.

    >>> [str(_round_number(x)) for x in (4.1, 8.2, 0.3, 5)]
    ['5', '10', '1/2', '5']
    """
    power = Fraction(10) ** math.floor(math.log10(least))
    return next(step for step in (power, 2 * power, 5 * power, 10 * power) if step >= least * (1 - 1e-9))


def _toml(number: Fraction) -> str:
    return str(number) if number.denominator == 1 else f"{float(number):g}"


def _key(column: str) -> str:
    """A column's name as a key of TOML: in quotes where it is not of plain letters."""
    plain_letters = column.isascii() and column.replace("_", "").replace("-", "").isalnum()
    return column if plain_letters else json.dumps(column, ensure_ascii=False)
