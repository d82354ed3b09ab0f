"""Rows in the order of their keys, through files or in memory, as a plain sort would put them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.engines.local import writing
from dalenius.engines.local.writing import sort_rows

WORDS = pa.array(["", "b", "a"])


def rows(keys: list[list[int]], sizes: list[int]) -> list[pa.RecordBatch]:
    """Batches of one or two keys, a coded text with NULLs, and a plain one."""
    n = len(keys)
    codes = pa.array([None if i % 5 == 0 else i % 3 for i in range(n)], pa.uint8())
    table = {f"k{j}": pa.array([key[j] for key in keys], pa.int64()) for j in range(len(keys[0]))}
    table |= {"word": pa.DictionaryArray.from_arrays(codes, WORDS), "row": pa.array(range(n))}
    batch = pa.RecordBatch.from_pydict(table)
    edges = np.cumsum([0, *sizes])
    return [batch.slice(start, size) for start, size in zip(edges, [*sizes, n], strict=True)]


@pytest.mark.parametrize(
    ("file_rows", "most_sort", "most_held"),
    [(4, 2**22, 0), (4, 2**22, 500), (4, 2**22, 2**27), (4, 5, 0), (10**6, 2**22, 0)],
    ids=["files", "some in files", "piles", "again", "memory"],
)
@given(data=st.data())
def test_rows_come_sorted_and_whole(
    file_rows: int,
    most_sort: int,
    most_held: int,
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    bits = data.draw(st.integers(0, 12), label="bits")
    key = st.lists(st.integers(0, 2**bits - 1), min_size=1, max_size=1)
    two = st.tuples(st.integers(0, 2**bits - 1), st.integers(0, 3)).map(list)
    keys = data.draw(st.one_of(st.lists(key, min_size=1), st.lists(two, min_size=1)), label="keys")
    sizes = data.draw(st.lists(st.integers(0, 9), max_size=3), label="sizes")
    batches = rows(keys, sizes)
    folder = tmp_path_factory.mktemp("spill")
    names = [f"k{j}" for j in range(len(keys[0]))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "FILE_ROWS", file_rows)
        patch.setattr(writing, "_PIECE_ROWS", 3)
        patch.setattr(writing, "_MOST_SORTED", most_sort)
        patch.setattr(writing, "_MOST_HELD", most_held)
        found = pa.Table.from_batches(sort_rows(iter(batches), names, bits, len(keys), folder)).to_pylist()
    expected = pa.Table.from_batches(batches).to_pylist()
    assert [[row[name] for name in names] for row in found] == sorted(keys)
    assert sorted(found, key=lambda row: row["row"]) == expected
    assert list(folder.iterdir()) == []


def test_files_are_used_for_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the other tests would say nothing about them."""
    monkeypatch.setattr(writing, "FILE_ROWS", 4)
    monkeypatch.setattr(writing, "_MOST_HELD", 0)
    sorted_rows = sort_rows(iter(rows([[i] for i in range(64)], [])), ["k0"], 6, 64, tmp_path)
    next(sorted_rows)
    assert 2 <= len(list(tmp_path.iterdir())) < 32
    list(sorted_rows)
    assert not any(tmp_path.iterdir())


def test_rows_of_one_range_are_dealt_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes of a skewed column: all but the last few keys have the same high bits."""
    monkeypatch.setattr(writing, "FILE_ROWS", 4)
    monkeypatch.setattr(writing, "_MOST_SORTED", 16)
    together = []

    def seen(table: pa.Table, keys: list[str], bits: int) -> list[pa.RecordBatch]:
        together.append(table.num_rows)
        return plain_sort(table, keys, bits)

    plain_sort = writing._sort
    monkeypatch.setattr(writing, "_sort", seen)
    keys = [*range(100), 2**20 - 2, 2**20 - 1]
    batches = rows([[key] for key in reversed(keys)], [])
    assert (
        pa.Table.from_batches(sort_rows(iter(batches), ["k0"], 20, 102, tmp_path))["k0"].to_pylist() == keys
    )
    assert max(together) <= 16
    equal = sort_rows(iter(rows([[7]] * 64, [])), ["k0"], 20, 64, tmp_path)
    assert sum(batch.num_rows for batch in equal) == 64, "equal keys cannot be told apart, and it ends"


def test_keys_alone_are_sorted_too(tmp_path: Path) -> None:
    numbers = [5, 3, 3, 0, 7]
    batch = pa.RecordBatch.from_pydict({"k0": numbers})
    (found,) = sort_rows(iter([batch.slice(0, 2), batch.slice(2)]), ["k0"], 3, 5, tmp_path)
    assert found.column("k0").to_pylist() == sorted(numbers)


@pytest.mark.parametrize("bits", [3, 32, 33, 47, 63])
@pytest.mark.parametrize("n_alike", [1, 2, 700], ids=["all different", "pairs", "many alike"])
def test_numbers_are_ordered_by_their_digits_and_those_alike_compared(bits: int, n_alike: int) -> None:
    """The first numbers differ in their lowest bit only, which the two highest digits do not tell."""
    rng = np.random.default_rng(bits)
    same_above = rng.integers(2**62) >> bits << bits if bits < 62 else 0
    numbers = rng.integers(2**bits, size=writing._FEW_NUMBERS + 100)
    numbers[:n_alike] = numbers[0] ^ rng.integers(2, size=n_alike)
    numbers += same_above
    order = writing.order_of(numbers, bits)
    assert sorted(order.tolist()) == list(range(len(numbers)))
    assert (numbers[order] == np.sort(numbers)).all()
