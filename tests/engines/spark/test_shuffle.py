"""Blocks of rows and parts of files: nothing is lost, in any order, and types are those of one machine."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.engines.spark import source as spark_files
from dalenius.engines.spark.shuffle import from_blocks, to_blocks
from dalenius.engines.spark.source import FileParts
from dalenius.errors import InternalError
from dalenius.tables.files.parquet import ParquetSource
from dalenius.tables.source import open_source

WIRE = pa.schema([("n", pa.int64()), ("small", pa.int16()), ("text", pa.string()), ("large", pa.uint64())])
ROWS = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.none() | st.sampled_from([0, -129, 127, 2**15, -(2**31) - 1, 2**63 - 1]),
        st.none() | st.integers(-200, 200),
        st.none() | st.text(max_size=3),
        st.none() | st.integers(0, 2**64 - 1),
    ),
    max_size=30,
)


@given(sources=st.lists(ROWS, min_size=1, max_size=3), most_rows=st.integers(1, 9), seed=st.integers(0, 99))
def test_a_group_gets_its_rows_in_one_order(
    sources: list[list[tuple[Any, ...]]], most_rows: int, seed: int
) -> None:
    """The brute-force twin: the rows of each group, source after source, however the blocks arrive."""
    blocks: list[pa.RecordBatch] = []
    expected: dict[int, list[tuple[Any, ...]]] = {group: [] for group in range(5)}
    for number, rows in enumerate(sources):
        for group, *cells in rows:
            expected[group].append(tuple(cells))
        batches = []
        for first, last in pairwise([*range(0, len(rows), 4), len(rows)]):
            groups, *columns = zip(*rows[first:last], strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, WIRE, strict=True)]
            batches.append((np.array(groups), pa.RecordBatch.from_arrays(arrays, schema=WIRE)))
        for batch in to_blocks(iter(batches), number, most_rows):
            blocks.extend(batch.slice(at, 1) for at in range(batch.num_rows))
    arrived = [blocks[at] for at in np.random.default_rng(seed).permutation(len(blocks))]
    for group, rows in expected.items():
        own = (block for block in arrived if block.column(0)[0].as_py() == group)
        found = from_blocks(own, group, WIRE)
        assert found.schema == WIRE
        assert [tuple(row.values()) for row in found.to_pylist()] == rows


def test_numbers_travel_in_few_bytes_and_not_to_another_group() -> None:
    rows = pa.record_batch({"n": np.arange(10_000) % 100})
    (blocks,) = to_blocks(iter([(np.zeros(10_000, dtype=np.int64), rows)]), 0)
    assert blocks.column("block").nbytes < 11_000
    with pytest.raises(InternalError, match="another group"):
        from_blocks(iter([blocks]), 1, rows.schema)


@given(sizes=st.lists(st.integers(1, 20), min_size=1, max_size=4), row_group=st.integers(1, 9))
def test_parts_are_the_files_in_order(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], row_group: int
) -> None:
    folder, edges = tmp_path_factory.mktemp("files"), np.cumsum([0, *sizes]).tolist()
    table = pa.table({"a": range(edges[-1]), "b": [f"t{i}" for i in range(edges[-1])]})
    for i, (first, last) in enumerate(pairwise(edges)):
        pq.write_table(table.slice(first, last - first), folder / f"{i}.parquet", row_group_size=row_group)
    source = open_source(folder)
    assert isinstance(source, ParquetSource)
    files = source.files
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_files, "_FEWEST_ROWS", 12)
        parts = FileParts.cut(files, table.schema)
    assert parts is not None
    read = [pa.Table.from_batches(parts.read([i], table.schema)) for i in range(len(parts.parts))]
    assert pa.concat_tables(read).equals(table)
    assert all(1 <= len(part) <= 12 for part in read)


def test_what_one_machine_would_see_otherwise_is_left_to_spark(tmp_path: Path) -> None:
    wanted = pa.schema([("a", pa.int64()), ("b", pa.string())])
    texts = pa.array(["x", "y"])
    cases = {
        "same": ({"a": [1, 2], "b": texts}, True),
        "dictionary": ({"b": texts.dictionary_encode(), "a": [1, 2]}, True),
        "large": ({"a": [1, 2], "b": texts.cast(pa.large_string())}, True),
        "missing": ({"a": [1, 2]}, False),
        "narrower": ({"a": pa.array([1, 2], pa.int32()), "b": texts}, False),
    }
    for name, (columns, is_read) in cases.items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table(columns), path)
        parts = FileParts.cut([str(path)], wanted)
        assert (parts is not None) == is_read, name
        if parts is not None:
            assert pa.Table.from_batches(parts.read([0], wanted)).to_pydict() == {
                "a": [1, 2],
                "b": ["x", "y"],
            }
