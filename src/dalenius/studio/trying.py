"""Files that are not plain text are first read by a process with limits: they may be made to harm.

A workbook of a kilobyte can want all memory there is, and a damaged file can crash the library that reads
it. Then a process has ended, and the studio says so.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from dalenius.errors import SourceError
from dalenius.web.worker import Ended, Handle, Worker

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
