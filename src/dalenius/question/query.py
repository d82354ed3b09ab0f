"""A question as a value: what `sql.py` makes of a text, and all that estimators see of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A scalar expression over published columns, as DuckDB text.

    Columns of the release are written `__row."name"`, so that nothing in a sub-select can hide them.
    """

    sql: str
    columns: tuple[str, ...]
    """The published columns it reads, under their published names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """`column IN (…)` with plain literals: strings or integers."""

    column: str
    values: tuple[str, ...] | tuple[int, ...]
    expression: Expression
    """The same as DuckDB text, for columns of another type than the literals."""


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


Atom = Expression | Membership | Choice | TruthTest
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

    operator: Literal["+", "-", "*", "/"]
    left: Formula
    right: Formula


Formula = AggregateRef | Number | Arithmetic


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
