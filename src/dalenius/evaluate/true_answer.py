"""A question's true answer, by DuckDB on the original."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

from dalenius.ask.names import ROW
from dalenius.ask.query import (
    Aggregate,
    AggregateRef,
    Arithmetic,
    Condition,
    Either,
    Every,
    Formula,
    Membership,
    Negation,
    Number,
    Query,
)
from dalenius.errors import QueryError
from dalenius.evaluate.questions import Key, TrueAnswer
from dalenius.sql import connect, identifier


def answer_truly(query: Query, table: pa.Table) -> TrueAnswer:
    """The groups that occur in the table, each with its numbers; NULLs and infinities are left out.

    >>> from dalenius.ask.sql import parse
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
        case Membership(expression=expression):
            return f"({expression.sql})"
        case _:
            return f"({condition.sql})"
