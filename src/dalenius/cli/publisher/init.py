"""`dalenius init SOURCE`: a commented policy for this table, to edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dalenius.cli import sources
from dalenius.cli.output import JsonOption, print_json, say, say_table
from dalenius.errors import InputError
from dalenius.files import create_private
from dalenius.inspection.first_policy import FirstPolicy
from dalenius.inspection.roles import Role

OutOption = Annotated[Path | None, typer.Option(help="The policy file to write; default: beside the source.")]
SensitiveOption = Annotated[
    list[str] | None, typer.Option(help="What must not be inferable; repeat, or separate by commas.")
]
QuasiOption = Annotated[
    list[str] | None, typer.Option(help="Published as they are; an attacker may know them.")
]
IdentifiersOption = Annotated[
    list[str] | None, typer.Option(help="Names, addresses, numbers of people: dropped.")
]
DroppedOption = Annotated[list[str] | None, typer.Option(help="Not published either.")]
UnitOption = Annotated[str | None, typer.Option(help="Whose rows are whose: dropped.")]


def command(
    source: sources.TableArgument,
    as_json: JsonOption = False,
    out: OutOption = None,
    sensitive: SensitiveOption = None,
    quasi: QuasiOption = None,
    identifiers: IdentifiersOption = None,
    dropped: DroppedOption = None,
    unit: UnitOption = None,
    encoding: sources.Encoding = None,
    delimiter: sources.Delimiter = None,
    quote: sources.Quote = None,
    decimal: sources.Decimal = None,
    thousands: sources.Thousands = None,
    header: sources.Header = None,
    missing: sources.Missing = None,
    dates: sources.Dates = None,
    sheet: sources.Sheet = None,
    table: sources.Table = None,
    labels: sources.Labels = None,
) -> int:
    """Write a commented policy for this table, to edit. Columns without a role are left undecided."""
    options = sources.said(
        encoding=encoding,
        delimiter=delimiter,
        quote=quote,
        decimal=decimal,
        thousands=thousands,
        header=header,
        missing=missing,
        dates=dates,
        sheet=sheet,
        table=table,
        labels=labels,
    )
    given = collect_roles(sensitive, quasi, identifiers, dropped, unit)
    found = FirstPolicy.of(source, given, options)
    target = write_policy(found, source, out)
    if as_json:
        print_json({"policy": str(target), **found.to_dict()})
    else:
        say_policy(found, target)
    return 0


def collect_roles(
    sensitive: list[str] | None,
    quasi: list[str] | None,
    identifiers: list[str] | None,
    dropped: list[str] | None,
    unit: str | None,
) -> dict[Role, list[str]]:
    """The roles that the options give."""
    return {
        "sensitive": sensitive or [],
        "quasi": quasi or [],
        "identifiers": identifiers or [],
        "dropped": dropped or [],
        "unit": [] if unit is None else [unit],
    }


def write_policy(found: FirstPolicy, source: str, out: Path | None, sections: str | None = None) -> Path:
    """Write a first policy, which must be new, and say where."""
    folder, name = sources.place_of(source)
    target = out or folder / f"{name}.toml"
    text = found.to_toml(source, target, f"{target.stem}.release", sections)
    try:
        create_private(target, text)
    except FileExistsError as error:
        raise InputError(
            f"{target} exists already", hint="edit it, or give another name with --out"
        ) from error
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror}") from error
    return target


def say_policy(found: FirstPolicy, target: Path) -> None:
    """What was found, and what is left to do."""
    say_table(["column", "role", "evidence"], [list(line) for line in found.lines()])
    for warning in found.warnings:
        say(f"warning: {warning}")
    todo = ", ".join(repr(guess.column) for guess in found.undecided)
    if todo:
        say(f"\nwrote {target}; no role is decided for {todo} (a guess has a question mark):")
        say(f"move each name from `undecided` into its role, then run `dalenius plan {target}`")
    else:
        say(f"\nwrote {target}: check it, then run `dalenius plan {target}`")
