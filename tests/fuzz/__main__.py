"""Long fuzz runs: `python -m tests.fuzz manifest --cases 100000`; a case can be run again by its number."""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.fuzz.running import Seeds, run_case
from tests.fuzz.seeds import make_seeds

_CHUNK = 200
_SLOW = 60


def main() -> int:
    """Run the cases in child processes, so that a crash is a finding and not the end."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("kind", choices=("manifest", "table", "bytes"))
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="a file that the cases of findings are added to")
    given = parser.parse_args()
    place = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(tempfile.gettempdir())  # noqa: S108
    with tempfile.TemporaryDirectory(dir=place) as folder:
        os.environ["DALENIUS_LEDGER"] = str(Path(folder) / "ledger")
        made = Path(folder) / "seeds"
        made.mkdir()
        seeds = Seeds(make_seeds(made))
        return _run(seeds, given, Path(folder))


def _run(seeds: Seeds, given: argparse.Namespace, folder: Path) -> int:
    found: Counter[str] = Counter()
    started, number, last = time.monotonic(), given.first, given.first + given.cases
    while number < last:
        number = _run_chunk(seeds, given, folder, number, min(number + _CHUNK, last), found)
        done = number - given.first
        if done % 5000 < _CHUNK:
            print(
                f"{done} cases, {time.monotonic() - started:.0f} s, {sum(found.values())} findings",
                flush=True,
            )
    for what, times in found.most_common():
        print(f"{times:6d}  {what}")
    print(f"{given.cases} cases of {given.kind}, {sum(found.values())} findings of {len(found)} kinds")
    return 1 if found else 0


def _run_chunk(
    seeds: Seeds, given: argparse.Namespace, folder: Path, first: int, last: int, found: Counter[str]
) -> int:
    """Run some cases in a child; the number of the next case to run."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            _run_here(seeds, given.kind, folder / "work" / "r", range(first, last), writing)
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
                _tell(seeds, given, at, rest, found)
    _, status = os.waitpid(child, 0)
    if status:
        _tell(seeds, given, at, f"the process ended with status {status}", found)
        return at + 1
    return last


def _run_here(seeds: Seeds, kind: str, folder: Path, numbers: range, pipe: int) -> None:
    with os.fdopen(pipe, "w", buffering=1) as told:
        for number in numbers:
            told.write(f"at {number}\n")
            signal.alarm(_SLOW * 3)
            for finding in run_case(seeds, seeds.draw(kind, number), folder, number):
                told.write(f"found {finding.command}: {finding.what}\n")


def _tell(seeds: Seeds, given: argparse.Namespace, number: int, what: str, found: Counter[str]) -> None:
    if not found[what]:
        print(f"case {number}: {what}", flush=True)
        if given.keep:
            with given.keep.open("a") as file:
                file.write(seeds.draw(given.kind, number).to_json() + "\n")
    found[what] += 1


if __name__ == "__main__":
    raise SystemExit(main())
