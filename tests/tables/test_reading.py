"""Texts as places in a short list: the same cells, in the same order, whatever they hold."""

from __future__ import annotations

from itertools import accumulate, pairwise

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.sql import connect
from dalenius.tables.reading import DictionaryColumns, rebatch

SELECT = "SELECT * FROM t"
CELLS = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=3), st.just("it's"))


def read(connection: duckdb.DuckDBPyConnection, columns: DictionaryColumns, tail: str = "") -> pa.Table:
    batches = connection.sql(columns.code(SELECT) + tail).to_arrow_reader(1000)
    return pa.Table.from_batches([columns.decode(batch) for batch in batches])


@given(cells=st.lists(CELLS, min_size=1), numbers=st.lists(st.integers(-5, 5), min_size=1))
def test_coded_cells_are_the_cells(cells: list[str | None], numbers: list[int]) -> None:
    n = min(len(cells), len(numbers))
    table = pa.table({'a "b"': pa.array(cells[:n], pa.string()), "n": numbers[:n]})
    with connect() as connection:
        connection.register("t", table)
        columns = DictionaryColumns.of(connection, SELECT)
        assert read(connection, columns).to_pydict() == table.to_pydict()
        by_code = read(connection, columns, " ORDER BY 1 NULLS LAST, 2").to_pydict()
        by_cell = connection.sql(f"{SELECT} ORDER BY 1 NULLS LAST, 2").to_arrow_table().to_pydict()
    assert by_code == by_cell


@pytest.mark.parametrize(("n_values", "is_coded"), [(1, True), (64, True), (65, False)])
def test_only_short_lists_are_coded(n_values: int, is_coded: bool) -> None:
    with connect() as connection:
        connection.register("t", pa.table({"v": [str(i % n_values) for i in range(200)]}))
        columns = DictionaryColumns.of(connection, SELECT)
        assert ("v" in columns.values) == is_coded
        assert read(connection, columns)["v"].to_pylist() == [str(i % n_values) for i in range(200)]


def test_many_columns_each_have_their_own_list() -> None:
    table = pa.table({f"c{i}": [f"{i}-{j % (i + 1)}" for j in range(40)] for i in range(20)})
    with connect() as connection:
        connection.register("t", table)
        columns = DictionaryColumns.of(connection, SELECT)
        assert {name: len(values) for name, values in columns.values.items()} == {
            f"c{i}": i + 1 for i in range(20)
        }
        assert read(connection, columns).to_pydict() == table.to_pydict()


@given(cells=st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1))
def test_allowed_cells_need_not_be_sought_and_others_are_null(cells: list[str | None]) -> None:
    allowed = {"v": pa.array(["c", "a"])}
    with connect() as connection:
        connection.register("t", pa.table({"v": pa.array(cells, pa.string())}))
        found = read(connection, DictionaryColumns.of(connection, SELECT, allowed))["v"]
    assert found.chunk(0).dictionary.to_pylist() == ["a", "c"]
    assert found.to_pylist() == [cell if cell in ("a", "c") else None for cell in cells]


def test_numbers_and_nothing_but_nulls_are_not_coded() -> None:
    with connect() as connection:
        connection.register("t", pa.table({"n": [1, 2], "nothing": pa.nulls(2, pa.string())}))
        assert not DictionaryColumns.of(connection, SELECT).values


@given(
    texts=st.lists(CELLS, min_size=1),
    numbers=st.lists(st.one_of(st.none(), st.integers(-200, 200)), min_size=1),
)
def test_the_values_of_a_column_ascend_and_null_is_last(
    texts: list[str | None], numbers: list[int | None]
) -> None:
    n = min(len(texts), len(numbers))
    table = pa.table({"text": pa.array(texts[:n], pa.string()), "n": pa.array(numbers[:n], pa.int64())})
    with connect() as connection:
        connection.register("t", table)
        columns = DictionaryColumns.of(connection, SELECT)
        for name in table.column_names:
            cells = set(table[name].to_pylist())
            expected = [*sorted(cells - {None}), *([None] if None in cells else [])]
            assert columns.different_values(connection, SELECT, name).to_pylist() == expected


@given(sizes=st.lists(st.integers(0, 9)), n_rows=st.integers(1, 7))
def test_rebatched_rows_are_the_rows_in_batches_of_one_size(sizes: list[int], n_rows: int) -> None:
    rows = pa.RecordBatch.from_pydict({"n": list(range(sum(sizes)))})
    ends = list(accumulate(sizes, initial=0))
    batches = list(rebatch((rows.slice(start, end - start) for start, end in pairwise(ends)), n_rows))
    assert [n for batch in batches for n in batch["n"].to_pylist()] == list(range(sum(sizes)))
    assert all(batch.num_rows == n_rows for batch in batches[:-1])
    assert all(0 < batch.num_rows <= n_rows for batch in batches)


WHOLE = [pa.int64(), pa.int32(), pa.int16(), pa.uint64(), pa.uint16()]


@given(data=st.data())
def test_numbers_near_one_another_are_the_numbers(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(WHOLE), label="type")
    least, largest = (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
    if not pa.types.is_signed_integer(kind):
        least, largest = 0, 2**kind.bit_width - 1
    start = data.draw(st.integers(least, largest), label="start")
    width = data.draw(st.sampled_from([0, 3, 255, 256, 4095, 4096]), label="width")
    numbers = st.integers(start, min(largest, start + width))
    cells = data.draw(st.lists(st.one_of(st.none(), numbers), min_size=1), label="cells")
    table = pa.table({"n": pa.array(cells, kind), "text": pa.array([str(cell) for cell in cells])})
    with connect() as connection:
        connection.register("t", table)
        columns = DictionaryColumns.of(connection, SELECT, numbers=True)
        found = read(connection, columns)
        assert found.to_pydict() == table.to_pydict()
        values = columns.different_values(connection, SELECT, "n").drop_null()
    some = [cell for cell in cells if cell is not None]
    assert ("n" in columns.ranges) == (bool(some) and max(some) - min(some) < 4096)
    assert values.to_pylist() == sorted(set(some)), "not the whole range"
    if "n" in columns.ranges:
        assert found["n"].type == pa.dictionary(
            pa.uint8() if max(some) - min(some) < 256 else pa.uint16(), kind
        )
