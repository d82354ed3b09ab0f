"""`dalenius export RELEASE --to TARGET`: a release in other people's tools."""

from __future__ import annotations

from typing import Annotated

from dalenius.cli.declared import Option
from dalenius.cli.output import JsonOption, ReleaseArgument, print_json, say, say_table
from dalenius.export import export_release
from dalenius.release.series import open_release


def command(
    release: ReleaseArgument,
    to: Annotated[
        str,
        Option(
            "--to",
            "--out",
            "--output",
            help="postgresql://user@host/database, a new .duckdb file, or a new folder for CSV.",
        ),
    ],
    as_json: JsonOption = False,
    name: Annotated[
        str | None, Option(help="The schema in PostgreSQL; by default the release's name.")
    ] = None,
    column: Annotated[
        list[str] | None, Option(help="A column of the view; repeat it. By default all columns.")
    ] = None,
    keep_formulas: Annotated[
        bool, Option("--keep-formulas", help="In CSV, keep texts that spreadsheets take for formulas.")
    ] = False,
) -> int:
    """Write the tables and a view whose SUM(weight) estimates counts; nothing is overwritten."""
    stored = open_release(release)
    exported = export_release(stored, to, name=name, columns=column or (), keep_formulas=keep_formulas)
    if as_json:
        print_json(exported.to_dict())
        return 0
    say(f"exported {release} to {exported.target}")
    say_table(["table", "rows"], [[table, f"{rows:,}"] for table, rows in exported.tables])
    if exported.view is None:
        say("weighted.sql makes a view whose SUM(weight) estimates counts; see about.csv, dictionary.csv")
    else:
        say(f"next: SELECT SUM(weight) FROM {exported.view} WHERE …; tables dictionary and about explain")
    say("error bars come from `dalenius ask` only")
    return 0
