"""What expressions are worth on the values of a domain, by DuckDB over just the columns that each names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.arrays import Bools
from dalenius.errors import QueryError
from dalenius.mechanisms.tuples.answer.formula import EVERYTHING, Formula, Table, both, either, negated
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.question.database import Workspace
from dalenius.question.logic import take_apart, where
from dalenius.question.names import ROW
from dalenius.question.query import Atom, Choice, Condition, Expression, Membership, TruthTest
from dalenius.sql import identifier

LARGEST_TABLE = 2**25
"""Entries of the largest table that is written out."""
_RANK = "__dalenius_rank"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Atoms:
    """Evaluates expressions over the domain's columns; as an algebra, places are formulas over its tuples."""

    domain: Domain
    workspace: Workspace
    every = staticmethod(both)
    either = staticmethod(either)
    negated = staticmethod(negated)

    def formula(self, condition: Condition | None) -> Formula:
        """Where a condition is TRUE."""
        return EVERYTHING if condition is None else where(condition, self)

    def atom(self, atom: Atom, is_true: bool) -> Formula:
        """Where an atom is TRUE, or where it is FALSE."""
        match atom:
            case Choice() | TruthTest():
                # as a whole it would need a table over all the columns that it names
                return take_apart(atom, self, is_true)
            case Membership():
                found = self.membership(atom, is_true)
                return self._table(atom.expression, is_true) if found is None else found
            case Expression():
                return self._table(atom, is_true)

    def arrange(self, parts: Sequence[Condition]) -> Sequence[Condition]:
        """All parts are needed."""
        return parts

    def membership(self, atom: Membership, is_true: bool) -> Table | None:
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
        return Table(columns=(number,), holds=holds if is_true else _as_bools(values.is_valid()) & ~holds)

    def values(self, expression: Expression) -> tuple[tuple[int, ...], tuple[int, ...], pa.Array]:
        """The columns that the expression names, their sizes, and its value for every combination."""
        columns, shape = self._shape(expression.columns, expression.sql)
        found = self._run(expression.sql, f"SELECT {_RANK}, ({expression.sql}) AS v", columns)
        joined = found.column(1).combine_chunks()
        cells = joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined
        rank = found.column(0).to_numpy()
        in_order = bool((rank[1:] > rank[:-1]).all())
        return columns, shape, cells if in_order else cells.take(pa.array(np.argsort(rank)))

    def _table(self, expression: Expression, is_true: bool) -> Table:
        sql = expression.sql if is_true else f"NOT {expression.sql}"
        columns, shape = self._shape(expression.columns, sql)
        holds = np.zeros(math.prod(shape), dtype=np.bool_)
        found = self._run(sql, f"SELECT {_RANK}", columns, f"WHERE ({sql}) IS TRUE")
        holds[found.column(0).to_numpy()] = True
        return Table(columns=columns, holds=holds.reshape(shape))

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

        tables = {_domain_table(number): self._listed(number) for number in columns}
        return self.workspace.database.run(query, tables, self.workspace.deadline, refuse)

    def _listed(self, number: int) -> pa.Table:
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
