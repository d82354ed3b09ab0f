"""Where a condition holds, in SQL's logic of three values, in whatever way places are written down.

SQL selects a row where a condition is TRUE. That question is pushed down to the atoms: A AND B is TRUE where
both are, FALSE where either is, and NOT swaps the two. So each atom is only ever asked where it is TRUE, or
where it is FALSE, and NULL, which is neither, needs no value of its own. What is left is Boolean: places are
sets of rows for one release, and tables over the values of a domain for another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from dalenius.question.query import Atom, Choice, Condition, Either, Every, Negation, TruthTest

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

    def negated(self, places: Places) -> Places:
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
        return found if is_true else algebra.negated(found)
    result = where(condition.default, algebra, is_true)
    for test, chosen in reversed(condition.branches):
        holds = where(test, algebra)
        here = algebra.every([holds, where(chosen, algebra, is_true)])
        result = algebra.either([here, algebra.every([algebra.negated(holds), result])])
    return result
