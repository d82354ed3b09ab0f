"""The original table, encoded, on which questions have their true answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from dalenius.arrays import Bits, Codes, Ints
from dalenius.sql import identifier, literal
from dalenius.tables.columns import Coded, CodedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class CountQuestion:
    """How many records have one of the listed values in each of the listed columns; values are codes."""

    conditions: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Original:
    """A table as its publisher has it, after recoding.

    >>> original = Original.of(pa.table({"age": [30, 41, 30], "disease": ["Flu", "Flu", None]}), ["disease"])
    >>> question = CountQuestion(conditions=(("age", (0,)), ("disease", (0, 1))))
    >>> print(original.sql(question))
    SELECT COUNT(*) AS n FROM t WHERE "age" IN (30) AND ("disease" IN ('Flu') OR "disease" IS NULL)
    >>> original.count(question)
    2
    """

    table: pa.Table
    coded: CodedTable
    sensitive: tuple[str, ...]
    cells: dict[str, list[Any]]
    """Per column, its different values by code; None is NULL."""

    @classmethod
    def of(cls, table: pa.Table, sensitive: Sequence[str]) -> Original:
        """Encode a table."""
        coded = CodedTable.of(table)
        cells = {name: column.cells.to_pylist() for name, column in coded.columns.items()}
        return cls(table=table, coded=coded, sensitive=tuple(sensitive), cells=cells)

    def take(self, rows: Codes) -> Original:
        """The records with these numbers, a record as often as it is listed, under the same codes.

        >>> original = Original.of(pa.table({"sex": ["F", "M"], "disease": ["Flu", "HIV"]}), ["disease"])
        >>> original.take(np.array([1, 1])).codes("sex").tolist()
        [1, 1]
        """
        columns = {
            name: Coded(codes=column.codes[rows], values=column.values)
            for name, column in self.coded.columns.items()
        }
        return Original(
            table=self.table.take(pa.array(rows)),
            coded=CodedTable(n_rows=len(rows), columns=columns),
            sensitive=self.sensitive,
            cells=self.cells,
        )

    def with_column(self, name: str, column: pa.Array) -> Original:
        """The same records with other cells in one of the columns."""
        alone = Original.of(pa.table({name: column}), ())
        columns = {**self.coded.columns, **alone.coded.columns}
        return Original(
            table=self.table.set_column(self.table.schema.get_field_index(name), name, column),
            coded=CodedTable(n_rows=self.n_rows, columns=columns),
            sensitive=self.sensitive,
            cells={**self.cells, **alone.cells},
        )

    @property
    def n_rows(self) -> int:
        """How many records there are."""
        return self.coded.n_rows

    @property
    def quasi(self) -> tuple[str, ...]:
        """The columns that are not sensitive."""
        return tuple(name for name in self.cells if name not in self.sensitive)

    def codes(self, column: str) -> Codes:
        """Which of its column's values each record has."""
        return self.coded.columns[column].codes

    def rows(self, question: CountQuestion) -> Ints:
        """The records that a question counts."""
        return self.coded.rows(self._bits(question))

    def count(self, question: CountQuestion) -> int:
        """The true answer."""
        return int(np.unpackbits(self._bits(question), count=self.n_rows).sum())

    def _bits(self, question: CountQuestion) -> Bits:
        found = self.coded.all_rows()
        for column, chosen in question.conditions:
            member = np.zeros(len(self.cells[column]), dtype=bool)
            member[list(chosen)] = True
            found = found & self.coded.columns[column].select(member)
        return found

    def sql(self, question: CountQuestion) -> str:
        """The question as SQL; its one column is called n."""
        parts = [self._condition(column, chosen) for column, chosen in question.conditions]
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        return f"SELECT COUNT(*) AS n FROM t{where}"

    def _condition(self, column: str, chosen: tuple[int, ...]) -> str:
        name, cells = identifier(column), [self.cells[column][code] for code in chosen]
        listed = ", ".join(cell_literal(cell) for cell in cells if cell is not None)
        either = [f"{name} IN ({listed})"] if listed else []
        if None in cells:
            either.append(f"{name} IS NULL")
        return either[0] if len(either) == 1 else f"({' OR '.join(either)})"


def cell_literal(cell: Any) -> str:
    """A cell that is not NULL, as SQL.

    >>> cell_literal("O'Hara"), cell_literal(3), cell_literal(True)
    ("'O''Hara'", '3', 'True')
    """
    return str(cell) if isinstance(cell, bool | int | float | Decimal) else literal(str(cell))
