"""Writing a report to a file: HTML, JSON or text, as its name says."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from dalenius.errors import InputError
from dalenius.pages.document import Report
from dalenius.pages.html import render_html
from dalenius.pages.plain import render_text, to_json
from dalenius.release.folder import StoredRelease


def _render_json(report: Report) -> str:
    return json.dumps(to_json(report), indent=2, ensure_ascii=False) + "\n"


RENDERERS: dict[str, Callable[[Report], str]] = {
    ".html": render_html,
    ".json": _render_json,
    ".txt": render_text,
}


def default_path(folder: Path, *, private: bool) -> Path:
    """Beside the release folder; the name of a private report says so.

    >>> default_path(Path("out/patients.release"), private=True).name
    'patients.release.private-report.html'
    """
    own = folder if folder.name not in ("", "..") else folder.resolve()
    return own.with_name(f"{own.name}.{'private-report' if private else 'report'}.html")


def write_report(report: Report, path: Path, release: StoredRelease) -> None:
    """Write the report, whole or not at all.

    Raises:
        InputError: another kind of file, a place inside the release, or one that cannot be written to.
    """
    render = RENDERERS.get(path.suffix.lower())
    if render is None:
        known = ", ".join(RENDERERS)
        raise InputError(f"a report is written as {known}, not {path.suffix!r}", hint="e.g. report.html")
    for part in release.parts:
        if part.path.resolve() in path.resolve().parents:
            raise InputError(
                f"{path} is inside the release, which would no longer be the one that was published",
                hint="write the report beside the release",
            )
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.write_text(render(report), encoding="utf-8", newline="\n")
        os.replace(unfinished, path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
