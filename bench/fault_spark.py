"""Runs of `publish --engine spark` that are killed between the start of the session and their end.

    python -m bench.fault_spark --kills 20

Each is a process of its own with a session of its own, on this machine. After each, when the session's Java
process has gone too: what is under the release's name is whole or not there, what is left can be read by its
owner only, and the next run succeeds and removes it.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from bench.fault_runs import POLICIES, load, make_folder
from bench.faults import look, publish, run_again

_READY = "the session is ready"
_NAMES = tuple(name for name in POLICIES if name != "frapp")
"""FRAPP runs on one machine only."""


def run_job(folder: Path, name: str) -> int:
    """In a process of its own: start a session, say so, and publish."""
    from pyspark.sql import SparkSession

    from dalenius.cli.main import run
    from tests.conftest import spark_settings

    warnings.simplefilter("ignore")
    place = folder / "spark"
    place.mkdir(exist_ok=True)
    spark_settings(SparkSession.builder.master("local[2]"), place).getOrCreate()
    print(_READY, flush=True)
    return run([*publish(name), "--engine", "spark"])


def start_job(folder: Path, name: str) -> subprocess.Popen[str]:
    """A run whose session is ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.fault_spark", "--job", name],
        env=os.environ | {"DALENIUS_LEDGER": str(folder / "ledger"), "FAULT_FOLDER": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    while _READY not in (line := process.stdout.readline()):
        if not line:
            raise SystemExit(f"no session of Spark started; exit {process.wait()}")
    return process


def end_group(group: int) -> None:
    """Wait for the Java process and the workers, which end when their driver is gone."""
    for _ in range(600):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def find_readable(folder: Path) -> Iterator[str]:
    """Files of Spark that others can read; its log and its events hold no cells (`tests/engines/spark`)."""
    for here, folders, files in os.walk(folder / "spark"):
        folders[:] = [
            name
            for name in folders
            if (Path(here) / name).stat().st_mode & 0o055 and not name.startswith("eventlog")
        ]
        for name in files:
            path = Path(here) / name
            if not name.startswith(("log4j", "spark.log")) and path.stat().st_mode & 0o044:
                yield f"{path.relative_to(folder)} can be read by others"


def kill(folder: Path, name: str, rng: random.Random, usual: float) -> tuple[str, list[str]]:
    """Kill a run at a random moment: how it ended, and what is wrong."""
    shutil.rmtree(folder / f"{name}.release", ignore_errors=True)
    number = rng.choice((signal.SIGKILL, signal.SIGTERM))
    after = rng.uniform(0.0, 1.1 * usual)
    process = start_job(folder, name)
    time.sleep(after)
    if process.poll() is None:
        process.send_signal(number)
    told, _ = process.communicate()
    end_group(process.pid)
    problems = [*look(folder, name), *find_readable(folder)]
    if "bug in Dalenius" in told or "Traceback" in told:
        problems.append(f"it ends badly: {told[-500:]}")
    problems += run_again(folder, name)
    shutil.rmtree(folder / "spark", ignore_errors=True)
    return f"{number.name} after {after:.1f} s, {name}, exit {process.returncode}", problems


def main() -> int:
    """Print a line for every kill."""
    parser = argparse.ArgumentParser(prog="python -m bench.fault_spark")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        os.chdir(os.environ["FAULT_FOLDER"])
        return run_job(Path.cwd(), given.job)
    load()
    rng, bad = random.Random(given.seed), 0  # noqa: S311  (no secret)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        make_folder(folder, given.rows)
        list(run_again(folder, "perturb"))  # so that there is a ledger
        shutil.rmtree(folder / "perturb.release")
        process, started = start_job(folder, "perturb"), time.monotonic()
        process.communicate()
        code = process.returncode
        usual = time.monotonic() - started
        print(f"a run without a kill: {usual:.1f} s after the session, exit {code}", flush=True)
        for _ in range(given.kills):
            ended, problems = kill(folder, rng.choice(_NAMES), rng, usual)
            bad += bool(problems)
            print(f"{ended} | {'; '.join(problems) or 'clean'}", flush=True)
    print(f"{given.kills} kills: {bad} left something wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
