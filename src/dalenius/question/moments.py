"""Aggregates that are made of others: variances and correlations of sums, and order statistics.

VAR, STDDEV, COVAR and CORR are formulas of sums over people, so that every model can answer them. A quantile,
the least, the largest and the number of different values are not sums: each is found by questions that are
(`dalenius.ask.statistics`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from sqlglot import exp

from dalenius.question.names import Scope, refuse
from dalenius.question.query import (
    Aggregate,
    AggregateRef,
    Arithmetic,
    Bounded,
    Condition,
    Expression,
    Formula,
    Number,
    Operator,
    Root,
    Statistic,
)

Add = Callable[[Aggregate], int]
"""Where an aggregate is in the question; one that is not there yet is added."""

_VARIANCES: dict[type[exp.Expr], tuple[bool, bool]] = {
    exp.Variance: (True, False),
    exp.VariancePop: (False, False),
    exp.Stddev: (True, True),
    exp.StddevSamp: (True, True),
    exp.StddevPop: (False, True),
}
"""Whether it is that of a sample, and whether it is the root."""
_PAIRS = (exp.Corr, exp.CovarPop, exp.CovarSamp)
_QUANTILES = (exp.Median, exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.WithinGroup)
MOMENTS: frozenset[type[exp.Expr]] = frozenset({*_VARIANCES, *_PAIRS})
_ENDS: dict[type[exp.Expr], float] = {exp.Min: 0.0, exp.Max: 1.0}


def is_statistic(call: exp.Expr) -> bool:
    """Whether it is an order statistic, or a number of different values."""
    return isinstance(call, (*_QUANTILES, *_ENDS)) or (
        isinstance(call, exp.Count) and isinstance(call.this, exp.Distinct)
    )


def moment(scope: Scope, call: exp.Expr, condition: Condition | None, add: Add) -> Formula:
    """A variance, covariance or correlation as a formula of sums and counts."""

    def total(argument: Expression, kind: Literal["count", "sum"] = "sum") -> Formula:
        return AggregateRef(index=add(Aggregate(kind=kind, argument=argument, condition=condition)))

    if type(call) in _VARIANCES:
        is_sample, is_root = _VARIANCES[type(call)]
        x = _as_number(scope.expression(call.this))
        count = total(x, "count")
        variance = _over(_scatter(total(_product(x, x)), total(x), total(x), count), count, is_sample)
        bounded = Bounded(part=variance, low=0.0, spread=x, most=1 / 2 if is_sample else 1 / 4)
        return Root(part=bounded) if is_root else bounded
    first, second = scope.expression(call.this), scope.expression(call.args["expression"])
    x, y = _where_known(first, second), _where_known(second, first)
    product = _product(_as_number(first), _as_number(second))
    count = total(product, "count")
    together = _scatter(total(product), total(x), total(y), count)
    if isinstance(call, exp.Corr):
        squares = [_scatter(total(_product(z, z)), total(z), total(z), count) for z in (x, y)]
        ratio = _arithmetic("/", together, Root(part=_arithmetic("*", *squares)))
        return Bounded(part=ratio, low=-1.0, high=1.0)
    return _over(together, count, isinstance(call, exp.CovarSamp))


def _scatter(product: Formula, one: Formula, two: Formula, count: Formula) -> Formula:
    """Σ (x − x̄)(y − ȳ) = Σ xy − Σx·Σy/n."""
    return _arithmetic("-", product, _arithmetic("/", _arithmetic("*", one, two), count))


def _over(scatter: Formula, count: Formula, is_sample: bool) -> Formula:
    less = _arithmetic("-", count, Number(value=1.0)) if is_sample else count
    return _arithmetic("/", scatter, less)


def _arithmetic(operator: Operator, left: Formula, right: Formula) -> Formula:
    return Arithmetic(operator=operator, left=left, right=right)


def _as_number(x: Expression) -> Expression:
    return Expression(sql=f"CAST({x.sql} AS DOUBLE)", columns=x.columns)


def _product(x: Expression, y: Expression) -> Expression:
    return Expression(sql=f"({x.sql}) * ({y.sql})", columns=_both(x, y))


def _where_known(x: Expression, y: Expression) -> Expression:
    """The first where the second is known too: only pairs count."""
    return Expression(
        sql=f"CASE WHEN ({y.sql}) IS NOT NULL THEN CAST({x.sql} AS DOUBLE) END", columns=_both(x, y)
    )


def _both(x: Expression, y: Expression) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*x.columns, *y.columns)))


def statistic(scope: Scope, call: exp.Expr, condition: Condition | None) -> Statistic:
    """A quantile, MIN, MAX or COUNT(DISTINCT)."""
    if isinstance(call, exp.Count):
        listed = call.this.expressions
        if len(listed) != 1:
            raise refuse(scope.text, call, "COUNT(DISTINCT …) takes one column")
        return Statistic(kind="distinct", argument=scope.expression(listed[0]), condition=condition)
    if type(call) in _ENDS:
        if call.expressions:
            raise refuse(scope.text, call, "an aggregate takes one argument")
        argument, end = scope.expression(call.this), _ENDS[type(call)]
        return Statistic(kind="ends", argument=argument, condition=condition, fraction=end)
    node, fraction, is_discrete, is_descending = _quantile(call)
    if fraction is None:
        raise refuse(scope.text, call, "a quantile needs a number from 0 to 1, e.g. QUANTILE_CONT(x, 0.9)")
    return Statistic(
        kind="discrete" if is_discrete else "continuous",
        argument=scope.expression(node),
        condition=condition,
        fraction=1 - fraction if is_descending else fraction,
    )


def _quantile(call: exp.Expr) -> tuple[exp.Expr, float | None, bool, bool]:
    """What is ordered, the fraction if it is one, whether it is discrete, and whether it descends."""
    if isinstance(call, exp.Median):
        return call.this, 0.5, False, False
    if isinstance(call, exp.WithinGroup):
        ordered = call.expression.expressions[0]
        inner = call.this
        is_descending = bool(ordered.args.get("desc"))
        return ordered.this, _fraction(inner.this), isinstance(inner, exp.PercentileDisc), is_descending
    fraction = call.args.get("quantile") or call.args.get("expression")
    return call.this, _fraction(fraction), isinstance(call, exp.PercentileDisc | exp.Quantile), False


def _fraction(node: exp.Expr | None) -> float | None:
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    found = float(node.this)
    return found if 0 <= found <= 1 else None
