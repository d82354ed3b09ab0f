"""What happens to a run of `publish` when something fails: the fault table of docs/testing.md.

    python -m bench.faults --kills 200 [--only kills] [--every 1] [--policies perturb] [--errors EIO]

kills that many runs at random moments, over all mechanisms, makes every third file operation of a run fail in
four ways, and tries every other fault once; `--only` does one of these. After each: what is under the
release's name is whole or not there, what is left beside it can be read by its owner only, and the next run
succeeds and removes it. Runs are forked from a process that has everything loaded, so that the moments are
those of publishing. `bench.fault_spark` kills runs on Spark.
"""

from __future__ import annotations

import argparse
import errno
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.fault_runs import POLICIES, Process, count_operations, failing_at, load, make_folder, start
from bench.fault_states import STATES, State, try_at_once

_KILLS = (signal.SIGKILL, signal.SIGTERM)
_PARTS = ("states", "errors", "kills")
_ERRORS = {errno.errorcode[n]: n for n in (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EMFILE)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run with a fault left behind."""

    fault: str
    ended: str
    problems: tuple[str, ...]
    """Empty: nothing partial opens, nothing is readable by others, and the next run succeeds."""


def look(folder: Path, name: str) -> Iterator[str]:
    """What is wrong with what a failed run left behind."""
    target = folder / f"{name}.release"
    if target.exists() and start(folder, ["verify", str(target)]).wait().exit_code:
        yield "a partial release is there under its name"
    for path in folder.glob(f".{name}.release.*"):
        if path.is_dir() and path.stat().st_mode & 0o077:
            yield f"{path.name} can be read by others"


def run_again(folder: Path, name: str) -> Iterator[str]:
    """What is wrong after the next run."""
    shutil.rmtree(folder / f"{name}.release", ignore_errors=True)
    ended = start(folder, publish(name)).wait()
    if ended.exit_code:
        yield f"the next run fails ({ended.exit_code}): {ended.output[-300:]}"
    left = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    if left:
        yield f"the next run leaves {left}"


def publish(name: str) -> list[str]:
    """The arguments of a run."""
    return ["publish", f"{name}.toml", "--again", "--yes"]


def judge(folder: Path, name: str, fault: str, process: Process, mend: Callable[[], None]) -> Outcome:
    """Wait for a run with a fault, look at what it left, and run again."""
    ended = process.wait()
    problems = list(look(folder, name))
    if "bug in Dalenius" in ended.output or "Traceback" in ended.output:
        problems.append("it is called a bug")
    if ended.exit_code > 3:
        problems.append(f"exit code {ended.exit_code}")
    is_there = (folder / f"{name}.release").exists()
    if is_there and "nothing was published" in ended.output:
        problems.append("it says that nothing was published, and there is a release")
    if not is_there and ended.exit_code == 0:
        problems.append("it says that it succeeded, and there is no release")
    mend()
    problems += run_again(folder, name)
    shown = f"signal {-ended.exit_code}" if ended.exit_code < 0 else f"exit {ended.exit_code}"
    return Outcome(fault=fault, ended=f"{shown}: {ended.message}", problems=tuple(problems))


def kill(folder: Path, name: str, rng: random.Random, usual: float, n_operations: int) -> Outcome:
    """A run that is ended by a signal: at a file operation, or after some time."""
    number = rng.choice(_KILLS)
    shutil.rmtree(folder / f"{name}.release", ignore_errors=True)
    if rng.random() < 0.5:
        at = rng.randrange(1, n_operations + 1)
        process = start(folder, publish(name), before=failing_at(at, lambda: os.kill(os.getpid(), number)))
    else:
        process = start(folder, publish(name))
        time.sleep(rng.uniform(0.0, 1.2 * usual))
        process.send(number)
    return judge(folder, name, f"{number.name}, {name}", process, lambda: None)


def fail(folder: Path, name: str, number: int, at: int) -> Outcome:
    """A run whose file operation of that number fails."""
    shutil.rmtree(folder / f"{name}.release", ignore_errors=True)

    def refuse() -> None:
        raise OSError(number, os.strerror(number))

    process = start(folder, publish(name), before=failing_at(at, refuse))
    return judge(folder, name, f"{errno.errorcode[number]}, {name}", process, lambda: None)


def try_state(folder: Path, state: State) -> Outcome:
    """A run in a state of the machine, and one after it."""
    shutil.rmtree(folder / "bucketize.release", ignore_errors=True)
    state.prepare(folder)
    process = start(folder, publish("bucketize"), before=state.in_child, environment=state.environment)
    return judge(folder, "bucketize", state.name, process, lambda: state.mend(folder))


def outcomes(folder: Path, given: argparse.Namespace) -> Iterator[Outcome]:
    """Every fault, one after the other."""
    rng = random.Random(given.seed)  # noqa: S311  (no secret)
    operations = {}
    for name in given.policies:
        list(run_again(folder, name))  # so that there is a ledger
        shutil.rmtree(folder / f"{name}.release")
        operations[name] = count_operations(folder, publish(name))
        print(f"{operations[name]} file operations of {name}", flush=True)
    for state in STATES if "states" in given.only else ():
        yield try_state(folder, state)
    for n_runs in (2, 20) if "states" in given.only else ():
        for same_target in (True, False):
            told, problems = try_at_once(folder, n_runs, same_target=same_target)
            where = "one target" if same_target else "one ledger"
            yield Outcome(fault=f"{n_runs} at once, {where}", ended=told, problems=problems)
    for name in given.policies if "errors" in given.only else ():
        for number in map(_ERRORS.__getitem__, given.errors):
            for at in range(1 + given.skip, operations[name] + 1, given.every):
                yield fail(folder, name, number, at)
    if "kills" not in given.only:
        return
    started = time.monotonic()
    start(folder, publish(given.policies[0])).wait()
    usual = time.monotonic() - started
    for _ in range(given.kills):
        name = rng.choice(sorted(given.policies))
        yield kill(folder, name, rng, usual, operations[name])


def main() -> int:
    """Print a line for every fault, and how many there were of each kind."""
    parser = argparse.ArgumentParser(prog="python -m bench.faults")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--only", nargs="*", choices=_PARTS, default=_PARTS)
    parser.add_argument("--policies", nargs="*", choices=tuple(POLICIES), default=tuple(POLICIES))
    parser.add_argument("--errors", nargs="*", choices=tuple(_ERRORS), default=tuple(_ERRORS))
    parser.add_argument("--every", type=int, default=3, help="1 lets every file operation fail; 3 a third")
    parser.add_argument("--skip", type=int, default=0, help="so many operations are let alone first")
    given = parser.parse_args()
    load()
    counted, bad = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        make_folder(folder, given.rows)
        for outcome in outcomes(folder, given):
            counted[outcome.fault] += 1
            bad[outcome.fault] += bool(outcome.problems)
            state = "; ".join(outcome.problems) or "clean"
            print(f"{outcome.fault} | {outcome.ended[:200]} | {state}", flush=True)
    for fault, times in counted.items():
        print(f"{times:5d} {fault}: {bad[fault]} left something wrong")
    return 1 if any(bad.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
