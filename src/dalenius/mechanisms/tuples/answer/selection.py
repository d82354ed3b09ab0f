"""Where a condition holds, over the values of a domain's columns: tables, conjunction and negation.

What expressions are worth on these values is asked of DuckDB, over just the columns that each names
(`Atoms`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.arrays import Bools
from dalenius.errors import QueryError
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.question.database import Workspace
from dalenius.question.names import ROW
from dalenius.question.query import (
    Atom,
    Choice,
    Comparison,
    Condition,
    Expression,
    Membership,
    TruthTest,
    expression_of,
    take_apart,
    where,
)
from dalenius.sql import identifier

_MERGED_ENTRIES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ValueTable:
    """Where something holds, over the cross product of some columns (by number, ascending)."""

    columns: tuple[int, ...]
    holds: Bools


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class All:
    """A conjunction."""

    parts: tuple[Selection, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neither:
    """The negation of a conjunction: not all of its parts hold."""

    of: All


Selection = ValueTable | All | Neither
EVERYTHING = ValueTable(columns=(), holds=np.array(True))


def either(parts: Iterable[Selection]) -> Selection:
    """A disjunction."""
    return negate(both(negate(part) for part in parts))


def negate(selection: Selection) -> Selection:
    """Where the selection does not hold."""
    match selection:
        case ValueTable():
            return ValueTable(columns=selection.columns, holds=~selection.holds)
        case All():
            return Neither(of=selection)
        case Neither():
            return selection.of


def both(parts: Iterable[Selection]) -> Selection:
    """A conjunction, with tables joined where that costs nothing."""
    flat: list[Selection] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, All) else [part])
    tables = _merge_tables([part for part in flat if isinstance(part, ValueTable)])
    others = [part for part in flat if not isinstance(part, ValueTable)]
    if len(tables) == 1 and not others:
        return tables[0]
    return All(parts=(*tables, *others))


def _merge_tables(tables: list[ValueTable]) -> list[ValueTable]:
    """Tables multiplied into one that already has their columns, or all into one if it stays small."""
    merged: list[ValueTable] = []
    for table in sorted(tables, key=lambda table: -len(table.columns)):
        for index, wider in enumerate(merged):
            if set(table.columns) <= set(wider.columns):
                merged[index] = _product(wider, table)
                break
        else:
            merged.append(table)
    sizes = {
        column: size
        for table in merged
        for column, size in zip(table.columns, table.holds.shape, strict=True)
    }
    if len(merged) > 1 and math.prod(sizes.values()) <= _MERGED_ENTRIES:
        whole = merged[0]
        for table in merged[1:]:
            whole = _product(whole, table)
        return [whole]
    return merged


def _product(a: ValueTable, b: ValueTable) -> ValueTable:
    columns = tuple(sorted({*a.columns, *b.columns}))
    return ValueTable(columns=columns, holds=_spread(a, columns) & _spread(b, columns))


def _spread(table: ValueTable, columns: tuple[int, ...]) -> Bools:
    """The table with an axis of length 1 for each column that it lacks."""
    lengths = dict(zip(table.columns, table.holds.shape, strict=True))
    return table.holds.reshape([lengths.get(column, 1) for column in columns])


LARGEST_TABLE = 2**25
"""Entries of the largest table that is written out."""
_RANK = "__dalenius_rank"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Atoms:
    """Evaluates expressions over the domain's columns; as an algebra, places are selections of its tuples."""

    domain: Domain
    workspace: Workspace
    every = staticmethod(both)
    either = staticmethod(either)
    negate = staticmethod(negate)

    def select(self, condition: Condition | None) -> Selection:
        """Where a condition is TRUE."""
        return EVERYTHING if condition is None else where(condition, self)

    def atom(self, atom: Atom, is_true: bool) -> Selection:
        """Where an atom is TRUE, or where it is FALSE."""
        match atom:
            case Choice() | TruthTest():
                # as a whole it would need a table over all the columns that it names
                return take_apart(atom, self, is_true)
            case Membership():
                found = self.membership(atom, is_true)
                return self._table(atom.expression, is_true) if found is None else found
            case Comparison() | Expression():
                return self._table(expression_of(atom), is_true)

    def arrange(self, parts: Sequence[Condition]) -> Sequence[Condition]:
        """All parts are needed."""
        return parts

    def membership(self, atom: Membership, is_true: bool) -> ValueTable | None:
        """Where a column has one of the listed literals, without DuckDB; None if their types differ."""
        number = self.domain.names.index(atom.column)
        values = self.domain.columns[number].values
        same_type = pa.types.is_integer if isinstance(atom.values[0], int) else pa.types.is_string
        if not same_type(values.type):
            return None
        try:
            listed = pc.is_in(values, value_set=pa.array(atom.values, values.type))
        except (pa.ArrowInvalid, OverflowError):  # a number beyond the column's type
            return None
        holds = _as_bools(listed)
        return ValueTable(
            columns=(number,), holds=holds if is_true else _as_bools(values.is_valid()) & ~holds
        )

    def values(self, expression: Expression) -> tuple[tuple[int, ...], tuple[int, ...], pa.Array]:
        """The columns that the expression names, their sizes, and its value for every combination."""
        columns, shape = self._shape(expression.columns, expression.sql)
        found = self._run(expression.sql, f"SELECT {_RANK}, ({expression.sql}) AS v", columns)
        joined = found.column(1).combine_chunks()
        cells = joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined
        rank = found.column(0).to_numpy()
        in_order = bool((rank[1:] > rank[:-1]).all())
        return columns, shape, cells if in_order else cells.take(pa.array(np.argsort(rank)))

    def _table(self, expression: Expression, is_true: bool) -> ValueTable:
        sql = expression.sql if is_true else f"NOT {expression.sql}"
        columns, shape = self._shape(expression.columns, sql)
        holds = np.zeros(math.prod(shape), dtype=np.bool_)
        found = self._run(sql, f"SELECT {_RANK}", columns, f"WHERE ({sql}) IS TRUE")
        holds[found.column(0).to_numpy()] = True
        return ValueTable(columns=columns, holds=holds.reshape(shape))

    def _shape(self, names: Sequence[str], sql: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The numbers of the columns and their sizes, if that is not too much to write out."""
        columns = tuple(sorted(self.domain.names.index(name) for name in names))
        shape = tuple(self.domain.sizes[number] for number in columns)
        size = math.prod(shape)
        if size > LARGEST_TABLE:
            raise QueryError(
                f"{sql} compares columns with {size:,} combinations of values; "
                f"at most {LARGEST_TABLE:,} can be tried",
                hint="write it with AND and OR of comparisons of fewer columns",
            )
        return columns, shape

    def _run(self, sql: str, select: str, columns: tuple[int, ...], rest: str = "") -> pa.Table:
        """Evaluate over the cross product of the columns' values, whose combinations are numbered."""
        rank = "0::BIGINT"
        for number in columns:
            rank = f"({rank}) * {self.domain.sizes[number]} + {_code(number)}"
        names = [f"{_value(number)} AS {identifier(self.domain.names[number])}" for number in columns]
        source = ", ".join(["(SELECT 0)", *(_domain_table(number) for number in columns)])
        listed = ", ".join([*names, f"{rank} AS {_RANK}"])
        query = f"{select} FROM (SELECT {listed} FROM {source}) AS {identifier(ROW)} {rest}"

        def refuse(error: duckdb.Error) -> QueryError:
            return QueryError(f"{sql}: {str(error).splitlines()[0]}")

        tables = {_domain_table(number): self._list_values(number) for number in columns}
        return self.workspace.database.run(query, tables, self.workspace.deadline, refuse)

    def _list_values(self, number: int) -> pa.Table:
        values = self.domain.columns[number].values
        return pa.table([pa.array(np.arange(len(values))), values], names=[_code(number), _value(number)])


def _as_bools(column: pa.BooleanArray) -> Bools:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _code(number: int) -> str:
    return f"__dalenius_code_{number}"


def _value(number: int) -> str:
    return f"__dalenius_value_{number}"


def _domain_table(number: int) -> str:
    return f"__dalenius_domain_{number}"
