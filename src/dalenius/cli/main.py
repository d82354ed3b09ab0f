"""The `dalenius` command: its subcommands, and how errors end it."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

import typer

from dalenius.cli import (
    ask,
    audit,
    compare,
    demo,
    doctor,
    export,
    init,
    inspect,
    plan,
    publish,
    report,
    reproduce,
    verify,
)
from dalenius.cli.output import say_error
from dalenius.errors import DaleniusError, InputError, InternalError
from dalenius.postgres_uri import hide_passwords

app = typer.Typer(
    name="dalenius",
    help="Publish tables about people so that what can be inferred about any one of them is bounded.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
COMMANDS = (
    init,
    demo,
    inspect,
    plan,
    publish,
    verify,
    ask,
    audit,
    report,
    compare,
    export,
    reproduce,
    doctor,
)
for module in COMMANDS:
    app.command(module.NAME)(module.command)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 bad usage or input, 3 a promise is not met."""
    given = sys.argv[1:] if arguments is None else arguments
    sys.exit(run(given))


def run(arguments: list[str]) -> int:
    """Run the command line; the exit code."""
    as_json = "--json" in arguments
    try:
        code = app(arguments, standalone_mode=False)
    except DaleniusError as error:
        say_error(error.to_dict(), as_json=as_json)
        return error.exit_code
    except typer.TyperException as error:
        say_error(
            InputError(_usage_message(error), hint="`dalenius --help` lists the commands").to_dict(),
            as_json=as_json,
        )
        return InputError.exit_code
    except (KeyboardInterrupt, typer.Abort):
        print("stopped; nothing was published", file=sys.stderr)
        return 1
    except Exception as error:
        # The last resort: a traceback or an unknown message could quote a record, so only its place is shown.
        if "DALENIUS_TRACEBACK" in os.environ:
            raise
        say_error(_bug(error).to_dict(), as_json=as_json)
        return InternalError.exit_code
    return code if isinstance(code, int) else 0


def _bug(error: Exception) -> InternalError:
    place = traceback.extract_tb(error.__traceback__)[-1]
    return InternalError(
        f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}; nothing was published",
        hint="this is a bug in Dalenius: please report it; DALENIUS_TRACEBACK=1 shows all, cells included",
    )


def _usage_message(error: typer.TyperException) -> str:
    format_message = getattr(error, "format_message", None)
    return hide_passwords(str(format_message() if format_message else error))
