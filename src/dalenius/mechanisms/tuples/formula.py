"""A SQL predicate as a two-valued formula over tables of its atoms.

SQL has three truth values and selects a row where the predicate is TRUE. `is_true` and `is_false` push
that question down to the atoms: A AND B is TRUE where both are, FALSE where either is, and NOT swaps the two.
So each atom is only ever asked where it is TRUE, or where it is FALSE, and NULL needs no value of its own.
Formulas are built from tables, conjunction and negation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from dalenius.arrays import Bools

_MERGED_ENTRIES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Where something holds, over the cross product of some columns (by number, ascending)."""

    columns: tuple[int, ...]
    holds: Bools


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class All:
    """A conjunction."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neither:
    """The negation of a conjunction: not all of its parts hold."""

    of: All


Formula = Table | All | Neither
Evaluate = Callable[[exp.Expression], Table]
"""The table of where an SQL expression is TRUE."""


def is_true(node: exp.Expression, evaluate: Evaluate) -> Formula:
    """Where the predicate is TRUE."""
    match node:
        case exp.Paren():
            return is_true(node.this, evaluate)
        case exp.Not():
            return is_false(node.this, evaluate)
        case exp.And():
            return both(is_true(part, evaluate) for part in _operands(node))
        case exp.Or():
            return either(is_true(part, evaluate) for part in _operands(node))
        case exp.Case() if node.this is None:
            return _case(node, is_true, evaluate)
        case exp.Is() if isinstance(node.expression, exp.Boolean):
            return _truth_of(node, evaluate)
        case _:
            return evaluate(node)


def is_false(node: exp.Expression, evaluate: Evaluate) -> Formula:
    """Where the predicate is FALSE, which is not where it is NULL."""
    match node:
        case exp.Paren():
            return is_false(node.this, evaluate)
        case exp.Not():
            return is_true(node.this, evaluate)
        case exp.And():
            return either(is_false(part, evaluate) for part in _operands(node))
        case exp.Or():
            return both(is_false(part, evaluate) for part in _operands(node))
        case exp.Case() if node.this is None:
            return _case(node, is_false, evaluate)
        case exp.Is() if isinstance(node.expression, exp.Boolean):
            return negated(_truth_of(node, evaluate))
        case _:
            return evaluate(exp.not_(node))


def _operands(node: exp.Connector) -> list[exp.Expression]:
    """The operands of a chain of ANDs, or of ORs."""
    parts: list[Any] = list(node.flatten())
    return parts


def _truth_of(node: exp.Is, evaluate: Evaluate) -> Formula:
    """`x IS TRUE` and `x IS FALSE`, which are never NULL."""
    question = is_true if node.expression.this else is_false
    return question(node.this, evaluate)


def _case(node: exp.Case, question: Callable[..., Formula], evaluate: Evaluate) -> Formula:
    """CASE WHEN … THEN …: the first branch whose condition is TRUE decides."""
    default = node.args.get("default") or exp.null()
    result = question(default, evaluate)
    for branch in reversed(node.args["ifs"]):
        condition = is_true(branch.this, evaluate)
        chosen = question(branch.args["true"], evaluate)
        result = either([both([condition, chosen]), both([negated(condition), result])])
    return result


def either(parts: Iterable[Formula]) -> Formula:
    """A disjunction."""
    return negated(both(negated(part) for part in parts))


def negated(formula: Formula) -> Formula:
    """Where the formula does not hold."""
    match formula:
        case Table():
            return Table(columns=formula.columns, holds=~formula.holds)
        case All():
            return Neither(of=formula)
        case Neither():
            return formula.of


def both(parts: Iterable[Formula]) -> Formula:
    """A conjunction, with tables joined where that costs nothing."""
    flat: list[Formula] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, All) else [part])
    tables = _merge_tables([part for part in flat if isinstance(part, Table)])
    others = [part for part in flat if not isinstance(part, Table)]
    if len(tables) == 1 and not others:
        return tables[0]
    return All(parts=(*tables, *others))


def _merge_tables(tables: list[Table]) -> list[Table]:
    """Tables multiplied into one that already has their columns, or all into one if it stays small."""
    merged: list[Table] = []
    for table in sorted(tables, key=lambda table: -len(table.columns)):
        for index, wider in enumerate(merged):
            if set(table.columns) <= set(wider.columns):
                merged[index] = _product(wider, table)
                break
        else:
            merged.append(table)
    sizes = {
        column: size
        for table in merged
        for column, size in zip(table.columns, table.holds.shape, strict=True)
    }
    if len(merged) > 1 and math.prod(sizes.values()) <= _MERGED_ENTRIES:
        whole = merged[0]
        for table in merged[1:]:
            whole = _product(whole, table)
        return [whole]
    return merged


def _product(a: Table, b: Table) -> Table:
    columns = tuple(sorted({*a.columns, *b.columns}))
    return Table(columns=columns, holds=_spread(a, columns) & _spread(b, columns))


def _spread(table: Table, columns: tuple[int, ...]) -> Bools:
    """The table with an axis of length 1 for each column that it lacks."""
    lengths = dict(zip(table.columns, table.holds.shape, strict=True))
    return table.holds.reshape([lengths.get(column, 1) for column in columns])
