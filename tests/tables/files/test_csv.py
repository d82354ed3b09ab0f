"""Text files are read once: types told from the different texts, held against those told cell by cell."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.errors import SourceError
from dalenius.sql import connect_shared
from dalenius.tables.files import csv, texts
from dalenius.tables.files.csv import CsvSource
from dalenius.tables.source import Source, open_source
from tests.tables.files.messy import workbook

CELLS = (
    *("0", "7", "12", "-3", "255", "256", "-129", "65536", "99999", "9223372036854775807"),
    *("-9223372036854775808", "9223372036854775808", "00", "007", "-0", "+5", " 5", "5 ", "1_000", "0x1F"),
    *("0xFFFFF", "0XFFFFFFFF", "1e2", "1E5", "1.0", "1.5", "-0.0", ".5", "5.", "1.234.567", "1,5", "1.500"),
    *("0.1234567890123456789", "nan", "inf", "true", "NA", "-99", "", " ", "é", "0١", "2024-02-29"),
    *("2023-02-29", "2024-02-29 10:00:00", "2024-02-29T10:00:00", "31.01.2024", "1.1.2024", "a", "b c", "x"),
)
OPTIONS: tuple[dict[str, object], ...] = (
    {},
    {"missing": ["NA", "-99"]},
    {"thousands": ".", "decimal": ","},
    {"dates": "%d.%m.%Y"},
    {"quote": ""},
    {"quote": "'"},
)
columns = st.lists(st.sampled_from(CELLS), min_size=1, max_size=5).flatmap(
    lambda few: st.lists(st.sampled_from(few), min_size=12, max_size=12)
)


def cell_by_cell(path: Path, **options: object) -> CsvSource:
    """The same file, too large to be held."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv, "_MOST_HELD", -1)
        source = open_source({"path": str(path), "header": True, **options})
    assert isinstance(source, CsvSource)
    assert source.held is None or not source.held.num_rows
    return source


def read(source: Source) -> pa.Table:
    with connect_shared() as connection:
        return connection.sql(f"SELECT * FROM {source.scan(connection)}").to_arrow_table()


@settings(max_examples=40, deadline=None)
@given(
    table=st.lists(columns, min_size=2, max_size=4),
    options=st.sampled_from(OPTIONS),
    block=st.sampled_from([40, 400, 1 << 20]),
    most_listed=st.sampled_from([3, 2**16]),
    ending=st.sampled_from(["\n", "\r\n"]),
    is_quoted=st.booleans(),
    is_packed=st.booleans(),
    has_end=st.booleans(),
    gap=st.sampled_from([0, 0, 1, 7]),
)
def test_types_and_cells_are_those_that_every_cell_has(
    tmp_path_factory: pytest.TempPathFactory,
    table: list[list[str]],
    options: dict[str, object],
    block: int,
    most_listed: int,
    ending: str,
    is_quoted: bool,
    is_packed: bool,
    has_end: bool,
    gap: int,
) -> None:
    mark = '"' if is_quoted and options.get("quote", '"') == '"' else ""
    lines = [";".join(f"c{i}" for i in range(len(table)))]
    lines += [";".join(f"{mark}{cell}{mark}" for cell in row) for row in zip(*table, strict=True)]
    lines[1 + gap : 1 + gap] = [""] * gap
    text = (ending.join(lines) + (ending if has_end else "")).encode()
    path = tmp_path_factory.mktemp("csv") / ("t.csv.gz" if is_packed else "t.csv")
    path.write_bytes(gzip.compress(text) if is_packed else text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "_BLOCK", block)
        patch.setattr(texts, "_MOST_LISTED", most_listed)
        patch.setattr(texts, "_FEW", 2)
        patch.setattr(csv, "_BATCH_ROWS", 5)
        once = open_source({"path": str(path), "header": True, **options})
    assert isinstance(once, CsvSource)
    assert once.held is not None
    again = cell_by_cell(path, **options)
    assert once.columns == again.columns
    assert read(once).equals(read(again)), (once.held.schema, text)


@pytest.mark.parametrize(
    "body",
    [
        b"\na,b\n1,2\n",  # an empty line first
        b"a,b\n\n1,2\n\n3,4\n",
        b"\xef\xbb\xbfa,b\n1,2\n",
        b'"a",b\n1,2\n',
        b'a,b\n1,"x\ny"\n3,4\n',
        b"a,b\r\n1,2\r\n",
        b"a,b\n1,2",
        b"a,b\n,\n1,2\n",
        b'a,b\n"",x\n,y\n',
        b"a\n1\n\n2\n",  # one column
        b"a,b\n",
        b"a,b",
        b"a,b\n" + b"x" * 5000 + b",1\n2,3\n",
    ],
)
def test_unusual_files_are_read_as_before(
    tmp_path: Path, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "_BLOCK", 1024)
    path = tmp_path / "t.csv"
    path.write_bytes(body)
    once, again = open_source({"path": str(path), "header": True}), cell_by_cell(path)
    assert isinstance(once, CsvSource)
    assert once.columns == again.columns
    assert read(once).equals(read(again))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"a,b\n1,2\n1,2,3\n", "line 3, column 3: expected 2 fields, found 3"),
        (b"a,b\n1,2\n1\n", "line 3"),
        (b'a,b\n1,"x\n', "a quote is opened"),
        (b"a,b\n1,2\n3,\xe9\n", "not UTF-8"),
        (b"a,b\r\n1,2\n3,4\r\n", "end otherwise"),
    ],
)
def test_what_is_wrong_is_said_as_before(tmp_path: Path, body: bytes, said: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(body)
    with pytest.raises(SourceError, match=said):
        open_source({"path": str(path), "header": True, "encoding": "utf-8"})


def test_a_title_above_the_names_of_the_columns_is_spoken_of(tmp_path: Path) -> None:
    """All lines but it have as many fields as each other: to quote these fields is no help."""
    path = tmp_path / "t.csv"
    path.write_text("Report of 2024\n\nage,ill\n31,Flu\n45,HIV\n", encoding="utf-8")
    with pytest.raises(SourceError, match="line 3, column 2: expected 1 fields, found 2") as refused:
        open_source(path)
    assert "a title above the names of the columns? take it out" in str(refused.value.hint)


def test_a_column_that_changes_its_kind_late_keeps_every_text(tmp_path: Path) -> None:
    numbers = [str(i % 50) for i in range(3_000)]
    late = [*numbers[:-1], "007"]
    names = [*numbers[:2_000], *(f"name {i}" for i in range(1_000))]
    empty = [""] * 3_000
    path = tmp_path / "t.csv"
    rows = (",".join(row) for row in zip(numbers, late, names, empty, strict=True))
    path.write_text("\n".join(["numbers,late,names,empty", *rows]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "_BLOCK", 4_096)
        patch.setattr(texts, "_MOST_LISTED", 500)
        source = open_source(str(path))
    assert isinstance(source, CsvSource)
    assert source.held is not None
    assert [kind.type for _, kind in source.columns] == ["BIGINT", "VARCHAR", "VARCHAR", "VARCHAR"]
    found = read(source)
    assert found["numbers"].to_pylist() == list(map(int, numbers))
    assert (found["late"].to_pylist(), found["names"].to_pylist()) == (late, names)
    assert found["empty"].null_count == 3_000


def test_no_value_is_listed_that_no_row_has(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "\n".join(f"{10 * (i % 3)},x{i % 2}" for i in range(9)))
    source = open_source(str(path))
    assert isinstance(source, CsvSource)
    assert source.held is not None
    assert source.held["a"].chunk(0).dictionary.to_pylist() == [0, 10, 20]


def test_a_line_end_of_another_kind_is_told_of_in_a_later_block_too(tmp_path: Path) -> None:
    """There DuckDB's error comes by way of Arrow, and was taken for a full disk."""
    (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"1,x\n" * 400_000 + b"2,y\r5,secret\n3,w\n")
    with pytest.raises(SourceError, match="some lines end otherwise than others") as caught:
        open_source(str(tmp_path / "t.csv"))
    assert "secret" not in str(caught.value)


def test_a_line_without_end_is_not_called_a_quote(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a,b\n1," + b"x" * 2_100_000 + b"\n2,y\n")
    with pytest.raises(SourceError, match=r"t\.csv, line 2: the line is longer than 2 MB"):
        open_source(str(tmp_path / "t.csv"))


@pytest.mark.parametrize("before", [b"\n\n", b"\r\n", b"\xef\xbb\xbf\n", b"sep=,\n\n"])
def test_empty_lines_before_the_header_are_none_of_it(tmp_path: Path, before: bytes) -> None:
    """The names were read as a record, that everybody could be told apart from."""
    (tmp_path / "t.csv").write_bytes(before + b"a,b\n1,x\n2,y\n")
    assert read(open_source(str(tmp_path / "t.csv"))).to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    (tmp_path / "t.csv").write_bytes(before + b"a,b\n1,x\n2,y,z\n")
    line = 3 + len(before.splitlines())
    with pytest.raises(SourceError, match=f"line {line}, column 3: expected 2 fields, found 3"):
        open_source(str(tmp_path / "t.csv"))


@pytest.mark.parametrize("file", ["t.csv", "t.xlsx"])
@pytest.mark.parametrize(
    ("third", "is_refused"),
    [
        (["flu", "cold", "flu", "gout"], True),  # somebody's cell: two others are below
        (["flu", "cold", "flu", "cold"], False),
        (["flu", "", "flu", "flu"], False),  # ticked with its own name
        (["ill", "cold", "flu", "gout"], False),
    ],
)
def test_one_name_that_is_a_cell_among_others_is_somebodys(
    tmp_path: Path, file: str, third: list[str], is_refused: bool
) -> None:
    """A header that was cut may end in a record: its cell would be listed in messages, and published."""
    rows = [["age", "sex", third[0]], *([f"{n} years", "FMF"[n], cell] for n, cell in enumerate(third[1:]))]
    path = tmp_path / file
    if file == "t.xlsx":
        path.write_bytes(workbook({"people": [[cell or None for cell in row] for row in rows]}))
    else:
        path.write_text("".join(",".join(row) + "\n" for row in rows))
    if not is_refused:
        assert open_source(str(path)).column_names == ("age", "sex", third[0])
        return
    with pytest.raises(SourceError, match="looks like a record") as refused:
        open_source(str(path))
    assert "field 3 is found again below" in refused.value.message
    assert "flu" not in str(refused.value)
    assert open_source({"path": str(path), "header": True}).column_names[2] == "flu"
