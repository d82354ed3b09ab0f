"""The original table that policies share, encoded: questions have their true answers on it.

To be compared, policies must have their source, columns and recoding in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dalenius.arrays import Bits, Codes, Ints
from dalenius.engines.base import Progress
from dalenius.engines.local.engine import LocalEngine
from dalenius.errors import InputError
from dalenius.policy import Policy
from dalenius.sql import identifier, literal
from dalenius.tables.columns import Coded, CodedTable
from dalenius.tables.frames import FrameSource
from dalenius.tables.histogram import Histogram
from dalenius.tables.source import Source, scanning


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shared:
    """The table that all policies publish, in the columns that all of them show."""

    policies: Mapping[str, Policy]
    """With the table in memory as their source: every draw reads it several times."""
    original: Original
    histogram: Histogram | None
    """Of the sensitive columns; None where no policy names any."""


def read_shared(policies: Mapping[str, Policy], progress: Progress) -> Shared:
    """Read the table, or say why the policies cannot be compared."""
    (first_name, first), *others = policies.items()
    for name, policy in others:
        if not same_source(first.source, policy.source):
            raise InputError(
                f"{first_name} publishes {first.source.name}, {name} publishes {policy.source.name}: only "
                "policies for one table can be compared",
                hint="give policies with the same source",
            )
        _refuse_other_recoding(first_name, first, name, policy)
    columns = [c for c in first.columns.published if all(c in p.columns.published for p in policies.values())]
    if not columns:
        raise InputError("no column is published by all policies: there is nothing to compare them by")
    sensitive = _sensitive(policies, columns)
    source = in_memory(first.source)
    read = {name: replace(policy, source=source) for name, policy in policies.items()}
    with LocalEngine().open(read[first_name], None, progress) as scan:
        table = scan.source.table().select(columns)
        histogram = scan.histogram(sensitive) if sensitive else None
    return Shared(policies=read, original=Original.of(table, sensitive), histogram=histogram)


def in_memory(source: Source) -> FrameSource:
    """The whole source as a data frame, under its own name."""
    if isinstance(source, FrameSource):
        return source
    with scanning(source) as (connection, scan):
        table = connection.sql(f"SELECT * FROM {scan}").to_arrow_table()
    return FrameSource(name=source.name, table=table)


def same_source(one: Source, other: Source) -> bool:
    """Whether two policies read the same file, or equal data frames."""
    if isinstance(one, FrameSource) and isinstance(other, FrameSource):
        return one.table is other.table or bool(one.table.equals(other.table))
    if isinstance(one, FrameSource) or isinstance(other, FrameSource):
        return False
    return Path(one.name).resolve() == Path(other.name).resolve()


def _refuse_other_recoding(first_name: str, first: Policy, name: str, policy: Policy) -> None:
    one, other = dict(first.recode), dict(policy.recode)
    both = set(first.columns.published) & set(policy.columns.published)
    for column in sorted(both & (one.keys() | other.keys())):
        if one.get(column) != other.get(column):
            raise InputError(
                f"{first_name} and {name} recode {column!r} differently: their answers are about different "
                "values",
                hint="give both the same [recode]",
            )


def _sensitive(policies: Mapping[str, Policy], columns: list[str]) -> tuple[str, ...]:
    """The sensitive columns of those policies that have some; they must agree."""
    named = {name: policy.columns.sensitive for name, policy in policies.items() if policy.columns.sensitive}
    for name, sensitive in named.items():
        for other, theirs in named.items():
            if set(sensitive) != set(theirs):
                raise InputError(
                    f"{name} protects {', '.join(sensitive)} and {other} protects {', '.join(theirs)}: their "
                    "promises are about different columns",
                    hint="compare policies with the same sensitive columns",
                )
    chosen = next(iter(named.values()), ())
    missing = [column for column in chosen if column not in columns]
    if missing:
        raise InputError(f"not every policy publishes the sensitive column {missing[0]!r}")
    return chosen
