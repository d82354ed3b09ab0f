"""Intervals of ratios by Fieller's method, which hold where the denominator is uncertain too.

To first order a ratio R = A/B has the error of L = (A − R·B)/B. That is too small where B may be nearly 0.
Fieller (1954) asks instead which r make A − r·B consistent with 0: with u = r − R,

    u²·(1 − z²·Var B/B²) + 2u·z²·Cov(L, B)/B − z²·Var L ≤ 0.

Where B cannot be told from 0 this sets no limits to r, and only what is possible at all does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dalenius.arrays import Bools, Floats
from dalenius.question.query import Aggregate, AggregateRef, Arithmetic, Expression, Formula, Number
from dalenius.question.totals import Linear, Total, linearize


def denominator(
    formula: Formula, aggregates: tuple[Aggregate, ...], totals: tuple[Total, ...], estimates: Floats
) -> Linear | None:
    """What a formula divides by, if it is one ratio of sums of totals."""
    match formula:
        case AggregateRef(index=index) if aggregates[index].kind == "avg":
            aggregate = aggregates[index]
            count = Total(kind="count", argument=aggregate.argument, condition=aggregate.condition)
            gradient = np.zeros_like(estimates)
            gradient[:, totals.index(count)] = 1.0
            return Linear(value=estimates[:, totals.index(count)], gradient=gradient)
        case Arithmetic(operator="/", left=left, right=right):
            if _is_linear(left, aggregates) and _is_linear(right, aggregates):
                return linearize(right, aggregates, totals, estimates)
    return None


def _is_linear(formula: Formula, aggregates: tuple[Aggregate, ...]) -> bool:
    match formula:
        case Number():
            return True
        case AggregateRef(index=index):
            return aggregates[index].kind != "avg"
        case Arithmetic(operator=operator, left=left, right=right):
            if operator == "*" and not (isinstance(left, Number) or isinstance(right, Number)):
                return False
            return operator != "/" and _is_linear(left, aggregates) and _is_linear(right, aggregates)


def possible_ratio(
    formula: Formula, aggregates: tuple[Aggregate, ...], range_of: Callable[[Expression], tuple[float, float]]
) -> tuple[float, float]:
    """What a ratio can be at all: a mean lies among the numbers averaged, a part of a count within it."""
    match formula:
        case AggregateRef(index=index) if aggregates[index].kind == "avg":
            argument = aggregates[index].argument
            return (-np.inf, np.inf) if argument is None else range_of(argument)
        case Arithmetic(operator="/", left=AggregateRef(index=part), right=AggregateRef(index=whole)):
            everybody = aggregates[whole] == Aggregate(kind="count")
            return (0.0, 1.0) if everybody and aggregates[part].kind == "count" else (-np.inf, np.inf)
        case Arithmetic(operator="/", left=Arithmetic(operator="*", left=Number(value=factor), right=part)):
            share = Arithmetic(operator="/", left=part, right=formula.right)
            low, high = possible_ratio(share, aggregates, range_of)
            return (factor * low, factor * high) if factor > 0 else (-np.inf, np.inf)
    return -np.inf, np.inf


def is_uncertain(value: Floats, std_error: Floats, certain: float) -> Bools:
    """Which denominators need more than the first order: those with a larger relative error."""
    with np.errstate(invalid="ignore"):
        return np.asarray((value != 0) & ~(std_error <= certain * np.abs(value)))


def fieller(
    z: Floats, error: Floats, value: Floats, variance: Floats, covariance: Floats
) -> tuple[Floats, Floats]:
    """How far the interval of a ratio reaches below and above it, u as above.

    Args:
        z: quantiles of the error's law, in standard errors.
        error: the ratio's standard error to first order, √Var L.
        value: B.
        variance: Var B.
        covariance: Cov(L, B).

    >>> one = np.ones(1)
    >>> low, high = fieller(2 * one, 0.1 * one, 10 * one, 4 * one, 0 * one)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([-0.218], [0.218])
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        square = 1 - z**2 * variance / value**2
        middle = z**2 * covariance / value
        root = np.sqrt(middle**2 + np.maximum(square, 0.0) * (z * error) ** 2)
        bounded = square > 0
        low = np.where(bounded, (-middle - root) / square, -np.inf)
        high = np.where(bounded, (-middle + root) / square, np.inf)
    return low, high
