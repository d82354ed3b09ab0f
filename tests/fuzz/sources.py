"""Damaged tables of every kind of file: bytes changed, cut, repeated or packed again."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import random
import zipfile
from collections.abc import Iterator
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


def make_files(folder: Path) -> dict[str, bytes]:
    """The table as files of every kind that needs no other program, by their names."""
    buffer = io.BytesIO()
    csv.write_csv(TABLE, buffer)
    text = buffer.getvalue()
    rows = TABLE.to_pylist()
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    database = folder / "t.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.register("given", TABLE)
        connection.execute("CREATE TABLE people AS FROM given")
    sheet = [TABLE.column_names, *[list(row.values()) for row in rows]]
    found = {
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
        "t.duckdb": database.read_bytes(),
    }
    database.unlink()
    return found


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
