"""Damaged tables of every kind of file: bytes changed, cut, repeated or packed again."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import random
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv, feather

import dalenius
from dalenius import Policy
from dalenius.inspection.looking import inspect_source
from dalenius.tables.source import open_source
from tests.fuzz.cases import SECRET, Case, Finding, attempt
from tests.fuzz.mutations import draw_byte_edits, edit_bytes
from tests.tables.files.messy import workbook, zstd

_AGES = [30, 31, 30, 31, 32, 33] * 2
_SEXES = ["F", "M", "F", "M", "F", "M"] * 2
_ILL = [f"{SECRET}{name}" for name in ("cold", "flu", "gout", "cold", "flu", "hiv")] * 2
TABLE = pa.table({"age": _AGES, "sex": _SEXES, "ill": _ILL})
_POLICY = {
    "columns": {"quasi": ["age", "sex"], "sensitive": ["ill"]},
    "promise": {"kind": "l-diversity", "l": 2},
}
_WORDS = (
    *(
        b"",
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\r",
        b"\n",
        b"\r\n",
        b'"',
        b"'",
        b",",
        b";",
        b"\t",
        b"\x1a",
    ),
    *(b"30,F," * 3, b"9" * 400, b"1e400", b"NaN", b"-0.0", b"NULL", b"2020-13-45", b"\xc3", b"\xed\xa0\x80"),
    *(
        b'{"age": {"a": [1]}}',
        b"]" * 50,
        b"[" * 5000,
        b"age,age,age",
        b"sep=;",
        b"PAR1",
        b"\x1f\x8b",
        b"a" * 9000,
    ),
)


def parquet_of(table: pa.Table, compression: str) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression=compression)
    return buffer.getvalue()


def _arrow() -> bytes:
    buffer = io.BytesIO()
    feather.write_feather(TABLE, buffer, compression="zstd")
    return buffer.getvalue()


def _zip(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.csv", data)
    return buffer.getvalue()


def _statistics(folder: Path) -> dict[str, bytes]:
    """As SPSS, Stata and SAS transport files; a sas7bdat can be read, but nothing free writes one."""
    import pyreadstat

    frame = TABLE.to_pandas()
    labels: dict[str, dict[float | int, str]] = {"age": {30: "thirty", 31: "one more"}}
    writers: dict[str, Callable[[str], None]] = {
        "t.sav": lambda path: pyreadstat.write_sav(frame, path, variable_value_labels=labels),
        "packed.sav": lambda path: pyreadstat.write_sav(frame, path, row_compress=True),
        "t.zsav": lambda path: pyreadstat.write_sav(frame, path, compress=True),
        "t.por": lambda path: pyreadstat.write_por(frame, path),
        "t.dta": lambda path: pyreadstat.write_dta(frame, path, variable_value_labels=labels),
        "old.dta": lambda path: pyreadstat.write_dta(frame, path, version=10),
        "t.xpt": lambda path: pyreadstat.write_xport(frame, path),
        "old.xpt": lambda path: pyreadstat.write_xport(frame, path, file_format_version=5),
    }
    return {name: _written(folder / name, write) for name, write in writers.items()}


def _sqlite(path: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE people (age INTEGER, sex TEXT, ill TEXT)")
        rows = [tuple(row.values()) for row in TABLE.to_pylist()]
        database.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)


def _duckdb(path: str) -> None:
    with duckdb.connect(path) as connection:
        connection.register("given", TABLE)
        connection.execute("CREATE TABLE people AS FROM given")


def _written(path: Path, write: Callable[[str], None]) -> bytes:
    write(str(path))
    content = path.read_bytes()
    path.unlink()
    return content


def make_files(folder: Path) -> dict[str, bytes]:
    """The table as files of every kind that can be written here, by their names."""
    buffer = io.BytesIO()
    csv.write_csv(TABLE, buffer)
    text = buffer.getvalue()
    rows = TABLE.to_pylist()
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    sheet = [TABLE.column_names, *[list(row.values()) for row in rows]]
    return {
        "t.csv": text,
        "wide.csv": text.replace(b",", b";").replace(b"\n", b"\r\n"),
        "utf16.csv": text.decode().encode("utf-16"),
        "t.csv.gz": gzip.compress(text, mtime=0),
        "t.csv.zst": zstd(text),
        "t.csv.bz2": bz2.compress(text),
        "t.zip": _zip(text),
        "t.parquet": parquet_of(TABLE, "snappy"),
        "brotli.parquet": parquet_of(TABLE, "brotli"),
        "zstd.parquet": parquet_of(TABLE, "zstd"),
        "t.arrow": _arrow(),
        "t.jsonl": lines,
        "t.json": json.dumps(rows).encode(),
        "t.xlsx": workbook({"people": sheet}),
        "t.duckdb": _written(folder / "t.duckdb", _duckdb),
        "t.sqlite": _written(folder / "t.sqlite", _sqlite),
        **_statistics(folder),
    }


class Sources:
    """Files to be published."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = make_files(folder)

    def draw(self, kind: str, number: int) -> Case:
        """Case number n, always the same one; texts, which are read by our own code, more often."""
        rng = random.Random(f"{kind} {number}")  # noqa: S311  (no secret)
        names = sorted(self.files)
        name = rng.choice([*names, *[n for n in names if n.endswith((".csv", "json", "jsonl"))] * 2])
        if rng.random() < 0.4:
            at, word = rng.randrange(len(self.files[name])), rng.choice(_WORDS)
            edits = [[rng.choice(("words", "over", "end", "tail")), name, at, word.hex()]]
        else:
            edits = draw_byte_edits({name: len(self.files[name])}, rng)
        return Case(kind=kind, start=name, edits=edits)

    def run(self, case: Case, number: int = 0) -> Iterator[Finding]:
        """Plan a release of it; look at one in six as `inspect` does."""
        path = self.folder / case.start
        path.write_bytes(_damage(self.files[case.start], case))
        yield from attempt("plan", lambda: self._plan(path), secret=f"'{SECRET}")
        if number % 6 == 0:
            yield from attempt("inspect", lambda: inspect_source(open_source(path)), secret=f"'{SECRET}")
        path.unlink()

    def _plan(self, path: Path) -> None:
        dalenius.plan(Policy.from_dict({"source": str(path), **_POLICY}))


def _damage(content: bytes, case: Case) -> bytes:
    how, _, at, value = case.edits[0]
    if how == "words":
        return content[:at] + bytes.fromhex(value) + content[at:]
    if how == "over":
        word = bytes.fromhex(value)
        return content[:at] + word + content[at + len(word) :]
    if how == "end":
        return content[:at] + bytes.fromhex(value)
    if how == "tail":
        return content + bytes.fromhex(value) + content[:at]
    return edit_bytes(content, case.edits)
