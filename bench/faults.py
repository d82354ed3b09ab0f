"""What happens to a run of `publish` when something fails: the fault table of docs/testing.md.

    python -m bench.faults --kills 200

kills that many runs at random moments, over all mechanisms, and tries every other fault once. After each:
what is under the release's name is whole or not there, what is left beside it can be read by its owner
only, and the next run succeeds and removes it.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import dalenius
from dalenius.demo_data import hospital
from dalenius.engines.parquet import write_parquet

_COLUMNS = '[columns]\nquasi = ["age", "sex"]\nsensitive = ["disease"]\ndropped = [{dropped}]\n'
_VIEW = '[promise]\nkind = "d-gamma-privacy"\nd = "1/20"\ngamma = "1/4"\n[mechanism]\nkind = "alpha-beta"\n'
POLICIES = {
    "bucketize": '[promise]\nkind = "l-diversity"\nl = 2\n',
    "perturb": '[promise]\nkind = "rho-privacy"\nrho1 = "max"\nrho2 = "1/2"\n[mechanism]\nkind = "perturb"\n',
    "alpha-beta": _VIEW + 'duplicates = "distinct"\ndomains = "active"\n',
    "frapp": _VIEW.replace('d = "1/20"', "k = 3") + 'method = "frapp"\ndomains = "active"\n',
}
_SECONDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that fails around a run."""

    name: str
    prepare: Callable[[Path], None] = lambda _: None
    """Done to the folder before, which has `ledger` and the policies."""
    limits: tuple[tuple[int, int], ...] = ()
    """Limits of the process, by `resource`'s numbers."""
    environment: dict[str, str] = field(default_factory=dict)
    mend: Callable[[Path], None] = lambda _: None
    """What the user does about it before the next run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run with a fault left behind."""

    fault: str
    exit_code: int
    message: str
    problems: tuple[str, ...]
    """Empty: nothing partial opens, nothing is readable by others, and the next run succeeds."""


def make_folder(folder: Path, n_rows: int) -> None:
    """A table and a policy for every mechanism."""
    table = hospital(n_rows)
    write_parquet(folder / "people.parquet", iter(table.to_batches()), table.column_names)
    dropped = ", ".join(f'"{n}"' for n in table.column_names if n not in ("age", "sex", "disease"))
    for name, rest in POLICIES.items():
        head = f'source = "people.parquet"\nrelease = "{name}.release"\n'
        (folder / f"{name}.toml").write_text(head + _COLUMNS.format(dropped=dropped) + rest)


def start(folder: Path, name: str, fault: Fault | None = None) -> subprocess.Popen[str]:
    """A run of `publish`, in an environment of its own."""
    environment = {**os.environ, "DALENIUS_LEDGER": str(folder / "ledger"), "TMPDIR": str(folder / "tmp")}
    limits = () if fault is None else fault.limits

    def limit() -> None:
        for what, most in limits:
            resource.setrlimit(what, (most, most))

    return subprocess.Popen(
        [sys.executable, "-m", "dalenius", "publish", f"{name}.toml", "--again", "--yes"],
        cwd=folder,
        env=environment | ({} if fault is None else fault.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=limit,  # noqa: PLW1509  (there are no threads here)
    )


def look(folder: Path, name: str) -> Iterator[str]:
    """What is wrong with what a failed run left behind."""
    target = folder / f"{name}.release"
    if target.exists() and not dalenius.verify(target).ok:
        yield "a partial release is there under its name"
    for path in folder.glob(f".{name}.release.*"):
        if path.is_dir() and path.stat().st_mode & 0o077:
            yield f"{path.name} can be read by others"


def run_again(folder: Path, name: str) -> Iterator[str]:
    """What is wrong after the next run."""
    shutil.rmtree(folder / f"{name}.release", ignore_errors=True)
    process = start(folder, name)
    output, _ = process.communicate(timeout=_SECONDS)
    if process.returncode:
        yield f"the next run fails: {output.strip().splitlines()[-1:]}"
    elif not dalenius.verify(folder / f"{name}.release").ok:
        yield "the next run's release does not verify"
    left = [path.name for path in folder.iterdir() if path.name.startswith(f".{name}.")]
    if left:
        yield f"the next run leaves {left}"


def try_fault(folder: Path, name: str, fault: Fault) -> Outcome:
    """One run with a fault, and one after it."""
    shutil.rmtree(folder / f"{name}.release", ignore_errors=True)
    fault.prepare(folder)
    process = start(folder, name, fault)
    output, _ = process.communicate(timeout=_SECONDS)
    problems = list(look(folder, name))
    if "bug in Dalenius" in output or "Traceback" in output:
        problems.append("it is called a bug")
    fault.mend(folder)
    problems += run_again(folder, name)
    return _outcome(fault.name, process.returncode, output, problems)


def try_kill(folder: Path, name: str, number: signal.Signals, delay: float) -> Outcome:
    """A run that is ended by a signal after a while, and one after it."""
    shutil.rmtree(folder / f"{name}.release", ignore_errors=True)
    process = start(folder, name)
    time.sleep(delay)
    process.send_signal(number)
    output, _ = process.communicate(timeout=_SECONDS)
    problems = [*look(folder, name), *run_again(folder, name)]
    return _outcome(f"{number.name}, {name}", process.returncode, output, problems)


def _outcome(fault: str, code: int, output: str, problems: list[str]) -> Outcome:
    told = [line for line in output.splitlines() if line.startswith(("error:", "hint:"))]
    return Outcome(fault=fault, exit_code=code, message=" ".join(told), problems=tuple(problems))


def _spoil(folder: Path) -> None:
    shutil.copyfile(folder / "ledger", folder / "ledger.kept")
    (folder / "ledger").write_bytes(b"\x00garbage" * 1000)


def _restore(folder: Path) -> None:
    (folder / "ledger.kept").replace(folder / "ledger")


FAULTS = (
    *(
        Fault(name=f"full disk after {size:,} bytes of a file", limits=((resource.RLIMIT_FSIZE, size),))
        for size in (0, 700, 4_000)
    ),
    Fault(name="24 open files", limits=((resource.RLIMIT_NOFILE, 24),)),
    Fault(name="700 MB of addresses", limits=((resource.RLIMIT_AS, 700_000_000),)),
    Fault(name="a corrupt ledger", prepare=_spoil, mend=_restore),
    Fault(name="no HOME, locale C", environment={"HOME": "", "LC_ALL": "C", "LANG": ""}),
)


def main() -> int:
    """Print a line for every fault."""
    parser = argparse.ArgumentParser(prog="python -m bench.faults")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rows", type=int, default=3_000)
    parser.add_argument("--longest", type=float, default=6.0, help="seconds until a kill, at most")
    given = parser.parse_args()
    rng, bad = random.Random(1), 0  # noqa: S311  (no secret)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tmp").mkdir()
        make_folder(folder, given.rows)
        list(run_again(folder, "bucketize"))  # so that there is a ledger
        outcomes = (try_fault(folder, "bucketize", fault) for fault in FAULTS)
        kills = (
            try_kill(
                folder,
                rng.choice(sorted(POLICIES)),
                rng.choice((signal.SIGKILL, signal.SIGTERM)),
                rng.uniform(0.2, given.longest),
            )
            for _ in range(given.kills)
        )
        for outcome in chain(outcomes, kills):
            bad += bool(outcome.problems)
            state = "; ".join(outcome.problems) or "clean"
            print(
                f"{outcome.fault} | exit {outcome.exit_code} | {outcome.message[:160]} | {state}", flush=True
            )
    print(f"{bad} faults left something wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
