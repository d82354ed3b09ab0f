"""Options of commands that read a table: what cannot be told from the file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dalenius.tables.files.options import SourceOptions
from dalenius.tables.postgres import is_uri

TableArgument = Annotated[
    str,
    typer.Argument(
        help="A file (CSV, Parquet, Excel, SPSS, Stata, SAS, SQLite, DuckDB, Arrow, JSON lines; also .gz, "
        ".zst, .zip), a folder or pattern of files, postgresql://…, or - for standard input."
    ),
]
OriginalOption = Annotated[
    str, typer.Option(help="The table that was published, or the policy that published it.")
]
Encoding = Annotated[str | None, typer.Option(help="Of a text file, e.g. latin-1, cp1252, utf-16.")]
Delimiter = Annotated[str | None, typer.Option(help="What separates the fields of a text file.")]
Quote = Annotated[str | None, typer.Option(help='What quotes fields; "" if nothing does.')]
Decimal = Annotated[str | None, typer.Option(help="The mark before decimals: a point or a comma.")]
Thousands = Annotated[str | None, typer.Option(help="The mark between thousands.")]
Header = Annotated[
    bool | None, typer.Option("--header/--no-header", help="Whether the first line names the columns.")
]
Missing = Annotated[
    list[str] | None, typer.Option(help="A text that means that a value is missing, e.g. NA; repeat.")
]
Dates = Annotated[str | None, typer.Option(help="How days are written, e.g. %d.%m.%Y.")]
Sheet = Annotated[str | None, typer.Option(help="The sheet of a workbook.")]
Table = Annotated[str | None, typer.Option(help="The table of a database.")]
Labels = Annotated[
    str | None, typer.Option(help="Of SPSS, Stata and SAS: read values as codes or as labels.")
]


def said(**options: Any) -> SourceOptions:
    """What the command line says of the source."""
    return SourceOptions.of({key: value for key, value in options.items() if value not in (None, [])})


def place_of(source: str) -> tuple[Path, str]:
    """Where a policy for a source is written, and its name without an ending."""
    if source == "-":
        return Path(), "table"
    if is_uri(source):
        name = source.rpartition("table=")[2].rpartition(".")[2].partition("&")[0]
        return Path(), name if name.isidentifier() else "table"
    path = Path(source)
    name = path.name.split(".")[0]
    return path.parent, name if name and "*" not in name and "?" not in name else "table"
