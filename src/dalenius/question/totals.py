"""Every aggregate as arithmetic of totals over people, with its first-order error.

COUNT and SUM are totals; AVG is a ratio of two. A formula of totals T has, to first order, the error of the
linear combination Σ ∂h/∂T_k · T_k, whose terms are estimated together: a share and its whole are paired.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa

from dalenius.arrays import Bools, Floats, Ints
from dalenius.errors import QueryError
from dalenius.question.names import ROW
from dalenius.question.query import (
    Aggregate,
    AggregateRef,
    Arithmetic,
    Condition,
    Expression,
    Formula,
    GroupKey,
    Number,
)
from dalenius.tables.codes import encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """A sum over people: of 1 (where the argument is not NULL), or of the argument."""

    kind: Literal["count", "sum"]
    argument: Expression | None
    condition: Condition | None


def totals_of(aggregates: tuple[Aggregate, ...]) -> tuple[Total, ...]:
    """The different totals that the aggregates are made of."""
    found: dict[Total, None] = {}
    for aggregate in aggregates:
        found.update(dict.fromkeys(_parts(aggregate)))
    return tuple(found)


def _parts(aggregate: Aggregate) -> tuple[Total, ...]:
    """A sum has its count beside it, which tells whether it is NULL."""
    kinds: tuple[Literal["count", "sum"], ...] = ("count",) if aggregate.kind == "count" else ("sum", "count")
    return tuple(
        Total(kind=kind, argument=aggregate.argument, condition=aggregate.condition) for kind in kinds
    )


def null_sums(totals: tuple[Total, ...], is_nobody: Bools) -> Bools:
    """Which sums are NULL, as in SQL: those over people who are known to be none (groups × totals)."""
    found = np.zeros_like(is_nobody)
    for k, total in enumerate(totals):
        if total.kind == "sum":
            found[:, k] = is_nobody[:, totals.index(replace(total, kind="count"))]
    return found


def argument_numbers(cells: pa.Array, argument: Expression, is_summed: bool) -> Floats:
    """What an aggregate's argument is on each value; NaN: NULL. What is only counted need be no number."""
    kind = cells.type
    if not is_summed:
        return np.where(cells.is_null(nan_is_null=True).to_numpy(zero_copy_only=False), np.nan, 0.0)
    if pa.types.is_boolean(kind):
        cells = cells.cast(pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise QueryError(
            f"SUM and AVG need numbers; {argument.sql.replace(ROW + '.', '')} is {kind}",
            hint="use COUNT, or CAST",
        )
    return np.asarray(cells.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def key_codes(key: GroupKey, cells: pa.Array | pa.ChunkedArray) -> tuple[Ints, pa.Array]:
    """Which of the different values of a group key each cell has, and these values."""
    if pa.types.is_nested(cells.type):
        raise QueryError(
            f"the group key {key.name} is not one value but {cells.type}",
            hint="GROUP BY a, b, without parentheses",
        )
    codes, values = encode(cells)
    return codes.astype(np.int64), values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linear:
    """Values with their derivatives, one of each per group."""

    value: Floats
    gradient: Floats
    """Groups × totals."""


def linearize(
    formula: Formula, aggregates: tuple[Aggregate, ...], totals: tuple[Total, ...], estimates: Floats
) -> Linear:
    """A formula's value and its derivatives by the totals, at the estimates (groups × totals)."""
    match formula:
        case Number(value=value):
            return Linear(value=np.full(len(estimates), value), gradient=np.zeros_like(estimates))
        case AggregateRef(index=index):
            parts = [_basic(totals.index(part), estimates) for part in _parts(aggregates[index])]
            return _combine("/", parts[0], parts[1]) if aggregates[index].kind == "avg" else parts[0]
        case Arithmetic(operator=operator, left=left, right=right):
            one = linearize(left, aggregates, totals, estimates)
            two = linearize(right, aggregates, totals, estimates)
            return _combine(operator, one, two)


def _basic(index: int, estimates: Floats) -> Linear:
    gradient = np.zeros_like(estimates)
    gradient[:, index] = 1.0
    return Linear(value=estimates[:, index], gradient=gradient)


def _combine(operator: str, one: Linear, two: Linear) -> Linear:
    a, b = one.value, two.value
    if operator in "+-":
        sign = 1.0 if operator == "+" else -1.0
        return Linear(value=a + sign * b, gradient=one.gradient + sign * two.gradient)
    if operator == "*":
        return Linear(value=a * b, gradient=one.gradient * b[:, None] + two.gradient * a[:, None])
    # SQL's division by zero is NULL, here NaN
    safe = np.where(b == 0, np.nan, b)
    ratio = a / safe
    return Linear(value=ratio, gradient=(one.gradient - two.gradient * ratio[:, None]) / safe[:, None])
