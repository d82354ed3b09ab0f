"""A question about a view, as functions on tuples, which are summed over the view and over the domain.

Conditions, arguments and group keys become tables over the columns that each names (`domain_atoms`). The same
tables are looked up for the view's rows and contracted over the domain, so both sides always mean the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dalenius.arrays import Bools, Floats, Ints
from dalenius.ask.grouping import refuse_nested
from dalenius.errors import QueryError
from dalenius.mechanisms.tuples.atoms import Atoms
from dalenius.mechanisms.tuples.domain import TupleCodes
from dalenius.mechanisms.tuples.formula import Formula, Table, both
from dalenius.mechanisms.tuples.network import Tensor
from dalenius.question.names import ROW
from dalenius.question.query import Expression, GroupKey, Query
from dalenius.question.totals import Total, totals_of
from dalenius.tables.codes import encode

LARGEST_RESULT = 2**22
_PIECE_BITS = 40
_CLOSE = 2.0**-26
"""How exact every single number must be: sums of 10¹² of them are then well within their noise."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Numbers:
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
    """A total as a function on tuples: a number (1 for a count) where the formula holds, else 0."""

    holds: Formula
    number: Numbers | None

    def at(self, codes: TupleCodes, rows: Ints) -> Floats:
        """The number of rows for which the formula holds."""
        if self.number is None:
            return np.ones(len(rows))
        found = self.number.values[tuple(codes[column][rows] for column in self.number.columns)]
        return np.broadcast_to(found, (len(rows),))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupTable:
    """A group key: its value's code for each combination of some columns' values."""

    columns: tuple[int, ...]
    codes: Ints
    values: pa.Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """A query, evaluated on the values of the domain's columns."""

    totals: tuple[Total, ...]
    where: Formula
    summands: tuple[Summand, ...]
    keys: tuple[GroupTable, ...]
    domain_sums: dict[tuple[int | None, ...], Floats] = field(default_factory=dict)
    """Sums over the domain that were found already: the same for every view of it."""

    @property
    def kept(self) -> tuple[int, ...]:
        """The columns that the group keys name."""
        return tuple(sorted({column for key in self.keys for column in key.columns}))


def evaluate(query: Query, atoms: Atoms) -> Question:
    """Evaluate a query's conditions, arguments and keys."""
    where = atoms.formula(query.where)
    totals = totals_of(query.aggregates)
    summed = {total.argument for total in totals if total.kind == "sum"}
    numbers = {
        total.argument: _numbers(total.argument, atoms, is_summed=total.argument in summed)
        for total in totals
        if total.argument is not None
    }
    question = Question(
        totals=totals,
        where=where,
        summands=tuple(_summand(total, where, numbers, atoms) for total in totals),
        keys=tuple(_group_table(key, atoms) for key in query.groups),
    )
    n_cells = int(np.prod([float(atoms.domain.sizes[column]) for column in question.kept]))
    if n_cells > LARGEST_RESULT:
        raise QueryError(
            f"the group keys read columns with {n_cells:,} combinations of values; at most "
            f"{LARGEST_RESULT:,} are possible",
            hint="group by fewer or coarser keys",
        )
    return question


def _summand(total: Total, where: Formula, numbers: dict[Expression, Numbers], atoms: Atoms) -> Summand:
    parts = [where]
    if total.condition is not None:
        parts.append(atoms.formula(total.condition))
    if total.argument is None:
        return Summand(holds=both(parts), number=None)
    number = numbers[total.argument]
    parts.append(Table(columns=number.columns, holds=number.present))
    return Summand(holds=both(parts), number=number if total.kind == "sum" else None)


def _numbers(argument: Expression, atoms: Atoms, *, is_summed: bool) -> Numbers:
    columns, shape, cells = atoms.values(argument)
    absent = cells.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    present = ~np.asarray(absent, dtype=np.bool_).reshape(shape)
    values = np.zeros(shape)
    if is_summed:
        values = np.asarray(_as_floats(cells, argument).to_numpy(zero_copy_only=False), dtype=np.float64)
        values = np.where(present, values.reshape(shape), 0.0)
        if np.isinf(values).any():
            raise QueryError(
                f"{argument.sql.replace(ROW + '.', '')} is infinite for some values of the domain and cannot "
                "be summed",
                hint="leave them out inside the sum, e.g. SUM(CASE WHEN abs(x) < 1e300 THEN x END)",
            )
    return Numbers(columns=columns, values=values, present=present)


def _as_floats(cells: pa.Array, argument: Expression) -> pa.Array:
    kind = cells.type
    if pa.types.is_boolean(kind):
        return cells.cast(pa.int8()).cast(pa.float64())
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise QueryError(
            f"SUM and AVG need numbers; {argument.sql.replace(ROW + '.', '')} is {kind}",
            hint="use COUNT, or CAST",
        )
    return cells.cast(pa.float64())


def _group_table(key: GroupKey, atoms: Atoms) -> GroupTable:
    columns, shape, cells = atoms.values(key.expression)
    refuse_nested(cells.type, key.name)
    codes, values = encode(cells)
    return GroupTable(columns=columns, codes=codes.astype(np.int64).reshape(shape), values=values)
