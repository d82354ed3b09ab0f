"""Sources: what is read, what is refused, and where an error says it is."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from dalenius.errors import SourceError
from dalenius.sql import connect
from dalenius.tables.source import open_source


def read(spec: Any) -> pa.Table:
    with connect() as connection:
        return connection.sql(f"SELECT * FROM {open_source(spec).scan(connection)}").to_arrow_table()


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_csv_keeps_leading_zeros_and_tells_empty_from_missing(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv", 'zip,age,when,weight,note\n01234,30,2026-01-31,1.5,""\n99,,2026-02-01,2,\n'
    )
    assert read(path).to_pylist() == [
        {"zip": "01234", "age": 30, "when": pd.Timestamp("2026-01-31").date(), "weight": 1.5, "note": ""},
        {"zip": "99", "age": None, "when": pd.Timestamp("2026-02-01").date(), "weight": 2.0, "note": None},
    ]


@pytest.mark.parametrize(
    ("name", "delimiter"), [("t.csv", ","), ("t.csv", ";"), ("t.tsv", "\t"), ("t.txt", "|")]
)
def test_delimiters(tmp_path: Path, name: str, delimiter: str) -> None:
    path = write(
        tmp_path / name, delimiter.join(["a", "b c"]) + "\n" + delimiter.join(["1", '"x ""y""\nz"']) + "\n"
    )
    assert read(path).to_pylist() == [{"a": 1, "b c": 'x "y"\nz'}]


def test_gzip_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress("\ufeffa,b\n1,ä\n".encode()))
    assert read(path).to_pylist() == [{"a": 1, "b": "ä"}]


def test_a_folder_on_the_path_is_no_column(tmp_path: Path) -> None:
    folder = tmp_path / "age=7"
    folder.mkdir()
    assert read(write(folder / "t.csv", "age\n30\n")).to_pylist() == [{"age": 30}]
    (folder / "t.csv").unlink()
    pq.write_table(pa.table({"age": [30]}), folder / "t.parquet")
    assert read(folder / "t.parquet").to_pylist() == read(folder).to_pylist() == [{"age": 30}]


def test_a_folder_inside_a_folder_of_parquet_may_be_one(tmp_path: Path) -> None:
    for year in (2025, 2026):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(pa.table({"age": [30]}), tmp_path / f"year={year}" / "t.parquet")
    assert read(tmp_path).to_pylist() == [{"age": 30, "year": 2025}, {"age": 30, "year": 2026}]


@pytest.mark.parametrize("folder", ["age=5", "AGE=5"])
def test_a_folder_does_not_take_the_place_of_a_column(folder: str, tmp_path: Path) -> None:
    """DuckDB would read 5 for everybody."""
    (tmp_path / folder).mkdir()
    pq.write_table(pa.table({"age": [30], "ill": ["flu"]}), tmp_path / folder / "t.parquet")
    with pytest.raises(SourceError, match="'age' is in the files and in the names of their folders"):
        open_source(tmp_path)


def test_the_index_of_a_data_frame_is_no_column() -> None:
    frame = pd.DataFrame({"age": [30, 40, 50]}, index=["x", "y", "z"])
    assert read(frame).to_pylist() == [{"age": 30}, {"age": 40}, {"age": 50}]
    assert read(frame.reset_index(drop=True).iloc[[2, 0]]).to_pylist() == [{"age": 50}, {"age": 30}]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns of one name"),
        (pd.DataFrame({"a": [1, "secret"]}), "cells of several types"),
    ],
)
def test_a_data_frame_that_is_no_table_is_refused(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        open_source(frame)
    assert "secret" not in str(caught.value)


def test_numbers_that_are_not_canonical_stay_text(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a,b,c,d\n+1,1e999,1.,9999999999999999999\n")
    assert read(path).to_pylist() == [{"a": "+1", "b": "1e999", "c": "1.", "d": "9999999999999999999"}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,secret\n2\n", "line 3, column 2: expected 2 fields, found 1"),
        ("a,b\n1,secret\n2,secret,4\n", "line 3, column 3: expected 2 fields, found 3"),
        ('a,b\n1,"secret\n', "line 2"),
        ("a,,c\n1,secret,3\n", "line 1, column 2: the column has no name"),
        ("a,b,\n1,secret,\n", "line 1, column 3: the column has no name"),
        ("a,A\n1,secret\n", "columns 'a' and 'A' have the same name"),
        ("", "is empty"),
    ],
)
def test_a_bad_csv_is_refused_with_its_place_and_without_its_cells(
    tmp_path: Path, text: str, expected: str
) -> None:
    with pytest.raises(SourceError) as caught:
        read(write(tmp_path / "t.csv", text))
    assert expected in caught.value.message
    assert "secret" not in caught.value.message + (caught.value.hint or "")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("t.csv", b"PAR1\0\0\0,a\1\2\3", "is not a text file"),
        ("t.csv", b"\xff\xfe,b\n1,2\n34", "the text is not utf-16"),
        ("t.csv.gz", b"not gzip", "cannot be read"),
        ("t.parquet", b"not parquet", "cannot be read as Parquet"),
        ("t.doc", b"", "unknown ending '.doc'"),
    ],
)
def test_files_that_are_no_tables(tmp_path: Path, name: str, content: bytes, expected: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=expected.replace(".", r"\.")):
        read(tmp_path / name)


def test_missing_paths_and_empty_folders(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="does not exist"):
        open_source(tmp_path / "t.csv")
    with pytest.raises(SourceError, match="holds no table"):
        open_source(tmp_path)
    with pytest.raises(SourceError, match="of type int is not a table"):
        open_source(3)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("name", [".b", "_b", "_temporary/b", ".cache/b"])
def test_nobody_is_in_a_hidden_file(tmp_path: Path, ending: str, name: str) -> None:
    """Some programs leave it out and some read it: neither is done without a word."""

    def save(path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        (pq.write_table if ending == "parquet" else csv.write_csv)(pa.table({"age": [30]}), path)

    save(tmp_path / f"a.{ending}")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / f".a.{ending}.crc").touch()
    assert open_source(tmp_path).column_names == ("age",)  # nobody takes these for tables
    save(tmp_path / f"{name}.{ending}")
    with pytest.raises(SourceError, match=f"holds {name}.{ending}, a hidden file") as refused:
        open_source(tmp_path)
    assert refused.value.hint == "remove it, or rename it if it belongs to the table"


def test_a_partition_may_begin_with_a_line(tmp_path: Path) -> None:
    (tmp_path / "_year=2020").mkdir()
    pq.write_table(pa.table({"age": [30]}), tmp_path / "_year=2020" / "a.parquet")
    assert open_source(tmp_path).column_names == ("age", "_year")


def test_parquet_and_other_tables_are_not_one_table(tmp_path: Path) -> None:
    pq.write_table(pa.table({"age": [30]}), tmp_path / "a.parquet")
    (tmp_path / "notes.txt.gz.bak").touch()
    open_source(tmp_path)
    csv.write_csv(pa.table({"age": [31]}), tmp_path / "b.csv")
    with pytest.raises(SourceError, match=r"holds Parquet files and b\.csv"):
        open_source(tmp_path)


def test_a_folder_of_parquet_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    for i in (2, 0, 1):
        pq.write_table(pa.table({"x": [i]}), tmp_path / f"{i}.parquet")
    assert read(tmp_path)["x"].to_pylist() == [0, 1, 2]


def test_frames_of_every_library_are_one_table() -> None:
    data = {"a": [1, 2, 3], "b": ["x", None, "z"]}
    table = pa.table(data)
    frames: list[Any] = [
        table,
        table.to_batches()[0],
        pd.DataFrame(data),
        pl.DataFrame(data),
        pl.LazyFrame(data),
    ]
    assert [read(frame).to_pydict() for frame in frames] == [data] * 5


def test_nested_columns_are_refused(tmp_path: Path) -> None:
    nested = pa.table({"a": [[1, 2]]})
    pq.write_table(nested, tmp_path / "t.parquet")
    for spec in (nested, tmp_path / "t.parquet"):
        with pytest.raises(SourceError, match="column 'a' is nested"):
            open_source(spec)


def test_a_release_is_no_table_of_people(tmp_path: Path) -> None:
    """The hint was to read its tables as one."""
    pq.write_table(pa.table({"a": [1]}), tmp_path / "qit.parquet")
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(SourceError, match="looks like a release"):
        open_source(str(tmp_path))
