"""A question about views, as functions on tuples, which are summed over a view's rows and over the domain.

Conditions, arguments and group keys become tables over the columns that each names (`Atoms`). The same tables
are looked up for the view's rows and contracted over the domain, so both sides always mean the same.

`ViewRows` are the rows of a view: for which of them a selection holds, and what a question adds up over them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np
import pyarrow as pa

from dalenius.arrays import Bits, Bools, Codes, Floats, Ints
from dalenius.errors import QueryError
from dalenius.mechanisms.tuples.answer.network import Tensor, integer_weights, sum_selection
from dalenius.mechanisms.tuples.answer.selection import All, Atoms, Neither, Selection, ValueTable, both
from dalenius.mechanisms.tuples.domain import Domain, TupleCodes
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.question.database import Deadline
from dalenius.question.model import Key, Total, argument_numbers, key_codes, totals_of
from dalenius.question.query import Expression, GroupKey, Query
from dalenius.tables.columns import Coded, CodedTable

LARGEST_RESULT = 2**22
_MOST_GROUPS = 50_000
_PIECE_BITS = 40
_CLOSE = 2.0**-26
"""How exact every single number must be: sums of 10¹² of them are then well within their noise."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TupleNumbers:
    """A number for each combination of some columns' values, 0 where it is NULL."""

    columns: tuple[int, ...]
    values: Floats
    present: Bools

    def pieces(self) -> Iterator[tuple[Tensor, float]]:
        """The values as a sum of whole numbers, each with what it is to be multiplied by.

        One piece is as fine as the largest value allows; small values beside large ones need a second.
        """
        if (self.values == np.rint(self.values)).all() and self.largest < 2**_PIECE_BITS:
            yield Tensor(indices=self.columns, entries=self.values.astype(np.int64)), 1.0
            return
        rest = self.values
        while (np.abs(rest) > _CLOSE * np.abs(self.values)).any():
            # powers of two, so that what is left is exact; 2^-1074 is the least number that there is
            unit = max(math.frexp(float(np.abs(rest).max()))[1] - _PIECE_BITS, -1074)
            whole = np.rint(np.ldexp(rest, -unit))
            yield Tensor(indices=self.columns, entries=whole.astype(np.int64)), math.ldexp(1.0, unit)
            rest = rest - np.ldexp(whole, unit)

    @property
    def largest(self) -> float:
        """The largest magnitude."""
        return float(np.abs(self.values).max(initial=0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Summand:
    """A total as a function on tuples: a number (1 for a count) where the selection holds, else 0."""

    holds: Selection
    number: TupleNumbers | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupTable:
    """A group key: its value's code for each combination of some columns' values."""

    columns: tuple[int, ...]
    codes: Ints
    values: pa.Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Groups:
    """The groups of a question: those that some tuple of the domain belongs to."""

    keys: tuple[Key, ...]
    of_cell: Ints
    """The group of each combination of values of the columns that the keys name; -1: none."""

    def add_up(self, cells: Ints, numbers: Floats) -> Floats:
        """Sum numbers by the groups of the cells that they are in."""
        group = self.of_cell[cells]
        inside = group >= 0
        found = np.bincount(group[inside], weights=numbers[inside], minlength=len(self.keys))
        return np.asarray(found, dtype=np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class TupleQuestion:
    """A question, evaluated on the values of a domain's columns, and its sums over the domain."""

    domain: Domain
    noise: NoiseLaw | None
    deadline: Deadline
    totals: tuple[Total, ...]
    where: Selection
    summands: tuple[Summand, ...]
    """Of each total."""
    tables: tuple[GroupTable, ...]
    """Of each group key."""
    _sums: dict[tuple[int | None, ...], Floats] = field(default_factory=dict)
    """Sums over the domain that were found already: the same for every view of it."""

    @property
    def kept(self) -> tuple[int, ...]:
        """The columns that the group keys name."""
        return tuple(sorted({column for table in self.tables for column in table.columns}))

    @property
    def keys(self) -> tuple[Key, ...]:
        """Its groups."""
        return self.groups.keys

    @property
    def key_values(self) -> tuple[pa.Array, ...]:
        """The different values of each group key, by code."""
        return tuple(table.values for table in self.tables)

    def range_of(self, argument: Expression) -> tuple[float, float]:
        """The least and the largest number that an argument is on the domain."""
        for total, summand in zip(self.totals, self.summands, strict=True):
            if total.kind == "sum" and total.argument == argument and summand.number is not None:
                numbers = summand.number.values[summand.number.present]
                return float(numbers.min(initial=np.inf)), float(numbers.max(initial=-np.inf))
        return -np.inf, np.inf

    @cached_property
    def groups(self) -> Groups:
        """The groups that the domain has."""
        if not self.tables:
            return Groups(keys=((),), of_cell=np.zeros(1, dtype=np.int64))
        n_tuples = self._contract(self.where, [], 0)
        shape = [self.domain.sizes[column] for column in self.kept]
        columns = []
        for table in self.tables:
            sizes = [self.domain.sizes[c] if c in table.columns else 1 for c in self.kept]
            columns.append(np.broadcast_to(table.codes.reshape(sizes), shape).ravel())
        codes = np.stack(columns, axis=1)
        occupied = np.flatnonzero(n_tuples > 0)
        found, inverse = np.unique(codes[occupied], axis=0, return_inverse=True)
        if len(found) > _MOST_GROUPS:
            raise QueryError(
                f"the question has {len(found):,} groups; at most {_MOST_GROUPS:,} are answered",
                hint="group by fewer or coarser keys",
            )
        of_cell = np.full(len(n_tuples), -1, dtype=np.int64)
        of_cell[occupied] = inverse.ravel()
        return Groups(keys=tuple(tuple(int(code) for code in row) for row in found), of_cell=of_cell)

    def over_domain(self, *summands: int, power: int = 0) -> Floats:
        """Per group, the sum of the summands' product over the domain, weighed by (P(t)/max P)^power."""
        chosen = [self.summands[i] for i in sorted(summands)]
        if len(chosen) == 2 and summands[0] == summands[1] and chosen[0].number is None:
            return self.over_domain(summands[0], power=power)
        numbers = [one.number for one in chosen if one.number is not None]
        return self._by_group((power, *sorted(summands)), [one.holds for one in chosen], numbers, power)

    def count_domain(self, summand: int, power: int = 0) -> Floats:
        """Per group, how many tuples of the domain the summand counts, weighed by (P(t)/max P)^power."""
        if self.summands[summand].number is None:
            return self.over_domain(summand, power=power)
        return self._by_group((None, power, summand), [self.summands[summand].holds], [], power)

    def _by_group(
        self,
        name: tuple[int | None, ...],
        holds: list[Selection],
        numbers: Sequence[TupleNumbers],
        power: int,
    ) -> Floats:
        """A sum over the domain by group, which is remembered."""
        if name not in self._sums:
            self.deadline.check()
            cells = self._contract(both(holds), numbers, power)
            self._sums[name] = self.groups.add_up(np.arange(len(cells)), cells)
        return self._sums[name]

    def _contract(self, selection: Selection, numbers: Sequence[TupleNumbers], power: int) -> Floats:
        weights = integer_weights(self._shares(power), self.domain.names, self.domain.sizes)
        found = np.zeros(math.prod(self.domain.sizes[column] for column in self.kept))
        for pieces in product(*(tuple(number.pieces()) for number in numbers)):
            part = sum_selection(selection, weights, self.kept, [tensor for tensor, _ in pieces])
            found += part.astype(np.float64).ravel() * math.prod(unit for _, unit in pieces)
        return found

    def _shares(self, power: int) -> Mapping[str, Sequence[Fraction]]:
        if not power or self.noise is None:
            return {}
        return {
            name: [(share / max(shares)) ** power for share in shares]
            for name, shares in zip(self.domain.names, self.noise.shares, strict=True)
            if len(set(shares)) > 1
        }


def evaluate(query: Query, atoms: Atoms, noise: NoiseLaw | None) -> TupleQuestion:
    """Evaluate a query's conditions, arguments and keys on the domain of the atoms.

    Args:
        query: the question.
        atoms: what evaluates its expressions.
        noise: how inserted tuples spread over the domain; None: evenly.
    """
    where = atoms.select(query.where)
    totals = totals_of(query.aggregates)
    summed = {total.argument for total in totals if total.kind == "sum"}
    numbers = {
        total.argument: _numbers(total.argument, atoms, is_summed=total.argument in summed)
        for total in totals
        if total.argument is not None
    }
    question = TupleQuestion(
        domain=atoms.domain,
        noise=noise,
        deadline=atoms.workspace.deadline,
        totals=totals,
        where=where,
        summands=tuple(_summand(total, where, numbers, atoms) for total in totals),
        tables=tuple(_group_table(key, atoms) for key in query.groups),
    )
    n_cells = int(np.prod([float(atoms.domain.sizes[column]) for column in question.kept]))
    if n_cells > LARGEST_RESULT:
        raise QueryError(
            f"the group keys read columns with {n_cells:,} combinations of values; at most "
            f"{LARGEST_RESULT:,} are possible",
            hint="group by fewer or coarser keys",
        )
    return question


def _summand(
    total: Total, where: Selection, numbers: dict[Expression, TupleNumbers], atoms: Atoms
) -> Summand:
    parts = [where]
    if total.condition is not None:
        parts.append(atoms.select(total.condition))
    if total.argument is None:
        return Summand(holds=both(parts), number=None)
    number = numbers[total.argument]
    parts.append(ValueTable(columns=number.columns, holds=number.present))
    return Summand(holds=both(parts), number=number if total.kind == "sum" else None)


def _numbers(argument: Expression, atoms: Atoms, *, is_summed: bool) -> TupleNumbers:
    columns, shape, cells = atoms.values(argument)
    found = argument_numbers(cells, argument, is_summed).reshape(shape)
    present = ~np.isnan(found)
    values = np.where(present, found, 0.0)
    return TupleNumbers(columns=columns, values=values, present=present)


def _group_table(key: GroupKey, atoms: Atoms) -> GroupTable:
    columns, shape, cells = atoms.values(key.expression)
    codes, values = key_codes(key, cells)
    return GroupTable(columns=columns, codes=codes.reshape(shape), values=values)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ViewRows:
    """The rows of a view, each column in the codes of its domain."""

    table: CodedTable
    columns: tuple[Coded, ...]
    """The same by number."""

    @classmethod
    def of(cls, domain: Domain, codes: TupleCodes) -> ViewRows:
        """Rows with these codes."""
        columns = {
            column.name: Coded(codes=own, values={column.name: column.values})
            for column, own in zip(domain.columns, codes, strict=True)
        }
        table = CodedTable(n_rows=len(codes[0]), columns=columns)
        return cls(table=table, columns=tuple(columns.values()))

    def where(self, selection: Selection) -> Ints:
        """The rows for which the selection holds."""
        return self.table.rows(self._bits(selection))

    def at(self, columns: Sequence[int], rows: Ints) -> tuple[Codes, ...]:
        """The codes of some columns, by number, in some rows."""
        return tuple(self.columns[column].codes[rows] for column in columns)

    def _bits(self, selection: Selection) -> Bits:
        match selection:
            case ValueTable(columns=(), holds=holds):
                return self.table.all_rows() if holds else self.table.no_rows()
            case ValueTable(columns=(column,), holds=holds):
                return self.columns[column].select(holds)
            case ValueTable():
                return self._select_together(selection)
            case All(parts=parts):
                return np.asarray(np.bitwise_and.reduce([self._bits(part) for part in parts]), dtype=np.uint8)
            case Neither(of=of):
                return ~self._bits(of)  # the bits beyond the last row are cut off when bits become rows

    def _select_together(self, table: ValueTable) -> Bits:
        """Those rows of which every column has some value that can hold are looked up."""
        possible = [
            self.columns[column].select(_some_hold(table.holds, axis))
            for axis, column in enumerate(table.columns)
        ]
        rows = self.table.rows(np.asarray(np.bitwise_and.reduce(possible)))
        found = np.zeros(self.table.n_rows, dtype=np.bool_)
        found[rows] = table.holds[self.at(table.columns, rows)]
        return np.packbits(found)


def _some_hold(holds: Bools, axis: int) -> Bools:
    """Which values along an axis hold together with some values along the others."""
    flat = np.moveaxis(holds, axis, 0).reshape(holds.shape[axis], -1)
    return np.asarray(flat.any(axis=1), dtype=np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sums:
    """Sums of a question's summands, and of products of two, per group: over a view's rows and the domain."""

    question: TupleQuestion
    rows: ViewRows
    _counted: dict[int, Ints] = field(default_factory=dict)

    def over_domain(self, *summands: int, power: int = 0) -> Floats:
        """Per group, the sum of the summands' product over the domain, weighed by (P(t)/max P)^power."""
        return self.question.over_domain(*summands, power=power)

    def count_domain(self, summand: int, power: int = 0) -> Floats:
        """Per group, how many tuples of the domain the summand counts, weighed by (P(t)/max P)^power."""
        return self.question.count_domain(summand, power=power)

    def over_rows(self, *summands: int, weights: Floats | None = None) -> Floats:
        """Per group, the sum of the summands' product over the view's rows, weighed."""
        rows = self._rows(summands[0])
        for index in summands[1:]:
            if index != summands[0]:
                rows = np.intersect1d(rows, self._rows(index), assume_unique=True)
        numbers = np.ones(len(rows)) if weights is None else weights[rows]
        for index in summands:
            numbers = numbers * self._numbers(index, rows)
        return self.question.groups.add_up(self._cells(rows), numbers)

    def count_rows(self, summand: int, weights: Floats | None = None) -> Floats:
        """Per group, how many rows of the view the summand counts, weighed."""
        rows = self._rows(summand)
        numbers = np.ones(len(rows)) if weights is None else weights[rows]
        return self.question.groups.add_up(self._cells(rows), numbers)

    def _rows(self, summand: int) -> Ints:
        """The rows of the view that the summand counts."""
        if summand not in self._counted:
            self._counted[summand] = self.rows.where(self.question.summands[summand].holds)
        return self._counted[summand]

    def _numbers(self, summand: int, rows: Ints) -> Floats | float:
        """What the summand is for rows that it counts."""
        number = self.question.summands[summand].number
        return 1.0 if number is None else number.values[self.rows.at(number.columns, rows)]

    def _cells(self, rows: Ints) -> Ints:
        """Which combination of values of the columns that the group keys name each row has."""
        kept = self.question.kept
        if not kept:
            return np.zeros(len(rows), dtype=np.int64)
        shape = [self.question.domain.sizes[column] for column in kept]
        return np.asarray(np.ravel_multi_index(self.rows.at(kept, rows), shape))
