"""`dalenius complete RELEASE --to FOLDER`: whole tables drawn given the release alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dalenius.cli.declared import Option
from dalenius.cli.output import JsonOption, ReleaseArgument, print_json, progress_bar, say
from dalenius.export.complete import COPIES, write_copies
from dalenius.release.series import open_release


def command(
    release: ReleaseArgument,
    to: Annotated[Path, Option("--to", "--out", "--output", help="A new folder for the tables.")],
    as_json: JsonOption = False,
    copies: Annotated[int, Option(help="How many tables are drawn.")] = COPIES,
    kind: Annotated[str, Option("--format", help="parquet, csv or stata.")] = "parquet",
    seed: Annotated[int | None, Option(help="Makes the draws repeatable.")] = None,
) -> int:
    """Draw whole tables from what the release leaves possible. Rows are draws, not people."""
    stored = open_release(release)
    with progress_bar("tables") as progress:
        done = write_copies(stored, to, copies=copies, kind=kind, seed=seed, progress=progress)
    if as_json:
        print_json(done.to_dict())
        return 0
    say(f"wrote {copies} tables of {done.n_rows:,} rows to {done.target}: rows are draws, not people")
    say(f"assumes that {done.assumes}")
    say(f"next: {done.target}/README.md says how to pool the results of an analysis")
    return 0
