"""Three-valued logic by two sets of places, against a table of SQL's truths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from dalenius.question.query import (
    Atom,
    Choice,
    Condition,
    Either,
    Every,
    Expression,
    Negation,
    TruthTest,
    atoms,
    columns_of,
    take_apart,
    where,
)

Truth = bool | None
EVERYWHERE = frozenset(range(27))
"""Places: what three atoms are there, TRUE, FALSE or NULL."""
TRUTHS: tuple[Truth, ...] = (True, False, None)


def truth_at(place: int, atom: str) -> Truth:
    return TRUTHS[place // (1, 3, 9)["abc".index(atom)] % 3]


class Sets:
    """Places as sets of numbers."""

    def atom(self, atom: Atom, is_true: bool) -> frozenset[int]:
        if isinstance(atom, Choice | TruthTest):
            return take_apart(atom, self, is_true)
        assert isinstance(atom, Expression)
        return frozenset(place for place in EVERYWHERE if truth_at(place, atom.sql) is is_true)

    def every(self, parts: Iterable[frozenset[int]]) -> frozenset[int]:
        return EVERYWHERE.intersection(*parts)

    def either(self, parts: Iterable[frozenset[int]]) -> frozenset[int]:
        return frozenset().union(*parts)

    def negate(self, places: frozenset[int]) -> frozenset[int]:
        return EVERYWHERE - places

    def arrange(self, parts: Sequence[Condition]) -> Sequence[Condition]:
        return parts[::-1]


def truth(condition: Condition, place: int) -> Truth:
    """SQL's own words: NULL is neither, AND is the least, OR the largest, of TRUE > NULL > FALSE."""
    match condition:
        case Every(parts=parts):
            found = [truth(part, place) for part in parts]
            return False if False in found else None if None in found else True
        case Either(parts=parts):
            found = [truth(part, place) for part in parts]
            return True if True in found else None if None in found else False
        case Negation(part=part):
            inner = truth(part, place)
            return None if inner is None else not inner
        case TruthTest(part=part, value=value):
            return truth(part, place) is value
        case Choice(branches=branches, default=default):
            chosen = (result for test, result in branches if truth(test, place) is True)
            return truth(next(chosen, default), place)
        case Expression(sql=sql):
            return truth_at(place, sql)
    raise AssertionError(condition)


def named(name: str) -> Expression:
    return Expression(sql=name, columns=(name,))


WHOLE = named("a")


def compound(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        several.map(lambda parts: Every(parts=parts)),
        several.map(lambda parts: Either(parts=parts)),
        inner.map(lambda part: Negation(part=part)),
        st.builds(
            lambda part, value: TruthTest(part=part, value=value, expression=WHOLE), inner, st.booleans()
        ),
        st.builds(
            lambda branches, default: Choice(branches=tuple(branches), default=default, expression=WHOLE),
            st.lists(st.tuples(inner, inner), min_size=1, max_size=2),
            inner,
        ),
    )


CONDITIONS = st.recursive(st.sampled_from("abc").map(named), compound, max_leaves=8)


@given(CONDITIONS)
def test_places_are_those_of_the_truth_table(condition: Condition) -> None:
    for is_true in (True, False):
        expected = {place for place in EVERYWHERE if truth(condition, place) is is_true}
        assert where(condition, Sets(), is_true) == expected


def test_null_is_neither_true_nor_false() -> None:
    """The control: places where an atom is not TRUE are more than those where it is FALSE."""
    here, not_here = where(named("a"), Sets()), where(Negation(part=named("a")), Sets())
    assert not_here < EVERYWHERE - here


def test_atoms_are_what_duckdb_can_evaluate_whole() -> None:
    test = TruthTest(part=named("b"), value=True, expression=named("c"))
    condition = Every(parts=(named("a"), Negation(part=Either(parts=(test, named("b"))))))
    assert [columns_of(atom) for atom in atoms(condition)] == [("a",), ("c",), ("b",)]
