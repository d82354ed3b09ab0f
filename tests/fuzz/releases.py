"""What is done with a damaged release, and which ends of that are no finding."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import dalenius
from dalenius.errors import DaleniusError
from dalenius.pages.writing import RENDERERS
from dalenius.release.admission import read_stated
from dalenius.release.series import open_release
from dalenius.reporting.build import build_report
from dalenius.sql import identifier
from tests.fuzz import mutations as mutate
from tests.fuzz.cases import Case, Finding, attempt
from tests.fuzz.seeds import people


class Releases:
    """Small releases of every kind, read once, to be damaged in a folder of their own."""

    def __init__(self, folders: dict[str, Path], work: Path) -> None:
        self.folders = folders
        self.work = work
        self.manifests = {
            name: json.loads((path / "manifest.json").read_text()) for name, path in folders.items()
        }
        self.tables = {
            name: {
                entry["name"]: pq.ParquetFile(path / entry["files"][0]["file"]).read()
                for entry in self.manifests[name]["tables"]
            }
            for name, path in folders.items()
        }
        self.places = {name: mutate.places_of_manifest(found) for name, found in self.manifests.items()}

    def draw(self, kind: str, number: int) -> Case:
        """Case number n of a kind, always the same one."""
        rng = random.Random(f"{kind} {number}")  # noqa: S311  (no secret)
        name = rng.choice(sorted(self.folders))
        if kind == "manifest":
            edits = mutate.draw_manifest_edits(self.places[name], rng)
        elif kind == "table":
            edits = mutate.draw_table_edits(self.tables[name], rng)
        else:
            files = self.folders[name].glob("*.parquet")
            edits = mutate.draw_byte_edits({path.name: path.stat().st_size for path in files}, rng)
        return Case(kind=kind, start=name, edits=edits)

    def write(self, case: Case) -> None:
        """The damaged release, with hashes that fit what was damaged."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        source, manifest = self.folders[case.start], self.manifests[case.start]
        if case.kind == "manifest":
            manifest = mutate.edit_manifest(manifest, case.edits)
        else:
            manifest = json.loads(json.dumps(manifest))
            if case.kind == "table":
                tables = mutate.edit_tables(self.tables[case.start], case.edits)
                mutate.write_tables(self.work, manifest, tables)
            for path in source.glob("*.parquet") if case.kind == "bytes" else ():
                mine = [edit for edit in case.edits if edit[1] == path.name]
                (self.work / path.name).write_bytes(mutate.edit_bytes(path.read_bytes(), mine))
            mutate.rehash(self.work, manifest)
        mutate.write_json(self.work / "manifest.json", manifest)

    def run(self, case: Case, number: int = 0) -> Iterator[Finding]:
        """Write the release and let every command at it, or with a number only some of them."""
        is_manifest = case.kind == "manifest"
        if is_manifest and self.work.is_dir():  # by far the most cases end at reading it
            manifest = mutate.edit_manifest(self.manifests[case.start], case.edits)
            mutate.write_json(self.work / "manifest.json", manifest)
        else:
            self.write(case)
        yield from attempt("read", lambda: read(self.work))
        due = [
            (name, call)
            for name, (call, one_in) in COMMANDS.items()
            if number % (one_in if is_manifest else max(1, one_in // 50)) == 0
        ]
        if due and is_manifest and _opens(self.work):
            for path in self.folders[case.start].glob("*.parquet"):
                (self.work / path.name).hardlink_to(path)
        elif is_manifest:
            return  # no command would come any further
        for name, call in due:
            yield from attempt(name, partial(call, self.work))
        left = [p.name for p in self.work.parent.iterdir() if "partial" in p.name or "unfinished" in p.name]
        if left:
            yield Finding(command="all", what=f"left behind: {left}")
        if is_manifest:
            shutil.rmtree(self.work)


def _opens(folder: Path) -> bool:
    try:
        read(folder)
    except DaleniusError:
        return False
    return True


def questions(folder: Path) -> list[str]:
    """About columns that the manifest says there are."""
    columns = [column.name for column in open_release(folder).manifest.columns]
    counted = "SELECT COUNT(*) FROM t"
    if not columns:
        return [counted]
    first, last = identifier(columns[0]), identifier(columns[-1])
    return [
        counted,
        f"SELECT COUNT(*) FROM t WHERE {first} IS NOT NULL AND {last} <> 'cold'",
        f"SELECT {last}, COUNT(*), AVG({first}) FROM t GROUP BY {last}",
    ]


def ask_all(folder: Path) -> None:
    release = dalenius.open_release(folder)
    for question in questions(folder):
        try:
            release.ask(question)
        except dalenius.QueryError:
            continue


def report_all(folder: Path) -> None:
    report = build_report(open_release(folder))
    for render in RENDERERS.values():
        page = render(report)
        assert "<script>alert" not in page or render is not RENDERERS[".html"], "markup in a report"


def export_all(folder: Path) -> None:
    target = folder.with_name("exported")
    for name in ("csv", "file.duckdb"):
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        try:
            dalenius.open_release(folder).export(target / name)
        finally:
            left = [path.name for path in target.iterdir() if path.name.startswith(".")]
            assert not left, f"left behind: {left}"


def complete_all(folder: Path) -> None:
    dalenius.open_release(folder).complete(1, seed=1)


def audit_all(folder: Path) -> None:
    table = people()
    names = [column.name for column in open_release(folder).manifest.columns]
    columns = {name: table.column(name) for name in names if name in table.column_names}
    columns |= {name: pa.array(["x"] * table.num_rows) for name in names if name not in columns}
    dalenius.audit(folder, pa.table(columns), seed=1)


def read(folder: Path) -> None:
    """What every command begins with."""
    for part in open_release(folder).parts:
        read_stated(part)


COMMANDS: dict[str, tuple[Callable[[Path], Any], int]] = {
    "verify": (dalenius.verify, 100),
    "ask": (ask_all, 100),
    "export": (export_all, 1000),
    "complete": (complete_all, 1000),
    "report": (report_all, 1000),
    "audit": (audit_all, 1000),
}
"""What is called, and in one of how many damaged manifests; fifty times as often with damaged tables."""
