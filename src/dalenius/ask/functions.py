"""What may stand in an expression: pure scalar functions and operators, and nothing else.

An allow-list: what is not named here (random(), now(), getenv(), read_csv(), nextval(), …) is refused.
"""

from __future__ import annotations

from sqlglot import exp

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
