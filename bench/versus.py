"""The same commands of two checkouts in turns on the same tables: processor seconds, and after / before.

    python -m bench.versus BEFORE [AFTER] [--rows 30000 1000000] [--only publish] [--rounds 3] [--json]

BEFORE and AFTER are folders of checkouts (`git worktree add BEFORE COMMIT`; AFTER is the present one unless
it is given). Both run with this Python and its libraries, so that only our own code differs. Each command
runs in a process of its own, from its start to its end, and the least time of all rounds counts: other load
on the machine only adds. Each build publishes for itself, and reads what it published. `warm` is twenty
questions in one process after a first one, divided by twenty. Above 100,000 rows there is a round less.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from bench.publish_matrix import KINDS, _policy, _toml, generate

_LARGE = 100_000
"""Rows above which `compare` and questions to other mechanisms than buckets are left out."""
_RELEASED = {"integers": ("bucketize", "perturb", "alpha-beta"), "texts": ("bucketize",)}
_FIRST = "SELECT COUNT(*) FROM t WHERE q3 > 20 AND s = 3"
_WARM = """
import sys, time, dalenius
release = dalenius.open_release(sys.argv[1])
def ask(i):
    release.ask(f"SELECT COUNT(*) FROM t WHERE q3 > {i} AND s = 3")
ask(0)
started = time.process_time()
for i in range(1, 21):
    ask(i)
print((time.process_time() - started) / 20)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A command, and what has to be gone before it."""

    name: str
    arguments: tuple[str, ...]
    made: str = ""
    """A folder or file in the build's own folder that the command writes."""


def jobs(n_rows: int) -> Iterator[Job]:
    """In an order in which each finds what it reads."""
    for kind, mechanisms in _RELEASED.items():
        for mechanism in mechanisms:
            policy, release = f"{kind}-{mechanism}.toml", f"{kind}-{mechanism}.release"
            called = f"{kind}, {mechanism}"
            yield Job(name=f"plan: {called}", arguments=("plan", policy))
            yield Job(name=f"publish: {called}", arguments=("publish", policy), made=release)
            yield Job(name=f"verify: {called}", arguments=("verify", release))
            if kind == "integers" and (mechanism == "bucketize" or n_rows <= _LARGE):
                yield from _reading(called, release, policy)
    yield Job(name="inspect: integers", arguments=("inspect", "integers.parquet", "--sensitive", "s"))
    if n_rows <= _LARGE:
        rest = ("--queries", "100", "--seeds", "1", "--seed", "1")
        policies = tuple(f"integers-{mechanism}.toml" for mechanism in ("bucketize", "perturb"))
        yield Job(name="compare: integers, two policies", arguments=("compare", *policies, *rest))


def _reading(called: str, release: str, policy: str) -> Iterator[Job]:
    yield Job(name=f"ask, first: {called}", arguments=("ask", release, _FIRST))
    yield Job(name=f"ask, warm: {called}", arguments=("warm", release))
    yield Job(name=f"report: {called}", arguments=("report", release, "--output", "r.html"), made="r.html")
    some = ("--column", "q0", "--column", "s")  # a view over the whole domain would be too large
    exported = ("export", release, "--to", "e.duckdb", *some)
    yield Job(name=f"export: {called}", arguments=exported, made="e.duckdb")
    yield Job(name=f"audit: {called}", arguments=("audit", release, "--original", policy, "--seed", "1"))


def prepare(folder: Path, n_rows: int) -> None:
    """The tables, and a folder for each build with links to them and the policies."""
    for kind in _RELEASED:
        generate(kind, n_rows, folder / f"{kind}.parquet")
    for build in ("before", "after"):
        home = folder / build
        home.mkdir()
        for kind, mechanisms in _RELEASED.items():
            table = home / f"{kind}.parquet"
            table.symlink_to(folder / table.name)
            for mechanism in mechanisms:
                entries = _policy(mechanism, table, len(KINDS[kind]), f"{kind}-{mechanism}.release").items()
                text = "\n".join(f"{name} = {_toml(entry)}" for name, entry in entries)
                (home / f"{kind}-{mechanism}.toml").write_text(text)


def run(job: Job, home: Path, source: Path) -> float | str:
    """Its processor seconds, or the last line of what it said when it failed."""
    (home / "ledger").unlink(missing_ok=True)
    if job.made.endswith(".release"):
        shutil.rmtree(home / job.made, ignore_errors=True)
    elif job.made:
        (home / job.made).unlink(missing_ok=True)
    env = {**os.environ, "PYTHONPATH": str(source / "src"), "DALENIUS_LEDGER": str(home / "ledger")}
    env |= {"HOME": str(home), "OPENBLAS_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": str(home / "compiled")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
    is_warm = job.arguments[0] == "warm"
    command = [sys.executable, *(("-c", _WARM, job.arguments[1]) if is_warm else ("-m", "dalenius"))]
    command += [] if is_warm else job.arguments
    before = getrusage(RUSAGE_CHILDREN)
    done = subprocess.run(command, check=False, cwd=home, env=env, capture_output=True, text=True)
    after = getrusage(RUSAGE_CHILDREN)
    if done.returncode and (job.arguments[0] != "audit" or done.returncode != 1):
        return (done.stderr.strip() or f"exit {done.returncode}").splitlines()[-1]
    if is_warm:
        return float(done.stdout)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(n_rows: int, builds: dict[str, Path], only: str, rounds: int) -> Iterator[dict[str, object]]:
    """Of each job the least seconds of both builds."""
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name), n_rows)
        for job in jobs(n_rows):
            is_asked_for = only in job.name
            if not is_asked_for and not job.made.endswith(".release"):
                continue
            # the first one compiles the modules
            turns = rounds + 1 - (n_rows > _LARGE) if is_asked_for else 1
            taken: dict[str, list[float | str]] = {build: [] for build in builds}
            for _ in range(turns):
                for build, source in builds.items():
                    taken[build].append(run(job, Path(name) / build, source))
            if is_asked_for:
                yield {
                    "rows": n_rows,
                    "job": job.name,
                    **{build: _least(found) for build, found in taken.items()},
                }


def _least(found: list[float | str]) -> float | str:
    seconds = [one for one in found if isinstance(one, float)]
    return min(seconds) if seconds else found[-1]


def show(result: dict[str, object]) -> str:
    """As a line of a table."""
    before, after = result["before"], result["after"]
    told = [f"{one:.3g}" if isinstance(one, float) else str(one)[:60] for one in (before, after)]
    both = isinstance(before, float) and isinstance(after, float)
    ratio = f"{after / before:.2f}" if both else ""  # type: ignore[operator]
    return f"| {result['rows']:,} | {result['job']} | {told[0]} | {told[1]} | {ratio} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure two builds in turns.")
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path, nargs="?", default=Path(__file__).parents[1])
    parser.add_argument("--rows", type=int, nargs="+", default=[30_000, 1_000_000])
    parser.add_argument("--only", default="", help="the jobs whose names have this in them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    builds = {"before": options.before.resolve(), "after": options.after.resolve()}
    if not options.json:
        print("| rows | command | before, s | after, s | after / before |\n|---|---|---|---|---|")
    for n_rows in options.rows:
        for result in measure(n_rows, builds, options.only, options.rounds):
            print(json.dumps(result) if options.json else show(result), flush=True)


if __name__ == "__main__":
    main()
