"""What is done with a damaged release, and which ends of that are no finding."""

from __future__ import annotations

import json
import random
import shutil
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import dalenius
from dalenius.errors import DaleniusError, InternalError
from dalenius.pages.writing import RENDERERS
from dalenius.release.admission import read_stated
from dalenius.release.series import open_release
from dalenius.reporting.build import build_report
from dalenius.sql import identifier
from tests.fuzz import mutations as mutate
from tests.fuzz.seeds import people


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A release and what was done to it."""

    kind: str
    """`manifest`, `table` or `bytes`."""
    release: str
    edits: list[mutate.Edit]

    def to_json(self) -> str:
        return json.dumps({"kind": self.kind, "release": self.release, "edits": self.edits})

    @classmethod
    def from_json(cls, line: str) -> Case:
        return cls(**json.loads(line))


class Seeds:
    """The seed releases, read once."""

    def __init__(self, folders: dict[str, Path]) -> None:
        self.folders = folders
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

    def draw(self, kind: str, number: int) -> Case:
        """Case number n of a kind, always the same one."""
        rng = random.Random(f"{kind} {number}")  # noqa: S311  (no secret)
        name = rng.choice(sorted(self.folders))
        if kind == "manifest":
            edits = mutate.draw_manifest_edits(self.manifests[name], rng)
        elif kind == "table":
            edits = mutate.draw_table_edits(self.tables[name], rng)
        else:
            files = self.folders[name].glob("*.parquet")
            edits = mutate.draw_byte_edits({path.name: path.stat().st_size for path in files}, rng)
        return Case(kind=kind, release=name, edits=edits)

    def write(self, case: Case, folder: Path) -> None:
        """The damaged release, with hashes that fit what was damaged."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        source, manifest = self.folders[case.release], self.manifests[case.release]
        for path in source.glob("*.parquet"):
            if case.kind == "bytes":
                mine = [edit for edit in case.edits if edit[1] == path.name]
                (folder / path.name).write_bytes(mutate.edit_bytes(path.read_bytes(), mine))
            else:
                (folder / path.name).hardlink_to(path)
        if case.kind == "manifest":
            manifest = mutate.edit_manifest(manifest, case.edits)
        else:
            manifest = json.loads(json.dumps(manifest))
            if case.kind == "table":
                for path in folder.glob("*.parquet"):
                    path.unlink()
                tables = mutate.edit_tables(self.tables[case.release], case.edits)
                mutate.write_tables(folder, manifest, tables)
            mutate.rehash(folder, manifest)
        mutate.write_json(folder / "manifest.json", manifest)


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
    "read": (read, 1),
    "verify": (dalenius.verify, 4),
    "ask": (ask_all, 4),
    "export": (export_all, 20),
    "report": (report_all, 40),
    "audit": (audit_all, 40),
}
"""What is called, and in one of how many cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An end that a stranger's file must not bring about."""

    command: str
    what: str
    case: Case


def run_case(seeds: Seeds, case: Case, folder: Path, number: int = 0) -> Iterator[Finding]:
    """Write the release and let every command at it, or with a number only some of them."""
    seeds.write(case, folder)
    for command, (call, one_in) in COMMANDS.items():
        if number % one_in:
            continue
        if command != "read" and case.kind == "manifest" and not _opens(folder):
            return  # no command would come any further
        try:
            call(folder)
        except InternalError as error:
            yield Finding(command=command, what=f"InternalError: {error}", case=case)
        except DaleniusError:
            pass
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            yield Finding(command=command, what=_place(error), case=case)
    left = [
        path.name for path in folder.parent.iterdir() if "partial" in path.name or "unfinished" in path.name
    ]
    if left:
        yield Finding(command="all", what=f"left behind: {left}", case=case)


def _opens(folder: Path) -> bool:
    try:
        read(folder)
    except DaleniusError:
        return False
    return True


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "/dalenius/" in f.filename] or list(frames)
    place = own[-1]
    return f"{type(error).__name__} in {'/'.join(Path(place.filename).parts[-3:])}:{place.lineno}"
