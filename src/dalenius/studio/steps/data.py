"""Step 1: which table, and how its file is read.

Files that are not plain text are first read by a process with limits: they may be made to harm. A workbook of
a kilobyte can want all memory there is, and a damaged file can crash the library that reads it. Then a
process has ended, and the studio says so.
"""

from __future__ import annotations

import os
import secrets
import shutil
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dalenius.demo_data import hospital
from dalenius.errors import DaleniusError, InputError, SourceError
from dalenius.inspection.reading import how_read
from dalenius.pages import document as doc
from dalenius.plain import escape_controls
from dalenius.policy import open_source_of
from dalenius.studio.frame import Studio, read_form, show, studio_of
from dalenius.studio.parts import command, next_link, refusal, show_progress, wait_briefly
from dalenius.tables.histogram import label_cell
from dalenius.tables.postgres import hide_passwords
from dalenius.tables.source import scanning
from dalenius.web.page import blocks, choice, element, field, form, within
from dalenius.web.worker import Ended, Handle, Worker

PREVIEW = 50
READING = ("encoding", "delimiter", "decimal", "header", "missing", "sheet", "table")


async def page(request: Request) -> Response:
    """The page, with what became of the table that is being taken."""
    studio = studio_of(request)
    task = studio.tasks.find(("take", request.query_params.get("taking", "")))
    if task is None:
        return await _show(request, [])
    if not (await wait_briefly(task)).finished:
        same, python = _same(studio)
        return show(
            request, "data", show_progress(request, task, "Reading the table"), same=same, python=python
        )
    if task.error is not None:
        return await _show(request, [refusal(task.error, "This table cannot be read")], status=400)
    return RedirectResponse("/data", 303)


async def take(request: Request) -> Response:
    """A file was dropped, a path given, or the demo's table wanted; or a table is read in another way."""
    studio = studio_of(request)
    try:
        sent = await read_form(request)
    except DaleniusError as error:
        return await _show(request, [refusal(error, "This table cannot be read")], status=400)
    number = secrets.token_hex(8)
    await wait_briefly(studio.tasks.read(("take", number), lambda _: _take(studio, sent)))
    return RedirectResponse(f"/data?taking={number}", 303)


def _take(studio: Studio, sent: dict[str, Any]) -> None:
    file = sent.get("file")
    if isinstance(file, UploadFile) and file.filename:
        source: Any = str(_keep_upload(studio, file))
    elif sent.get("demo"):
        source = str(_demo(studio))
    elif str(sent.get("path", "")).strip():
        source = str(sent["path"]).strip()
    else:
        source = studio.project.read().get("source")
    if source is None:
        raise InputError("no table was given", hint="choose a file, or give its path")
    take_source(studio, source["path"] if isinstance(source, dict) else source, _reading_options(sent))


def take_source(studio: Studio, given: str, said: dict[str, Any] | None = None) -> None:
    """Begin with a table: its columns are undecided, unless the policy has given roles to the same ones."""
    project = studio.project
    path = given if "://" in given else str(Path(given).expanduser().absolute())
    spec: Any = {"path": path, **said} if said else path
    try_reading({"path": path, **(said or {})}, project.folder)
    names = open_source_of(spec, project.folder).column_names
    before = project.read()
    if _list_columns(before) != set(names):
        before = {}
    release = before.get("release", release_name(path))
    kept = {key: part for key, part in before.items() if key not in ("source", "release", "columns")}
    columns = before.get("columns", {"undecided": list(names)})
    project.write({"source": spec, "release": release, "columns": columns, **kept})


def release_name(path: str) -> str:
    """What a release of this table is called at first; of a database's address only what names the table.

    >>> release_name("/home/me/patients.2024.csv")
    'patients.release'
    """
    place = urlsplit(path).path if "://" in path else path  # the rest may hold a password
    return f"{_clean(Path(place).name.split('.')[0])}.release"


def _clean(name: str) -> str:
    return "".join(c for c in name if c.isalnum() or c in "._- ").strip(". ") or "table"


def _list_columns(data: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    for role, names in data.get("columns", {}).items():
        if role != "k":
            found |= {names} if isinstance(names, str) else set(names)
    return found


def _reading_options(sent: dict[str, Any]) -> dict[str, Any]:
    """What was said of the file, without what was left as it was found."""
    said: dict[str, Any] = {}
    for key in READING:
        text = str(sent.get(key, "")).strip()
        if not text:
            continue
        if key == "header":
            said[key] = text == "yes"
        elif key == "missing":
            said[key] = [code.strip() for code in text.split(",") if code.strip()]
        else:
            said[key] = {"tab": "\t"}.get(text, text)
    return said


def _keep_upload(studio: Studio, file: UploadFile) -> Path:
    """A copy in the private folder; of its name only the end counts."""
    clean = _clean(Path(str(file.filename)).name)
    folder = studio.project.uploads / secrets.token_hex(8)
    folder.mkdir(mode=0o700)
    target = folder / clean[-100:]
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "wb") as copy, file.file as first:
        shutil.copyfileobj(first, copy, 2**20)
    return target


def _demo(studio: Studio) -> Path:
    import pyarrow.csv as arrow_csv

    target = studio.project.uploads / "patients.csv"
    arrow_csv.write_csv(hospital(), target)
    return target


async def _show(request: Request, before: list[Element], status: int = 200) -> Response:
    studio = studio_of(request)
    csrf = request.scope["csrf"]
    content = [
        *before,
        element("p", "Nothing leaves this machine. The project folder keeps the policy, never records."),
        *_ways_in(csrf),
    ]
    data = studio.project.read()
    if "source" in data:
        key = ("preview", studio.project.table())
        task = await wait_briefly(studio.tasks.read(key, lambda _: _preview(studio, data["source"])))
        if not task.finished:
            content += show_progress(request, task, "Reading the first rows")
        elif task.error is not None:
            studio.tasks.forget(key)
            content.append(refusal(task.error, "The table cannot be read any more"))
        else:
            how, table = blocks(task.result)
            table.set("class", "preview")
            content += [how, _reading_form(data["source"], csrf), table]
    content.append(next_link("roles", is_open="source" in data, why="choose a table first"))
    same, python = _same(studio)
    return show(request, "data", content, same=same, python=python, status=status)


def _same(studio: Studio) -> tuple[list[str], str]:
    """What `inspect` and Python would be told of the table."""
    spec = studio.project.read().get("source", "SOURCE")
    told, options = describe_source(spec)
    opened = f"open_source(*split_source({told!r}))"
    python = (
        "from dalenius.inspection.looking import inspect_source\n"
        "from dalenius.tables.source import open_source, split_source\n"
        f"inspect_source({opened}).to_dict()"
    )
    return [command("inspect", told["path"], *options)], python


def describe_source(spec: Any) -> tuple[dict[str, Any], list[str]]:
    """A table as Python and as the command line would be told of it, without a password."""
    said = dict(spec) if isinstance(spec, dict) else {"path": spec}
    path = hide_passwords(str(said.pop("path")))
    return {"path": path, **said}, [part for key, value in said.items() for part in _options(key, value)]


def _options(key: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{key}" if value else f"--no-{key}"]
    texts = value if isinstance(value, list) else [value]
    return [f"--{key}={text}" for text in texts]


def _ways_in(csrf: str) -> list[Element]:
    """A file, a path, or the demo's table."""
    upload = field("file", "A file: CSV, Parquet, Excel, SPSS, Stata …", element("input", type="file"))
    path = element(
        "input", type="text", autocomplete="off", placeholder="/home/me/patients.csv or postgresql://…"
    )
    demo = element(
        "button", "Take the demo's table of a hospital that never was", type="submit", name="demo", value="1"
    )
    return [
        _multipart(form("/data", csrf, upload, element("button", "Take this file", type="submit"))),
        form(
            "/data",
            csrf,
            field("path", "Or its path, or the address of a database table", path),
            element("button", "Take this path", type="submit"),
        ),
        form("/data", csrf, demo),
    ]


def _multipart(made: Element) -> Element:
    made.set("enctype", "multipart/form-data")
    return made


def _preview(studio: Studio, spec: Any) -> list[doc.Block]:
    """The first rows, and how the file was read."""
    source = open_source_of(spec, studio.project.folder)
    with scanning(source) as (connection, scan):
        found = connection.execute(f"SELECT * FROM {scan} LIMIT {PREVIEW}")
        names = [escape_controls(column[0]) for column in found.description or []]
        rows = found.fetchall()
    table = doc.Table(
        caption=f"The first {len(rows)} rows of {escape_controls(source.name)}",
        columns=doc.head(*names),
        rows=tuple(tuple(label_cell(cell) for cell in row) for row in rows),
        note="Private: it is shown to you only.",
    )
    how = doc.Facts(items=tuple((name, doc.Code(text=found)) for name, found in how_read(source).items()))
    return [how, table]


def _reading_form(spec: Any, csrf: str) -> Element:
    said = dict(spec) if isinstance(spec, dict) else {}

    def text(name: str, label: str, example: str) -> Element:
        value = said.get(name, "")
        shown = ", ".join(value) if isinstance(value, list) else str(value)
        return field(name, label, element("input", value=shown, placeholder=example, autocomplete="off"))

    header = "" if said.get("header") is None else ("yes" if said["header"] else "no")
    options = [("", "as found"), ("yes", "yes"), ("no", "no")]
    fields = within(
        element("fieldset"),
        element("legend", "How the file is read (empty: as it was found)"),
        text("encoding", "Encoding", "utf-8, latin-1"),
        text("delimiter", "Delimiter", ", ; tab |"),
        text("decimal", "Decimal mark", ". or ,"),
        field("header", "First line names the columns", choice(options, str(header))),
        text("missing", "Codes for missing values", "NA, -99"),
        text("sheet", "Sheet of a workbook", "2024"),
        text("table", "Table of a database", "patients"),
    )
    return form("/data", csrf, fields, element("button", "Read it this way", type="submit"))


PLAIN = frozenset({"", ".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson"})
"""Endings of what is read piece by piece, by a reader that gives up on what is no text."""
SECONDS, MEGABYTES = 600, 4096


def try_reading(spec: dict[str, Any], folder: Path) -> None:
    """Open a table and read its first rows, in a process of its own.

    Raises:
        SourceError: it cannot be read, or only with more time or memory than a table is worth.
    """
    path = str(spec["path"])
    if "://" in path or Path(path.lower().removesuffix(".gz")).suffix in PLAIN:
        return
    worker = Worker(partial(_get_ready, str(folder)), seconds=SECONDS, megabytes=MEGABYTES)
    try:
        error = worker.call(spec)
    except Ended as ended:
        limit = f"{SECONDS} seconds" if ended.kind == "time" else f"{MEGABYTES:,} MB"
        raise SourceError(
            f"{path} cannot be read: it takes more than {limit}, or is damaged",
            hint="a workbook may have a cell far from the others; save the table as CSV",
        ) from ended
    finally:
        worker.stop()
    if error is not None:
        raise SourceError(error["message"], hint=error.get("hint"))


def _get_ready(folder: str) -> Handle:
    """In the process, which loads here what reading needs."""
    from dalenius.errors import DaleniusError
    from dalenius.policy import open_source_of
    from dalenius.tables.source import scanning

    def handle(spec: dict[str, Any]) -> Any:
        try:
            with scanning(open_source_of(spec, Path(folder))) as (connection, scan):
                connection.execute(f"SELECT * FROM {scan} LIMIT 1").fetchall()
        except DaleniusError as error:
            return error.to_dict()["error"]
        return None

    return handle
