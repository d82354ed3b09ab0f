"""Where a condition holds, over the values of a domain's columns: tables, conjunction and negation."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

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
EVERYTHING = Table(columns=(), holds=np.array(True))


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
