"""What a bucketized release holds, read from tables written by hand."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.errors import ReleaseCorrupt
from dalenius.mechanisms.bucketize import published
from dalenius.release.folder import StoredRelease
from tests.auditing.releases import write_release

TABLE = pa.table(
    {"age": [31, 32, 33, 34, 35], "disease": pa.array(["Flu", "HIV", "Flu", None, "Flu"], pa.string())}
)
BUCKET = np.array([0, 0, 6, 6, 6])
"""From 0; the published numbers are one more, and leave gaps."""
FAKES = {
    "per_bucket": 1,
    "posterior": 0.5,
    "posterior_without_table": 0.4,
    "values": [["Flu"], ["HIV"]],
    "sizes": [{"size": 2, "counts": [1, 1], "real": [1.0, None], "fake": [0.5, 0.5]}],
}


@pytest.fixture
def release(tmp_path: Path) -> StoredRelease:
    return write_release(tmp_path, TABLE, BUCKET, promise={"kind": "l-diversity", "l": 2}, rng=None)


def test_both_tables_are_read_with_buckets_from_0(release: StoredRelease) -> None:
    tables = published.read_tables(release)
    assert tables.people.to_pydict() == {"age": [31, 32, 33, 34, 35]}
    assert tables.row_bucket.tolist() == [0, 0, 1, 1, 1]
    assert tables.size.tolist() == [2, 3]
    cells, counts = tables.entries["disease"].to_pylist(), tables.count.tolist()
    assert set(zip(tables.entry_bucket.tolist(), cells, counts, strict=True)) == {
        (0, "Flu", 1),
        (0, "HIV", 1),
        (1, "Flu", 2),
        (1, None, 1),
    }


def test_what_is_counted_is_what_was_published(release: StoredRelease) -> None:
    with release.connect() as connection:
        assert published.count_people(connection).tolist() == [2, 3]
        counted = published.count_published(connection, release.manifest)
    assert counted is not None
    assert dict(zip(counted.values, counted.counts, strict=True)) == {("Flu",): 3, ("HIV",): 1, (None,): 1}


@pytest.mark.parametrize("rows_a_batch", [1, 2, 3, 100])
@pytest.mark.parametrize(
    "listed",
    [[1, 1, 2, 3, 3, 3, 5], [1], [1, 2], [2, 2], [3, 1, 1, 2], [1, None, 2], [1, 2, 1]],
    ids=["ordered", "one", "all", "none", "unordered", "null", "split"],
)
def test_people_whose_bucket_lists_one_value_are_counted_in_any_order(
    listed: list[int | None], rows_a_batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = write_release(tmp_path, TABLE, BUCKET, promise={"kind": "l-diversity", "l": 2}, rng=None)
    people = [1, 1, 2, 2, 2, 3, 5, 7]
    expected = sum(listed.count(bucket) == 1 for bucket in people)
    monkeypatch.setattr(published, "read_batches", partial(read_in_batches, rows_a_batch))
    with duckdb.connect() as connection:
        connection.register("a", pa.table({"bucket": people}))
        connection.register("b", pa.table({"bucket": pa.array(listed, pa.int64())}))
        connection.execute("CREATE VIEW qit AS FROM a; CREATE VIEW st AS FROM b")
        assert published.count_certain(connection, release.manifest) == expected


def read_in_batches(
    n_rows: int, connection: duckdb.DuckDBPyConnection, select: str
) -> Iterator[pa.RecordBatch]:
    """DuckDB's own batches are never as small."""
    yield from connection.sql(select).to_arrow_table().to_batches(max_chunksize=n_rows)


def test_fakes_hide_the_counts(tmp_path: Path) -> None:
    promise = {"kind": "f-privacy", "thresholds": [{"value": ["Flu"], "at_most": "1/3"}]}
    release = write_release(tmp_path, TABLE, BUCKET, promise=promise, rng=None, parameters={"fakes": FAKES})
    stated = published.read(release.manifest)
    assert stated.n_fakes == 1
    assert stated.thresholds.of_value(("Flu",)) == Fraction(1, 3)
    assert stated.regions is None
    with release.connect() as connection:
        assert published.count_published(connection, release.manifest) is None


@pytest.mark.parametrize("change", [lambda st: st.slice(0, 2), lambda st: st.slice(0, 0)])
def test_tables_of_other_buckets_are_refused(release: StoredRelease, change: object) -> None:
    (file,) = release.files("st")
    pq.write_table(change(pq.ParquetFile(file).read()), file)  # type: ignore[operator]
    with pytest.raises(ReleaseCorrupt, match="do not have the same buckets"):
        published.read_tables(release)


@pytest.mark.parametrize("listed", [[1, 1, 2, 3], [3, 3, 7], [5, 3, 5], []])
def test_buckets_are_numbered_in_the_order_of_their_numbers(listed: list[int]) -> None:
    bucket = np.array(listed, dtype=np.int64)
    numbers, place = published._number_buckets(bucket)
    assert numbers.tolist() == sorted(set(listed))
    assert numbers[place].tolist() == listed
