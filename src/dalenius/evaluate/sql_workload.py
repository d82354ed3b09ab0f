"""A question's true answer, by DuckDB on the original.

The user's own questions: a file of SELECT statements, separated by semicolons.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot.tokenizer_core import Token, TokenType

from dalenius.errors import InputError, QueryError
from dalenius.evaluate.original import Original
from dalenius.evaluate.workload import Key, Questions, TrueAnswer
from dalenius.question.names import ROW, place
from dalenius.question.query import (
    Aggregate,
    AggregateRef,
    Arithmetic,
    Bounded,
    Condition,
    Either,
    Every,
    Formula,
    Negation,
    Number,
    Query,
    Root,
    Statistic,
    StatisticRef,
    expression_of,
)
from dalenius.question.sql import parse
from dalenius.sql import connect, identifier


def answer_truly(query: Query, table: pa.Table) -> TrueAnswer:
    """The groups that occur in the table, each with its numbers; NULLs and infinities are left out.

    >>> from dalenius.question.sql import parse
    >>> people = pa.table({"sex": ["F", "M", "F"], "age": [30, 40, 50]})
    >>> answer_truly(parse("SELECT sex, SUM(age) AS s FROM t GROUP BY sex", ["sex", "age"]), people).cells
    {(('F',), 's'): 80.0, (('M',), 's'): 40.0}
    """
    names = [item.name for item in query.items]
    if len(set(names)) < len(names):
        raise QueryError("two columns of the question have the same name", hint="name them with AS")
    keys = [key.expression.sql for key in query.groups]
    numbers = [_formula(query, item.formula) for item in query.items]
    where = f" WHERE {_condition(query.where)}" if query.where is not None else ""
    by = f" GROUP BY {', '.join(keys)} ORDER BY {', '.join(keys)}" if keys else ""
    rows = _rows(f"SELECT {', '.join([*keys, *numbers])} FROM {identifier(ROW)}{where}{by}", table)
    cells: dict[Key, float] = {}
    for row in rows:
        group = row[: len(keys)]
        for name, cell in zip(names, row[len(keys) :], strict=True):
            if cell is not None and math.isfinite(cell):
                cells[group, name] = float(cell)
    return TrueAnswer(cells=cells, scale=_scales(query, table))


def most_changed(query: Query) -> int | None:
    """How much the counts can change together when a record is replaced; None if there are other numbers.

    A group loses the record and another gains it.
    """
    kinds = {_aggregate_kind(query, item.formula) for item in query.items}
    return len(query.items) * (2 if query.groups else 1) if kinds == {"count"} else None


def _scales(query: Query, table: pa.Table) -> Mapping[str, float]:
    """The number of records for a COUNT, Σ|x| for a SUM, 0 for what is neither."""
    scales = {}
    for item in query.items:
        kind = _aggregate_kind(query, item.formula)
        scales[item.name] = float(table.num_rows) if kind == "count" else 0.0
        if kind == "sum" and isinstance(item.formula, AggregateRef):
            argument = query.aggregates[item.formula.index].argument
            assert argument is not None  # noqa: S101  (a SUM has one)
            ((total,),) = _rows(f"SELECT sum(abs({argument.sql})) FROM {identifier(ROW)}", table)
            scales[item.name] = float(total or 0)
    return scales


def _aggregate_kind(query: Query, formula: Formula) -> str | None:
    return query.aggregates[formula.index].kind if isinstance(formula, AggregateRef) else None


def _rows(sql: str, table: pa.Table) -> list[tuple[Any, ...]]:
    with connect() as connection:
        connection.register(ROW, table)
        try:
            found = connection.sql(sql).to_arrow_table()
        except duckdb.Error as error:  # its text may quote a cell
            raise QueryError(f"the table cannot answer the question ({type(error).__name__})") from error
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def _formula(query: Query, formula: Formula) -> str:
    match formula:
        case AggregateRef(index=index):
            return _aggregate(query.aggregates[index])
        case Number(value=value):
            return repr(value)
        case Arithmetic(operator=operator, left=left, right=right):
            return f"({_formula(query, left)} {operator} {_formula(query, right)})"
        case Bounded(part=part):
            return _formula(query, part)
        case Root(part=part):
            return f"sqrt(greatest({_formula(query, part)}, 0))"
        case StatisticRef(index=index):
            return _statistic(query.statistics[index])


def _statistic(one: Statistic) -> str:
    x, q = one.argument.sql, one.fraction
    call = {
        "continuous": f"quantile_cont({x}, {q!r})",
        "discrete": f"quantile_disc({x}, {q!r})",
        "ends": f"{'max' if q else 'min'}({x})",
        "distinct": f"count(DISTINCT {x})",
    }[one.kind]
    return call + (f" FILTER (WHERE {_condition(one.condition)})" if one.condition else "")


def _aggregate(aggregate: Aggregate) -> str:
    argument = "*" if aggregate.argument is None else aggregate.argument.sql
    filtered = f" FILTER (WHERE {_condition(aggregate.condition)})" if aggregate.condition else ""
    return f"{aggregate.kind}({argument}){filtered}"


def _condition(condition: Condition) -> str:
    match condition:
        case Every(parts=parts):
            return f"({' AND '.join(_condition(part) for part in parts)})"
        case Either(parts=parts):
            return f"({' OR '.join(_condition(part) for part in parts)})"
        case Negation(part=part):
            return f"(NOT {_condition(part)})"
        case _:
            return f"({expression_of(condition).sql})"


_CHOOSING = {TokenType.HAVING: "HAVING", TokenType.LIMIT: "LIMIT", TokenType.OFFSET: "OFFSET"}


class SqlStatement(NamedTuple):
    """One statement, and how many characters of its file come before it."""

    text: str
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlWorkload:
    """Questions as they are written, asked of one table under any name."""

    name: str
    text: str

    @classmethod
    def from_file(cls, path: str | Path) -> SqlWorkload:
        """Read a file; its questions are checked when the table is known."""
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the workload {file} cannot be read as text") from error
        return cls(name=file.name, text=text)

    def questions(self, original: Original, stream: np.random.Generator) -> Questions:  # noqa: ARG002
        """Check every statement and answer it on the original; nothing is random."""
        found = self.statements()
        if not found:
            raise InputError(
                f"{self.name} holds no question",
                hint="write SELECT COUNT(*) FROM t WHERE …; one after the other",
            )
        parsed = [self._parse(statement, original.table) for statement in found]
        changes = [most_changed(query) for query in parsed]
        return Questions(
            sqls=tuple(statement.text for statement in found),
            answers=tuple(self._answer(*pair, original.table) for pair in zip(found, parsed, strict=True)),
            most_changed=None if None in changes else sum(change or 0 for change in changes),
        )

    def _answer(self, statement: SqlStatement, query: Query, table: pa.Table) -> TrueAnswer:
        try:
            return answer_truly(query, table)
        except QueryError as error:
            where = place(self.text, statement.start)
            raise QueryError(f"{self.name}, {where}: {error.message}", hint=error.hint) from error

    def statements(self) -> list[SqlStatement]:
        """The statements; semicolons in texts and comments do not end one.

        >>> workload = SqlWorkload(name="own.sql", text="SELECT ';' /* a;b */; SELECT 2;")
        >>> [statement.text for statement in workload.statements()]
        ["SELECT ';'", 'SELECT 2']
        """
        statements: list[SqlStatement] = []
        own: list[Token] = []
        for token in [*self._tokens(), None]:
            if token is not None and token.token_type != TokenType.SEMICOLON:
                own.append(token)
            elif own:
                start, end = own[0].start, own[-1].end + 1
                statements.append(SqlStatement(text=self.text[start:end], start=start))
                own = []
        return statements

    def _tokens(self) -> list[Token]:
        try:
            return sqlglot.tokenize(self.text, read="duckdb")
        except sqlglot.errors.SqlglotError as error:
            raise InputError(f"{self.name} is not SQL: {str(error).splitlines()[0]}") from error

    def _parse(self, statement: SqlStatement, table: pa.Table) -> Query:
        self._refuse_choosing(statement)
        # Blanks for what comes before it: places in messages are then places in the file.
        before = "".join(sign if sign == "\n" else " " for sign in self.text[: statement.start])
        try:
            return parse(before + statement.text, table.column_names)
        except QueryError as error:
            raise QueryError(f"{self.name}, {error.message}", hint=error.hint) from error

    def _refuse_choosing(self, statement: SqlStatement) -> None:
        """HAVING and LIMIT show other groups of a release than of the table: there is nothing to compare."""
        for token in sqlglot.tokenize(statement.text, read="duckdb"):
            if token.token_type in _CHOOSING:
                where = place(self.text, statement.start + token.start)
                raise QueryError(
                    f"{self.name}, {where}: {_CHOOSING[token.token_type]} chooses groups by their estimates, "
                    "which differ from release to release",
                    hint="leave it out: a workload compares all groups",
                )
