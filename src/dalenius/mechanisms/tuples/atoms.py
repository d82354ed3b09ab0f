"""The tables of a predicate's atoms, by DuckDB over the cross product of just the columns that each names."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from dalenius.errors import QueryError, did_you_mean
from dalenius.mechanisms.tuples.formula import Table

LARGEST_TABLE = 2**25
"""Entries of the largest table that is written out."""

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}
_VOLATILE = {"random", "uuid", "gen_random_uuid", "uuidv4", "uuidv7", "nextval", "setseed"}


class Atoms:
    """Evaluates SQL expressions over the domain's columns; use `open_atoms`."""

    def __init__(
        self,
        connection: Any,
        columns: Mapping[str, Any],
        tables: Mapping[str, Any],
        relation: str,
    ) -> None:
        self._connection = connection
        self._columns = {name.lower(): values for name, values in columns.items()}
        self._names = tuple(columns)
        self._sizes = tuple(len(values) for values in columns.values())
        self._numbers = {name.lower(): number for number, name in enumerate(columns)}
        self._inner = {
            name.lower(): {c.lower() for c in table.column_names} for name, table in tables.items()
        }
        self._relation = relation

    def columns_of(self, node: exp.Expression) -> tuple[int, ...]:
        """The numbers of the domain's columns that the expression names, ascending.

        A column of a subquery counts if it may be the release's. One too many only makes the table larger,
        and with one too few DuckDB cannot bind the name, so no mistake here gives a wrong count.
        """
        found = set()
        for column in node.find_all(exp.Column):
            number = self._numbers.get(column.name.lower())
            in_subquery = column.parent_select is not None
            if number is None and not in_subquery:
                raise QueryError(
                    f"the release has no column {column.name!r}; it has {', '.join(self._names)}",
                    hint=did_you_mean(column.name, self._names),
                )
            if number is not None and not (in_subquery and self._is_of_subquery(column)):
                found.add(number)
        return tuple(sorted(found))

    def evaluate(self, node: exp.Expression) -> Table:
        """Where the expression is TRUE."""
        columns, shape = self._checked(node)
        holds = np.zeros(math.prod(shape), dtype=np.bool_)
        where = f"WHERE ({node.sql('duckdb')}) IS TRUE"
        holds[self._run(node, f"SELECT {_RANK}", columns, where).column(0).to_numpy()] = True
        return Table(columns=columns, holds=holds.reshape(shape))

    def membership(self, column: str, listed: tuple[str, ...] | tuple[int, ...]) -> Table | None:
        """Where a column has one of the listed literals, without DuckDB; None if their types differ."""
        values = self._columns[column.lower()]
        same_type = pa.types.is_integer if isinstance(listed[0], int) else pa.types.is_string
        if not same_type(values.type):
            return None
        try:
            holds = pc.is_in(values, value_set=pa.array(listed, values.type))
        except (pa.ArrowInvalid, OverflowError):  # a number beyond the column's type
            return None
        found = np.asarray(holds.to_numpy(zero_copy_only=False), dtype=np.bool_)
        return Table(columns=(self._numbers[column.lower()],), holds=found)

    def values(self, node: exp.Expression) -> tuple[tuple[int, ...], tuple[int, ...], pa.Array]:
        """The columns that the expression names, their sizes, and its value for every combination."""
        columns, shape = self._checked(node)
        found = self._run(node, f"SELECT ({node.sql('duckdb')}) AS v", columns, f"ORDER BY {_RANK}").column(0)
        joined = found.combine_chunks()
        return columns, shape, joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined

    def _checked(self, node: exp.Expression) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The columns that the expression names and their sizes, if that is not too much to write out."""
        _refuse_volatile(node)
        self._refuse_unknown_tables(node)
        columns = self.columns_of(node)
        shape = tuple(self._sizes[number] for number in columns)
        size = math.prod(shape)
        if size > LARGEST_TABLE:
            raise QueryError(
                f"{node.sql('duckdb')} compares columns with {size:,} combinations of values; "
                f"at most {LARGEST_TABLE:,} can be tried",
                hint="write it with AND and OR of comparisons of fewer columns",
            )
        return columns, shape

    def _run(self, node: exp.Expression, select: str, columns: tuple[int, ...], rest: str) -> pa.Table:
        """Evaluate over the cross product of the columns' values, whose combinations are numbered."""
        rank = "0::BIGINT"
        for number in columns:
            rank = f"({rank}) * {self._sizes[number]} + {_code(number)}"
        values = [
            f"{_code(number)}, {_value(number)} AS {_quoted(self._names[number])}" for number in columns
        ]
        source = ", ".join(["(SELECT 0)", *(_domain_table(number) for number in columns)])
        listed = ", ".join([*values, f"{rank} AS {_RANK}"])
        sql = f"{select} FROM (SELECT {listed} FROM {source}) AS {_quoted(self._relation)} {rest}"
        try:
            return self._connection.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            raise QueryError(f"{node.sql('duckdb')}: {str(error).splitlines()[0]}") from error

    def _is_of_subquery(self, column: exp.Column) -> bool:
        """Whether the column belongs to an auxiliary table of a subquery that it stands in."""
        scope = column.parent_select
        while scope is not None:
            for table in scope.find_all(exp.Table):
                if column.table.lower() == table.alias_or_name.lower():
                    return True
                if not column.table and column.name.lower() in self._inner[table.name.lower()]:
                    return True
            scope = scope.parent_select
        return False

    def _refuse_unknown_tables(self, node: exp.Expression) -> None:
        for table in node.find_all(exp.Table):
            if table.name.lower() not in self._inner or table.db:
                raise QueryError(
                    f"there is no table {table.sql('duckdb')!r}; known: {', '.join(self._inner) or 'none'}"
                )


@contextmanager
def open_atoms(columns: Mapping[str, Any], tables: Mapping[str, Any], relation: str) -> Iterator[Atoms]:
    """An evaluator with the domain's values and the auxiliary tables loaded, closed at the end."""
    connection = duckdb.connect(":memory:", config=_SETTINGS)
    try:
        for number, values in enumerate(columns.values()):
            codes = pa.array(np.arange(len(values)))
            listed = pa.table([codes, values], names=[_code(number), _value(number)])
            connection.register(_domain_table(number), listed)
        for name, table in tables.items():
            connection.register(name, table)
        connection.execute("SET lock_configuration = true")
        yield Atoms(connection, columns, tables, relation)
    finally:
        connection.close()


def _refuse_volatile(node: exp.Expression) -> None:
    for function in node.find_all(exp.Func):
        name = (function.name if isinstance(function, exp.Anonymous) else function.sql_name()).lower()
        if name in _VOLATILE or isinstance(function, exp.Rand):
            raise QueryError(f"{node.sql('duckdb')} is not a fixed property of a row")


_RANK = "__dalenius_rank"


def _code(number: int) -> str:
    return f"__dalenius_code_{number}"


def _value(number: int) -> str:
    return f"__dalenius_value_{number}"


def _domain_table(number: int) -> str:
    return f"__dalenius_domain_{number}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
