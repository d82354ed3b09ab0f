"""Files as people have them, each with what happens: read rightly, or refused with what helps.

`python -m tests.tables.files.messy` writes the table of docs/sources.md again.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

from dalenius.errors import SourceError
from dalenius.sql import connect
from dalenius.tables.source import open_source

ROWS = [("Müller", 34, 1.5, "2024-01-31"), ("Šimić", 41, 1.75, "2024-02-29"), ("Ana", 52, 1.6, "2024-03-01")]
TABLE = pa.table(
    {
        "name": [row[0] for row in ROWS],
        "age": [row[1] for row in ROWS],
        "height": [row[2] for row in ROWS],
        "day": pa.array([row[3] for row in ROWS]).cast(pa.date32()),
    }
)
PAGE = Path(__file__).parents[3] / "docs" / "sources.md"
START, END = "<!-- the messy files, written by tests -->\n", "<!-- end of the messy files -->"


@dataclass(frozen=True, kw_only=True)
class Messy:
    """A file, how it is opened, and what comes of it."""

    what: str
    """As the documentation calls it."""
    file: str
    make: Callable[[Path], None]
    options: dict[str, Any] = field(default_factory=dict)
    refused: str | None = None
    """A part of the message; None: it is read, and is the table above."""
    helps: str | None = None
    """A part of the hint."""
    expected: pa.Table | None = None


def text(delimiter: str = ",", decimal: str = ".", header: bool = True, plain: bool = False) -> str:
    lines = [delimiter.join(["name", "age", "height", "day"])] if header else []
    for name, age, height, day in ROWS:
        shown = name.replace("Š", "S").replace("ć", "c") if plain else name
        lines.append(delimiter.join([shown, str(age), str(height).replace(".", decimal), day]))
    return "\n".join(lines) + "\n"


def written(content: str | bytes, encoding: str = "utf-8") -> Callable[[Path], None]:
    data = content.encode(encoding) if isinstance(content, str) else content

    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


def zipped(names: list[str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, text())
    return buffer.getvalue()


def parquet_bytes() -> bytes:
    buffer = io.BytesIO()
    pq.write_table(TABLE, buffer)
    return buffer.getvalue()


def zstd(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


def workbook(sheets: dict[str, list[list[Any]]]) -> bytes:
    """The smallest workbook: cells as inline texts and numbers."""
    buffer = io.BytesIO()
    spaces = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    with zipfile.ZipFile(buffer, "w") as archive:
        kinds = "".join(
            f'<Override PartName="/xl/worksheets/sheet{i}.xml" ContentType="application/vnd.openxmlformats-'
            'officedocument.spreadsheetml.worksheet+xml"/>'
            for i in range(1, len(sheets) + 1)
        )
        archive.writestr(
            "[Content_Types].xml",
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default '
            'Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-'
            f'officedocument.spreadsheetml.sheet.main+xml"/>{kinds}</Types>',
        )
        package = "http://schemas.openxmlformats.org/package/2006/relationships"
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}"><Relationship Id="r1" Type="{relations}/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>',
        )
        links = "".join(
            f'<Relationship Id="r{i}" Type="{relations}/worksheet" Target="worksheets/sheet{i}.xml"/>'
            for i in range(1, len(sheets) + 1)
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{package}">{links}</Relationships>'
        )
        named = "".join(
            f'<sheet name="{name}" sheetId="{i}" r:id="r{i}"/>' for i, name in enumerate(sheets, start=1)
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook {spaces} xmlns:r="{relations}"><sheets>{named}</sheets></workbook>',
        )
        for i, rows in enumerate(sheets.values(), start=1):
            body = "".join(
                f'<row r="{r}">' + "".join(_cell(c, r, cell) for c, cell in enumerate(row)) + "</row>"
                for r, row in enumerate(rows, start=1)
            )
            archive.writestr(
                f"xl/worksheets/sheet{i}.xml",
                f"<worksheet {spaces}><sheetData>{body}</sheetData></worksheet>",
            )
    return buffer.getvalue()


def far_cell(path: Path) -> Path:
    """A workbook of a kilobyte whose table is said to have 17,179,869,184 cells."""
    book = zipfile.ZipFile(io.BytesIO(workbook({"2024": [["name", "disease"], ["Ada", "Flu"]]})))
    with zipfile.ZipFile(path, "w") as archive:
        for name in book.namelist():
            far = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
            archive.writestr(name, book.read(name).replace(b"</sheetData>", far))
    return path


def _cell(column: int, row: int, cell: Any) -> str:
    place = f"{'ABCDEFGH'[column]}{row}"
    if isinstance(cell, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{cell}</t></is></c>'
    return f'<c r="{place}"><v>{cell}</v></c>'


SHEET: list[list[Any]] = [["name", "age", "height"], *[list(row[:3]) for row in ROWS]]
SHORT = TABLE.select(["name", "age", "height"])


def write_sqlite(path: Path, tables: tuple[str, ...] = ("people",)) -> None:
    with closing(sqlite3.connect(path)) as database:
        for table in tables:
            database.execute(f"CREATE TABLE {table} (name TEXT, age INTEGER, height REAL)")
            database.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", [row[:3] for row in ROWS])
        database.commit()


def write_duckdb(path: Path) -> None:
    with duckdb.connect(str(path)) as database:
        database.register("given", TABLE)
        database.execute("CREATE TABLE people AS FROM given")


def write_sav(path: Path) -> None:
    import pandas as pd
    import pyreadstat

    frame = pd.DataFrame({"sex": [1.0, 2.0, 1.0], "age": [34, 41, 52]})
    pyreadstat.write_sav(frame, str(path), variable_value_labels={"sex": {1: "male", 2: "female"}})


def write_dta(path: Path) -> None:
    import pandas as pd
    import pyreadstat

    pyreadstat.write_dta(pd.DataFrame({"sex": [1.0, 2.0, 1.0], "age": [34, 41, 52]}), str(path))


def write_folder(path: Path) -> None:
    path.mkdir()
    lines = text().splitlines(keepends=True)
    (path / "a.csv").write_text(lines[0] + lines[1], encoding="utf-8")
    (path / "b.csv").write_text(lines[0] + lines[2] + lines[3], encoding="utf-8")


JSON_LINES = "".join(
    json.dumps(dict(zip(TABLE.column_names, row, strict=True)), ensure_ascii=False) + "\n" for row in ROWS
)
PLAIN = TABLE.set_column(0, "name", pa.array(["Müller", "Simic", "Ana"]))
MISSING = "name,age\nAna,34\nBo,NA\nCy,-99\n"
NO_AGE = pa.table({"name": ["Ana", "Bo", "Cy"], "age": [34, None, None]})
CODES = pa.table({"sex": [1, 2, 1], "age": [34, 41, 52]})
LABELS = pa.table({"sex": ["male", "female", "male"], "age": [34, 41, 52]})

CASES = [
    Messy(
        what="semicolons and decimal commas",
        file="t.csv",
        make=written(text(";", ",")),
        options={"decimal": ","},
    ),
    Messy(
        what="CSV in cp1252, not said", file="t.csv", make=written(text(plain=True), "cp1252"), expected=PLAIN
    ),
    Messy(
        what="CSV in latin-1",
        file="t.csv",
        make=written(text(plain=True), "latin-1"),
        options={"encoding": "latin-1"},
        expected=PLAIN,
    ),
    Messy(what="CSV in UTF-16, as spreadsheets save it", file="t.csv", make=written(text("\t"), "utf-16")),
    Messy(what="CSV in UTF-8 with a byte order mark", file="t.csv", make=written(text(), "utf-8-sig")),
    Messy(
        what="CSV that is not the encoding that was said",
        file="t.csv",
        make=written(text(plain=True), "cp1252"),
        options={"encoding": "utf-8"},
        refused="the text is not UTF-8",
        helps="--encoding cp1252",
    ),
    Messy(what="`sep=;` before the header", file="t.csv", make=written("sep=;\r\n" + text(";"))),
    Messy(
        what="no header, not said",
        file="t.csv",
        make=written(text(header=False)),
        refused="looks like a record",
        helps="--no-header",
    ),
    Messy(
        what="no header",
        file="t.csv",
        make=written(text(header=False)),
        options={"header": False},
        expected=TABLE.rename_columns([f"column_{i}" for i in range(1, 5)]),
    ),
    Messy(
        what="codes for missing values",
        file="t.csv",
        make=written(MISSING),
        options={"missing": ["NA", "-99"]},
        expected=NO_AGE,
    ),
    Messy(
        what="days as 31.01.2024",
        file="t.csv",
        make=written("name,day\nAna,31.01.2024\nBo,1.2.2024\n"),
        options={"dates": "%d.%m.%Y"},
        expected=pa.table(
            {"name": ["Ana", "Bo"], "day": pa.array(["2024-01-31", "2024-02-01"]).cast(pa.date32())}
        ),
    ),
    Messy(
        what="points between thousands",
        file="t.csv",
        make=written("name;pay\nAna;1.234,50\nBo;999,00\n"),
        options={"decimal": ",", "thousands": "."},
        expected=pa.table({"name": ["Ana", "Bo"], "pay": [1234.5, 999.0]}),
    ),
    Messy(
        what="codes with leading zeros, and numbers of 20 digits",
        file="t.csv",
        make=written("zip,account\n01234,12345678901234567890\n99999,12345678901234567891\n"),
        expected=pa.table(
            {"zip": ["01234", "99999"], "account": ["12345678901234567890", "12345678901234567891"]}
        ),
    ),
    Messy(
        what="a line with a field too many",
        file="t.csv",
        make=written("name,age\nAna,34\nBo,41,x\n"),
        refused="line 3, column 3: expected 2 fields, found 3",
        helps="--delimiter",
    ),
    Messy(
        what="lines that end in two ways",
        file="t.csv",
        make=written("name,age\r\nAna,34\nBo,41\n"),
        refused="some lines end otherwise",
        helps="one kind of line ends",
    ),
    Messy(
        what="a quote that is not closed",
        file="t.csv",
        make=written('name,age\n"Ana,34\n'),
        refused="a quote is opened and not closed",
        helps="--quote",
    ),
    Messy(what="CSV, gzip", file="t.csv.gz", make=written(gzip.compress(text().encode()))),
    Messy(what="CSV, zstd", file="t.csv.zst", make=written(zstd(text().encode()))),
    Messy(what="CSV, bzip2", file="t.csv.bz2", make=written(bz2.compress(text().encode()))),
    Messy(what="CSV in a zip archive", file="t.zip", make=written(zipped(["t.csv"]))),
    Messy(
        what="two files in a zip archive",
        file="t.zip",
        make=written(zipped(["a.csv", "b.csv"])),
        refused="holds 2 files",
        helps="unpack it",
    ),
    Messy(
        what="gzip, cut off",
        file="t.csv.gz",
        make=written(gzip.compress(text().encode() * 99)[:-20]),
        refused="cannot be read",
        helps="damaged",
    ),
    Messy(
        what="zstd, cut off",
        file="t.csv.zst",
        make=written(zstd(text().encode() * 99)[:-20]),
        refused="cannot be read",
        helps="damaged",
    ),
    Messy(
        what="a zip archive, cut off",
        file="t.zip",
        make=written(zipped(["t.csv"])[:-30]),
        refused="cannot be read",
        helps="damaged",
    ),
    Messy(
        what="Parquet, cut off",
        file="t.parquet",
        make=written(parquet_bytes()[:-30]),
        refused="cannot be read as Parquet",
        helps="damaged",
    ),
    Messy(
        what="Parquet that is named .csv",
        file="t.csv",
        make=written(parquet_bytes()),
        refused="is not a text file",
        helps=".parquet",
    ),
    Messy(what="Excel", file="t.xlsx", make=written(workbook({"Sheet1": SHEET})), expected=SHORT),
    Messy(
        what="Excel with two sheets",
        file="t.xlsx",
        make=written(workbook({"2023": [["x"], [1]], "2024": SHEET})),
        refused="has 2 sheets with cells: '2023', '2024'",
        helps="--sheet",
    ),
    Messy(
        what="Excel, a sheet of two",
        file="t.xlsx",
        make=written(workbook({"2023": [["x"], [1]], "2024": SHEET})),
        options={"sheet": "2024"},
        expected=SHORT,
    ),
    Messy(
        what="Excel, damaged",
        file="t.xlsx",
        make=written(workbook({"Sheet1": SHEET})[:400]),
        refused="cannot be read as a workbook",
        helps="damaged",
    ),
    Messy(what="SPSS, as codes", file="t.sav", make=write_sav, expected=CODES),
    Messy(
        what="SPSS, as labels", file="t.sav", make=write_sav, options={"labels": "labels"}, expected=LABELS
    ),
    Messy(what="Stata", file="t.dta", make=write_dta, expected=CODES),
    Messy(
        what="SPSS, damaged",
        file="t.sav",
        make=written(b"$FL2 nothing"),
        refused="cannot be read as a file of a statistics package",
        helps="damaged",
    ),
    Messy(what="SQLite", file="t.sqlite", make=write_sqlite, expected=SHORT),
    Messy(
        what="SQLite with two tables",
        file="t.db",
        make=lambda path: write_sqlite(path, ("people", "visits")),
        refused="has 2 tables: 'people', 'visits'",
        helps="--table",
    ),
    Messy(
        what="SQLite, a table of two",
        file="t.db",
        make=lambda path: write_sqlite(path, ("people", "visits")),
        options={"table": "people"},
        expected=SHORT,
    ),
    Messy(what="DuckDB", file="t.duckdb", make=write_duckdb),
    Messy(what="Arrow (Feather)", file="t.feather", make=lambda path: feather.write_feather(TABLE, path)),
    Messy(what="JSON lines", file="t.jsonl", make=written(JSON_LINES)),
    Messy(what="JSON lines, gzip", file="t.jsonl.gz", make=written(gzip.compress(JSON_LINES.encode()))),
    Messy(
        what="JSON lines, cut off",
        file="t.jsonl",
        make=written(JSON_LINES[:-9]),
        refused="cannot be read as JSON lines",
        helps="one object",
    ),
    Messy(
        what="nested JSON",
        file="t.jsonl",
        make=written('{"a": {"b": 1}}\n'),
        refused="column 'a' is nested",
        helps="unnest it",
    ),
    Messy(what="a folder of CSV", file="folder", make=write_folder),
    Messy(what="a pattern", file="folder/*.csv", make=lambda path: write_folder(path.parent)),
    Messy(
        what="a file of another kind",
        file="t.docx",
        make=written(b"nothing"),
        refused="unknown ending '.docx'",
        helps="known: CSV",
    ),
]


def read(case: Messy, folder: Path) -> pa.Table:
    """The file, made and read."""
    path = folder / case.file
    case.make(path)
    with connect() as connection:
        source = open_source({"path": path, **case.options})
        return connection.sql(f"SELECT * FROM {source.scan(connection)}").to_arrow_table()


def outcome(case: Messy) -> str:
    """What happens, as the documentation says it."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            table = read(case, Path(folder))
        except SourceError as error:
            return f"refused: {case.refused}. Help: {error.hint}"
    types = ", ".join(
        f"{name} {kind}" for name, kind in zip(table.column_names, table.schema.types, strict=True)
    )
    return f"read: {types}"


def page_table() -> str:
    """The table of docs/sources.md."""
    lines = ["| what | file | options | what happens |", "|---|---|---|---|"]
    for case in CASES:
        options = ", ".join(f"`{key} = {json.dumps(value)}`" for key, value in case.options.items())
        told = outcome(case).replace("|", "\\|").replace("<", "&lt;")
        lines.append(f"| {case.what} | `{case.file}` | {options} | {told} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    PAGE.write_text(before + START + page_table() + END + rest.partition(END)[2], encoding="utf-8")
