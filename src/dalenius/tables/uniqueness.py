"""Who is alone with what an attacker may know: how many people share each combination of cells.

Somebody whose combination nobody else has can be found by whoever knows these cells. Whoever is rare with
some of the columns is rare with all of them, so that only people who are rare with all are looked at again:
all of them, or of very many a random choice, whose groups are then counted among everybody.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dalenius.arrays import Codes, Floats, Ints
from dalenius.exact import percent
from dalenius.plain import plain_fields
from dalenius.sql import count, identifier, one_row
from dalenius.tables.codes import encode, find_codes, in_one_piece, number
from dalenius.tables.steps import DATE_TYPES, NUMERIC_TYPES, Bins, DatePart, Prefix

if TYPE_CHECKING:
    import duckdb

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
_FEW_VALUES = 10
"""A column with so few values is not made coarser."""
_MOST_LETTERS = 21
"""Texts of so many letters are not cut."""
_PART_BITS = 20
_PARTS = 2**_PART_BITS
"""So many groups are told apart by the last bits of their number."""


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
        connection: Where the table is; a temporary table is made on it, and removed.
        relation: The table.
        columns: What an attacker may know of a person.
        few: Groups of fewer people are small.
        fixed: Columns that are coarse already.
        seek: Whether to look for a way to leave nobody rare, which takes as long again.
    """
    coded = _read_columns(connection, relation, columns)
    people = _Combinations(coded, few)
    found = Uniqueness.counted(columns, people.n_people, few, people.total)
    if not people.total.n_few or not columns:
        return found
    free = {i: column for i, column in enumerate(coded) if column.name not in fixed and column.can_be_coarser}
    steps = list(_find_steps(connection, relation, free, _LADDER if seek else _SHOWN))
    people.add_steps(steps)
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _CodedColumn:
    """Which cell everybody has in a column."""

    name: str
    kind: str
    """Its type in SQL."""
    codes: Codes
    hashes: pa.Array
    """By code, what DuckDB's `hash` gives for the cell: equal cells have equal ones."""
    n_letters: tuple[int, int] | None
    """Of texts, the least and the largest length, as far as `_MOST_LETTERS` goes; None: no text is there."""

    @property
    def can_be_coarser(self) -> bool:
        """Numbers and days, and texts of one length of a few letters."""
        if self.kind != "VARCHAR":
            return self.kind.startswith((*NUMERIC_TYPES, *DATE_TYPES))
        return self.n_letters is not None and 3 <= self.n_letters[0] == self.n_letters[1] < _MOST_LETTERS


def _read_columns(
    connection: duckdb.DuckDBPyConnection, relation: str, columns: Sequence[str]
) -> list[_CodedColumn]:
    """In one pass over the table, which may be slow to read."""
    described = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    types = {name: kind for name, kind, *_ in described}
    texts = [name for name in columns if types[name] == "VARCHAR"]
    asked = [f"hash({identifier(name)})" for name in columns] or ["hash(0)"]
    asked += [f"least(length({identifier(name)}), {_MOST_LETTERS})::UTINYINT" for name in texts]
    read = connection.sql(f"SELECT {', '.join(asked)} FROM {relation}").to_arrow_table().columns
    lengths = [pc.min_max(column).as_py() for column in read[len(columns) or 1 :]]
    n_letters = {
        name: (found["min"], found["max"])
        for name, found in zip(texts, lengths, strict=True)
        if found["min"] is not None
    }
    if not columns:  # everybody is in one group
        codes, hashes = encode(read[0])
        return [_CodedColumn(name="", kind="", codes=codes, hashes=hashes, n_letters=None)]
    coded = ((name, *encode(cells)) for name, cells in zip(columns, read, strict=False))
    return [
        _CodedColumn(name=name, kind=types[name], codes=codes, hashes=hashes, n_letters=n_letters.get(name))
        for name, codes, hashes in coded
    ]


class _Combinations:
    """The different combinations of cells that people have, and how many have each.

    A combination is known by the sum of its cells' numbers, which are as good as random: a column is left out
    of all of them by one subtraction. Two sums agree by chance in one of ten million tables of 10⁶ rows.
    """

    def __init__(self, columns: Sequence[_CodedColumn], few: int) -> None:
        self.every = frozenset(range(len(columns)))
        self._few = few
        self._column_of = list(range(len(columns)))
        self._numbers = [_scatter(column.hashes, i) for i, column in enumerate(columns)]
        self._codes = [column.codes for column in columns]
        groups, self._keys = number(self._sum_cells(self.every))
        self._n = np.bincount(groups)
        self.n_people = len(groups)
        one_of_each = np.empty(len(self._n), dtype=np.int64)
        one_of_each[groups] = np.arange(len(groups))
        self._codes = [codes[one_of_each] for codes in self._codes]
        rare = np.flatnonzero(self._n < few)
        self.total = Rarity(n_alone=int((self._n == 1).sum()), n_few=int(self._n[rare].sum()))
        self.is_sampled = len(rare) > _MOST_GROUPS
        if self.is_sampled:
            rare = rare[np.argpartition(self._keys[rare], _MOST_GROUPS)[:_MOST_GROUPS]]  # keys are random
        self._rare, self._is_rare = rare, np.zeros(len(self._n), dtype=np.bool_)
        self._is_rare[rare] = True
        self._scale = self.total.n_few / max(int(self._n[rare].sum()), 1)
        self._known = {self.every: self.total}

    def add_steps(self, steps: Sequence[_RecodeStep]) -> None:
        """What coarser columns have in common are further cells, after those of the columns."""
        self._column_of += [step.place for step in steps]
        self._numbers += [_scatter(step.hashes, i) for i, step in enumerate(steps, start=len(self.every))]

    def rarity(self, cells: frozenset[int]) -> Rarity:
        """How many people are rare with these cells alone."""
        if cells not in self._known:
            self._known[cells] = self._count(self._sum_cells(cells))
        return self._known[cells]

    def _count(self, keys: Ints) -> Rarity:
        """Of the rare people; a group's size is counted among everybody."""
        sought, n, is_sought = keys[self._rare], self._n, self._is_rare
        for shift in (0, _PART_BITS):  # most of the others are not looked at again
            near = _find_near(keys >> shift, sought >> shift)
            keys, n, is_sought = keys[near], n[near], is_sought[near]
        groups, _ = number(keys)
        sizes = np.bincount(groups, weights=n)[groups[is_sought]]
        alone, rare = (n[is_sought][of_size].sum() for of_size in (sizes == 1, sizes < self._few))
        return Rarity(n_alone=round(int(alone) * self._scale), n_few=round(int(rare) * self._scale))

    def has_rare(self, cells: frozenset[int]) -> bool:
        """Whether anybody is rare with these cells, counted among everybody."""
        groups, _ = number(self._sum_cells(cells))
        return bool(np.bincount(groups, weights=self._n).min(initial=self._few) < self._few)

    def _sum_cells(self, cells: frozenset[int]) -> Ints:
        """The number of each combination: from that of all columns, or from nothing, whichever is nearer."""
        left_out, added = self.every - cells, cells - self.every
        if cells == self.every or len(left_out) + len(added) > len(cells):
            keys = np.zeros(len(self._codes[0]), dtype=np.int64)
            left_out, added = frozenset(), cells
        else:
            keys = self._keys.copy()
        for place in left_out:
            keys -= self._of_cell(place)
        for place in added:
            keys += self._of_cell(place)
        return keys

    def _of_cell(self, place: int) -> Ints:
        return self._numbers[place].take(self._codes[self._column_of[place]])


def _scatter(hashes: pa.Array, place: int) -> Ints:
    """A number for each hash, as good as random, and another one at another place (SplitMix64)."""
    found: NDArray[np.uint64] = hashes.to_numpy() + np.uint64((place + 1) * 0x9E3779B97F4A7C15 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        found = (found ^ (found >> np.uint64(shift))) * np.uint64(factor)
    return (found ^ (found >> np.uint64(31))).view(np.int64)


def _find_near(keys: Ints, sought: Ints) -> Ints:
    """Which keys end like one that is sought."""
    is_there = np.zeros(_PARTS, dtype=np.bool_)
    is_there[sought & (_PARTS - 1)] = True
    return np.flatnonzero(is_there[keys & (_PARTS - 1)])


def _find_least(people: _Combinations, columns: Sequence[str]) -> Coarser:
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RecodeStep:
    """One way of making a column coarser."""

    place: int
    """The column's, among all."""
    hashes: pa.Array
    """By the column's codes, what is the same where the coarser values are."""
    written: str
    rung: int
    """How many finer ones the column has."""


def _make_coarser(
    people: _Combinations, columns: Sequence[str], steps: Sequence[_RecodeStep]
) -> Iterator[Coarser]:
    """Each step by itself, then the last step of every column that has one."""
    last: dict[int, tuple[int, _RecodeStep]] = {}
    for place, step in enumerate(steps, start=len(columns)):
        if step.rung >= _SHOWN:
            continue
        last[step.place] = (place, step)
        cells = people.every - {step.place} | {place}
        yield Coarser(columns=(columns[step.place],), recode=step.written, rarity=people.rarity(cells))
    if len(last) > 1:
        cells = people.every.difference(last) | {place for place, _ in last.values()}
        yield Coarser(
            columns=tuple(columns[i] for i in last),
            recode="; ".join(step.written for _, step in last.values()),
            rarity=people.rarity(cells),
        )


def _find_way(people: _Combinations, columns: Sequence[str], steps: Sequence[_RecodeStep]) -> Coarser | None:
    """Coarser columns, and if need be fewer, with which nobody is rare: none of them can be made finer.

    From the coarsest, columns are left out until nobody is rare; then each becomes as fine as it can be.
    """
    ladders: list[list[int | None]] = [[i] for i in range(len(columns))]
    for place, step in enumerate(steps, start=len(columns)):
        ladders[step.place].append(place)
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
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    columns: Mapping[int, _CodedColumn],
    n_steps: int,
) -> Iterator[_RecodeStep]:
    """Some steps for every column with many different cells, finest first."""
    many = {place: column for place, column in columns.items() if len(column.hashes) > _FEW_VALUES}
    if not many:
        return
    names = [identifier(column.name) for column in many.values()]
    sets = ", ".join(f"({name})" for name in names)
    listed = ", ".join(f"{name}, grouping({name}) AS g{i}" for i, name in enumerate(names))
    # one pass over the table, which may be slow to read, for the different cells of all columns
    connection.execute(
        f"CREATE TEMP TABLE uniqueness_cells AS SELECT {listed}, count(*) AS n FROM {relation} "
        f"GROUP BY GROUPING SETS ({sets})"
    )
    try:
        for i, (place, column) in enumerate(many.items()):
            different = f"(FROM uniqueness_cells WHERE g{i} = 0)"
            recodes = list(islice(_find_recodes(connection, different, column), n_steps))
            asked = ", ".join(f"hash({cell})" for cell in (names[i], *(cell for cell, _ in recodes)))
            hashes, *coarser = connection.sql(f"SELECT {asked} FROM {different}").to_arrow_table().columns
            by_code = find_codes(column.hashes, in_one_piece(hashes))
            for rung, ((_, written), cells) in enumerate(zip(recodes, coarser, strict=True)):
                recode = f"{toml_key(column.name)} = {{ {written} }}"
                yield _RecodeStep(place=place, hashes=cells.take(by_code), written=recode, rung=rung)
    finally:
        connection.execute("DROP TABLE uniqueness_cells")


def _find_recodes(
    connection: duckdb.DuckDBPyConnection, different: str, column: _CodedColumn
) -> Iterator[tuple[str, str]]:
    """SQL for coarser cells and how a policy writes it, finest first, from a column's different cells."""
    name = identifier(column.name)
    if count(connection, f"SELECT count({name}) FROM {different}") <= _FEW_VALUES:
        return
    ends: Sequence[float] = column.n_letters or ()
    if column.kind.startswith(NUMERIC_TYPES):
        finite = f"SELECT {name}::DOUBLE AS x, n FROM {different} WHERE isfinite({name}::DOUBLE) ORDER BY x"
        found = connection.execute(finite).fetchnumpy()
        ends = _find_tenths(found["x"], found["n"])
        if not ends:
            return
    yield from _recodes(column.name, column.kind, ends)


def _find_tenths(numbers: Floats, counts: Ints) -> list[float]:
    """Of ascending numbers that occur so often each: the least, nine between, and the largest.

    >>> _find_tenths(np.array([1.0, 2.0, 3.0]), np.array([4, 5, 1]))
    [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 3.0]
    """
    before = np.cumsum(counts)
    n = int(before[-1]) if len(before) else 0
    places = [max(-(-n * tenth // 10), 1) for tenth in range(11)]  # counted from 1
    return numbers[np.searchsorted(before, places)].tolist() if n else []


def _recodes(column: str, kind: str, ends: Sequence[float]) -> Iterator[tuple[str, str]]:
    low, high = (ends[0], ends[-1]) if ends else (0, 0)
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
    else:
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
