"""Runs of the command line in forked processes, in which something can be made to fail."""

from __future__ import annotations

import importlib
import os
import pkgutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dalenius.demo_data import hospital
from dalenius.engines.parquet import write_parquet

_COLUMNS = '[columns]\nquasi = ["age", "sex"]\nsensitive = ["disease"]\ndropped = [{dropped}]\n'
_VIEW = '[promise]\nkind = "d-gamma-privacy"\nd = "1/20"\ngamma = "1/4"\n[mechanism]\nkind = "alpha-beta"\n'
POLICIES = {
    "bucketize": '[promise]\nkind = "l-diversity"\nl = 2\n',
    "perturb": '[promise]\nkind = "rho-privacy"\nrho1 = "max"\nrho2 = "1/2"\n[mechanism]\nkind = "perturb"\n',
    "alpha-beta": _VIEW + 'duplicates = "distinct"\ndomains = "active"\n',
    "frapp": _VIEW.replace('d = "1/20"', "k = 3") + 'method = "frapp"\ndomains = "active"\n',
    "suppress": '[promise]\nkind = "l-diversity"\nl = 4\n[suppress]\nmethod = "safe"\n',
}
_OPERATIONS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.utime", "os.listdir")
_SECONDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended."""

    exit_code: int
    """Or the negative number of a signal."""
    output: str

    @property
    def message(self) -> str:
        """What it said was wrong."""
        told = [line for line in self.output.splitlines() if line.startswith(("error:", "hint:"))]
        return " ".join(told)


class Process:
    """A run of the command line."""

    def __init__(self, child: int, output: int) -> None:
        self.child = child
        self.output = output

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if it still runs."""
        os.kill(self.child, number)

    def wait(self) -> Ended:
        """How it ended."""
        with os.fdopen(self.output, errors="replace") as told:
            output = told.read()
        _, status = os.waitpid(self.child, 0)
        return Ended(exit_code=os.waitstatus_to_exitcode(status), output=output)


def load() -> None:
    """Load what a run may need, so that no child has to: modules, but no thread and no database."""
    import dalenius

    importlib.import_module("encodings.utf_8_sig")  # which another user may not be able to load later
    for module in pkgutil.walk_packages(dalenius.__path__, "dalenius."):
        if not any(part in module.name for part in ("spark", "windows", "__main__", "reproduce", "postgres")):
            importlib.import_module(module.name)


def make_folder(folder: Path, n_rows: int) -> None:
    """A table and a policy for every mechanism."""
    (folder / "tmp").mkdir()
    table = hospital(n_rows + 7)  # not the bundled table, which the ledger passes over
    table = table.slice(7)
    write_parquet(folder / "people.parquet", iter(table.to_batches()), table.column_names)
    dropped = ", ".join(f'"{n}"' for n in table.column_names if n not in ("age", "sex", "disease"))
    for name, rest in POLICIES.items():
        head = f'source = "people.parquet"\nrelease = "{name}.release"\n'
        (folder / f"{name}.toml").write_text(head + _COLUMNS.format(dropped=dropped) + rest)


def start(
    folder: Path,
    arguments: list[str],
    *,
    before: Callable[[], None] = lambda: None,
    environment: Mapping[str, str] | None = None,
) -> Process:
    """Run the command line in a child; `before` is done there first."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            os.dup2(writing, 1)
            os.dup2(writing, 2)
            os.close(writing)
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
            sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
            signal.alarm(_SECONDS)
            os.chdir(folder)
            os.environ |= {"DALENIUS_LEDGER": str(folder / "ledger"), "TMPDIR": str(folder / "tmp")}
            os.environ |= environment or {}
            tempfile.tempdir = str(folder / "tmp")
            sys.argv = ["dalenius", *arguments]
            _run(before)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(99)
    os.close(writing)
    return Process(child, reading)


def _run(before: Callable[[], None]) -> None:
    from dalenius.cli.main import main

    code = 99
    try:
        before()
        main()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def failing_at(number: int, happen: Callable[[], None]) -> Callable[[], None]:
    """Let something happen at a file operation of a run, once."""

    def begin() -> None:
        counted = 0

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal counted
            if _is_operation(event, arguments):
                counted += 1
                if counted == number:
                    happen()

        sys.addaudithook(hook)

    return begin


def _is_operation(event: str, arguments: tuple[object, ...]) -> bool:
    """Whether the run's own files are meant, and not modules or what the system tells of itself."""
    spared = ("/proc/", "/sys/", "/usr/", "/lib/", "site-packages", ".py")
    return event in _OPERATIONS and not any(part in str(arguments[0]) for part in spared)


def count_operations(folder: Path, arguments: list[str]) -> int:
    """How many file operations a run has."""
    told = folder / "counted"
    told.write_bytes(b"")

    def begin() -> None:
        handle = os.open(told, os.O_WRONLY | os.O_APPEND)

        def hook(event: str, given: tuple[object, ...]) -> None:
            if _is_operation(event, given):
                os.write(handle, b".")

        sys.addaudithook(hook)

    start(folder, arguments, before=begin).wait()
    return told.stat().st_size
