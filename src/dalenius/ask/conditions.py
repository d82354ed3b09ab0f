"""Boolean expressions as AND, OR and NOT of atoms."""

from __future__ import annotations

from sqlglot import exp

from dalenius.ask.names import Scope
from dalenius.ask.query import Condition, Either, Every, Membership, Negation

_INT64 = 2**63


def condition(scope: Scope, node: exp.Expr) -> Condition:
    """A boolean expression, taken apart down to what DuckDB evaluates on the columns' values."""
    match node:
        case exp.Paren():
            return condition(scope, node.this)
        case exp.And():
            return Every(parts=tuple(condition(scope, part) for part in node.flatten()))
        case exp.Or():
            return Either(parts=tuple(condition(scope, part) for part in node.flatten()))
        case exp.Not():
            return Negation(part=condition(scope, node.this))
        case exp.In() | exp.EQ() if (listed := _literals(node)) is not None:
            expression = scope.expression(node)
            return Membership(column=expression.columns[0], values=listed, expression=expression)
        case _:
            return scope.expression(node)


def _literals(node: exp.Expr) -> tuple[str, ...] | tuple[int, ...] | None:
    """The literals of `column IN (…)` or `column = …`, if they are all strings or all integers."""
    if not isinstance(node.this, exp.Column):
        return None
    listed = [node.expression] if isinstance(node, exp.EQ) else node.expressions
    if not listed or not all(isinstance(item, exp.Literal) for item in listed):
        return None
    if all(item.is_string for item in listed):
        return tuple(str(item.this) for item in listed)
    if all(not item.is_string and str(item.this).isdigit() and int(item.this) < _INT64 for item in listed):
        return tuple(int(item.this) for item in listed)
    return None
