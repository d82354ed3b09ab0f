"""`dalenius init SOURCE`: a commented policy for this table, to edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dalenius.cli import sources
from dalenius.cli.declared import Option
from dalenius.cli.output import JsonOption, print_json, say, say_table
from dalenius.errors import InputError
from dalenius.files import create_private
from dalenius.inspection.first_policy import FirstPolicy
from dalenius.inspection.roles import Role
from dalenius.tables.files.options import SourceOptions

OutOption = Annotated[
    Path | None,
    Option("--out", "--output", "--to", help="The policy file to write; default: beside the source."),
]


@sources.takes_dialect
@sources.takes_roles
def command(
    source: sources.TableArgument,
    roles: dict[Role, list[str]],
    options: SourceOptions,
    as_json: JsonOption = False,
    out: OutOption = None,
) -> int:
    """Write a commented policy for this table, to edit. Columns without a role are left undecided."""
    found = FirstPolicy.of(source, roles, options)
    target = write_policy(found, source, out)
    if as_json:
        print_json({"policy": str(target), **found.to_dict()})
    else:
        say_policy(found, target)
    return 0


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
