"""The processor time of a command from start to end, on a table of a thousand rows.

    python -m bench.startup [--repeats 7] [--json]

Each command runs in a process of its own, in turns, and the least time of each counts: other load on the
machine only adds. `libraries` is the floor, a process that imports numpy, pyarrow and DuckDB and ends.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

GOALS = {"--help": 0.1, "verify": 0.4, "ask": 0.4, "publish": 0.6}
LIBRARIES = "import numpy, pyarrow.compute, pyarrow.parquet, duckdb"
POLICY = """source = "t.csv"
release = "t.release"
[columns]
quasi = ["age", "sex"]
sensitive = ["disease"]
[promise]
kind = "f-privacy"
default = { times = 4, plus = 0.02, cap = 0.5 }
[mechanism]
kind = "bucketize"
"""


def commands() -> dict[str, list[str]]:
    main = [sys.executable, "-m", "dalenius"]
    question = "SELECT COUNT(*) FROM t WHERE age > 40 AND disease = 4"
    return {
        "python": [sys.executable, "-c", ""],
        "libraries": [sys.executable, "-c", LIBRARIES],
        "--help": [*main, "--help"],
        "publish": [*main, "publish", "policy.toml", "--seed", "1"],
        "verify": [*main, "verify", "t.release"],
        "ask": [*main, "ask", "t.release", question],
    }


def processor_time(command: list[str], folder: Path) -> float:
    env = {**os.environ, "HOME": str(folder), "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(repeats: int) -> dict[str, float]:
    least: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = (f"{18 + i * 7 % 70},{i % 2},{i * i % 20}" for i in range(1_000))
        (folder / "t.csv").write_text("\n".join(["age,sex,disease", *rows]))
        (folder / "policy.toml").write_text(POLICY)
        for _ in range(repeats + 1):  # the first round compiles the modules
            for what, command in commands().items():
                if what == "publish":
                    shutil.rmtree(folder / "t.release", ignore_errors=True)
                least[what] = min(least.get(what, 9e9), processor_time(command, folder))
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how long commands take to start.")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    least = measure(options.repeats)
    if options.json:
        print(json.dumps(least, indent=2))
        return
    print(f"{'command':<10} {'seconds':>8} {'/ libraries':>12} {'goal':>6}")
    for what, seconds in least.items():
        goal = GOALS.get(what, "")
        print(f"{what:<10} {seconds:>8.3f} {seconds / least['libraries']:>12.2f} {goal:>6}")


if __name__ == "__main__":
    main()
