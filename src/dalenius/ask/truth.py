"""Which rows satisfy a condition, in SQL's three-valued logic, for one sensitive value.

Only the rows where a condition is TRUE, or those where it is FALSE, are ever needed: NOT swaps the two, so
negations move down to the atoms and NULL (neither) needs no bits of its own.
"""

from __future__ import annotations

import numpy as np

from dalenius.ask.columns import Bits
from dalenius.ask.lookup import Lookup
from dalenius.ask.query import Condition, Either, Every, Negation, atoms, columns_of


def rows_where(lookup: Lookup, condition: Condition | None, value: int) -> Bits:
    """The rows for which the condition is TRUE if their sensitive value is the one with code `value`."""
    return lookup.rows.all_rows() if condition is None else _rows(lookup, condition, value, 1)


def _rows(lookup: Lookup, condition: Condition, value: int, wanted: int) -> Bits:
    match condition:
        case Negation(part=part):
            return _rows(lookup, part, value, 1 - wanted)
        case Every(parts=parts) | Either(parts=parts):
            if isinstance(condition, Every) == (wanted == 1):
                return _rows_of_all(lookup, parts, value, wanted)
            return np.asarray(np.bitwise_or.reduce([_rows(lookup, part, value, wanted) for part in parts]))
        case _:
            truths = lookup.truths(condition)
            row = truths[value if len(truths) > 1 else 0] == wanted
            if len(row) == 1:
                return lookup.rows.all_rows() if row[0] else lookup.rows.no_rows()
            return lookup.quasi(columns_of(condition)).select(row)


def _rows_of_all(lookup: Lookup, parts: tuple[Condition, ...], value: int, wanted: int) -> Bits:
    """What the sensitive value alone decides comes first: it often leaves no row at all."""
    found: Bits | None = None
    for part in sorted(parts, key=lambda part: not _is_secret(lookup, part)):
        own = _rows(lookup, part, value, wanted)
        found = own if found is None else found & own
        if not found.any():
            break
    assert found is not None  # noqa: S101  (a conjunction has parts)
    return found


def _is_secret(lookup: Lookup, part: Condition) -> bool:
    return all(name in lookup.sensitive.columns for atom in atoms(part) for name in columns_of(atom))
