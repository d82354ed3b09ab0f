"""Columns as whole numbers: equal codes for equal cells, whatever the columns hold and however they come."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.tables import codes as coding
from dalenius.tables.codes import Encoder, ascending, encode, find_codes, narrowest, number, number_words
from dalenius.tables.columns import Coded, CodedTable

TEXTS = st.sampled_from(["a", "b", "c", None])
NUMBERS = st.one_of(st.none(), st.integers(-3, 3))


def as_chunks(cells: list[Any], kind: pa.DataType, cut: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(cells[:cut], kind), pa.array(cells[cut:], kind)])


@given(cells=st.lists(TEXTS, min_size=1), cut=st.integers(0, 5))
def test_codes_are_places_in_the_order_of_first_sight(cells: list[str | None], cut: int) -> None:
    codes, values = encode(as_chunks(cells, pa.string(), cut))
    seen = list(dict.fromkeys(cells))
    assert values.to_pylist() == seen
    assert codes.tolist() == [seen.index(cell) for cell in cells]
    assert codes.dtype == np.uint8


@given(cells=st.lists(TEXTS), spare=st.lists(TEXTS), cut=st.integers(0, 5))
def test_a_coded_column_has_the_codes_of_its_cells(
    cells: list[str | None], spare: list[str | None], cut: int
) -> None:
    """Its dictionary may list cells that no row has, or NULL, or one cell twice."""
    listed = [*spare, *cells]
    whole = pa.DictionaryArray.from_arrays(
        pa.array(
            [None if cell is None and i % 2 else len(spare) + i for i, cell in enumerate(cells)], pa.int32()
        ),
        pa.array(listed, pa.string()),
    )
    codes, values = encode(pa.chunked_array([whole.slice(0, cut), whole.slice(cut)]))
    assert [values[code].as_py() for code in codes.tolist()] == cells
    assert len(values) == len(set(cells)) == len(set(values.to_pylist()))


def test_nan_is_one_cell_and_so_is_null() -> None:
    codes, values = encode(pa.array([math.nan, None, 1.0, math.nan, None]))
    assert codes.tolist() == [0, 1, 2, 0, 1]
    assert len(values) == 3


@pytest.mark.parametrize("factors", [coding._FACTORS, (1, 3), (1,)])
@given(keys=st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**64 - 1))))
def test_words_are_numbered_in_their_order_however_many_share_a_place(
    factors: tuple[int, ...], keys: list[int]
) -> None:
    """Small keys times 1 are all in one place of the table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coding, "_FACTORS", factors)
        numbers, first_row = number_words(np.array(keys, dtype=np.uint64))
    seen = list(dict.fromkeys(keys))
    assert numbers.tolist() == [seen.index(key) for key in keys]
    assert first_row.tolist() == [keys.index(key) for key in seen]


@given(keys=st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_numbers_are_equal_where_keys_are(keys: list[int]) -> None:
    numbers, different = number(np.array(keys, dtype=np.int64))
    assert different.tolist() == list(dict.fromkeys(keys))
    assert different[numbers].tolist() == keys


@pytest.mark.parametrize("n_values", [1, 256, 257, 65_536, 65_537, 2**25])
def test_the_last_code_fits_the_narrowest_type(n_values: int) -> None:
    assert np.iinfo(narrowest(n_values)).max >= n_values - 1


def test_values_ascend_and_null_is_last() -> None:
    assert ascending(pa.array(["b", None, "a"])).to_pylist() == ["a", "b", None]


def test_minus_zero_is_found_as_zero() -> None:
    assert find_codes(pa.array([-0.0, 0.0, math.nan]), pa.array([math.nan, 0.0])).to_pylist() == [1, 1, 0]


@given(
    cells=st.lists(TEXTS, min_size=1),
    values=st.lists(TEXTS, unique=True),
    cut=st.integers(0, 5),
)
def test_coded_and_cut_columns_are_found_as_plain_ones(
    cells: list[str | None], values: list[str | None], cut: int
) -> None:
    listed, chunked = pa.array(values, pa.string()), as_chunks(cells, pa.string(), cut)
    expected = [values.index(cell) if cell in values else None for cell in cells]
    assert find_codes(chunked, listed).to_pylist() == expected
    assert find_codes(chunked.dictionary_encode(), listed).to_pylist() == expected


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int64(), pa.uint64()], ids=str)
@given(data=st.data())
def test_places_in_a_whole_range_are_those_of_a_look_up(kind: pa.DataType, data: st.DataObject) -> None:
    bits = kind.bit_width - (0 if str(kind).startswith("u") else 1)
    least = 0 if str(kind).startswith("u") else -(2**bits)
    numbers = st.integers(least, 2**bits - 1)
    first = data.draw(numbers, label="first")
    last = min(2**bits - 1, first + data.draw(st.integers(0, 40), label="size"))
    near = st.integers(max(least, first - 3), min(2**bits - 1, last + 3))
    column = pa.array(data.draw(st.lists(st.one_of(numbers, near, st.none())), label="column"), kind)
    values = pa.array(range(first, last + 1), kind)
    assert find_codes(column, values).to_pylist() == pc.index_in(column, value_set=values).to_pylist()


@given(
    listed=st.lists(st.tuples(TEXTS, NUMBERS, TEXTS), unique=True, min_size=1),
    rows=st.lists(st.tuples(TEXTS, NUMBERS, TEXTS)),
)
def test_combinations_are_found_in_their_list(
    listed: list[tuple[Any, ...]], rows: list[tuple[Any, ...]]
) -> None:
    kinds = {"x": pa.string(), "y": pa.int64(), "z": pa.string()}
    encoder = Encoder.of(
        {name: pa.array([value[i] for value in listed], kind) for i, (name, kind) in enumerate(kinds.items())}
    )
    table = pa.table(
        {name: pa.array([row[i] for row in rows], kind) for i, (name, kind) in enumerate(kinds.items())}
    )
    assert encoder.find(table).tolist() == [listed.index(row) if row in listed else -1 for row in rows]
    codes = np.arange(len(listed), dtype=np.int32)
    assert list(zip(*(cells.to_pylist() for cells in encoder.decode(codes).values()), strict=True)) == listed


def test_combinations_of_many_cells_do_not_overflow() -> None:
    """2^66 combinations could occur, and the first column would be lost in 64 bits; a few thousand do."""
    n = 2**11
    shuffled = [np.random.default_rng(i).permutation(n) for i in range(6)]
    cells = {f"c{i}": pa.array(order) for i, order in enumerate(shuffled)}
    rows = pa.table(cells)
    assert Encoder.of(cells).find(rows).tolist() == list(range(n))
    moved = rows.set_column(0, "c0", pa.array(np.roll(shuffled[0], 1)))
    assert (Encoder.of(cells).find(moved) == -1).all()
    combined = CodedTable.of(rows).combine(rows.column_names)
    assert combined.n_values == n
    assert combined.codes.tolist() == list(range(n))


@given(
    rows=st.lists(st.tuples(TEXTS, NUMBERS), min_size=1),
    names=st.sampled_from([["x"], ["x", "y"], ["y", "x"], []]),
)
def test_combinations_are_coded_as_they_first_come(rows: list[tuple[Any, Any]], names: list[str]) -> None:
    table = pa.table(
        {"x": pa.array([row[0] for row in rows], pa.string()), "y": pa.array([row[1] for row in rows])}
    )
    found = CodedTable.of(table).combine(names)
    keys = [tuple(row[name] for name in names) for row in table.to_pylist()]
    seen = list(dict.fromkeys(keys))
    assert found.codes.tolist() == [seen.index(key) for key in keys]
    assert found.n_values == len(seen)
    for name in names:
        assert [found.values[name][code].as_py() for code in found.codes.tolist()] == table[name].to_pylist()


@given(cells=st.lists(st.integers(0, 60), min_size=1), chosen=st.sets(st.integers(0, 60)))
def test_rows_of_chosen_values_by_bitmaps_and_by_looking_up(cells: list[int], chosen: set[int]) -> None:
    table = CodedTable.of(pa.table({"n": cells}))
    column: Coded = table.columns["n"]
    wanted = np.array([cell in chosen for cell in column.values["n"].to_pylist()])
    assert table.rows(column.select(wanted)).tolist() == [i for i, cell in enumerate(cells) if cell in chosen]
    assert column.code_of == {cell: code for code, cell in enumerate(column.values["n"].to_pylist())}
