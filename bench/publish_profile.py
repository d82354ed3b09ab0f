"""Where the time of publishing goes, by mechanism: seconds by the clock and, in brackets, of all processors.

    python bench/publish_profile.py [--rows 10000000] [--mechanisms bucketize perturb]

The tables and policies are those of publish_speed.py. The rows of the printed table are those of
docs/cluster.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import duckdb
from publish_speed import _COLUMNS, _PROMISES, _publish, _warm_up

from dalenius import publishing
from dalenius.engines import ordering
from dalenius.engines.local import LocalScan
from dalenius.mechanisms.registry import MECHANISMS
from dalenius.mechanisms.suppress.stage import SuppressedBucketize

PHASES = ["plan", "the ledger's fingerprint", "read, decide, deal to files", "sort, code, write", "check"]
Clocks = tuple[float, float]


class Profile:
    """Clocks of phases that call one another; each counts what it does not leave to another."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(PHASES, (0.0, 0.0))
        self._running: list[Clocks] = []

    def watch(self, owner: Any, name: str, phase: str) -> None:
        """Count the time of a function for a phase."""
        honest: Callable[..., Any] = getattr(owner, name)

        @wraps(honest)
        def watched(*args: Any, **named: Any) -> Any:
            self._running.append((0.0, 0.0))
            started = _clocks()
            try:
                return honest(*args, **named)
            finally:
                took = _minus(_clocks(), started)
                own = _minus(took, self._running.pop())
                self.spent[phase] = _plus(self.spent[phase], own)
                if self._running:
                    self._running[-1] = _plus(self._running[-1], took)

        setattr(owner, name, watched)


def _clocks() -> Clocks:
    return time.perf_counter(), time.process_time()


def _plus(one: Clocks, other: Clocks) -> Clocks:
    return one[0] + other[0], one[1] + other[1]


def _minus(one: Clocks, other: Clocks) -> Clocks:
    return one[0] - other[0], one[1] - other[1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--mechanisms", nargs="+", default=list(_PROMISES), choices=list(_PROMISES))
    parser.add_argument("--folder", type=Path, help="where the table goes")
    parser.add_argument("--measure", nargs=2, metavar=("MECHANISM", "TABLE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        _measure(options.measure[0], Path(options.measure[1]))
        return
    print("| | " + " | ".join(["all", *PHASES]) + " |\n" + "|---" * (len(PHASES) + 2) + "|")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        table = Path(folder) / "table.parquet"
        duckdb.execute(f"COPY (SELECT {_COLUMNS} FROM range({options.rows})) TO '{table}' (FORMAT parquet)")
        for mechanism in options.mechanisms:
            command = [sys.executable, __file__, "--measure", mechanism, str(table)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            cells = [f"{clock:.1f} ({processor:.1f})" for clock, processor in json.loads(done.stdout)]
            print(f"| {mechanism} | " + " | ".join(cells) + " |", flush=True)


def _measure(mechanism: str, table: Path) -> None:
    _warm_up(table.parent)
    profile = Profile()
    for kind in (*map(type, MECHANISMS.values()), SuppressedBucketize):
        profile.watch(kind, "plan", "plan")
        profile.watch(kind, "draft", "plan")
    profile.watch(LocalScan, "n_different", "read, decide, deal to files")
    profile.watch(ordering, "_deal", "read, decide, deal to files")
    profile.watch(publishing, "look_up", "the ledger's fingerprint")
    profile.watch(publishing, "_write_tables", "sort, code, write")
    profile.watch(publishing, "_recheck", "check")
    started = _clocks()
    _publish(mechanism, table)
    print(json.dumps([_minus(_clocks(), started), *profile.spent.values()]))


if __name__ == "__main__":
    main()
