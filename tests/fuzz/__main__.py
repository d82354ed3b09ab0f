"""Long fuzz runs: `python -m tests.fuzz manifest --cases 100000`; a case can be run again by its number."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import resource
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

from tests.fuzz.cases import Case, Fuzzer
from tests.fuzz.kinds import KINDS

_CHUNK = {"manifest": 10_000, "policy": 10_000, "sql": 2_000, "service": 2_000}
"""Cases that one child runs; of others, where a library may crash, fewer."""
_SLOW = 60
"""Seconds of the processor for a case: more is taken for a hang."""


class _Run:
    """A run of cases, and what it found."""

    def __init__(self, given: argparse.Namespace, folder: Path) -> None:
        self.kind, self.keep = given.kind, given.keep
        self.folder = folder
        self.first, self.last = given.first, given.first + given.cases
        self.found: Counter[str] = Counter()

    def run(self) -> int:
        """Chunk by chunk, each in a child, so that a crash is a finding and not the end."""
        started, number = time.monotonic(), self.first
        while number < self.last:
            number = self._run_chunk(number, min(number + _CHUNK.get(self.kind, 200), self.last))
            seconds, findings = time.monotonic() - started, sum(self.found.values())
            print(f"{number - self.first} cases, {seconds:.0f} s, {findings} findings", flush=True)
        for what, times in self.found.most_common():
            print(f"{times:6d}  {what}")
        n_cases, findings = self.last - self.first, sum(self.found.values())
        print(f"{n_cases} cases of {self.kind}, {findings} findings of {len(self.found)} kinds")
        return 1 if self.found else 0

    def _run_chunk(self, first: int, last: int) -> int:
        """Run some cases in a child; the number of the next case to run."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(reading)
                self._run_here(range(first, last), writing)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        os.close(writing)
        at = first
        with os.fdopen(reading) as pipe:
            for line in pipe:
                word, _, rest = line.rstrip("\n").partition(" ")
                if word == "at":
                    at = int(rest)
                else:
                    what, _, case = rest.partition("\x1f")
                    self._tell(at, what, case)
        _, status = os.waitpid(child, 0)
        if status:
            self._tell(at, f"the process ended with status {status}", "")
            return at + 1
        return last

    def _run_here(self, numbers: range, pipe: int) -> None:
        warnings.simplefilter("ignore")
        os.environ["DALENIUS_LEDGER"] = str(self.folder / "ledger")
        with os.fdopen(pipe, "w", buffering=1) as told:
            fuzzer: Fuzzer = KINDS[self.kind](self.folder)
            for number in numbers:
                used = resource.getrusage(resource.RUSAGE_SELF)
                most = int(used.ru_utime + used.ru_stime) + _SLOW
                resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
                told.write(f"at {number}\n")
                case = fuzzer.draw(self.kind, number)
                for finding in fuzzer.run(case, number):
                    told.write(f"found {finding.command}: {finding.what}\x1f{case.to_json()}\n")
            if hasattr(fuzzer, "close"):
                fuzzer.close()

    def _tell(self, number: int, what: str, case: str) -> None:
        if not self.found[what]:
            print(f"case {number}: {what}", flush=True)
            if self.keep and case:
                with self.keep.open("a") as file:
                    file.write(Case.from_json(case).to_json() + "\n")
        self.found[what] += 1


def _load() -> None:
    """Everything that a case may need, so that no child has to: modules, but no thread and no database."""
    for package in ("mechanisms", "engines.local", "pages", "reporting", "tables.files", "export"):
        around = importlib.import_module(f"dalenius.{package}")
        for module in pkgutil.walk_packages(around.__path__, f"{around.__name__}."):
            importlib.import_module(module.name)


def main() -> int:
    """Run the cases that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("kind", choices=tuple(KINDS))
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="a file that the cases of findings are added to")
    given = parser.parse_args()
    _load()
    place = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(tempfile.gettempdir())  # noqa: S108
    with tempfile.TemporaryDirectory(dir=place) as folder:
        return _Run(given, Path(folder)).run()


if __name__ == "__main__":
    raise SystemExit(main())
