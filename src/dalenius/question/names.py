"""Refusing a question, with the place in its text and what is possible instead.

What may stand in an expression: pure scalar functions and operators, and nothing else.

An allow-list: what is not named here (random(), now(), getenv(), read_csv(), nextval(), …) is refused.

Which column a name in a question means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from dalenius.errors import QueryError, did_you_mean
from dalenius.question.query import Expression

POSSIBLE = (
    "possible: SELECT COUNT(*), SUM(x), AVG(x), arithmetic of these, and group columns FROM one table "
    "[WHERE …] [GROUP BY …] [HAVING …] [ORDER BY …] [LIMIT …]"
)


def refuse(text: str, node: exp.Expr | None, what: str, hint: str = POSSIBLE) -> QueryError:
    """The error for a part of the text.

    >>> print(refuse("SELECT 1", None, "no table is asked"))
    no table is asked
    """
    start = _start(node)
    where = "" if start is None else f"{place(text, start)}: "
    return QueryError(where + what, hint=hint)


def place(text: str, start: int) -> str:
    """Line and column of an offset, from 1.

    >>> place("SELECT" + chr(10) + "  x", 9)
    'line 2, column 3'
    """
    before = text[:start]
    return f"line {before.count(chr(10)) + 1}, column {start - (before.rfind(chr(10)) + 1) + 1}"


def _start(node: exp.Expr | None) -> int | None:
    """The offset of the first token under a node that has one."""
    if node is None:
        return None
    starts: list[Any] = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return min(starts, default=None)


OPERATORS: frozenset[type[exp.Expr]] = frozenset(
    {
        exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Tuple,
        exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ,
        exp.NullSafeNEQ, exp.Between, exp.In, exp.Is, exp.Like, exp.ILike, exp.Escape, exp.RegexpLike,
        exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Pow, exp.DPipe,
        exp.Case, exp.If, exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Var,
    }
)  # fmt: skip

FUNCTIONS: frozenset[type[exp.Expr]] = frozenset(
    {
        exp.Abs, exp.Ceil, exp.Coalesce, exp.Concat, exp.Contains, exp.DateTrunc, exp.Day, exp.DayOfWeek,
        exp.DayOfYear, exp.EndsWith, exp.Exp, exp.Extract, exp.Floor, exp.Greatest, exp.Hour, exp.Least,
        exp.Left, exp.Length, exp.Ln, exp.Log, exp.Lower, exp.Minute, exp.Month, exp.Nullif, exp.Quarter,
        exp.RegexpReplace, exp.Replace, exp.Right, exp.Round, exp.Second, exp.Sign, exp.Sqrt,
        exp.StartsWith, exp.StrPosition, exp.Substring, exp.TimestampTrunc, exp.Trim, exp.Trunc, exp.Upper,
        exp.Week, exp.Year,
    }
)  # fmt: skip

NAMED = frozenset({"prefix", "strlen", "suffix"})
"""Functions that the parser knows only by name."""

SUBSELECT: frozenset[type[exp.Expr]] = frozenset(
    {
        exp.Subquery, exp.Select, exp.From, exp.Where, exp.Table, exp.TableAlias, exp.Exists, exp.Distinct,
        exp.Alias, exp.Group, exp.Having, exp.Order, exp.Ordered, exp.Limit, exp.Count, exp.Sum, exp.Avg,
        exp.Min, exp.Max, exp.Star,
    }
)  # fmt: skip
"""What a sub-select on an auxiliary table may hold besides."""


def is_allowed(node: exp.Expr) -> bool:
    """Whether a node may stand in an expression over published columns."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in NAMED
    return type(node) in OPERATORS or type(node) in FUNCTIONS


def describe(node: exp.Expr) -> str:
    """How a message names a node that is refused."""
    if isinstance(node, exp.Anonymous):
        return f"the function {str(node.this).lower()}()"
    if isinstance(node, exp.Window):
        return "a window function"
    if isinstance(node, exp.AggFunc):
        return f"the aggregate {node.sql_name().lower()}()"
    if isinstance(node, exp.Func):
        return f"the function {node.sql_name().lower()}()"
    if isinstance(node, exp.Select | exp.Subquery):
        return "a sub-select"
    return f"{type(node).__name__.upper()}"


ROW = "__row"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The names that a question may use."""

    text: str
    columns: Mapping[str, str]
    """Published columns by lower-case name."""
    qualifiers: frozenset[str]
    """The table's name or alias, in lower case."""
    tables: Mapping[str, pa.Table]
    """Auxiliary tables by lower-case name."""

    def expression(self, node: exp.Expr | None) -> Expression:
        """Check an expression and rewrite its columns; refuse what is not allowed in one."""
        used: set[str] = set()
        if node is None:  # the parser takes `MAX()`, and has nothing for what is missing
            raise QueryError("a function has no argument", hint=POSSIBLE)
        copy = node.copy()
        rewritten = self._rewrite(copy, used, inner=())
        return Expression(sql=rewritten.sql(dialect="duckdb", comments=False), columns=tuple(sorted(used)))

    def _rewrite(self, node: exp.Expr, used: set[str], inner: tuple[pa.Table, ...]) -> exp.Expr:
        """Check `node` and all below; resolve columns. `inner`: the tables of the sub-selects around it."""
        if isinstance(node, exp.Column):
            return self._column(node, used, inner)
        if isinstance(node, exp.Select):
            inner = (*inner, self._auxiliary(node))
        elif isinstance(node, exp.Table):
            return node  # looked at with its select
        elif not (is_allowed(node) or (type(node) in SUBSELECT and (inner or _holds_select(node)))):
            raise self.forbidden(node)
        for child in list(node.iter_expressions()):
            changed = self._rewrite(child, used, inner)
            if changed is not child:
                child.replace(changed)
        return node

    def _column(self, node: exp.Column, used: set[str], inner: tuple[pa.Table, ...]) -> exp.Expr:
        name, table = node.name.lower(), node.table.lower()
        if node.args.get("db") or node.args.get("catalog"):
            raise refuse(self.text, node, f"column {node.sql()!r} has more than one qualifier")
        for names, columns in reversed(inner):
            if (not table or table in names) and name in columns:
                return node
        if table and table not in self.qualifiers:
            raise refuse(self.text, node, f"there is no table {node.table!r} here", self._tables_hint())
        if name not in self.columns:
            raise self.unknown(node)
        published = self.columns[name]
        used.add(published)
        return exp.column(exp.to_identifier(published, quoted=True), table=ROW)

    def unknown(self, node: exp.Column) -> QueryError:
        """The error for a name that is no published column."""
        hint = did_you_mean(node.name, self.columns.values())
        return refuse(self.text, node, f"column {node.name!r} is not in the release", hint)

    def forbidden(self, node: exp.Expr) -> QueryError:
        """The error for a node that may not stand where it stands."""
        hint = (
            "only pure scalar functions are possible, e.g. abs, round, lower, substring, coalesce, CASE; "
            "aggregates (COUNT, SUM, AVG) only in SELECT, HAVING and ORDER BY"
        )
        return refuse(self.text, node, f"{describe(node)} is not possible here", hint)

    def _auxiliary(self, node: exp.Select) -> tuple[frozenset[str], frozenset[str]]:
        """Names and columns of a sub-select's table; it must be a table that the caller gave."""
        source = node.args.get("from_")
        table = source.this if source is not None else None
        allowed = {"expressions", "from_", "where", "group", "having", "order", "limit", "distinct"}
        other = [key for key, value in node.args.items() if value and key not in allowed]
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier) or other:
            what = other[0].rstrip("_").upper() if other else "a sub-select without one plain table"
            raise refuse(self.text, node, f"{what} is not possible in a sub-select", self._tables_hint())
        given = self.tables.get(table.name.lower())
        if given is None or table.args.get("db") or table.args.get("joins"):
            raise refuse(
                self.text, table, f"a sub-select cannot read the table {table.name!r}", self._tables_hint()
            )
        names = {table.alias_or_name.lower()}
        return frozenset(names), frozenset(name.lower() for name in given.column_names)

    def _tables_hint(self) -> str:
        known = ", ".join(sorted(self.tables)) or "none was given"
        return f"sub-selects can only read auxiliary tables given with the question ({known})"


def _holds_select(node: exp.Expr) -> bool:
    return isinstance(node, exp.Subquery | exp.Exists)
