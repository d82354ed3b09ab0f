"""Where the time of publishing goes, by mechanism: seconds by the clock and, in brackets, of all processors.

    python -m bench.publish_profile [--rows 10000000] [--mechanisms bucketize perturb]

The table and the policies are those of `bench.publish_speed`; the rows that are printed go into
docs/cluster.md.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from bench.publish_jobs import generate, in_own_process, options_parser, publish, warm_up
from dalenius import publishing
from dalenius.engines.local import writing
from dalenius.engines.local.scan import LocalScan
from dalenius.mechanisms import registry

PHASES = ["plan and fingerprint", "read, decide, deal to files", "sort, code, write", "check"]
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
    parser = options_parser()
    parser.add_argument("--rows", type=int, default=10**7)
    options = parser.parse_args()
    if options.measure:
        _measure(options.measure[0], Path(options.measure[1]))
        return
    print("| | " + " | ".join(["all", *PHASES]) + " |\n" + "|---" * (len(PHASES) + 2) + "|")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        table = Path(folder) / "table.parquet"
        generate(options.rows, table)
        for mechanism in options.mechanisms:
            found = in_own_process("bench.publish_profile", mechanism, table)
            cells = [f"{clock:.1f} ({processor:.1f})" for clock, processor in found]
            print(f"| {mechanism} | " + " | ".join(cells) + " |", flush=True)


def _measure(mechanism: str, table: Path) -> None:
    warm_up(table.parent)
    profile = Profile()
    for name in registry.kinds():
        kind = type(registry.room(name, None, "mechanism").MECHANISM)
        profile.watch(kind, "plan", "plan and fingerprint")
        profile.watch(kind, "draft", "plan and fingerprint")
    profile.watch(LocalScan, "n_different", "read, decide, deal to files")
    profile.watch(writing, "_deal", "read, decide, deal to files")
    profile.watch(publishing, "look_up", "plan and fingerprint")
    profile.watch(publishing, "_write_tables", "sort, code, write")
    profile.watch(publishing, "_recheck", "check")
    started = _clocks()
    publish(mechanism, table)
    print(json.dumps([_minus(_clocks(), started), *profile.spent.values()]))


if __name__ == "__main__":
    main()
