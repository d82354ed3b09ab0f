"""Which rows and which values of the domain a condition picks, without a database and with one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.mechanisms.tuples.answer.network import Tensor, contract
from dalenius.mechanisms.tuples.answer.question import ViewRows
from dalenius.mechanisms.tuples.answer.selection import All, Neither, Selection, ValueTable
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.question.query import Expression, Membership
from dalenius.tables import columns as coded_columns
from tests.mechanisms.tuples.answer.counting import atoms_of

COLUMNS = {
    "zip": pa.array(["a", "O'Hara", "", None]),
    "age": pa.array([3, -1, None, 40], pa.int8()),
    "big": pa.array([2**40, 5]),
    "w": pa.array([1.0, 2.5]),
}


def member(column: str, listed: tuple[str, ...] | tuple[int, ...]) -> Membership:
    words = ", ".join("'" + v.replace("'", "''") + "'" if isinstance(v, str) else str(v) for v in listed)
    whole = Expression(sql=f'__row."{column}" IN ({words})', columns=(column,))
    return Membership(column=column, values=listed, expression=whole)


@pytest.mark.parametrize("is_true", [True, False])
@pytest.mark.parametrize(
    ("column", "listed"),
    [
        ("zip", ("a", "", "zzz")),
        ("zip", ("O'Hara",)),
        ("age", (3, 40, 100)),
        ("big", (5, 7)),
        ("big", (2**40,)),
    ],
)
def test_lists_of_literals_are_looked_up_as_duckdb_would(
    column: str, listed: tuple[str, ...] | tuple[int, ...], is_true: bool
) -> None:
    asked = member(column, listed)
    fast = atoms_of(COLUMNS).membership(asked, is_true)
    slow = atoms_of(COLUMNS).atom(asked.expression, is_true)
    assert fast is not None
    assert isinstance(slow, ValueTable)
    assert fast.columns == slow.columns
    assert fast.holds.tolist() == slow.holds.tolist()


@pytest.mark.parametrize(("column", "listed"), [("zip", (3,)), ("age", ("3",)), ("age", (300,)), ("w", (1,))])
def test_other_types_are_left_to_duckdb(column: str, listed: tuple[str, ...] | tuple[int, ...]) -> None:
    assert atoms_of(COLUMNS).membership(member(column, listed), is_true=True) is None


SIZES = (3, 2, 4)
DOMAIN = Domain.of({name: range(size) for name, size in zip("abc", SIZES, strict=True)})
BITS = st.booleans()


def tables() -> st.SearchStrategy[Selection]:
    def of(columns: tuple[int, ...]) -> st.SearchStrategy[Selection]:
        size = int(np.prod([SIZES[c] for c in columns]))
        shape = [SIZES[c] for c in columns]
        lists = st.lists(BITS, min_size=size, max_size=size)
        return lists.map(lambda bits: ValueTable(columns=columns, holds=np.array(bits).reshape(shape)))

    return st.sampled_from([(), (0,), (1,), (2,), (0, 2), (0, 1, 2)]).flatmap(of)


FORMULAS = st.recursive(
    tables(),
    lambda inner: st.lists(inner, min_size=1, max_size=3).flatmap(
        lambda parts: st.sampled_from([All(parts=tuple(parts)), Neither(of=All(parts=tuple(parts)))])
    ),
    max_leaves=5,
)


def holds(selection: Selection, cells: tuple[int, ...]) -> bool:
    match selection:
        case ValueTable(columns=columns, holds=table):
            return bool(table[tuple(cells[c] for c in columns)])
        case All(parts=parts):
            return all(holds(part, cells) for part in parts)
        case Neither(of=of):
            return not holds(of, cells)


@given(FORMULAS, st.lists(st.tuples(*(st.integers(0, size - 1) for size in SIZES)), min_size=1, max_size=20))
def test_rows_are_those_for_which_the_selection_holds(
    selection: Selection, rows: list[tuple[int, ...]]
) -> None:
    codes = tuple(np.array(column) for column in zip(*rows, strict=True))
    view, expected = (
        ViewRows.of(DOMAIN, codes),
        [i for i, cells in enumerate(rows) if holds(selection, cells)],
    )
    assert view.where(selection).tolist() == expected
    assert view.where(selection).tolist() == expected  # from the bitmaps of the first time
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coded_columns, "_BITMAP_BYTES", 0)  # too large for bitmaps
        assert ViewRows.of(DOMAIN, codes).where(selection).tolist() == expected


@given(st.lists(st.lists(st.integers(0, 2**60), min_size=1, max_size=4), min_size=1, max_size=4))
def test_tensors_that_share_nothing_are_multiplied_exactly(columns: list[list[int]]) -> None:
    tensors = [Tensor(indices=(i,), entries=np.array(c, dtype=object)) for i, c in enumerate(columns)]
    product = 1
    for column in columns:
        product *= sum(column)
    assert int(contract(tensors, (), product + 1).item()) == product
