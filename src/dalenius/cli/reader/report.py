"""`dalenius report RELEASE`: what was published, what is promised, and how it was checked, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dalenius.cli.declared import Argument, Option
from dalenius.cli.output import JsonOption, progress_bar, say, tell
from dalenius.pages.document import Notice, Report
from dalenius.pages.writing import default_path, to_json, write_report
from dalenius.release.series import open_release
from dalenius.reporting.build import build_report


def command(
    release: Annotated[Path, Argument(help="The release folder, or the folder of a series.")],
    as_json: JsonOption = False,
    original: Annotated[
        str | None,
        Option(help="The table that was published, or its policy: the report is then private."),
    ] = None,
    output: Annotated[
        Path | None, Option("--output", "--out", "--to", help="Where to write it: .html, .json or .txt.")
    ] = None,
    seed: Annotated[int | None, Option(help="Makes the attackers' own coins repeatable.")] = None,
) -> int:
    """Write a report for outsiders, or with the original a private one; exit 3 if a promise is broken."""
    stored = open_release(release)
    with progress_bar() as progress:
        report = build_report(stored, original, seed=seed, progress=progress)
    path = output or default_path(release, private=report.private)
    write_report(report, path, stored)
    found = {"report": str(path), **to_json(report)}
    return tell(found, lambda: say_report(report, path), as_json=as_json, is_kept=report.ok)


def say_report(report: Report, path: Path) -> None:
    """Where the report is, and what must not be overlooked in it."""
    for block in report.lead:
        if isinstance(block, Notice):
            say(f"{block.title}\n  {block.text}")
    say(f"written to {path}")
