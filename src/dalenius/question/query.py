"""A question as a value: what `sql.py` makes of a text, and all that estimators see of it.

A condition holds in SQL's logic of three values, in whatever way places are written down. SQL selects a row
where a condition is TRUE. That question is pushed down to the atoms: A AND B is TRUE where both are, FALSE
where either is, and NOT swaps the two. So each atom is only ever asked where it is TRUE, or where it is
FALSE, and NULL, which is neither, needs no value of its own. What is left is Boolean: places are sets of rows
for one release, and tables over the values of a domain for another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

Order = Literal["<", "<=", ">", ">=", "<>"]
Operator = Literal["+", "-", "*", "/"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A scalar expression over published columns, as DuckDB text.

    Columns of the release are written `__row."name"`, so that nothing in a sub-select can hide them.
    """

    sql: str
    columns: tuple[str, ...]
    """The published columns it reads, under their published names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpTo(Expression):
    """1 where a number is at most a limit, NULL elsewhere: the same as its text, which need not be read."""

    number: Expression
    limit: float

    @classmethod
    def of(cls, x: Expression, limit: float) -> UpTo:
        """Of what can be cast to a number."""
        number = Expression(sql=f"CAST({x.sql} AS DOUBLE)", columns=x.columns)
        text = f"CASE WHEN {number.sql} <= {limit!r} THEN 1 END"
        return cls(sql=text, columns=x.columns, number=number, limit=limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """`column IN (…)` with plain literals: strings or integers."""

    column: str
    values: tuple[str, ...] | tuple[int, ...]
    expression: Expression
    """The same as DuckDB text, for columns of another type than the literals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A column compared with a whole number."""

    column: str
    order: Order
    value: int
    """Of 64 bits."""
    expression: Expression
    """The same as DuckDB text, for columns of another type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """AND."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Either:
    """OR."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Negation:
    """NOT."""

    part: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """CASE WHEN … THEN … ELSE … END of conditions: the first branch whose condition is TRUE decides."""

    branches: tuple[tuple[Condition, Condition], ...]
    default: Condition
    expression: Expression
    """The whole as DuckDB text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthTest:
    """`condition IS TRUE` or `condition IS FALSE`, which is never NULL."""

    part: Condition
    value: bool
    expression: Expression
    """The whole as DuckDB text."""


Atom = Expression | Membership | Comparison | Choice | TruthTest
"""What DuckDB can evaluate as it stands."""
Condition = Atom | Every | Either | Negation


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """COUNT(*), COUNT(argument), SUM(argument) or AVG(argument), with its FILTER."""

    kind: Literal["count", "sum", "avg"]
    argument: Expression | None = None
    condition: Condition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateRef:
    """The aggregate of that position in `Query.aggregates`."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A literal number."""

    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """Two results, combined."""

    operator: Operator
    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """The square root of a result."""

    part: Formula


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """A result that can only be between two numbers, as a variance or a correlation."""

    part: Formula
    low: float = -math.inf
    high: float = math.inf
    spread: Expression | None = None
    """Of a variance: the numbers that it is of."""
    most: float = math.inf
    """How large it can be at most, in squares of what these range over (Popoviciu, 1935)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """What is no sum over people: a quantile, an end, or how many different values there are."""

    kind: Literal["continuous", "discrete", "ends", "distinct"]
    argument: Expression
    condition: Condition | None = None
    fraction: float = 0.0
    """Of a quantile, from 0 to 1; of an end 0 (the least) or 1 (the largest)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticRef:
    """The statistic of that position in `Query.statistics`: a result by itself, never a part of one."""

    index: int


Formula = AggregateRef | Number | Arithmetic | Root | Bounded | StatisticRef


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKey:
    """What to group by, and its name in the result."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A column of the result that is estimated."""

    name: str
    formula: Formula


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question about a release."""

    text: str
    where: Condition | None
    groups: tuple[GroupKey, ...]
    aggregates: tuple[Aggregate, ...]
    items: tuple[Item, ...]
    finish: str
    """HAVING, ORDER BY and LIMIT over the result: group keys `g0`, …, items `i0`, …, aggregates `a0`, …"""
    statistics: tuple[Statistic, ...] = ()


def has_ratios(query: Query) -> bool:
    """Whether some result is an average, or a product or ratio of results."""
    return any(one.kind == "avg" for one in query.aggregates) or any(
        _is_nonlinear(item.formula) for item in query.items
    )


def _is_nonlinear(formula: Formula) -> bool:
    match formula:
        case Arithmetic(operator="+" | "-", left=left, right=right):
            return _is_nonlinear(left) or _is_nonlinear(right)
        case Arithmetic(operator="*", left=Number(), right=rest) | Arithmetic(left=rest, right=Number()):
            return _is_nonlinear(rest)
        case Arithmetic() | Root():
            return True
        case Bounded(part=part):
            return _is_nonlinear(part)
        case _:
            return False


def atoms(condition: Condition | None) -> tuple[Atom, ...]:
    """The conditions that AND, OR and NOT join, from left to right."""
    match condition:
        case None:
            return ()
        case Every(parts=parts) | Either(parts=parts):
            return tuple(atom for part in parts for atom in atoms(part))
        case Negation(part=part):
            return atoms(part)
        case _:
            return (condition,)


def expression_of(atom: Atom) -> Expression:
    """An atom as DuckDB text."""
    return atom if isinstance(atom, Expression) else atom.expression


def columns_of(atom: Atom) -> tuple[str, ...]:
    """The published columns that an atom reads."""
    return expression_of(atom).columns


Places = TypeVar("Places")


class Algebra(Protocol[Places]):
    """Sets of places, and what is known about atoms."""

    def atom(self, atom: Atom, is_true: bool) -> Places:
        """Where an atom is TRUE, or where it is FALSE."""

    def every(self, parts: Iterable[Places]) -> Places:
        """The places that are in all parts; parts are found as they are asked for."""

    def either(self, parts: Iterable[Places]) -> Places:
        """The places that are in some part."""

    def arrange(self, parts: Sequence[Condition]) -> Sequence[Condition]:
        """The order in which the parts of a conjunction are best found."""


class ComplementedAlgebra(Algebra[Places], Protocol[Places]):
    """One that has all other places too."""

    def negate(self, places: Places) -> Places:
        """The places that are not among these."""


def where(condition: Condition, algebra: Algebra[Places], is_true: bool = True) -> Places:
    """Where a condition is TRUE, or where it is FALSE, which is not where it is NULL."""
    match condition:
        case Negation(part=part):
            return where(part, algebra, not is_true)
        case Every(parts=parts) | Either(parts=parts):
            if isinstance(condition, Every) == is_true:
                return algebra.every(where(part, algebra, is_true) for part in algebra.arrange(parts))
            return algebra.either(where(part, algebra, is_true) for part in parts)
        case _:
            return algebra.atom(condition, is_true)


def take_apart(condition: Choice | TruthTest, algebra: ComplementedAlgebra[Places], is_true: bool) -> Places:
    """The same for what DuckDB could evaluate as a whole, from the conditions that it is made of."""
    if isinstance(condition, TruthTest):
        found = where(condition.part, algebra, condition.value)
        return found if is_true else algebra.negate(found)
    result = where(condition.default, algebra, is_true)
    for test, chosen in reversed(condition.branches):
        holds = where(test, algebra)
        here = algebra.every([holds, where(chosen, algebra, is_true)])
        result = algebra.either([here, algebra.every([algebra.negate(holds), result])])
    return result
