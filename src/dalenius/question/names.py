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


NO_WINDOW = (
    "windows (OVER) are not offered; SELECT a, COUNT(*) … GROUP BY a with --differences ranks groups and "
    "says how certain each rank is, and ORDER BY orders them"
)
"""What is done instead of a window function."""


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
class Join:
    """An auxiliary table of which each person has at most one row."""

    alias: str
    """In lower case."""
    table: str
    columns: Mapping[str, str]
    """By lower-case name."""
    keys: tuple[tuple[str, str], ...]
    """Pairs of a published column and one of the table, which are equal."""
    is_outer: bool
    """Whether people without a row stay."""

    @property
    def is_found(self) -> Expression:
        """That a person has a row."""
        exists = exp.Exists(this=self._select(exp.Literal.number(1)))
        return Expression(sql=exists.sql(dialect="duckdb"), columns=tuple(sorted({k for k, _ in self.keys})))

    def cell(self, name: str) -> exp.Expr:
        """A column of the person's row."""
        return exp.Subquery(this=self._select(exp.column(exp.to_identifier(name, quoted=True), self.alias)))

    def _select(self, what: exp.Expr) -> exp.Select:
        same = [
            exp.EQ(
                this=exp.column(exp.to_identifier(own, quoted=True), self.alias),
                expression=exp.column(exp.to_identifier(published, quoted=True), table=ROW),
            )
            for published, own in self.keys
        ]
        source = exp.to_identifier(self.table, quoted=True)
        aliased = exp.alias_(exp.Table(this=source), self.alias, table=True)
        return exp.select(what).from_(aliased).where(exp.and_(*same))


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
    joins: tuple[Join, ...] = ()

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
        if (join := self._find_join(node)) is not None:
            used.update(published for published, _ in join.keys)
            return join.cell(join.columns[name])
        if table and table not in self.qualifiers:
            raise refuse(self.text, node, f"there is no table {node.table!r} here", self._tables_hint())
        if name not in self.columns:
            raise self.unknown(node)
        published = self.columns[name]
        used.add(published)
        return exp.column(exp.to_identifier(published, quoted=True), table=ROW)

    def is_published(self, node: exp.Expr) -> bool:
        """Whether a node is a column of the release by itself."""
        return isinstance(node, exp.Column) and self._find_join(node) is None

    def _find_join(self, node: exp.Column) -> Join | None:
        """The joined table whose column this is; None: it is the release's, or nobody's."""
        name, table = node.name.lower(), node.table.lower()
        found = [join for join in self.joins if name in join.columns and table in ("", join.alias)]
        if table or not found:
            return found[0] if found else None
        shared = {published.lower() for join in found for published, own in join.keys if own.lower() == name}
        if name in shared:  # equal in both, by USING or ON
            return None
        if name in self.columns or len(found) > 1:
            hint = "write the table's name before it, e.g. t." + node.name
            raise refuse(self.text, node, f"column {node.name!r} is in several tables", hint)
        return found[0]

    def unknown(self, node: exp.Column) -> QueryError:
        """The error for a name that is no published column."""
        hint = did_you_mean(node.name, self.columns.values())
        if node.this.args.get("quoted"):
            hint = f"if it is a text and no column, it stands in single quotes: {node.name!r}; {hint}"
        return refuse(self.text, node, f"column {node.name!r} is not in the release", hint)

    def forbidden(self, node: exp.Expr) -> QueryError:
        """The error for a node that may not stand where it stands."""
        hint = (
            "only pure scalar functions are possible, e.g. abs, round, lower, substring, coalesce, CASE; "
            "aggregates (COUNT, SUM, AVG) only in SELECT, HAVING and ORDER BY"
        )
        if isinstance(node, exp.Window):
            hint = NO_WINDOW
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
