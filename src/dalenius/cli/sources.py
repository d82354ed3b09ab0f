"""Options of commands that read a table: what cannot be told from the file, and what its columns are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dalenius.cli.declared import Argument, Option
from dalenius.tables.files.options import SourceOptions
from dalenius.tables.postgres import is_uri

if TYPE_CHECKING:
    from dalenius.inspection.roles import Role

TableArgument = Annotated[
    str,
    Argument(
        help="A file (CSV, Parquet, Excel, SPSS, Stata, SAS, SQLite, DuckDB, Arrow, JSON lines; also .gz, "
        ".zst, .zip), a folder or pattern of files, postgresql://…, or - for standard input."
    ),
]
OriginalOption = Annotated[str, Option(help="The table that was published, or the policy that published it.")]


def gather_options(into: str, offered: Mapping[str, Any], gather: Callable[..., Any]) -> Callable[..., Any]:
    """A command takes these options, each empty by default, as the one value that they make together.

    Commands that read a table share a dozen of them. Typer reads a signature, so that is where they go.
    """

    def widen(command: Callable[..., int]) -> Callable[..., int]:
        own = signature(command, eval_str=True)
        taken = [parameter for name, parameter in own.parameters.items() if name != into]
        added = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in offered.items()
        ]

        @wraps(command)
        def widened(**given: Any) -> int:
            return command(**{into: gather(**{name: given.pop(name) for name in offered})}, **given)

        parameters = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in taken] + added
        widened.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        widened.__annotations__ = {one.name: one.annotation for one in parameters}
        return widened

    return widen


def _gather_options(**options: Any) -> SourceOptions:
    return SourceOptions.of({key: value for key, value in options.items() if value not in (None, [])})


def _collect_roles(unit: str | None, **columns: list[str] | None) -> dict[Role, list[str]]:
    roles: dict[Any, list[str]] = {role: names or [] for role, names in columns.items()}
    return {**roles, "unit": [] if unit is None else [unit]}


takes_dialect = gather_options(
    "options",
    {
        "encoding": Annotated[str | None, Option(help="Of a text file, e.g. latin-1, cp1252, utf-16.")],
        "delimiter": Annotated[str | None, Option(help="What separates the fields of a text file.")],
        "quote": Annotated[str | None, Option(help='What quotes fields; "" if nothing does.')],
        "decimal": Annotated[str | None, Option(help="The mark before decimals: a point or a comma.")],
        "thousands": Annotated[str | None, Option(help="The mark between thousands.")],
        "header": Annotated[
            bool | None,
            Option("--header/--no-header", help="Whether the first line names the columns."),
        ],
        "missing": Annotated[
            list[str] | None,
            Option(help="A text that means that a value is missing, e.g. NA; repeat."),
        ],
        "dates": Annotated[str | None, Option(help="How days are written, e.g. %d.%m.%Y.")],
        "sheet": Annotated[str | None, Option(help="The sheet of a workbook.")],
        "table": Annotated[str | None, Option(help="The table of a database.")],
        "labels": Annotated[
            str | None, Option(help="Of SPSS, Stata and SAS: read values as codes or as labels.")
        ],
    },
    _gather_options,
)
takes_roles = gather_options(
    "roles",
    {
        "sensitive": Annotated[
            list[str] | None, Option(help="What must not be inferable; repeat, or separate by commas.")
        ],
        "quasi": Annotated[
            list[str] | None, Option(help="Published as they are; an attacker may know them.")
        ],
        "identifiers": Annotated[
            list[str] | None, Option(help="Names, addresses, numbers of people: dropped.")
        ],
        "dropped": Annotated[list[str] | None, Option(help="Not published either.")],
        "unit": Annotated[str | None, Option(help="Whose rows are whose: dropped.")],
    },
    _collect_roles,
)


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
