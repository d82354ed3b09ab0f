"""What expressions are worth on the values of the columns they read.

An expression over quasi-identifiers only is evaluated once per different combination of their values; one
over sensitive columns only once per sensitive value; a mixed one on the cross product of both.

Which rows satisfy a condition, in SQL's three-valued logic, for one sensitive value.

Only the rows where a condition is TRUE, or those where it is FALSE, are ever needed: NOT swaps the two, so
negations move down to the atoms and NULL (neither) needs no bits of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dalenius.arrays import Bits
from dalenius.errors import QueryError
from dalenius.question.database import Database, Deadline
from dalenius.question.query import (
    Condition,
    Either,
    Every,
    Expression,
    Membership,
    Negation,
    atoms,
    columns_of,
)
from dalenius.tables.columns import Coded, CodedTable

_MOST_CELLS = 20_000_000
_AT_ONCE = 200
_REMEMBERED = 50_000

Truths = NDArray[np.int8]
"""Sensitive values × different row values: 1 true, 0 false, -1 NULL. One row if nothing sensitive is read."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lookup:
    """Evaluates expressions on the values of a release's columns, and remembers what it found."""

    rows: CodedTable
    """The quasi columns, a row per person."""
    sensitive: CodedTable
    """The sensitive columns, a row per sensitive value."""
    database: Database
    deadline: Deadline
    remembered: dict[str, pa.ChunkedArray] = field(default_factory=dict)

    def sensitive_part(self, columns: Iterable[str]) -> tuple[str, ...]:
        """Those columns that are sensitive."""
        return tuple(name for name in columns if name in self.sensitive.columns)

    def quasi(self, columns: Iterable[str]) -> Coded:
        """The combinations of values of those columns that are quasi-identifiers."""
        return self.rows.combined([name for name in columns if name in self.rows.columns])

    def prepare(self, expressions: Iterable[Expression]) -> None:
        """Evaluate many expressions, those over the same columns together."""
        waiting: dict[tuple[str, ...], dict[str, None]] = {}
        for expression in expressions:
            if expression.sql not in self.remembered:
                waiting.setdefault(expression.columns, {})[expression.sql] = None
        for columns, texts in waiting.items():
            listed = list(texts)
            for start in range(0, len(listed), _AT_ONCE):
                self._evaluate(columns, listed[start : start + _AT_ONCE])

    def values(self, expression: Expression) -> pa.ChunkedArray:
        """The expression's value for each sensitive value (outer) and row value (inner)."""
        self.prepare([expression])
        return self.remembered[expression.sql]

    def range(self, expression: Expression) -> tuple[float, float]:
        """The least and the largest number that the expression can be."""
        numbers = self.values(expression)
        if not (pa.types.is_integer(numbers.type) or pa.types.is_floating(numbers.type)):
            return -np.inf, np.inf
        ends = pc.min_max(numbers).as_py()
        return (-np.inf, np.inf) if ends["min"] is None else (float(ends["min"]), float(ends["max"]))

    def truths(self, atom: Expression | Membership) -> Truths:
        """The truth of a condition for each sensitive value (outer) and row value (inner)."""
        if isinstance(atom, Membership):
            found = self._member(atom)
            if found is not None:
                return found
            atom = atom.expression
        column = self.values(atom)
        if not pa.types.is_boolean(column.type):
            column = self._as_boolean(atom)
        flat = column.combine_chunks().cast(pa.int8()).fill_null(-1)
        flat = flat.combine_chunks() if isinstance(flat, pa.ChunkedArray) else flat
        return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(self._n_outer(atom), -1)

    def _as_boolean(self, atom: Expression) -> pa.ChunkedArray:
        return self.values(Expression(sql=f"CAST({atom.sql} AS BOOLEAN)", columns=atom.columns))

    def _member(self, atom: Membership) -> Truths | None:
        """Without DuckDB where the literals have the column's own type."""
        is_sensitive = atom.column in self.sensitive.columns
        coded = (self.sensitive if is_sensitive else self.rows).columns[atom.column]
        kind = coded.values[atom.column].type
        if isinstance(atom.values[0], str):
            fits = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        else:
            fits = pa.types.is_integer(kind)
        if not fits:
            return None
        truths = np.zeros(coded.n_values, dtype=np.int8)
        known = [coded.code_of[value] for value in atom.values if value in coded.code_of]
        truths[known] = 1
        if None in coded.code_of:
            truths[coded.code_of[None]] = -1
        return truths[coded.codes][:, None] if is_sensitive else truths[None, :]

    def _n_outer(self, expression: Expression) -> int:
        return self.sensitive.n_rows if self.sensitive_part(expression.columns) else 1

    def _evaluate(self, columns: tuple[str, ...], texts: list[str]) -> None:
        table = self._cross(columns)
        found = self.database.select(texts, table, self.deadline)
        if len(self.remembered) > _REMEMBERED:
            self.remembered.clear()
        for i, text in enumerate(texts):
            self.remembered[text] = found.column(i + 1)

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
        secret = {
            name: self.sensitive.columns[name]
            .values[name]
            .take(pa.array(self.sensitive.columns[name].codes[outer_index]))
            for name in outer
        }
        return pa.table({"__id": np.arange(n_cells), **cells, **secret})


def rows_where(lookup: Lookup, condition: Condition | None, value: int) -> Bits:
    """The rows for which the condition is TRUE if their sensitive value is the one with code `value`."""
    return lookup.rows.all_rows() if condition is None else _rows(lookup, condition, value, 1)


def _rows(lookup: Lookup, condition: Condition, value: int, wanted: int) -> Bits:
    match condition:
        case Negation(part=part):
            return _rows(lookup, part, value, 1 - wanted)
        case Every(parts=parts) | Either(parts=parts):
            if isinstance(condition, Every) == (wanted == 1):
                return _rows_of_all(lookup, parts, value, wanted)
            return np.asarray(np.bitwise_or.reduce([_rows(lookup, part, value, wanted) for part in parts]))
        case _:
            truths = lookup.truths(condition)
            row = truths[value if len(truths) > 1 else 0] == wanted
            if len(row) == 1:
                return lookup.rows.all_rows() if row[0] else lookup.rows.no_rows()
            return lookup.quasi(columns_of(condition)).select(row)


def _rows_of_all(lookup: Lookup, parts: tuple[Condition, ...], value: int, wanted: int) -> Bits:
    """What the sensitive value alone decides comes first: it often leaves no row at all."""
    found: Bits | None = None
    for part in sorted(parts, key=lambda part: not _is_secret(lookup, part)):
        own = _rows(lookup, part, value, wanted)
        found = own if found is None else found & own
        if not found.any():
            break
    assert found is not None  # noqa: S101  (a conjunction has parts)
    return found


def _is_secret(lookup: Lookup, part: Condition) -> bool:
    return all(name in lookup.sensitive.columns for atom in atoms(part) for name in columns_of(atom))
