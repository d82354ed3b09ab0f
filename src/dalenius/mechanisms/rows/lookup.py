"""What expressions are worth on the values of the columns they read.

An expression over quasi-identifiers only is evaluated once per different combination of their values; one
over sensitive columns only once per sensitive value; a mixed one on the cross product of both.

Which rows satisfy a condition is found for one sensitive value at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dalenius.arrays import Bits
from dalenius.errors import QueryError
from dalenius.question.database import Workspace
from dalenius.question.names import ROW
from dalenius.question.query import (
    Atom,
    Comparison,
    Condition,
    Expression,
    Membership,
    Order,
    UpTo,
    atoms,
    columns_of,
    expression_of,
    where,
)
from dalenius.sql import identifier
from dalenius.tables.columns import Coded, CodedTable

_COMPARE: dict[Order, np.ufunc] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "<>": np.not_equal,
}
_MOST_CELLS = 20_000_000
_AT_ONCE = 200

Truths = NDArray[np.int8]
"""Sensitive values × different row values: 1 true, 0 false, -1 NULL. One row if nothing sensitive is read."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lookup:
    """Evaluates expressions on the values of a release's columns, and remembers what it found."""

    rows: CodedTable
    """The quasi columns, a row per person."""
    sensitive: CodedTable
    """The sensitive columns, a row per sensitive value."""
    workspace: Workspace

    def sensitive_part(self, columns: Iterable[str]) -> tuple[str, ...]:
        """Those columns that are sensitive."""
        return tuple(name for name in columns if name in self.sensitive.columns)

    def quasi(self, columns: Iterable[str]) -> Coded:
        """The combinations of values of those columns that are quasi-identifiers."""
        return self.rows.combine([name for name in columns if name in self.rows.columns])

    def prepare(self, expressions: Iterable[Expression]) -> None:
        """Evaluate many expressions, those over the same columns together."""
        self.workspace.remembered.forget_oldest()  # not while these are evaluated: all are needed together
        waiting: dict[tuple[str, ...], dict[str, None]] = {}
        for expression in expressions:
            if self._find(expression) is None:
                waiting.setdefault(expression.columns, {})[expression.sql] = None
        for columns, texts in waiting.items():
            listed = list(texts)
            for start in range(0, len(listed), _AT_ONCE):
                self._evaluate(columns, listed[start : start + _AT_ONCE])

    def values(self, expression: Expression) -> pa.ChunkedArray:
        """The expression's value for each sensitive value (outer) and row value (inner)."""
        found = self._find(expression)
        if found is None:
            (found,) = self._evaluate(expression.columns, [expression.sql])
        return found

    def _find(self, expression: Expression) -> pa.ChunkedArray | None:
        """What is known without DuckDB."""
        found = self._plain_column(expression)
        if found is None:
            found = self.workspace.remembered.get(expression.sql)
        if found is None and isinstance(expression, UpTo):
            found = self._up_to(expression)
        return found

    def _up_to(self, expression: UpTo) -> pa.ChunkedArray:
        """Of many limits DuckDB would compare the same numbers again and again."""
        numbers = self.values(expression.number).to_numpy()  # NULL is NaN, and beyond every limit
        is_beyond = ~(numbers <= expression.limit)
        found = pa.chunked_array([pa.array(np.ones(len(numbers), dtype=np.int8), mask=is_beyond)])
        self.workspace.remembered.keep(expression.sql, found)
        return found

    def _plain_column(self, expression: Expression) -> pa.ChunkedArray | None:
        """A column by itself, without DuckDB, which gives back whole numbers and texts as they are."""
        name = expression.columns[0] if len(expression.columns) == 1 else None
        if name is None or expression.sql != f"{ROW}.{identifier(name)}":
            return None
        coded = self._coded(name)
        kind = coded.cells.type
        if not (pa.types.is_integer(kind) or pa.types.is_string(kind)):
            return None
        return pa.chunked_array([coded.decode() if name in self.sensitive.columns else coded.cells])

    def _coded(self, name: str) -> Coded:
        return (self.sensitive if name in self.sensitive.columns else self.rows).columns[name]

    def range(self, expression: Expression) -> tuple[float, float]:
        """The least and the largest number that the expression can be."""
        numbers = self.values(expression)
        if not (pa.types.is_integer(numbers.type) or pa.types.is_floating(numbers.type)):
            return -np.inf, np.inf
        ends = pc.min_max(numbers).as_py()
        return (-np.inf, np.inf) if ends["min"] is None else (float(ends["min"]), float(ends["max"]))

    def truths(self, atom: Atom) -> Truths:
        """The truth of a condition for each sensitive value (outer) and row value (inner)."""
        if isinstance(atom, Membership | Comparison):
            found = self._truths_of_values(atom)
            if found is not None:
                is_sensitive = atom.column in self.sensitive.columns
                return found[self._coded(atom.column).codes][:, None] if is_sensitive else found[None, :]
        expression = expression_of(atom)
        column = self.values(expression)
        if not pa.types.is_boolean(column.type):
            column = self._as_boolean(expression)
        flat = column.combine_chunks().cast(pa.int8()).fill_null(-1)
        flat = flat.combine_chunks() if isinstance(flat, pa.ChunkedArray) else flat
        return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(self.n_outer(expression), -1)

    def _as_boolean(self, atom: Expression) -> pa.ChunkedArray:
        return self.values(Expression(sql=f"CAST({atom.sql} AS BOOLEAN)", columns=atom.columns))

    def _truths_of_values(self, atom: Membership | Comparison) -> Truths | None:
        """By the code of a column's value, without DuckDB where the literals have the column's own type."""
        coded = self._coded(atom.column)
        kind = coded.cells.type
        if isinstance(atom, Membership) and isinstance(atom.values[0], str):
            fits = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        else:
            fits = pa.types.is_integer(kind) and (isinstance(atom, Membership) or kind != pa.uint64())
        if not fits:
            return None
        if isinstance(atom, Comparison):
            compare = _COMPARE[atom.order]
            numbers = coded.cells.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
            truths = np.asarray(compare(numbers, atom.value)).astype(np.int8)
        else:
            truths = np.zeros(coded.n_values, dtype=np.int8)
            truths[[coded.code_of[value] for value in atom.values if value in coded.code_of]] = 1
        if None in coded.code_of:
            truths[coded.code_of[None]] = -1
        return truths

    def n_outer(self, expression: Expression) -> int:
        """How many sensitive values an expression is evaluated for: 1 if it reads none."""
        return self.sensitive.n_rows if self.sensitive_part(expression.columns) else 1

    def _evaluate(self, columns: tuple[str, ...], texts: list[str]) -> list[pa.ChunkedArray]:
        table = self._cross(columns)
        found: list[pa.ChunkedArray] = self.workspace.database.select(
            texts, table, self.workspace.deadline
        ).columns[1:]
        for text, column in zip(texts, found, strict=True):
            self.workspace.remembered.keep(text, column)
        return found

    def _cross(self, columns: tuple[str, ...]) -> pa.Table:
        """Every sensitive value with every combination of quasi values, as far as `columns` needs them."""
        inner = self.quasi(columns)
        outer = self.sensitive_part(columns)
        n_outer = self.sensitive.n_rows if outer else 1
        n_cells = n_outer * inner.n_values
        if n_cells > _MOST_CELLS:
            raise QueryError(
                f"an expression joins {inner.n_values} combinations of quasi-identifiers with {n_outer} "
                f"sensitive values; at most {_MOST_CELLS} pairs are evaluated",
                hint="use fewer columns in one expression; AND and OR of conditions are not limited",
            )
        inner_index = pa.array(np.tile(np.arange(inner.n_values), n_outer))
        outer_index = np.repeat(np.arange(n_outer), inner.n_values)
        cells: Mapping[str, pa.Array] = {
            name: cells.take(inner_index) for name, cells in inner.values.items()
        }
        secret = {name: self.sensitive.columns[name].decode(outer_index) for name in outer}
        return pa.table({"__id": np.arange(n_cells), **cells, **secret})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RowsOfValue:
    """Sets of rows, as bits, if all their sensitive values were the one with this code."""

    lookup: Lookup
    value: int

    def atom(self, atom: Atom, is_true: bool) -> Bits:
        truths = self.lookup.truths(atom)
        chosen = truths[self.value if len(truths) > 1 else 0] == is_true
        rows = self.lookup.rows
        if len(chosen) == 1:
            return rows.all_rows() if chosen[0] else rows.no_rows()
        return self.lookup.quasi(columns_of(atom)).select(chosen)

    def every(self, parts: Iterable[Bits]) -> Bits:
        found: Bits | None = None
        for part in parts:
            found = part if found is None else found & part
            if not found.any():
                break
        assert found is not None  # noqa: S101  (a conjunction has parts)
        return found

    def either(self, parts: Iterable[Bits]) -> Bits:
        return np.asarray(np.bitwise_or.reduce(list(parts)))

    def arrange(self, parts: Sequence[Condition]) -> Sequence[Condition]:
        """What the sensitive value alone decides comes first: it often leaves no row at all."""
        return sorted(parts, key=lambda part: not self._is_secret(part))

    def _is_secret(self, part: Condition) -> bool:
        secret = self.lookup.sensitive.columns
        return all(name in secret for atom in atoms(part) for name in columns_of(atom))


def rows_where(lookup: Lookup, condition: Condition | None, value: int) -> Bits:
    """The rows for which the condition is TRUE if their sensitive value is the one with code `value`."""
    if condition is None:
        return lookup.rows.all_rows()
    return where(condition, _RowsOfValue(lookup=lookup, value=value))
