"""Pages made of codes, as Arrow and DuckDB read them, beside what Arrow writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.engines import pages
from dalenius.engines.pages import PageWriter, can_be_paged, encode_group
from dalenius.engines.parquet import ROW_GROUP_ROWS, write_parquet

NUMBERS = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.int64(), pa.date32())


@st.composite
def columns(draw: st.DrawFn, n_rows: int) -> pa.Array:
    """Whole numbers near one another or ascending, days and texts, some of them coded, some NULL."""
    is_null = np.array(draw(st.lists(st.booleans(), min_size=n_rows, max_size=n_rows)), dtype=bool)
    kind = draw(st.sampled_from((*NUMBERS, pa.string())))
    if pa.types.is_string(kind):
        listed = pa.array(draw(st.lists(st.text(max_size=3), min_size=1, max_size=5, unique=True)))
    else:
        low = draw(st.integers(-100, 100)) if "uint" not in str(kind) else draw(st.integers(0, 100))
        listed = pa.array(range(low, low + draw(st.integers(1, 20))), pa.int32()).cast(kind)
    codes = np.array(draw(st.lists(st.integers(0, len(listed) - 1), min_size=n_rows, max_size=n_rows)), int)
    if draw(st.booleans()) and not pa.types.is_string(kind):
        codes = np.sort(codes)
    indices = pa.array(codes, pa.int16(), mask=is_null if draw(st.booleans()) else None)
    coded = pa.DictionaryArray.from_arrays(indices, listed)
    return coded if pa.types.is_string(kind) or draw(st.booleans()) else coded.dictionary_decode()


@st.composite
def tables(draw: st.DrawFn) -> list[pa.RecordBatch]:
    n_columns, sizes = draw(st.integers(1, 17)), draw(st.lists(st.integers(1, 20), min_size=1, max_size=3))
    whole = [draw(columns(sum(sizes))) for _ in range(n_columns)]
    batch = pa.RecordBatch.from_arrays(whole, names=[f"c{i}" for i in range(n_columns)])
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    return [batch.slice(start, size) for start, size in zip(starts, sizes, strict=True)]


def write(path: Path, groups: Sequence[pa.RecordBatch]) -> pa.Table:
    """Write row groups as pages, and by Arrow; the latter as it is read."""
    with PageWriter(path, groups[0].schema) as writer:
        for group in groups:
            writer.write(encode_group(group))
    plain = [
        pa.RecordBatch.from_arrays(
            [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in group.columns],
            names=group.schema.names,
        )
        for group in groups
    ]
    by_arrow = path.with_suffix(".arrow")
    with pq.ParquetWriter(by_arrow, plain[0].schema, store_schema=False) as arrow:
        for batch in plain:
            arrow.write_batch(batch)
    return pq.read_table(by_arrow)


@given(groups=tables())
@settings(max_examples=60, deadline=None)
def test_readers_find_what_arrow_would_have_written(
    groups: list[pa.RecordBatch], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("pages") / "t.parquet"
    expected = write(path, groups)
    assert pq.read_table(path).equals(expected)
    with duckdb.connect() as connection:
        read = connection.sql(f"FROM '{path}'").to_arrow_table()
    assert read.to_pylist() == expected.to_pylist()
    footer, by_arrow = pq.ParquetFile(path).metadata, pq.ParquetFile(path.with_suffix(".arrow")).metadata
    assert footer.num_rows == expected.num_rows
    assert footer.schema.equals(by_arrow.schema)
    for g, c in np.ndindex(len(groups), expected.num_columns):
        ours, theirs = footer.row_group(g).column(c).statistics, by_arrow.row_group(g).column(c).statistics
        if ours is not None:
            assert (ours.min, ours.max, ours.null_count) == (theirs.min, theirs.max, theirs.null_count)


def dictionaries(path: Path) -> list[list[Any]]:
    """What the dictionary of each row group lists: read back as dictionaries."""
    file = pq.ParquetFile(path, read_dictionary=["t"])
    return [file.read_row_group(i)["t"].chunk(0).dictionary.to_pylist() for i in range(file.num_row_groups)]


def test_a_dictionary_lists_what_occurs_and_ascends(tmp_path: Path) -> None:
    listed = pa.array(["d", "c", "b", "a", "nobody's"])
    codes = np.repeat([0, 1, 3], ROW_GROUP_ROWS // 2)
    table = pa.RecordBatch.from_arrays([pa.DictionaryArray.from_arrays(pa.array(codes), listed)], names=["t"])
    assert write_parquet(tmp_path / "t.parquet", iter([table]), ["t"]) == len(codes)
    assert dictionaries(tmp_path / "t.parquet") == [["c", "d"], ["a"]]
    assert b"nobody" not in (tmp_path / "t.parquet").read_bytes()


def test_numbers_far_apart_and_many_texts_are_left_to_arrow(tmp_path: Path) -> None:
    far = pa.record_batch({"n": np.array([5, 10**9, 3])})
    assert not can_be_paged(far)
    assert not can_be_paged(pa.record_batch({"x": [0.5]}))
    assert not can_be_paged(pa.record_batch({"t": ["a"]}))
    assert can_be_paged(pa.record_batch({"n": np.array([3, 5, 10**9])})), "they ascend"
    write_parquet(tmp_path / "far.parquet", iter([far]), ["n"])
    assert "parquet-cpp" in pq.ParquetFile(tmp_path / "far.parquet").metadata.created_by


def test_more_values_than_two_bytes_tell_apart(tmp_path: Path) -> None:
    """In a later row group, where the first one had few."""
    codes = np.random.default_rng(1).permutation(70_000)
    listed = pa.array([f"{i:05}" for i in range(70_000)])
    group = pa.RecordBatch.from_arrays([pa.DictionaryArray.from_arrays(pa.array(codes), listed)], names=["t"])
    expected = write(tmp_path / "t.parquet", [group])
    assert pq.read_table(tmp_path / "t.parquet").equals(expected)


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        ("int8", -128, 127),
        ("int16", -32_768, 32_767),
        ("int32", 2**31 - 300, 2**31 - 1),
        ("int64", 2**63 - 300, 2**63 - 1),
        ("int64", -(2**63), -(2**63) + 300),
    ],
)
def test_numbers_at_the_ends_of_their_type(kind: str, least: int, most: int, tmp_path: Path) -> None:
    cells = np.array([most, least, *np.random.default_rng(1).integers(least, most, 300)], dtype=kind)
    table = pa.record_batch({"n": cells})
    write_parquet(tmp_path / "t.parquet", iter([table]), ["n"])
    assert pq.read_table(tmp_path / "t.parquet").equals(pa.Table.from_batches([table]))


def test_a_stopped_file_has_no_footer(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), PageWriter(tmp_path / "t", pa.schema([("n", pa.int64())])):
        raise KeyboardInterrupt
    assert (tmp_path / "t").read_bytes() == pages._MAGIC
