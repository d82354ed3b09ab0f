"""SQL text to a `Query`, or a refusal that says where and why.

The text is parsed with sqlglot (DuckDB's dialect) and checked node by node against what is allowed. What
cannot be a weighted sum over a release is refused: joins, DISTINCT, windows, set operations, other
statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import sqlglot
from sqlglot import exp

from dalenius.ask.conditions import condition
from dalenius.ask.names import Scope
from dalenius.ask.query import GroupKey, Item, Query
from dalenius.ask.refusal import POSSIBLE, place, refuse
from dalenius.ask.results import ResultColumns
from dalenius.errors import QueryError

_CLAUSES = {"expressions", "from_", "where", "group", "having", "order", "limit", "offset"}
_NAMES = {
    "joins": "a join",
    "with_": "a common table expression (WITH)",
    "distinct": "DISTINCT",
    "qualify": "QUALIFY",
    "windows": "a window",
    "sample": "a sample",
    "laterals": "a lateral join",
    "pivots": "PIVOT",
}
_MAX_LENGTH = 1_000_000


def parse(text: str, columns: Iterable[str], tables: Mapping[str, pa.Table] | None = None) -> Query:
    """The question that a text asks of a release with these columns.

    >>> parse("SELECT COUNT(*) FROM t WHERE age > 30", ["age", "disease"]).where
    Expression(sql='__row."age" > 30', columns=('age',))
    """
    columns = tuple(columns)
    select = _only_select(text, columns)
    scope = Scope(
        text=text,
        columns={name.lower(): name for name in columns},
        qualifiers=_qualifiers(text, select),
        tables={name.lower(): table for name, table in (tables or {}).items()},
    )
    where = select.args.get("where")
    results = ResultColumns(scope=scope)
    results.add_groups(select)
    items = tuple(Item(name=name, formula=formula) for name, formula in results.items(select))
    finish = results.finish(select)
    return Query(
        text=text,
        where=condition(scope, where.this) if where is not None else None,
        groups=tuple(GroupKey(name=name, expression=scope.expression(node)) for name, node in results.groups),
        aggregates=tuple(results.aggregates),
        items=items,
        finish=finish,
    )


def _only_select(text: str, columns: Sequence[str]) -> exp.Select:
    if len(text) > _MAX_LENGTH:
        raise QueryError(f"the question has {len(text)} characters; at most {_MAX_LENGTH} are read")
    try:
        statements = [node for node in sqlglot.parse(text, dialect="duckdb") if node is not None]
    except sqlglot.errors.SqlglotError as error:
        raise _syntax_error(error, columns) from error
    except RecursionError as error:
        raise QueryError("the question is nested too deeply") from error
    if not statements:
        raise QueryError("the question is empty", hint=POSSIBLE)
    if len(statements) > 1:
        raise refuse(text, statements[1], "only one statement can be asked at a time")
    if not isinstance(statements[0], exp.Select):
        raise _refuse_statement(text, statements[0])
    return statements[0]


def _refuse_statement(text: str, node: exp.Expr) -> QueryError:
    """What is no SELECT, by its name, or where the parser has none by its first word."""
    named = not isinstance(node, exp.Command | exp.Column)
    kind = type(node).__name__ if named else text.split(maxsplit=1)[0].rstrip(";")
    begin = place(text, len(text) - len(text.lstrip()))
    return QueryError(f"{begin}: {kind.upper()} cannot be asked of a release", hint=POSSIBLE)


def _syntax_error(error: sqlglot.errors.SqlglotError, columns: Sequence[str]) -> QueryError:
    details = getattr(error, "errors", None)
    if not details:
        return QueryError(f"the question is not SQL: {str(error).splitlines()[0]}", hint=POSSIBLE)
    first = details[0]
    word, what = first["highlight"], first["description"]
    if what.startswith("Required keyword"):  # the parser's own words name its classes
        what = "something is missing"
    where = f"line {first['line']}, column {max(1, first['col'] - len(word) + 1)}"
    return QueryError(f"{where}: {what} near {word!r}", hint=_quoted(word, columns) or POSSIBLE)


def _quoted(word: str, columns: Sequence[str]) -> str | None:
    """A way out where a column is a word of SQL, or has several words."""
    for column in columns:
        if word.lower() in re.split(r"\W+", column.lower()):
            name = exp.to_identifier(column, quoted=True).sql(dialect="duckdb")
            return f"if the column is meant, write it in double quotes: {name}"
    return None


def _qualifiers(text: str, select: exp.Select) -> frozenset[str]:
    """Check the clauses and the one table; its names."""
    for key, value in select.args.items():
        if value and key not in _CLAUSES:
            node = value[0] if isinstance(value, list) else value
            what = _NAMES.get(key, key.rstrip("_").upper())
            has_place = isinstance(node, exp.Expr) and any("start" in n.meta for n in node.walk())
            place = node if has_place else select
            raise refuse(text, place, f"{what} cannot be answered from a release")
    source = select.args.get("from_")
    if source is None:
        raise refuse(text, select, "the question names no table")
    table = source.this
    plain = isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier)
    extra = plain and [k for k, v in table.args.items() if v and k not in {"this", "alias"}]
    if not plain or extra:
        what = (
            _NAMES.get(extra[0], "a qualified table name") if extra else "anything but one plain table name"
        )
        raise refuse(text, table, f"{what} cannot be asked; the release is one table, under any name")
    if set(table.name) & set("./\\"):  # in DuckDB such a name is a file's
        raise refuse(text, table, "a file cannot be asked; the release is one table, under any name")
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise refuse(text, table, "renaming columns in FROM is not possible")
    return frozenset({table.alias_or_name.lower()})
