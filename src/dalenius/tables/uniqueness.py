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
from itertools import combinations, islice
from typing import Any

import duckdb

from dalenius.exact import percent
from dalenius.plain import plain_fields
from dalenius.sql import count, identifier, one_row
from dalenius.tables.steps import DATE_TYPES, NUMERIC_TYPES, Bins, DatePart, Prefix

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
_SHOWN, _LADDER = 2, 6
"""How many steps of making a column coarser are told, and how many are tried to leave nobody rare."""
_TENTHS = ", ".join(f"{i / 10}" for i in range(11))
_FEW_VALUES = 10
"""A column with so few values is not made coarser."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rarity:
    """How many people share their cells with few others."""

    n_alone: int = field(metadata={"json": "alone"})
    n_few: int = field(metadata={"json": "few"})
    """In groups of fewer than so many people, those who are alone among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coarser:
    """What would be left of it with other columns, or with coarser ones."""

    columns: tuple[str, ...]
    """What is left out, kept, or made coarser."""
    rarity: Rarity
    recode: str | None = None
    """How the columns are made coarser, as the policy's section `[recode]` has it."""
    left_out: tuple[str, ...] = ()
    """Of the columns, those that are not published at all."""

    def to_dict(self) -> dict[str, Any]:
        """As `--json` prints it."""
        how = {"recode": self.recode, "left_out": list(self.left_out)}
        told = {name: value for name, value in how.items() if value}
        return {"columns": list(self.columns), **told, **plain_fields(self.rarity)}

    def words(self) -> str:
        """What is to be done.

        >>> print(Coarser(columns=("age", "job"), recode="age = { round = 10 }", left_out=("job",),
        ...              rarity=Rarity(n_alone=0, n_few=0)).words())
        [recode] age = { round = 10 }, and 'job' in `dropped`
        """
        steps = [f"[recode] {self.recode}"] * (self.recode is not None)
        dropped = _list_names([repr(name) for name in self.left_out])
        return ", and ".join(steps + [f"{dropped} in `dropped`"] * bool(dropped))


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniqueness:
    """How many people are rare with their cells of some columns, which columns do it, and what would help."""

    columns: tuple[str, ...]
    n_people: int = field(metadata={"json": "people"})
    fewer_than: int
    rarity: Rarity = field(metadata={"json": None})
    least: Coarser | None = None
    """The fewest columns that leave nearly all of these people rare; None: nobody is."""
    without: tuple[Coarser, ...] = ()
    """With each column left out."""
    coarser: tuple[Coarser, ...] = ()
    """With columns made coarser, one at a time and in the end all that can be."""
    way: Coarser | None = None
    """What leaves nobody rare; None: it was not looked for, or not found."""
    estimated: bool = False
    """Whether what is not about all columns was found from a random choice of the rare people."""

    @classmethod
    def counted(cls, columns: Sequence[str], n_people: int, few: int, rarity: Rarity) -> Uniqueness:
        """How many, and not why."""
        return cls(columns=tuple(columns), n_people=n_people, fewer_than=few, rarity=rarity)

    def to_dict(self) -> dict[str, Any]:
        """As `--json` prints it."""
        shown = {**plain_fields(self.rarity), **plain_fields(self)}
        return {"private": True, "columns": list(self.columns), **shown}

    def sentence(self) -> str:
        """How many people, in plain words.

        >>> print(Uniqueness(columns=("age", "sex"), n_people=20, fewer_than=5,
        ...                  rarity=Rarity(n_alone=2, n_few=7)).sentence())
        2 of 20 people (10 %) are alone with their age and sex, and 7 (35 %) are among fewer than 5
        """
        known = _list_names(self.columns)
        if not self.rarity.n_few:
            return f"nobody is alone with their {known}, nor among fewer than {self.fewer_than}"
        alone, few = self.rarity.n_alone, self.rarity.n_few
        return (
            f"{alone:,} of {self.n_people:,} people ({percent(alone / self.n_people)}) are alone with their "
            f"{known}, and {few:,} ({percent(few / self.n_people)}) are among fewer than {self.fewer_than}"
        )

    def paragraph(self) -> list[str]:
        """How many, what does it, and what would help, a line each."""
        lines, helping = [self.sentence()], self.best_change()
        if self.least is not None and len(self.least.columns) < len(self.columns):
            lines.append(
                f"  {_list_names(self.least.columns)}: enough for {self.least.rarity.n_few:,} of them"
            )
        return lines + [f"  what would help: {helping}"] * (helping is not None)

    def lines(self) -> Iterator[tuple[str, Rarity]]:
        """What an attacker may know, all of it first, and how rare people are with it."""
        yield "all of these", self.rarity
        if self.least is not None and len(self.least.columns) < len(self.columns):
            yield f"{_list_names(self.least.columns)} alone", self.least.rarity
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

    def reaching(self) -> str:
        """How to leave nobody rare, for a hint."""
        if self.way is not None:
            return f"{self.way.words()} leaves nobody among fewer than {self.fewer_than}"
        if self.n_people < self.fewer_than:
            return f"the table has fewer than {self.fewer_than} people"
        helping = self.best_change()
        return "make columns coarser under [recode], or move them to `dropped`" + f"; {helping}" * bool(
            helping
        )


def _list_names(names: Sequence[str]) -> str:
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
    seek: bool = False,
) -> Uniqueness:
    """Who is rare in a table to select from, with which columns, and what would change it.

    Args:
        connection: Where the table is; temporary tables are made on it, and removed.
        relation: The table.
        columns: What an attacker may know of a person.
        few: Groups of fewer people are small.
        fixed: Columns that are coarse already.
        seek: Whether to look for a way to leave nobody rare, which takes as long again.
    """
    free = [name for name in columns if name not in fixed]
    steps = list(_find_steps(connection, relation, free, _LADDER if seek else _SHOWN))
    cells = [*map(identifier, columns), *(step.cell for step in steps)]
    with _counting(connection, relation, cells, len(columns), few) as people:
        found = Uniqueness.counted(columns, people.n_people, few, people.total)
        if not people.total.n_few or not columns:
            return found
        return replace(
            found,
            least=_find_least(people, columns),
            without=tuple(
                Coarser(columns=(name,), rarity=people.rarity(people.every - {i}))
                for i, name in enumerate(columns)
            ),
            coarser=tuple(_make_coarser(people, columns, steps)),
            way=_find_way(people, columns, steps) if seek else None,
            estimated=people.is_sampled,
        )


class _GroupedRows:
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

    def has_rare(self, cells: frozenset[int]) -> bool:
        """Whether anybody is rare with these cells, counted among everybody."""
        key = ", ".join(f"c{i}" for i in sorted(cells)) or "()"
        rare = f"FROM uniqueness_people GROUP BY {key} HAVING count(*) < {self._few} LIMIT 1"
        return self._connection.execute(f"SELECT 1 {rare}").fetchone() is not None


@contextmanager
def _counting(
    connection: duckdb.DuckDBPyConnection, relation: str, cells: Sequence[str], n_columns: int, few: int
) -> Iterator[_GroupedRows]:
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
        yield _GroupedRows(connection, n_columns, few)
    finally:
        connection.execute("DROP TABLE IF EXISTS uniqueness_rare")
        connection.execute("DROP TABLE IF EXISTS uniqueness_people")


def _find_least(people: _GroupedRows, columns: Sequence[str]) -> Coarser:
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
    return Coarser(columns=tuple(columns[i] for i in sorted(chosen)), rarity=people.rarity(chosen))


@dataclass(frozen=True, slots=True, kw_only=True)
class _RecodeStep:
    """One way of making a column coarser."""

    column: str
    cell: str
    """SQL for something that is the same where the coarser values are."""
    written: str
    rung: int
    """How many finer ones the column has."""


def _make_coarser(
    people: _GroupedRows, columns: Sequence[str], steps: Sequence[_RecodeStep]
) -> Iterator[Coarser]:
    """Each step by itself, then the last step of every column that has one."""
    last: dict[int, tuple[int, _RecodeStep]] = {}
    for place, step in enumerate(steps, start=len(columns)):
        if step.rung >= _SHOWN:
            continue
        i = columns.index(step.column)
        last[i] = (place, step)
        cells = people.every - {i} | {place}
        yield Coarser(columns=(step.column,), recode=step.written, rarity=people.rarity(cells))
    if len(last) > 1:
        cells = people.every.difference(last) | {place for place, _ in last.values()}
        yield Coarser(
            columns=tuple(step.column for _, step in last.values()),
            recode="; ".join(step.written for _, step in last.values()),
            rarity=people.rarity(cells),
        )


def _find_way(people: _GroupedRows, columns: Sequence[str], steps: Sequence[_RecodeStep]) -> Coarser | None:
    """Coarser columns, and if need be fewer, with which nobody is rare: none of them can be made finer.

    From the coarsest, columns are left out until nobody is rare; then each becomes as fine as it can be.
    """
    ladders: list[list[int | None]] = [[i] for i in range(len(columns))]
    for place, step in enumerate(steps, start=len(columns)):
        ladders[columns.index(step.column)].append(place)
    chosen = [ladder[-1] for ladder in ladders]  # None: the column is left out

    def cells(i: int, place: int | None) -> frozenset[int]:
        return frozenset(p for p in (*chosen[:i], place, *chosen[i + 1 :]) if p is not None)

    while people.has_rare(cells(0, chosen[0])):
        left = [i for i, place in enumerate(chosen) if place is not None]
        if not left:
            return None
        chosen[min(left, key=lambda i: people.rarity(cells(i, None)).n_few)] = None
    for i, ladder in enumerate(ladders):
        chosen[i] = next(p for p in (*ladder, None) if p == chosen[i] or not people.has_rare(cells(i, p)))
    changed = {i: place for i, place in enumerate(chosen) if place != i}
    recodes = [steps[place - len(columns)].written for place in changed.values() if place is not None]
    return Coarser(
        columns=tuple(columns[i] for i in changed),
        recode="; ".join(recodes) or None,
        left_out=tuple(columns[i] for i, place in changed.items() if place is None),
        rarity=Rarity(n_alone=0, n_few=0),
    )


def _find_steps(
    connection: duckdb.DuckDBPyConnection, relation: str, columns: Sequence[str], n_steps: int
) -> Iterator[_RecodeStep]:
    """Some steps for every column with many numbers, days, or texts of one length, finest first."""
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
        n_values, ends = numbers[2 * i : 2 * i + 2]
        if n_values <= _FEW_VALUES or not ends or ends[0] is None:
            continue
        for rung, (cell, written) in enumerate(islice(_recodes(column, types[column], ends), n_steps)):
            yield _RecodeStep(
                column=column, cell=cell, written=f"{toml_key(column)} = {{ {written} }}", rung=rung
            )


def _extent(kind: str, name: str) -> str:
    """SQL for a list: the least and the largest length of a text; of numbers also all tenths between."""
    if kind.startswith(NUMERIC_TYPES):
        return f"quantile_disc({name}::DOUBLE, [{_TENTHS}]) FILTER (isfinite({name}::DOUBLE))"
    if kind == "VARCHAR":
        return f"[min(length({name})), max(length({name}))]"
    return f"[count({name})]"


def _recodes(column: str, kind: str, ends: Sequence[float]) -> Iterator[tuple[str, str]]:
    low, high = ends[0], ends[-1]
    if kind.startswith(NUMERIC_TYPES):
        whole = not kind.startswith(("FLOAT", "DOUBLE", "DECIMAL"))
        for step in dict.fromkeys(_round_number((high - low) / parts) for parts in (20, 10)):
            if step > 1 or not whole:
                # as `round` does it, except for what no whole number can be
                yield f"floor({identifier(column)} / {float(step)!r} + 0.5)", f"round = {_toml(step)}"
        for tenths in ((1, 2, 3, 4, 5, 6, 7, 8, 9), (2, 4, 6, 8), (3, 7), (5,)):
            bins = Bins.near(_round_number((high - low) / 20), [low, *(ends[i] for i in tenths), high])
            edges = ", ".join(map(_toml, bins.edges))
            yield bins.expression(identifier(column)), f"bins = [{edges}]"
    elif kind.startswith(DATE_TYPES):
        for part in ("month", "year"):
            yield DatePart(part=part).expression(identifier(column)), f'date = "{part}"'
    elif kind == "VARCHAR" and low == high and 3 <= low <= 20:
        for length in range(int(low) - 1, 0, -1):
            yield Prefix(length=length).expression(identifier(column)), f"prefix = {length}"


def _round_number(least: float) -> Fraction:
    """The smallest of 1, 2 and 5, times a power of ten, that is not below.

    >>> [str(_round_number(x)) for x in (4.1, 8.2, 0.3, 5)]
    ['5', '10', '1/2', '5']
    """
    power = Fraction(10) ** math.floor(math.log10(least))
    return next(step for step in (power, 2 * power, 5 * power, 10 * power) if step >= least * (1 - 1e-9))


def _toml(number: Fraction) -> str:
    return str(number) if number.denominator == 1 else f"{float(number):g}"


def toml_key(column: str) -> str:
    """A column's name as a key of TOML: in quotes where it is not of plain letters."""
    plain_letters = column.isascii() and column.replace("_", "").replace("-", "").isalnum()
    return column if plain_letters else json.dumps(column, ensure_ascii=False)
