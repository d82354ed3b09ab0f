"""The `dalenius` command: its subcommands, and how errors end it."""

from __future__ import annotations

import dataclasses
import gc
import importlib
import io
import os
import re
import sys
import traceback
from collections.abc import Callable, Collection
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import dalenius
from dalenius import system
from dalenius.cli.declared import Option, declare_to_typer
from dalenius.cli.ending import UNREAD, ended_at_once, is_unread, print_no_more
from dalenius.cli.lines import read_line
from dalenius.cli.output import say_error
from dalenius.errors import DaleniusError, EngineError, InputError, InternalError

if TYPE_CHECKING:
    import typer

# What `dalenius --help` says of each; a command's module is loaded only to run it, so that help is instant.
COMMANDS = {
    "init": "Write a commented policy for a table, to edit.",
    "choose": "Answer five questions, and get a policy with reasons.",
    "demo": "Take the whole tour on a synthetic hospital table.",
    "inspect": "Show a table's columns, sensitive counts and feasible promises.",
    "plan": "Show what a policy would publish; touches no output.",
    "publish": "Write the release, whole or not at all.",
    "verify": "Check a release from itself alone: files, tables, promise.",
    "ask": "Answer SQL from a release, with error bars.",
    "audit": "Attack a release with the original at hand.",
    "report": "Write a report on a release as one HTML file.",
    "compare": "Compare policies and baselines; publishes nothing.",
    "export": "Write a release to PostgreSQL, DuckDB or CSV.",
    "studio": "The whole job in a browser, on this machine only.",
    "serve": "Answer analysts' questions over HTTP, from releases alone.",
    "complete": "Draw whole tables from a release, for any statistics package.",
    "ledger": "List, show or forget what was published.",
    "reproduce": "Make a table or figure of the papers again.",
    "doctor": "Say what is installed, what is missing, how to get it.",
}
# In which room a command's module is, by what its users have: the table, or a release alone. Others are here.
ROOMS = {
    "publisher": ("init", "choose", "inspect", "plan", "publish", "compare", "audit", "ledger", "studio"),
    "reader": ("verify", "ask", "report", "export", "complete", "serve"),
}

_COMPLETING = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
"""Where bash, and other shells, put the line that is being typed."""
_NOT_MAPPED = "failed to map segment|[Cc]annot allocate memory|unable to allocate"
"""What the system says of a library that does not fit into memory."""
_STOPPED = 130
"""What typer gives back after Ctrl-C."""
_OBJECTS_BETWEEN_COLLECTIONS = 100_000
"""What is imported is some 90,000 objects, and looking through them for cycles a tenth of a small command."""


def application(loaded: Collection[str]) -> typer.Typer:
    """The command line with these commands loaded, and no more than a line of help for the others."""
    import typer

    app = typer.Typer(
        name="dalenius",
        help="Publish tables about people so that what can be inferred about any one of them is bounded.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(declare_to_typer(_common))
    for name, summary in COMMANDS.items():
        command = declare_to_typer(_load(name)) if name in loaded else _not_loaded
        app.command(name, short_help=summary)(command)
    return app


def _load(name: str) -> Callable[..., object]:
    room = next((f"{room}." for room, names in ROOMS.items() if name in names), "")
    command: Callable[..., object] = import_module(f"dalenius.cli.{room}{name}").command
    return command


def _show_version(wanted: bool) -> None:
    if wanted:
        import typer

        print(f"dalenius {dalenius.__version__}")
        raise typer.Exit


def _common(
    version: Annotated[
        bool, Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Publish tables about people so that what can be inferred about any one of them is bounded."""


def _not_loaded() -> None: ...


def main() -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 bad usage or input, 3 a promise is not met."""
    # threads of OpenBLAS wait for each other by spinning: on a machine with other work they take ten times as
    # long as one of them alone, and to start them is a tenth of a small question; who sets it has their way
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    with ended_at_once():
        _run_and_exit()


def _run_and_exit() -> NoReturn:
    if "_DALENIUS_COMPLETE" in os.environ:  # a shell asks how a line may go on
        words = " ".join(os.environ.get(name, "") for name in _COMPLETING).split()
        application(words)(prog_name="dalenius")
    arguments = sys.argv[1:] or ["--help"]
    code = system.work_apart_if_limited(lambda: _run_here(arguments))
    if code is None:
        say_error(_too_little_memory().to_dict(), as_json="--json" in arguments)
    sys.exit(EngineError.exit_code if code is None else code)


def _run_here(arguments: list[str]) -> int:
    system.stop_on_signals()
    for stream in (sys.stdout, sys.stderr):  # "≤" where the locale has no such character is no reason to end
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if arguments[0] in COMMANDS and "--help" not in arguments:
        _keep_pandas_out()
        _keep_masks_out()
        _keep_documents_out()
        _write_methods_later()
    try:
        return run(arguments)
    except (BrokenPipeError, SystemExit):  # which rich and typer make of the former
        if not is_unread():  # another pipe's, such as a database's
            raise
        print_no_more()
        return UNREAD


def _keep_pandas_out() -> None:
    """Let pyarrow look for pandas now and not find it.

    It looks once, when it makes its first array of a list, and where pandas is installed that takes longer
    than most commands. What really makes a data frame (`to_pandas`) looks again, and finds it.
    """
    import pyarrow as pa

    class NoPandas:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "pandas":
                raise ModuleNotFoundError(name)

    not_there = NoPandas()
    sys.meta_path.insert(0, not_there)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(not_there)


def _keep_masks_out() -> None:
    """Let pyarrow and numpy tell an array from a masked one without all that there is for masked ones.

    pyarrow asks of every array whether it is an `np.ma.MaskedArray`, `np.unique` whether it is masked, and
    numpy loads `np.ma` to say no. Before that is loaded there is none. Whoever imports it, or wants anything
    else of it, loads it.
    """
    import numpy as np

    class Masked(type):
        def __instancecheck__(cls, one: object) -> bool:
            loaded = sys.modules.get("numpy.ma")
            return loaded is not None and isinstance(one, loaded.MaskedArray)

    class NotLoaded(ModuleType):
        MaskedArray = Masked("MaskedArray", (), {})

        def is_masked(self, one: object) -> bool:
            return isinstance(one, self.MaskedArray) and bool(import_module("numpy.ma").is_masked(one))

        def __getattr__(self, name: str) -> object:
            return getattr(import_module("numpy.ma"), name)

    if "numpy.ma" not in sys.modules:
        np.ma = NotLoaded("numpy.ma")


def _keep_documents_out() -> None:
    """Let pyarrow make its functions without what `help` shows of them, and sqlglot know its own dialects.

    pyarrow reads the documents of all options, half of the time that the functions take to load. sqlglot
    loads what finds installed packages, and the mail that their names are in, in case that it is asked for a
    dialect which it does not have. Whoever wants anything else of both modules loads them.
    """

    class NotLoaded(ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
            return getattr(import_module(self.__name__), name)

    def find_packages(**wanted: object) -> object:
        return packages.__getattr__("entry_points")(**wanted)

    documents, packages = NotLoaded("pyarrow.vendored.docscrape"), NotLoaded("importlib.metadata")
    vars(documents)["NumpyDocString"] = lambda _: {"Parameters": ()}
    vars(packages)["entry_points"] = find_packages
    sys.modules.setdefault(documents.__name__, documents)
    if sys.modules.setdefault(packages.__name__, packages) is packages:
        vars(importlib)["metadata"] = packages


def _write_methods_later() -> None:
    """Let Python compile methods of dataclasses when somebody calls them.

    It compiles six for each of some 190 classes, one by one, a sixth of what a small command takes, and most
    are never called; from 3.13 on it compiles those of a class together.
    """
    if not hasattr(dataclasses, "_create_fn"):
        return
    compile_now: Callable[..., Any] = vars(dataclasses)["_create_fn"]

    class Later:
        """In the place of a method until somebody looks for it there; nobody can tell it from the method."""

        __slots__ = ("__name__", "compile")

        def __init__(self, name: str, *how: Any, **options: Any) -> None:
            self.__name__ = name
            self.compile = cache(lambda: compile_now(name, *how, **options))

        def __get__(self, one: object, kind: type) -> Any:
            compiled, name = self.compile(), self.__name__
            for owner in kind.__mro__:  # of a class with slots it is another than was decorated
                if vars(owner).get(name) is self:
                    compiled.__qualname__ = f"{owner.__qualname__}.{name}"
                    setattr(owner, name, compiled)
            return compiled.__get__(one, kind)

        def __call__(self, *given: Any) -> Any:  # `__repr__` is called by another function
            return self.compile()(*given)

    vars(dataclasses)["_create_fn"] = Later


def run(arguments: list[str]) -> int:
    """Run the command line; the exit code."""
    as_json = "--json" in arguments
    try:
        code = _run_command(arguments)
    except DaleniusError as error:
        if _was_stopped(error):
            return _stop(as_json=as_json)
        say_error(error.to_dict(), as_json=as_json)
        return error.exit_code
    except PermissionError as error:
        say_error(_not_allowed(error).to_dict(), as_json=as_json)
        return InputError.exit_code
    except OSError as error:
        if isinstance(error, BrokenPipeError) and is_unread():
            raise
        say_error(_not_done(error).to_dict(), as_json=as_json)
        return EngineError.exit_code
    except KeyboardInterrupt:
        return _stop(as_json=as_json)
    except MemoryError:
        say_error(_too_little_memory().to_dict(), as_json=as_json)
        return EngineError.exit_code
    except Exception as error:
        # The last resort: a traceback or an unknown message could quote a record, so only its place is shown.
        if _was_stopped(error):
            return _stop(as_json=as_json)
        if "DALENIUS_TRACEBACK" in os.environ:
            raise
        if isinstance(error, ImportError) and re.search(_NOT_MAPPED, str(error)):
            say_error(_too_little_memory().to_dict(), as_json=as_json)
            return EngineError.exit_code
        say_error(_bug(error).to_dict(), as_json=as_json)
        return InternalError.exit_code
    if code == _STOPPED:
        return _stop(as_json=as_json)
    return code if isinstance(code, int) else 0


def _run_command(arguments: list[str]) -> object:
    name, *words = arguments
    if name in COMMANDS:
        command = _load(name)
        values = read_line(command, words)
        if values is not None:
            return command(**values)
    import typer

    try:
        return application(arguments)(arguments, prog_name="dalenius", standalone_mode=False)
    except typer.TyperException as error:
        raise InputError(_usage_message(error), hint=_usage_hint(arguments)) from error
    except typer.Abort:
        raise KeyboardInterrupt from None


def _stop(*, as_json: bool) -> int:
    stopped = {"kind": "Stopped", "message": "stopped; nothing was published", "hint": None}
    say_error({"error": stopped}, as_json=as_json)
    return 1


def _was_stopped(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: DuckDB makes a RuntimeError of it while a query runs."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:  # what is raised again can come round to itself
        seen.add(id(error))
        if isinstance(error, KeyboardInterrupt) or str(error) == "Query interrupted":
            return True
        error = error.__cause__ or error.__context__
    return False


def _not_allowed(error: PermissionError) -> InputError:
    what = "a file" if error.filename is None else str(error.filename)
    return InputError(
        f"{what} cannot be opened: permission denied", hint="who owns it, and may this user read or write it?"
    )


def _not_done(error: OSError) -> EngineError:
    what = "" if error.filename is None else f"{error.filename}: "
    return EngineError(
        f"the machine could not do it: {what}{error.strerror or error}; nothing was published",
        hint="is there room on the disk and in the temporary folder (TMPDIR), and are few enough files open?",
    )


def _too_little_memory() -> EngineError:
    return EngineError(
        "there is not enough memory; what is under the name of the release is whole, or not there",
        hint="raise or remove the limit (`ulimit -v`), or use a machine with more memory",
    )


def _bug(error: Exception) -> InternalError:
    place = traceback.extract_tb(error.__traceback__)[-1]
    return InternalError(
        f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}; nothing was published",
        hint="this is a bug in Dalenius: please report it; DALENIUS_TRACEBACK=1 shows all, cells included",
    )


def _usage_message(error: typer.TyperException) -> str:
    from dalenius.tables.postgres import hide_passwords  # which loads DuckDB

    format_message = getattr(error, "format_message", None)
    return hide_passwords(str(format_message() if format_message else error))


def _usage_hint(arguments: list[str]) -> str:
    if arguments[0] in COMMANDS:
        return f"`dalenius {arguments[0]} --help` lists its arguments and options"
    return "`dalenius --help` lists the commands"
