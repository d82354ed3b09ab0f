"""Commands on a large release: processor time, time by the clock and peak memory.

    python -m bench.large_release [--rows 3000000] [--values 1404] [--skip audit]

A random table of five columns is published by bucketize, and each command runs in a process of its own.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from dalenius.release.ledger import ENVIRONMENT

POLICY = """source = "t.parquet"
release = "t.release"
[columns]
quasi = ["age", "sex", "zip", "education"]
sensitive = ["code"]
[promise]
kind = "f-privacy"
default = { times = 4, plus = 0.02, cap = 0.5 }
[mechanism]
kind = "bucketize"
"""
COMMANDS = {
    "publish": ["publish", "policy.toml"],
    "verify": ["verify", "t.release"],
    "ask one value": [
        "ask",
        "t.release",
        "SELECT COUNT(*) FROM t WHERE age > 40 AND code = 3",
        "--seconds",
        "600",
    ],
    "ask by value": [
        "ask",
        "t.release",
        "SELECT code, COUNT(*) FROM t WHERE age > 40 GROUP BY code",
        "--seconds",
        "600",
        "--json",
    ],
    "report": ["report", "t.release"],
    "audit": ["audit", "t.release", "--original", "policy.toml"],
    "compare": ["compare", "policy.toml", "--queries", "50", "--seeds", "1", "--seed", "1"],
}


def generate(n_rows: int, n_values: int, folder: Path) -> None:
    duckdb.execute(
        "COPY (SELECT 17 + floor(74 * random())::INTEGER AS age, floor(2 * random())::INTEGER AS sex, "
        "floor(1000 * random())::INTEGER AS zip, floor(16 * random())::INTEGER AS education, "
        f"floor({n_values} * random() * sqrt(random()))::INTEGER AS code FROM range({n_rows})) "
        f"TO '{folder / 't.parquet'}' (FORMAT parquet)"
    )
    (folder / "policy.toml").write_text(POLICY)


def run(arguments: list[str], folder: Path) -> tuple[float, float, float]:
    """Processor seconds, seconds by the clock, and the peak memory in MiB."""
    env = {**os.environ, ENVIRONMENT: str(folder / "ledger")}
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "dalenius", *arguments], cwd=folder, env=env, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        print(f"{' '.join(arguments)} ended with {os.waitstatus_to_exitcode(status)}:")
    return used.ru_utime + used.ru_stime, time.perf_counter() - started, _mebibytes(used)


def _mebibytes(used: resource.struct_rusage) -> float:
    return used.ru_maxrss / 2**10


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure commands on a large release.")
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--values", type=int, default=1_404)
    parser.add_argument("--skip", nargs="*", default=[], choices=list(COMMANDS))
    parser.add_argument("--only", nargs="*", default=list(COMMANDS), choices=list(COMMANDS))
    parser.add_argument("--folder", type=Path, help="where the table is, or goes; it stays there")
    options = parser.parse_args()
    print(f"{'command':<14} {'processor s':>12} {'clock s':>9} {'peak MiB':>9}")
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        if not (folder / "t.parquet").exists():
            generate(options.rows, options.values, folder)
        for what in options.only:
            if what not in options.skip:
                processor, clock, peak = run(COMMANDS[what], folder)
                print(f"{what:<14} {processor:>12.2f} {clock:>9.2f} {peak:>9,.0f}", flush=True)


if __name__ == "__main__":
    main()
